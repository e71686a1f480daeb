"""Losses of released labels, corrected for the channel that the labels went through.

For losses ℓ(h(x), y) of each possible label, the backward correction is a linear combination whose
mean over the channel is the loss of the true label; the forward correction sends the model's
probabilities through the channel instead.
"""

import numpy as np

from ldpaudit.estimators.loss.posterior_intervals import onto_simplex
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.release import FloatArray, IntArray


def label_targets(codes: IntArray, channel: Channel) -> FloatArray:
    """Return the unbiased soft label of each row: E[target | y] is the indicator of y.

    Parameters
    ----------
    codes : int array of shape (n,)
        Released labels, positions in ``channel.outputs``.
    channel : Channel
        The channel T (k × m), of rank k.

    Returns
    -------
    float64 array of shape (n, k)
        Row z of the inverse R with T R = I. Rows sum to 1; entries may be negative or above 1.

    Raises
    ------
    InputError
        If a code lies outside the channel's outputs, or the channel cannot be inverted.

    References
    ----------
    Patrini et al. (2017), Theorem 1; van Rooyen and Williamson (2018), Theorem 5.
    """
    targets: FloatArray = channel.inverse[check_codes(codes, len(channel.outputs))]
    return targets


def forward_losses(probability: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Return the forward log-loss −log Σ_y p_y T[y, z] of each row in nats, shape (n,).

    Both arguments are float64 arrays of shape (n, k): the model's probabilities, and the channel's
    T[y, z] at the released label z for every y.

    References
    ----------
    Patrini et al. (2017), Theorem 2.
    """
    evidence = (probability * likelihood).sum(axis=1)
    return np.asarray(-np.log(np.maximum(evidence, 1e-300)))


def forward_loss(probability: FloatArray, likelihood: FloatArray) -> float:
    """Return the mean of :func:`forward_losses`."""
    return float(forward_losses(probability, likelihood).mean())


def clean_posterior(noisy_posterior: FloatArray, channel: Channel) -> FloatArray:
    """Return P(y | x) from P(ỹ | x): invert the channel, then project on the simplex.

    Parameters
    ----------
    noisy_posterior : float64 array of shape (n, m)
        Probabilities of the released label.
    channel : Channel
        The channel T (k × m), of rank k.

    Returns
    -------
    float64 array of shape (n, k)
        The Euclidean projection of ``noisy_posterior @ channel.inverse``; may hold zeros.

    Raises
    ------
    InputError
        If the channel cannot be inverted.
    """
    return onto_simplex(noisy_posterior @ channel.inverse)
