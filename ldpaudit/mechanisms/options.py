"""A mechanism as a command states it: the one form from which every mechanism is built."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray, Label

CLASSES: Final = ("classes", "labels")
PRIOR: Final = ("prior", "private_prior")
RESPONSE: Final = ("epsilon", "noise", *CLASSES)
NOISE: Final = ("epsilon", "labels", "clipped")
STEPS: Final = (*NOISE, "round")
DESIGN: Final = ("epsilon", *CLASSES, *PRIOR, "loss", "round")
SYNTHETIC: Final = ("synthetic", "generator", "generator_data", "synthetic_out", "synthetic_rows")
"""The options of ``ldpaudit privatize`` that several mechanisms use, by their fields' names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MechanismOptions:
    """A mechanism as a command states it.

    Parameters
    ----------
    epsilon, noise : float or None
        ε in nats or λ; not both.
    classes : tuple or None
        The labels one by one; None where they are unknown, or any number in a range.
    labels : LabelRange or None
        The range of numeric labels.
    prior : float64 array of shape (k,) or None
        The probabilities of ``classes``.
    loss : {"squared", "absolute", "poisson"}
        The loss that a design for a prior minimises.
    settings : mapping
        Further parameters by their names in the declaration, such as ``clipped`` or ``floor``.
    """

    epsilon: float | None = None
    noise: float | None = None
    classes: tuple[Label, ...] | None = None
    labels: LabelRange | None = None
    prior: FloatArray | None = None
    loss: Loss = "squared"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def stated(self) -> dict[str, Any]:
        """Return the stated parameters of a declaration, without labels."""
        amounts = {"epsilon": self.epsilon, "lambda": self.noise}
        return dict(self.settings) | {k: v for k, v in amounts.items() if v is not None}

    def stated_classes(self) -> dict[str, Any]:
        """Return the labels one by one, as in a declaration; nothing where unknown."""
        return {} if self.classes is None else {"classes": list(self.classes)}

    def stated_range(self) -> dict[str, Any]:
        """Return the labels' range, as in a declaration; nothing where unknown."""
        return {} if self.labels is None else self.labels.declaration()

    def for_prior(self, name: str) -> tuple[tuple[Label, ...], FloatArray, float]:
        """Return labels, prior and ε for a mechanism that is designed for a prior.

        Raises
        ------
        InputError
            If one of them is not stated, or if settings are.
        """
        if self.settings:
            raise InputError(f"The mechanism {name!r} takes no further parameter here.")
        if self.classes is None or self.prior is None or self.epsilon is None:
            raise InputError(f"The mechanism {name!r} needs a prior: state --prior FILE.")
        return self.classes, self.prior, self.epsilon
