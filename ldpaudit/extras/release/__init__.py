"""``privatize``, and the generators of synthetic features."""
