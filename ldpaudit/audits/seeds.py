"""Noise that anybody can compute: common seeds of random generators, and checksums of columns."""

# With true labels the numbers must explain which labels were changed; without them, which labels
# agree with what the features say. True labels that were themselves simulated with such a seed look
# the same then, so without true labels nothing is certified.

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import code_counts
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InputError, InsufficientDataError, quoted
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.seeds import (
    COUNTED,
    MOST_SEEDING,
    Outcomes,
    generators,
    try_all,
    written_seeds,
)
from ldpaudit.mechanisms.capabilities import LocalReports
from ldpaudit.mechanisms.foreign import checked_reports
from ldpaudit.release import BoolArray, FloatArray, IntArray, Release
from ldpaudit.result import Estimate, Note
from ldpaudit.result.stated import SEEDS

MIN_ROWS: Final = 100
_ALIKE: Final = "rows with the same true label are independent and alike"
_IN_NO_ORDER: Final = "rows are independent, and neither their order nor a checksum reveals labels"
_NOT_SIMULATED: Final = "the true labels were not drawn with such a seed, as in simulated data"
FOUND: Final = 1e-9  # A source counts as found up to this, however many checks a policy has.
# Seeds from 0, and of those that people write the first.
_TRIED: Final = {"full": (COUNTED, None), "small": (512, 64)}
# Of the largest log ratio of a report, what rounding may take.
_NEARLY: Final = 1e-9
_SECONDS_PER_SEED: Final = 5e-5  # Of one core, for all generators together.


def _unavailable(context: AuditContext) -> str | None:
    if len(context.release) < MIN_ROWS:
        return f"trying seeds needs at least {MIN_ROWS} rows"
    one = len(np.unique(context.release.released)) < 2
    return "all released labels are the same" if one else None


def _parts(context: AuditContext) -> Iterator[Part]:
    release, plan = context.release, context.plan
    most, written = _TRIED[plan.effort]
    consecutive = most if plan.seeds_tried is None else plan.seeds_tried
    others, alone = written_seeds(consecutive, plan.made_on)[:written], release.truth is None
    total = consecutive + len(others)

    def progress(done: int) -> None:
        left = timedelta(seconds=round((total - done) * _SECONDS_PER_SEED))
        context.progress.step(f"trying seeds: {done:,} of {total:,}, about {left} left")

    progress(0)
    outcomes = _of_released_labels(context) if alone else _of_noise(context)
    heads = {column.name: column.head for column in release.columns if column.head is not None}
    columns = {name: head for name, head in heads.items() if len(head) <= len(release)}
    columns |= _of_reports(release)
    shared = context.run.shared
    numbers = None if shared is None else shared.numbers
    found = try_all(outcomes, consecutive, others, columns, progress, numbers)
    yield Estimate.upper_bound(
        SEEDS,
        "Noise that anybody can compute (p-value)",
        max(found.p_value, SMALLEST_P_VALUE),
        plan.confidence,
        unit="p-value",
        n=len(release),
        method=f"p-value: {found.seeds:,} seeds of {len(generators())} streams of common "
        "generators, one for the table or one for each row, and checksums of columns "
        f"({found.columns}), at most {MOST_SEEDING} of which as seeds of their rows, too; "
        "corrected for all",
        assumptions=(_IN_NO_ORDER, _NOT_SIMULATED) if alone else (_ALIKE,),
        kind="estimated" if alone else "certified",
        reference="Hoeffding (1963), Theorem 4",
    )
    if found.p_value <= FOUND:
        chance = max(math.ceil(found.log_p_value / math.log(10)), -300)
        yield Note.warning(
            "seeds",
            f"{'The released labels follow' if alone else 'The noise comes from'} "
            f"{found.source.format(quoted(found.column or ''))}: anybody can compute it and "
            f"recover every true label (chance otherwise: 1e{chance}). Draw the noise again from "
            "the operating system's randomness, and do not publish this release."
            + " It means nothing only if the true labels were simulated in the same way."
            * alone,
        )


# The first rows, which are always looked at, are in the order of the file.
AUDIT: Final = BuiltIn("seeds", _parts, _unavailable)


def _of_noise(context: AuditContext) -> list[Outcomes]:
    """Return which labels were released high, changed, or with much noise, given the true ones."""
    release, hits = context.release, [_high(context.release.released)]
    if release.outputs == release.classes:
        hits.append(release.released != release.truth)
    claim = context.claim.offers(LocalReports)
    if release.reports is not None and claim is not None:
        hits.append(_supported(claim, release.reports, context.truth))
    if release.numeric is not None and release.numeric.truth is not None:
        hits.append(_high(release.numeric.released - release.numeric.truth))
    return [Outcomes(one, context.truth.astype(np.int64)) for one in hits]


def _of_reports(release: Release) -> dict[str, npt.NDArray[Any]]:
    """Return whole numbers in reports, such as seeds of a hash, by a name for each."""
    read = release.reports_in_file
    if read is None:
        return {}
    whole = read.dtype.kind in "iu" or (read.dtype.kind == "f" and bool((read % 1 == 0).all()))
    if not whole:
        return {}
    return {f"entry {place} of the reports": entry for place, entry in enumerate(read.T, 1)}


def _of_released_labels(context: AuditContext) -> list[Outcomes]:
    """Return which released labels are high, and with which of them the features agree."""
    released = context.release.released
    outcomes = [Outcomes(_high(released), np.zeros(len(released), dtype=np.int64))]
    if context.release.features.is_constant():
        return outcomes
    try:
        posterior = cross_fitted_posterior(context, "released")
    except (InputError, InsufficientDataError):
        return outcomes
    halves, m = context.halves().astype(np.int64), len(context.release.outputs)
    # Model and average are those of the other half.
    counts = np.stack([code_counts(released[halves != half], m) for half in (0, 1)])
    shares = counts / counts.sum(axis=1, keepdims=True)
    agree = posterior[np.arange(len(released)), released] > shares[halves, released]
    return [*outcomes, Outcomes(agree, halves)]


def _supported(claim: LocalReports, reports: npt.NDArray[Any], truth: IntArray) -> BoolArray:
    """Return which reports support no label more than the true one."""
    protocol, n = checked_reports(claim), len(truth)
    first = np.zeros(n, dtype=np.int32)
    most = np.full(n, -np.inf)
    for code in range(len(claim.classes)):
        ratio = protocol.log_ratio(reports, np.full(n, code, dtype=np.int32), first)
        most = np.maximum(most, ratio)
    return np.asarray(protocol.log_ratio(reports, truth, first) >= most - _NEARLY)


def _high(values: FloatArray | IntArray) -> BoolArray:
    """Return which values are in the upper half, or are not the least, where that is most."""
    high = values > np.median(values)
    return high if high.any() else values > values.min()
