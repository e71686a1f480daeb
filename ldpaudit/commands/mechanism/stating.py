"""From what a command states to the labels, their prior, and a mechanism on them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldpaudit.commands.priors import SAME, prior_over
from ldpaudit.datasets.probabilities import read_prior, split_labels
from ldpaudit.errors import InputError, did_you_mean, refuse
from ldpaudit.mechanisms import MechanismOptions, family, names, traits_of
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.parameters import check_classes, check_epsilon, check_proportion
from ldpaudit.mechanisms.registry import families
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.plugins import NOT_HERE
from ldpaudit.release import Label

# Of an exact analysis.
MOST_LABELS: Final = 4096


def read_domain(
    classes: str | Sequence[Label] | None,
    labels: str | None,
    prior: Path | None,
    files: FileOptions = AS_FOUND,
) -> MechanismOptions:
    """Return the labels that ``--classes``, ``--labels`` and ``--prior`` state together.

    A range without a step means any number of it, with a prior the step 1; a prior names the labels
    where nothing else does. ``files``: how its file is written. InputError: labels are stated
    twice, or are no valid labels, or the prior is not one of theirs.
    """
    twice = classes is not None and labels is not None
    refuse(twice, "Give the labels once: --classes or --labels, not both.")
    table = None if prior is None else read_prior(prior, files)
    span = None if labels is None else LabelRange.parse(labels)
    if span is not None and span.step is None and table is None:
        return MechanismOptions(labels=span)
    if span is not None:
        span = grid(span)
        many = "labels can be analysed; use a larger step."
        refuse(span.steps >= MOST_LABELS, f"At most {MOST_LABELS} {many}")
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
    if span is None and not any(isinstance(label, bool | str) for label in named):
        values = np.asarray(named, dtype=np.float64)
        gaps = np.diff(values)
        if (gaps > 0).all() and np.allclose(gaps, gaps[0], rtol=SAME, atol=0):
            low, step = float(values[0]), float(gaps[0])
            span = LabelRange(low, low + step * len(gaps), step)
    given = None if table is None else prior_over(named, table)
    return MechanismOptions(classes=named, labels=span, prior=given)


def grid(labels: LabelRange) -> LabelRange:
    """Return a range with a step: its own, or 1."""
    return labels if labels.step is not None else LabelRange(labels.low, labels.high, 1.0)


def settings(words: Sequence[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` parameters: numbers, ``true`` and ``false``, else text.

    InputError where one is not written so, or a key occurs twice.
    """
    read: dict[str, Any] = {}
    truth = {"true": True, "false": False}
    for text in words:
        key, equals, value = (part.strip() for part in text.partition("="))
        key = key.replace("-", "_")
        refuse(
            not equals or not key or key in read,
            "Each further parameter must be KEY=VALUE, each key once.",
        )
        try:
            read[key] = truth[value.lower()] if value.lower() in truth else float(value)
        except ValueError:
            read[key] = value
    return read


def build(name: str, wanted: MechanismOptions) -> Mechanism:
    """Build a mechanism by its full name.

    InputError where the name is not known, a parameter is missing, unknown or out of range, or the
    mechanism needs a prior or numeric labels and there are none.
    """
    if name not in names():
        choices = sorted(f.traits.name for f in families() if not _elsewhere(f.traits.name))
        near = did_you_mean(name, choices, NOT_HERE)
        raise InputError(f"There is no such mechanism; choose one of {', '.join(choices)}{near}")
    refuse((reason := _elsewhere(name)), reason)
    mechanism, (epsilon, noise) = family(name), (wanted.epsilon, wanted.noise)
    if (epsilon is None) == (noise is None) and "scale" not in wanted.settings:
        # A misspelt key may mean one of the two.
        ends = (did_you_mean(key, ("epsilon", "lambda")) for key in wanted.settings)
        near = next((end for end in ends if end != "."), ".")
        raise InputError(f"Give one of --epsilon and --lambda{near}")
    refuse(
        noise is not None and "lambda" not in mechanism.traits.stated_by,
        f"The mechanism {name!r} is given by --epsilon; it has no λ.",
    )
    if epsilon is not None:
        check_epsilon(epsilon)
    if noise is not None:
        check_proportion("lambda", noise)
    in_range, classes = "range" in mechanism.traits.needs, wanted.classes
    refuse(
        in_range and wanted.labels is None,
        f"The mechanism {name!r} must have labels on a range: --labels LO:HI:STEP.",
    )
    if in_range:
        classes = None
    elif classes is None and wanted.labels is not None:
        classes = grid(wanted.labels).classes
    return mechanism.from_options(replace(wanted, classes=classes))


def _elsewhere(name: str) -> str:
    """Return why a mechanism is not made from options, "" where it is."""
    traits = traits_of(name)
    if "matrix" in traits.needs:
        return "A channel matrix is analysed by 'ldpaudit mechanism channel FILE'."
    if traits.rows == "bags":
        return f"{traits.title.capitalize()} are declared in the file, with their bags."
    return "" if traits.stated_by else f"Nothing is known of the mechanism {name!r}."
