"""Honest ways of making a release: as declared, some of them suspicious at first sight."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ldpaudit.commands.selftest.people import People, people, repeated
from ldpaudit.commands.selftest.planted import (
    LABEL,
    Planted,
    Setting,
    features,
    noisy,
    released,
    true_labels,
)
from ldpaudit.release import IndexArray

if TYPE_CHECKING:
    import pandas as pd

_Order = Callable[["pd.DataFrame", np.random.Generator], IndexArray]


def persons_of(setting: Setting, rng: np.random.Generator) -> People:
    """Draw the people of a release."""
    return people(setting.rows, _groups(setting), rng)


def made(setting: Setting, persons: People, rng: np.random.Generator) -> "tuple[pd.DataFrame, Any]":
    """Return the released columns of people, as declared, and their true labels."""
    mechanism, truth = setting.made_with(), true_labels(setting, persons)
    frame = features(mechanism, persons, rng)
    return frame.assign(**{LABEL: noisy(mechanism, truth, rng)}), truth


def _groups(setting: Setting) -> int:
    """Return how many classes people have; labels that are numbers need none of their own."""
    return 2 if setting.numeric else setting.classes


def _plain(setting: Setting, rng: np.random.Generator) -> Planted:
    frame, truth = made(setting, persons_of(setting, rng), rng)
    return _done(setting, frame, truth)


def _done(
    setting: Setting, frame: "pd.DataFrame", truth: Any, order: IndexArray | None = None
) -> Planted:
    return released(setting, frame, truth, float(setting.made_with().epsilon or 0.0), order)


def _ordered(order: _Order) -> Callable[[Setting, np.random.Generator], Planted]:
    def make(setting: Setting, rng: np.random.Generator) -> Planted:
        frame, truth = made(setting, persons_of(setting, rng), rng)
        return _done(setting, frame, truth, order(frame, rng))

    return make


def _derived(setting: Setting, rng: np.random.Generator) -> Planted:
    frame, truth = made(setting, persons_of(setting, rng), rng)
    places = np.unique(frame[LABEL], return_inverse=True)[1]
    score = 2 * places + rng.standard_normal(len(frame))
    return _done(setting, frame.assign(score=score), truth)


def _duplicates(setting: Setting, rng: np.random.Generator) -> Planted:
    """Four people have equal features; their labels and their noise are their own."""
    alike = repeated(setting.rows, 4, rng, _groups(setting))
    others = persons_of(setting, rng)
    codes = np.where(rng.random(len(alike)) < 0.5, alike.codes, others.codes)
    mixed = People(alike.frame, codes.astype(np.int32), alike.classes)
    mechanism, truth = setting.made_with(), true_labels(setting, mixed)
    if setting.numeric:
        truth = np.where(rng.random(len(truth)) < 0.5, truth, true_labels(setting, others))
    frame = features(mechanism, mixed, rng).assign(**{LABEL: noisy(mechanism, truth, rng)})
    return _done(setting, frame, truth)


HONEST: Final[Mapping[str, Callable[[Setting, np.random.Generator], Planted]]] = {
    "as declared": _plain,
    "sorted by the released label": _ordered(
        lambda frame, _: np.argsort(frame[LABEL].to_numpy(), kind="stable")
    ),
    "sorted by a feature": _ordered(lambda frame, _: np.argsort(frame.iloc[:, 0].to_numpy())),
    "a column computed from the released label": _derived,
    "people with equal features": _duplicates,
}
"""Each way, and what makes a release in it."""
