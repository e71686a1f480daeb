"""The work of ``learn``: read, train, score; the same with true labels where they are known."""

from dataclasses import replace

from ldpaudit.api import seed_of
from ldpaudit.commands.learn.request import LearnRequest
from ldpaudit.commands.learn.result import Learnt, StoredRelease
from ldpaudit.commands.utility.learner import Learner
from ldpaudit.commands.utility.reading import ColumnToLearn, column_to_learn
from ldpaudit.commands.utility.scores import utility
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.mechanisms import UNKNOWN
from ldpaudit.randomness import child_generator
from ldpaudit.release import ReleasedLabels
from ldpaudit.result import Estimate
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.work.progress import Progress


@unchanged()
def learn(request: LearnRequest, progress: Progress) -> Learnt:
    """Train a learner that is corrected for the declared mechanism, and score it on test rows.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input or the options.
    """
    request.check()
    progress.step("reading")
    column = column_to_learn(request.release, request)
    release, test = column.release, column.test
    for remark in column.reading.remarks:
        progress.remark(remark)
    learner = Learner(request.learner, request.device, loss=request.loss, beside=column.beside)
    seed = seed_of(request, release.sha256)
    progress.step("training")
    linear = release.numeric is not None and request.learner == "logistic"
    rng = child_generator(seed, "learn", "learner")
    found = utility(release, test, learner, request.confidence, rng)
    return Learnt(
        access=CONFIDENTIAL,
        schema_version="1.0",
        release=StoredRelease(name=release.name, rows=len(release)),
        mechanism=release.declaration.name if release.declaration is not None else UNKNOWN,
        learner="linear" if linear else request.learner,
        correction=found.correction.words,
        test_rows=len(test),
        score=found.estimate,
        reference=_reference(column, learner, request, progress),
        constant=found.constant,
        beside=found.beside,
        warnings=(*column.reading.warnings, *found.warnings),
    )


def _reference(
    column: ColumnToLearn,
    learner: Learner,
    request: LearnRequest,
    progress: Progress,
) -> Estimate | None:
    """Return the score of the same learner on the true labels, None where they are not given."""
    release = column.release
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
    truthful = replace(learner, true=True, beside=column.beside_in_truth)
    return utility(true, column.test, truthful, request.confidence, rng).estimate
