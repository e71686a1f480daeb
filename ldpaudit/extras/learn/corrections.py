"""What released labels say of true ones, for learners: corrected losses, labels and checks.

For losses ℓ(h(x), y) of each possible label, the backward correction is a linear combination whose
mean over the channel is the loss of the true label. Under double randomized response, with noise p,
k labels, R the inverse of randomized response and P̂_j the synthetic features of label j,

  E_P[ℓ(h(X), Y)] = E[Σ_y R[Ỹ, y] ℓ(h(X̃), y)]/(1 − p)
                    − p/(k(1 − p)) Σ_j E_{x ~ P̂_j, y ~ P_Y}[ℓ(h(x), y)].

The published last term has a plus sign and lacks the factor 1/k; with it the loss is not unbiased.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ldpaudit.doors import (
    Channel,
    Declaration,
    FloatArray,
    InputError,
    IntArray,
    Mechanism,
    NoisyFeatures,
    SyntheticFeatures,
    from_declaration,
)
from ldpaudit.errors import quoted
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.finite import as_array, check_codes, codes_of
from ldpaudit.mechanisms.registry import full_name
from ldpaudit.options import parse_label
from ldpaudit.release import Label

# How far a mean may be from its label and count as unbiased.
_TOLERANCE = 1e-8


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


def double_targets(
    codes: IntArray,
    synthetic_codes: IntArray,
    mechanism: SyntheticFeatures,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the soft labels under which a loss is unbiased for double randomized response.

    Parameters
    ----------
    codes : int array of shape (n,)
        Released labels.
    synthetic_codes : int array of shape (s,)
        Labels of a sample of the synthetic features; every label must occur.
    mechanism : SyntheticFeatures
        With λ < 1.
    weights : float64 array of shape (n,), optional
        Weights of the released rows.

    Returns
    -------
    float64 arrays of shape (n, k) and (s, k)
        For the released rows, each summing to weight/(1 − p); for the synthetic rows, summing to
        −p/(1 − p) over all. Σ targets · losses over both tables is the unbiased mean loss.

    Notes
    -----
    P_Y is estimated from the released labels, which leaves the loss unbiased: it enters linearly,
    and the synthetic sample is independent of it.

    Raises
    ------
    InputError
        If λ = 1, a code is out of range, or a label has no synthetic row.

    References
    ----------
    Busa-Fekete et al. (2023), Lemma G.1, with the last term's sign and factor corrected.
    """
    k, p = len(mechanism.classes), mechanism.noise
    targets = label_targets(codes, mechanism.label_channel)
    share = np.ones(len(targets)) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    prior = share @ targets
    counts = np.bincount(check_codes(synthetic_codes, k), minlength=k)
    if (counts == 0).any():
        raise InputError(
            f"The synthetic sample must have rows of every label; {int((counts == 0).sum())} of "
            f"{k} labels have none."
        )
    each = -p / (k * (1 - p)) / counts[synthetic_codes]
    return targets * share[:, None] / (1 - p), each[:, None] * prior


Correction = Literal["forward", "backward", "unbiased"]
CORRECTIONS: tuple[str, ...] = get_args(Correction)
# What released the labels; with nothing declared about it the labels are taken as true.
Noise = Channel | Mechanism
# The same, or a mechanism's name and parameters: its labels are then those that occur.
StatedNoise = Noise | Mapping[str, Any] | Declaration | str


@dataclass(frozen=True)
class LabelNoise:
    """The part of a mechanism that a classifier corrects for."""

    channel: Channel
    """The label's channel."""
    double: SyntheticFeatures | None = None
    """The whole mechanism where some released features are synthetic."""
    gaussian: bool = False
    """Whether the released features carry Gaussian noise."""

    def codes(self, labels: npt.ArrayLike, kind: str) -> IntArray:
        """Return released labels as positions in the channel's outputs, int32 of shape (n,)."""
        values = np.asarray(labels)
        if kind == "values":
            return codes_of(values, self.channel.outputs)
        return check_codes(_whole(values), len(self.channel.outputs))


