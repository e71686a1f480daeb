"""What a learner knows about the noise: a channel, a mechanism, or nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import NoisyFeatures, SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import check_codes, codes_of
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.registry import from_declaration, full_name
from ldpaudit.release import Declaration, IntArray, Label

Correction = Literal["forward", "backward", "unbiased"]
CORRECTIONS: tuple[str, ...] = get_args(Correction)

Noise = Channel | Mechanism
"""What released the labels; with nothing declared about it the labels are taken as true."""
StatedNoise = Noise | Mapping[str, Any]
"""The same, or a mechanism's name and parameters: its labels are then those that occur."""


@dataclass(frozen=True)
class LabelNoise:
    """The part of a mechanism that a classifier corrects for.

    Attributes
    ----------
    channel : Channel
        The label's channel.
    double : SyntheticFeatures or None
        The whole mechanism where some released features are synthetic.
    gaussian : bool
        Whether the released features carry Gaussian noise.
    """

    channel: Channel
    double: SyntheticFeatures | None = None
    gaussian: bool = False

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
    if not isinstance(noise, Mapping):
        return noise
    parameters = dict(noise)
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise InputError("The 'noise' parameter must have a 'name', such as 'rr'.")
    classes = tuple(np.unique(np.asarray(labels)).tolist())
    return from_declaration(Declaration(full_name(name), parameters, "api"), classes)


def label_noise(noise: Noise) -> LabelNoise:
    """Return what a classifier needs to know of a channel or mechanism.

    Raises
    ------
    InputError
        If the mechanism has no label channel that is the same for all rows.
    """
    if isinstance(noise, Channel):
        return LabelNoise(noise)
    if isinstance(noise, SyntheticFeatures):
        return LabelNoise(noise.label_channel, double=noise)
    channel = noise.channel if isinstance(noise, Mechanism) else None
    if channel is None:
        raise InputError(
            f"The 'noise' parameter must be a Channel or a mechanism with finitely many outputs "
            f"and one label channel for all rows. Got {type(noise).__name__} instead."
        )
    return LabelNoise(channel, gaussian=isinstance(noise, NoisyFeatures))


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
