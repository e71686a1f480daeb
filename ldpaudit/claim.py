"""From what options or a caller state about the mechanism to a declaration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.options import ClaimOptions
from ldpaudit.release import Declaration


def claim_from_options(
    mechanism: str | None,
    epsilon: float | None,
    noise: float | None,
    channel: Path | None,
    labels: str | None = None,
) -> Declaration | None:
    """Return the claim that the options state, None where they state none.

    Raises
    ------
    InputError
        If they contradict one another.
    """
    if channel is not None:
        others = (epsilon, noise, labels)
        if mechanism not in (None, "channel") or any(value is not None for value in others):
            raise InputError("--channel is a whole claim; give no other mechanism, ε or λ with it.")
        from ldpaudit.datasets import read_channel

        return read_channel(channel)
    stated = {"epsilon": epsilon, "lambda": noise}
    parameters = {key: value for key, value in stated.items() if value is not None}
    if labels is not None:
        parameters |= _numeric_labels(mechanism, labels)
    if mechanism is None:
        return Declaration("randomized-response", parameters, "options") if parameters else None
    if mechanism == "channel":
        raise InputError("--mechanism channel needs its matrix: --channel FILE.")
    if mechanism == "unknown" and parameters:
        raise InputError("--mechanism unknown claims nothing; give no ε or λ with it.")
    from ldpaudit.mechanisms import full_name

    return Declaration(full_name(mechanism), parameters, "options")


def _numeric_labels(mechanism: str | None, labels: str) -> dict[str, Any]:
    """Return how a mechanism on numbers declares its labels."""
    from ldpaudit.mechanisms.label_range import LabelRange
    from ldpaudit.mechanisms.numeric.view import NUMERIC_NAMES

    if mechanism not in NUMERIC_NAMES:
        raise InputError(
            "--labels must come with a --mechanism on numbers: " + ", ".join(sorted(NUMERIC_NAMES))
        )
    found = LabelRange.parse(labels)
    if mechanism in ("debiased-rr", "rr-on-bins", "optimal-unbiased"):
        return {"classes": list(found.classes)}
    return found.declaration()


def declaration_of(
    mechanism: Mechanism | Declaration | Mapping[str, Any] | ClaimOptions | str | None,
) -> Declaration | None:
    """Return the declaration of a claim in any of its forms, None where nothing is claimed.

    Raises
    ------
    InputError
        If a mapping has no name, or options contradict one another.
    """
    if isinstance(mechanism, ClaimOptions):
        return claim_from_options(
            mechanism.mechanism,
            mechanism.epsilon,
            mechanism.noise,
            mechanism.channel,
            mechanism.labels,
        )
    if mechanism is None or isinstance(mechanism, Declaration):
        return mechanism
    if isinstance(mechanism, str):
        return Declaration(mechanism, {}, "api")
    if isinstance(mechanism, Mapping):
        parameters = dict(mechanism)
        name = parameters.pop("name", None)
        if not isinstance(name, str):
            raise InputError("A declared mechanism must have a 'name'.")
        return Declaration(name, parameters, "api")
    return Declaration(mechanism.name, dict(mechanism.declaration()), "api")
