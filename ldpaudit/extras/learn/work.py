"""`ldpaudit learn`: read, train, score; the same with true labels where they are known."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pydantic import Field

from ldpaudit.api import seed_of
from ldpaudit.audits.assumptions.standing import check_alignment
from ldpaudit.audits.models import one_channel
from ldpaudit.commands.shell import Confidential
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.doors import (
    AuditContext,
    Estimate,
    Frozen,
    Plan,
    Progress,
    Said,
    child_generator,
    number,
    percent,
)
from ldpaudit.extras.learn.request import LearnRequest
from ldpaudit.extras.learn.utility.companions import ColumnToLearn, column_to_learn
from ldpaudit.extras.learn.utility.learner import Learner
from ldpaudit.extras.learn.utility.scores import utility
from ldpaudit.mechanisms import UNKNOWN, from_declaration
from ldpaudit.release import ReleasedLabels

# Of squared errors, which may be large.
_DIGITS: Final = 5


class StoredRelease(Frozen):
    """What was learnt from."""

    name: str = Field(description="The file's name.")
    rows: int = Field(description="Its rows.")


class Learnt(Confidential):
    """The score of a learner on test rows."""

    release: StoredRelease = Field(description="The release that was learnt from.")
    mechanism: str = Field(description="The name of its mechanism.")
    learner: str = Field(description="The learner.")
    correction: str = Field(description="How its loss is corrected for the noise, in words.")
    test_rows: int = Field(description="Rows that it was tested on.")
    score: Estimate = Field(description="Its accuracy, or its squared error.")
    reference: Estimate | None = Field(
        description="The same of that learner on the true labels; null where they were not given."
    )
    constant: float = Field(description="What the best constant answer reaches.")
    beside: tuple[Estimate, ...] = Field(
        description="The constant's score, the area under the ROC curve of classes, and the "
        "Poisson deviance where the model was trained for it."
    )
    warnings: tuple[str, ...] = Field(description="Sentences for people.")

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield the score, and what to compare it with; quiet: the score only."""
        if not quiet:
            yield self.access
        score = self.score
        yield f"{score.title}: {_shown(score)}."
        if quiet:
            return
        rows = f"trained on {self.release.rows:,} rows"
        yield "learner", f"{self.learner}, {rows}; {self.correction}"
        if self.reference is not None:
            yield "true labels", f"{_shown(self.reference)} by the same learner"
        constant = f"{_plain(self.constant, score)} by the best single answer"
        if score.unit != "proportion" and self.constant > 0:
            below = 1 - score.value / self.constant
            side = "below" if below >= 0 else "above"
            constant += f"; the model is {100 * abs(below):.3g} % {side} it"
        yield "constant", constant
        for one in self.beside[1:]:
            name = "AUC" if one.id == "test_auc" else "deviance"
            yield name, f"{number(one.value)}: {one.title.replace('Area', 'area')}"
        yield from (("warning", text) for text in self.warnings)


@unchanged()
def learn(request: LearnRequest, progress: Progress) -> Learnt:
    """Train a learner that is corrected for the declared mechanism, and score it on test rows."""
    request.check()
    progress.step("reading")
    column = column_to_learn(request.release, request, request.test)
    release, test = column.release, column.test
    for remark in column.reading.remarks:
        progress.remark(remark)
    learner = Learner(request.learner, request.device, loss=request.loss, beside=column.beside)
    seed = seed_of(request, release.sha256)
    if release.truth is not None:
        claim = from_declaration(release.declaration, release.classes)
        check_alignment(one_channel(AuditContext(release, claim, Plan(seed=seed))))
    progress.step("training")
    linear = release.numeric is not None and request.learner == "logistic"
    rng = child_generator(seed, "learn", "learner")
    found = utility(release, test, learner, request.confidence, rng)
    return Learnt(
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


def _shown(score: Estimate) -> str:
    ends = [_plain(end, score) for end in (score.low, score.high) if end is not None]
    level = percent(score.level or 0.0)
    return f"{_plain(score.value, score)} ({level}: {' to '.join(ends)}; {score.n:,} test rows)"


def _plain(value: float, score: Estimate) -> str:
    return f"{100 * value:.2f} %" if score.unit == "proportion" else number(value, digits=_DIGITS)