def stated_noise(noise: StatedNoise, labels: npt.ArrayLike) -> Noise:
    """Return the channel or mechanism; one that is stated without labels is on those that occur.

    Raises
    ------
    InputError
        If a mapping has no name, or its mechanism or a parameter is unknown.
    """
    if isinstance(noise, str):
        return stated_noise(_read(noise), labels)
    if isinstance(noise, Declaration):
        return stated_noise({"name": noise.name, **noise.parameters}, labels)
    if not isinstance(noise, Mapping):
        return noise
    parameters = dict(noise)
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise InputError("The 'noise' parameter must have a 'name', such as 'rr'.")
    classes = tuple(np.unique(np.asarray(labels)).tolist())
    return from_declaration(Declaration(full_name(name), parameters, "api"), classes)


def _read(text: str) -> dict[str, Any]:
    """Return a mechanism's name and its parameters, as in ``"rr:epsilon=1"`` (InputError)."""
    stated = parse_label(f"label:{text}").stated()
    name = stated.pop("mechanism", None)
    if name is None or not stated:
        raise InputError(
            "The 'noise' parameter must have its name and its parameters, such as 'rr:epsilon=1'. "
            f"Got {quoted(text)} instead."
        )
    return {"name": name, **stated}


def label_noise(noise: Noise) -> LabelNoise:
    """Return what a classifier needs to know of a channel or mechanism.

    Raises
    ------
    InputError
        If the mechanism has no label channel that is the same for all rows.
    """
    if isinstance(noise, Channel):
        return LabelNoise(noise)
    mechanism = noise if isinstance(noise, Mechanism) else None
    double = None if mechanism is None else mechanism.offers(SyntheticFeatures)
    if double is not None:
        return LabelNoise(double.label_channel, double=double)
    channel = None if mechanism is None else mechanism.channel
    if mechanism is None or channel is None:
        raise InputError(
            f"The 'noise' parameter must be a Channel or a mechanism with finitely many outputs "
            f"and one label channel for all rows. "
            f"Got {getattr(noise, 'name', type(noise).__name__)} instead."
        )
    return LabelNoise(channel, gaussian=mechanism.offers(NoisyFeatures) is not None)


def check_correction(
    correction: str | None, noise: LabelNoise | None, model: str, synthetic: bool
) -> None:
    """Refuse an unknown correction, or one that would be wrong for this noise.

    Raises
    ------
    InputError
        Naming the correction that is right.
    """
    if correction is not None and correction not in CORRECTIONS:
        raise InputError(
            f"The 'correction' parameter must be one of {', '.join(CORRECTIONS)} or None. "
            f"Got {correction!r} instead."
        )
    if noise is None or correction is None:
        return
    if noise.gaussian and correction == "unbiased":
        raise InputError(
            "The unbiased loss under Gaussian features is not a loss of one row's logits: use "
            "IWPClassifier, or correct the label alone by 'forward' or 'backward'."
        )
    if noise.double is None:
        return
    if correction != "unbiased":
        raise InputError(
            f"Under double randomized response the correction must be 'unbiased': {correction!r} "
            "would take synthetic rows for real ones. To do so on purpose pass its label_channel."
        )
    if model == "boosting":
        raise InputError(
            "The unbiased loss of double randomized response has rows of negative weight, which "
            "make a tree's loss unbounded: use the model 'logistic' or 'network'."
        )
    if not synthetic:
        raise InputError(
            "The unbiased loss of double randomized response needs samples of the synthetic "
            "features of each label: pass 'synthetic' and 'synthetic_labels' to fit."
        )


def plain_channel(values: npt.NDArray[Any]) -> Channel:
    """Return the identity channel over the labels that occur, for labels without noise."""
    labels: tuple[Label, ...] = tuple(np.unique(values).tolist())
    return Channel(np.eye(len(labels)), labels, labels)


def _whole(values: npt.NDArray[Any]) -> IntArray:
    if values.dtype.kind not in "iu":
        raise InputError(
            f"Released labels given as codes must be integers. Got {values.dtype} instead; pass "
            "labels='values' for label values."
        )
    return values.astype(np.int64)


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
    if noise.offers(SyntheticFeatures) is not None:
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
            f"Got {getattr(noise, 'name', type(noise).__name__)} instead; "
            "its noise must not be clipped."
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
