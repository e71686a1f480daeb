"""From what a command states to the labels, their prior, and a mechanism on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldpaudit.commands.priors import SAME, prior_over
from ldpaudit.datasets.probabilities import read_prior, split_labels
from ldpaudit.errors import InputError, did_you_mean, refuse
from ldpaudit.mechanisms import MechanismOptions, family, names, traits_of
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.label_range import LabelRange, Loss
from ldpaudit.mechanisms.parameters import check_classes, check_epsilon, check_proportion
from ldpaudit.mechanisms.registry import families
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.plugins import NOT_HERE
from ldpaudit.release import FloatArray, Label

# Of an exact analysis.
MOST_LABELS: Final = 4096


@dataclass(frozen=True, eq=False)
class Domain:
    """The true labels of a mechanism.

    Parameters
    ----------
    classes : tuple, length k, or None
        The labels, distinct; None for any number of a range.
    range : LabelRange or None
        Their range, where they are numbers on a grid or anywhere in it.
    prior : float64 array of shape (k,) or None
        Their probabilities, summing to 1.
    """

    classes: tuple[Label, ...] | None
    range: LabelRange | None = None
    prior: FloatArray | None = None


def read_domain(
    classes: str | Sequence[Label] | None,
    labels: str | None,
    prior: Path | None,
    files: FileOptions = AS_FOUND,
) -> Domain:
    """Return the labels that ``--classes``, ``--labels`` and ``--prior`` state together.

    A range without a step means any number of it, with a prior the step 1; a prior names the labels
    where nothing else does. ``files``: how its file is written.

    Raises
    ------
    InputError
        If labels are stated twice, or are no valid labels, or the prior is not one of theirs.
    """
    refuse(
        classes is not None and labels is not None,
        "Give the labels once: --classes or --labels, not both.",
    )
    table = None if prior is None else read_prior(prior, files)
    span = None if labels is None else LabelRange.parse(labels)
    if span is not None and span.step is None and table is None:
        return Domain(None, span)
    if span is not None:
        span = grid(span)
        refuse(
            span.steps >= MOST_LABELS,
            f"At most {MOST_LABELS} labels can be analysed; use a larger step.",
        )
        named = span.classes
    elif classes is not None:
        named = check_classes(split_labels(classes) if isinstance(classes, str) else tuple(classes))
    elif table is not None:
        named = check_classes(table.labels)
    else:
        raise InputError("Give the labels: --classes A,B,… or --labels LO:HI:STEP.")
    refuse(
        len(named) > MOST_LABELS, f"At most {MOST_LABELS} labels can be analysed. Got {len(named)}."
    )
    given = None if table is None else prior_over(named, table)
    return Domain(named, span or _range_of(named), given)


def grid(labels: LabelRange) -> LabelRange:
    """Return a range with a step: its own, or 1."""
    return labels if labels.step is not None else LabelRange(labels.low, labels.high, 1.0)


def _range_of(classes: tuple[Label, ...]) -> LabelRange | None:
    """Return the grid that the labels form, None where they do not."""
    if any(isinstance(label, bool | str) for label in classes):
        return None
    values = np.asarray(classes, dtype=np.float64)
    gaps = np.diff(values)
    if not (gaps > 0).all() or not np.allclose(gaps, gaps[0], rtol=SAME, atol=0):
        return None
    low, step = float(values[0]), float(gaps[0])
    return LabelRange(low, low + step * len(gaps), step)


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
        key, equals, value = (part.strip() for part in text.partition("="))
        key = key.replace("-", "_")
        refuse(
            not equals or not key or key in read,
            "Each further parameter must be KEY=VALUE, each key once.",
        )
        truth = {"true": True, "false": False}
        try:
            read[key] = truth[value.lower()] if value.lower() in truth else float(value)
        except ValueError:
            read[key] = value
    return read


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
    refuse((reason := _elsewhere(wanted.name)), reason)
    mechanism, by_scale = family(wanted.name), "scale" in wanted.more
    if (wanted.epsilon is None) == (wanted.noise is None) and not by_scale:
        # A misspelt key may mean one of the two.
        ends = (did_you_mean(key, ("epsilon", "lambda")) for key in wanted.more)
        near = next((end for end in ends if end != "."), ".")
        raise InputError(f"Give one of --epsilon and --lambda{near}")
    refuse(
        wanted.noise is not None and "lambda" not in mechanism.traits.stated_by,
        f"The mechanism {wanted.name!r} is given by --epsilon; it has no λ.",
    )
    if wanted.epsilon is not None:
        check_epsilon(wanted.epsilon)
    if wanted.noise is not None:
        check_proportion("lambda", wanted.noise)
    in_range = "range" in mechanism.traits.needs
    refuse(
        in_range and domain.range is None,
        f"The mechanism {wanted.name!r} must have labels on a range: --labels LO:HI:STEP.",
    )
    classes = domain.classes
    if classes is None and domain.range is not None and not in_range:
        classes = grid(domain.range).classes
    return mechanism.from_options(
        MechanismOptions(
            epsilon=wanted.epsilon,
            noise=wanted.noise,
            classes=None if in_range else classes,
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
