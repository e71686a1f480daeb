"""The work of ``learn``: read, train, score; the same with true labels where they are known."""

from dataclasses import replace

import numpy as np

from ldpaudit.api import read_with, seed_of
from ldpaudit.api.reading import opened, read_columns
from ldpaudit.commands.learn.request import LearnRequest
from ldpaudit.commands.learn.result import Learnt
from ldpaudit.commands.utility.beside import OtherColumns, other_columns
from ldpaudit.commands.utility.learner import Learner
from ldpaudit.commands.utility.scores import utility
from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.datasets.vector import VectorReport
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import UNKNOWN
from ldpaudit.options import named_columns
from ldpaudit.randomness import child_generator
from ldpaudit.release import Release, ReleasedLabels
from ldpaudit.result import Estimate
from ldpaudit.running.progress import Progress

_Read = tuple[
    ReadReport | VectorReport, Release, LabelledRows, OtherColumns | None, OtherColumns | None
]
"""What was read; the column's release and test rows; the other columns, noisy and true."""


def learn(request: LearnRequest, progress: Progress) -> Learnt:
    """Train a learner that is corrected for the declared mechanism, and score it on test rows.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input or the options.
    """
    request.check()
    progress.step("reading")
    reading, release, test, beside, of_truth = _read(request)
    for remark in reading.remarks:
        progress.remark(remark)
    learner = Learner(request.learner, request.device, loss=request.loss, beside=beside)
    seed = seed_of(request, release.sha256)
    progress.step("training")
    linear = release.numeric is not None and request.learner == "logistic"
    rng = child_generator(seed, "learn", "learner")
    found = utility(release, test, learner, request.confidence, rng)
    return Learnt(
        release=release.name,
        mechanism=release.declaration.name if release.declaration is not None else UNKNOWN,
        learner="linear" if linear else request.learner,
        correction=found.correction.words,
        rows=len(release),
        test_rows=len(test),
        score=found.estimate,
        reference=_reference(release, test, replace(learner, beside=of_truth), request, progress),
        constant=_constant(test),
        warnings=reading.warnings,
    )


def _read(request: LearnRequest) -> _Read:
    """Return the release of the column to learn, with the other private ones beside it."""
    named = [one.label for one in named_columns(request)]
    source, declared = opened(request.release, request)
    if len(named) == 1 and named[0] in declared:
        request = replace(request, label=())  # The other declared columns are read, too.
    if len(named) < 2 and (len(declared) < 2 or not {*named} <= {*declared}):
        alone = read_with(source, request)
        assert alone.test is not None
        return alone, alone.release, alone.test, None, None
    if not named:
        raise InputError(
            f"The release declares {len(declared)} private columns; name the one to learn: --label."
        )
    reading = read_columns(source, request)
    assert isinstance(reading, VectorReport)
    return _beside(reading, named[0])


def _beside(reading: VectorReport, label: str) -> _Read:
    vector, tests = reading.vector, reading.tests
    at = [one.label for one in vector.columns].index(label)
    test = tests[at]
    assert test is not None
    known = all(column.truth is not None for column in vector.columns)
    return (
        reading,
        vector.alone(at),
        replace(test, features=test.features.without(vector.others[at])),
        other_columns(vector, at, tests),
        other_columns(vector, at, tests, true=True) if known else None,
    )


def _reference(
    release: Release,
    test: LabelledRows,
    learner: Learner,
    request: LearnRequest,
    progress: Progress,
) -> Estimate | None:
    """Return the score of the same learner on the true labels, None where they are not given."""
    if release.truth is None:
        return None
    progress.step("training on the true labels")
    numeric = release.numeric
    if numeric is not None:
        assert numeric.truth is not None
        numeric = replace(numeric, released=numeric.truth)
    true = replace(
        release,
        released=ReleasedLabels(release.truth),
        outputs=release.classes,
        numeric=numeric,
        features=release.features if release.original is None else release.original,
    )
    rng = child_generator(seed_of(request, release.sha256), "learn", "reference")
    truthful = replace(learner, true=True)
    return utility(true, test, truthful, request.confidence, rng).estimate


def _constant(test: LabelledRows) -> float:
    """Return the accuracy, or the squared error, of the best single answer on the test rows."""
    if test.labels is not None:
        return float(np.bincount(test.labels).max() / len(test))
    assert test.numbers is not None
    return float(np.var(test.numbers))
