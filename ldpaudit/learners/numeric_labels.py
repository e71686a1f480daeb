"""Numbers whose mean over the mechanism is the true numeric label."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.learners.noise_model import Noise
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import as_array, codes_of
from ldpaudit.release import FloatArray

_TOLERANCE = 1e-8


def unbiased_values(channel: Channel) -> FloatArray:
    """Return a number v for each output with E[v | y] = y: a solution of T v = labels.

    Parameters
    ----------
    channel : Channel
        Over numeric labels.

    Returns
    -------
    float64 array of shape (m,)
        The outputs themselves where they are unbiased already; else the solution nearest to them.

    Raises
    ------
    InputError
        If labels are not numbers, or no such numbers exist (some labels cannot be told apart).
    """
    labels, outputs = _numbers(channel.classes), _start(channel)
    scale = max(float(np.abs(labels).max()), 1e-300)
    missing = labels - channel.matrix @ outputs
    if np.abs(missing).max() <= _TOLERANCE * scale:
        return outputs
    step, *_ = np.linalg.lstsq(channel.matrix, missing, rcond=1e-10)
    values = np.asarray(outputs + step, dtype=np.float64)
    if np.abs(channel.matrix @ values - labels).max() > 1e-6 * scale:
        raise InputError(
            "The labels cannot be debiased: the channel has no inverse (ε → 0, or labels that "
            "share a bin). Use correction=None, or a mechanism that is unbiased."
        )
    return values


def debiased_labels(released: npt.ArrayLike, noise: Noise) -> FloatArray:
    """Return an unbiased estimate of each row's true label, float64 of shape (n,).

    Parameters
    ----------
    released : array of shape (n,)
        Released labels as the mechanism puts them out.
    noise : Channel or mechanism
        A finite channel, or a mechanism with real outputs and no bias (unclipped noise).

    Raises
    ------
    InputError
        If a label is none of the channel's outputs, or nothing unbiased can be made of it.
    """
    if isinstance(noise, SyntheticFeatures):
        raise InputError(
            "A regressor does not correct for the synthetic features of double randomized "
            "response; to take them for real ones pass its label_channel."
        )
    # What is unbiased for every grid point is so for labels rounded without bias.
    noise = noise if isinstance(noise, Channel) else noise.after_rounding
    channel = noise if isinstance(noise, Channel) else noise.channel
    if isinstance(channel, Channel):
        # Codes first: a label outside the channel must not pass because nothing is biased.
        return unbiased_values(channel)[codes_of(np.asarray(released), channel.outputs)]
    errors = None if isinstance(noise, Channel) else label_errors(noise)
    if errors is None or np.abs(errors.bias).max() > _TOLERANCE:
        raise InputError(
            f"A regressor needs a finite channel or a mechanism without bias. "
            f"Got {type(noise).__name__} instead; its noise must not be clipped."
        )
    return np.asarray(released, dtype=np.float64)


def _start(channel: Channel) -> FloatArray:
    # Outputs that are no numbers are only names.
    if all(isinstance(z, int | float) and not isinstance(z, bool) for z in channel.outputs):
        return _numbers(channel.outputs)
    return np.zeros(len(channel.outputs))


def _numbers(labels: tuple[Any, ...]) -> FloatArray:
    values = as_array(labels)
    if values.dtype.kind not in "iuf":
        raise InputError("The labels of a regression must be numbers; these are not.")
    return values.astype(np.float64)
