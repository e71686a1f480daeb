"""The work of ``learn``: read, train, score; the same with true labels where they are known."""

from dataclasses import replace

import numpy as np

from ldpaudit.api import read_with, seed_of
from ldpaudit.commands.learn.request import LearnRequest
from ldpaudit.commands.learn.result import Learnt
from ldpaudit.commands.utility.learner import Learner
from ldpaudit.commands.utility.scores import utility
from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.mechanisms import UNKNOWN
from ldpaudit.randomness import child_generator
from ldpaudit.release import Release, ReleasedLabels
from ldpaudit.result import Estimate
from ldpaudit.running.progress import Progress


def learn(request: LearnRequest, progress: Progress) -> Learnt:
    """Train a learner that is corrected for the declared mechanism, and score it on test rows.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input or the options.
    """
    request.check()
    progress.step("reading")
    reading = read_with(request.release, request)
    for remark in reading.remarks:
        progress.remark(remark)
    release, test = reading.release, reading.test
    assert test is not None
    learner = Learner(request.learner, request.device, loss=request.loss)
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
        reference=_reference(release, test, learner, request, seed, progress),
        constant=_constant(test),
        warnings=reading.warnings,
    )


def _reference(
    release: Release,
    test: LabelledRows,
    learner: Learner,
    request: LearnRequest,
    seed: int,
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
    rng = child_generator(seed, "learn", "reference")
    truthful = replace(learner, true=True)
    return utility(true, test, truthful, request.confidence, rng).estimate


def _constant(test: LabelledRows) -> float:
    """Return the accuracy, or the squared error, of the best single answer on the test rows."""
    if test.labels is not None:
        return float(np.bincount(test.labels).max() / len(test))
    assert test.numbers is not None
    return float(np.var(test.numbers))
