"""The conditional generative adversarial network: networks, training, calibration.

In: encoded rows with labels. Out: a fitted generator.
"""
