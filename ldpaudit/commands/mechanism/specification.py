"""From a name and its parameters to a mechanism, prior-based ones included."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldpaudit.commands.mechanism.domain import Domain, grid
from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms import MechanismOptions, family, names, traits_of
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.parameters import check_epsilon, check_proportion
from ldpaudit.mechanisms.registry import families
from ldpaudit.plugins import NOT_HERE
from ldpaudit.release import Label


@dataclass(frozen=True)
class Specification:
    """The specification of a mechanism: a name, ε or λ, and further parameters.

    Parameters
    ----------
    name : str
        A name of the contract.
    epsilon, noise : float or None
        ε in nats or λ; not both.
    more : mapping
        Further parameters, such as ``clipped``, ``gamma``, ``sigma``, ``floor``.
    loss : {"squared", "absolute", "poisson"}
        What the mechanisms that are designed for a prior minimise.
    """

    name: str
    epsilon: float | None = None
    noise: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    loss: Loss = "squared"


def settings(words: Sequence[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` parameters: numbers, ``true`` and ``false``, else text.

    Raises
    ------
    InputError
        If one is not written so, or a key occurs twice.
    """
    read: dict[str, Any] = {}
    for text in words:
        key, equals, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key or key in read:
            raise InputError("Each further parameter must be KEY=VALUE, each key once.")
        read[key] = _value(value.strip())
    return read


def _value(text: str) -> float | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def build(wanted: Specification, domain: Domain) -> Mechanism:
    """Build the mechanism on the labels of a domain.

    Raises
    ------
    InputError
        If the name is not known, a parameter is missing, unknown or out of range, or the mechanism
        needs a prior or numeric labels and there are none.
    """
    if wanted.name not in names():
        choices = sorted(f.traits.name for f in families() if not _elsewhere(f.traits.name))
        near = did_you_mean(wanted.name, choices, NOT_HERE)
        raise InputError(f"There is no such mechanism; choose one of {', '.join(choices)}{near}")
    if reason := _elsewhere(wanted.name):
        raise InputError(reason)
    mechanism, by_scale = family(wanted.name), "scale" in wanted.more
    if (wanted.epsilon is None) == (wanted.noise is None) and not by_scale:
        raise InputError(f"State one of --epsilon and --lambda{_misspelt(wanted.more)}")
    if wanted.noise is not None and "lambda" not in mechanism.traits.stated_by:
        raise InputError(f"The mechanism {wanted.name!r} is stated by --epsilon; it has no λ.")
    if wanted.epsilon is not None:
        check_epsilon(wanted.epsilon)
    if wanted.noise is not None:
        check_proportion("lambda", wanted.noise)
    in_range = "range" in mechanism.traits.needs
    if in_range and domain.range is None:
        raise InputError(
            f"The mechanism {wanted.name!r} must have labels on a range: --labels LO:HI:STEP."
        )
    return mechanism.from_options(
        MechanismOptions(
            epsilon=wanted.epsilon,
            noise=wanted.noise,
            classes=None if in_range else _classes(domain),
            labels=domain.range,
            prior=domain.prior,
            loss=wanted.loss,
            settings=wanted.more,
        )
    )


def _elsewhere(name: str) -> str:
    """Return why a mechanism is not made from options, "" where it is."""
    traits = traits_of(name)
    if "matrix" in traits.needs:
        return "A channel matrix is analysed by 'ldpaudit mechanism channel FILE'."
    if traits.rows == "bags":
        return f"{traits.title.capitalize()} are declared in the file, with their bags."
    return "" if traits.stated_by else f"Nothing is known of the mechanism {name!r}."


def _misspelt(more: Mapping[str, Any]) -> str:
    """Return the end of the sentence that asks for ε or λ, with the key that may mean it."""
    ends = (did_you_mean(key, ("epsilon", "lambda")) for key in more)
    return next((end for end in ends if end != "."), ".")


def _classes(domain: Domain) -> tuple[Label, ...]:
    if domain.classes is not None:
        return domain.classes
    assert domain.range is not None
    return grid(domain.range).classes
