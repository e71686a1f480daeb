"""Guessable noise: seeds of common random generators tried against the released labels.

Who knows the seed can redo the noise and recompute every true label: the claimed ε is then void.
With true labels the seed must explain which labels were changed; without them, which labels agree
with what the features say. True labels that were themselves simulated with such a seed look the
same to who does not have them, so without them nothing is certified.
"""

import math
from datetime import timedelta
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.columns import sound_features
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.seeds.generators import GENERATORS
from ldpaudit.estimators.seeds.target import Target
from ldpaudit.estimators.seeds.trial import SeedEvidence, try_seeds
from ldpaudit.estimators.seeds.usual import COUNTED, other_seeds
from ldpaudit.release import FloatArray, IndexArray
from ldpaudit.result import Estimate, Finding, Note

P_VALUE: Final = "seeds.p_value"
MIN_ROWS: Final = 100
ALIKE: Final = "rows with the same true label are independent and alike"
IN_NO_ORDER: Final = "rows are independent, and their order says nothing about their labels"
NOT_SIMULATED: Final = "the true labels were not drawn with such a seed, as in simulated data"
FOUND: Final = 1e-9
"""A seed counts as found up to this p-value, however many checks a policy has."""
SECONDS_PER_SEED: Final = 1.5e-5
"""Of one core, for all generators together."""
_BESIDE: Final = (128, 512)
_ALONE: Final = (312, 4096)
"""Rows on which seeds are screened, and the best tested: with true labels, and without."""


class SeedsAudit:
    """Tries the seeds that people choose."""

    id = "seeds"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why it does not apply, None where it does."""
        if len(context.release) < MIN_ROWS:
            return f"trying seeds needs at least {MIN_ROWS} rows"
        if len(np.unique(context.release.released)) < 2:
            return "all released labels are the same"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it."""
        counted = COUNTED if context.plan.seeds_tried is None else context.plan.seeds_tried
        others = other_seeds(counted, context.plan.made_on)
        total = counted + len(others)

        def progress(done: int) -> None:
            left = timedelta(seconds=round((total - done) * SECONDS_PER_SEED))
            context.progress.step(f"trying seeds: {done:,} of {total:,}, about {left} left")

        progress(0)

        alone = context.release.truth is None
        targets = _outsider_targets(context) if alone else _insider_targets(context)
        evidence = try_seeds(targets, counted, others, _ALONE if alone else _BESIDE, progress)
        notes = (_warning(evidence, alone),) if evidence.p_value <= FOUND else ()
        return Finding(estimates=(_estimate(context, evidence),), notes=notes)


def _insider_targets(context: AuditContext) -> list[Target]:
    """Return which labels were changed, and which were released, given the true ones."""
    release, truth = context.release, context.truth.astype(np.int64)
    targets = [Target(_scaled(context), truth)]
    if release.outputs == release.classes:
        changed = (release.released != release.truth).astype(np.float64)
        targets.append(Target(changed, truth))
    return targets


def _outsider_targets(context: AuditContext) -> list[Target]:
    """Return the released labels, and how well features predict each of them."""
    nothing = np.zeros(len(context.release), dtype=np.int64)
    targets = [Target(_scaled(context), nothing)]
    if sound_features(context).is_constant():
        return targets
    try:
        posterior = cross_fitted_posterior(context, "released")
    except (InputError, InsufficientDataError):
        return targets
    halves = context.halves().astype(np.int64)
    return [*targets, Target(_agreement(context, posterior, halves), halves, halves)]


def _agreement(context: AuditContext, posterior: FloatArray, halves: IndexArray) -> FloatArray:
    """Return 1 where features speak for the released label: it is likelier than on average.

    Model and average are those of the other half.
    """
    released, m = context.release.released, len(context.release.outputs)
    shares = np.stack([np.bincount(released[halves != half], minlength=m) for half in (0, 1)])
    shares = shares / shares.sum(axis=1, keepdims=True)
    likely: FloatArray = posterior[np.arange(len(released)), released]
    result: FloatArray = np.where(likely > shares[halves, released], 1.0, 0.0)
    return result


def _scaled(context: AuditContext) -> FloatArray:
    """Return the released labels' codes between 0 and 1."""
    codes: FloatArray = context.release.released / max(len(context.release.outputs) - 1, 1)
    return codes


def _estimate(context: AuditContext, evidence: SeedEvidence) -> Estimate:
    words = (
        f"{evidence.tried:,} seeds of {len(GENERATORS)} generators, one for the table or one for "
        f"each row; the best on the first rows were tested on {evidence.rows:,}; corrected for all"
    )
    alone = context.release.truth is None
    return Estimate.upper_bound(
        P_VALUE,
        "Noise of a seed that can be guessed (p-value)",
        max(evidence.p_value, SMALLEST_P_VALUE),
        context.plan.confidence,
        n=len(context.release),
        method=f"p-value: {words}",
        assumptions=(IN_NO_ORDER, NOT_SIMULATED) if alone else (ALIKE,),
        kind="estimated" if alone else "certified",
        reference="Hoeffding (1963), Theorem 2",
    )


def _warning(evidence: SeedEvidence, alone: bool) -> Note:
    which = "a seed for each row that counts up" if evidence.each_row else "a seed that was guessed"
    chance = max(math.ceil(evidence.log_p_value / math.log(10)), -300)
    what = "The released labels follow" if alone else "The noise is that of"
    text = (
        f"{what} {evidence.generator} with {which} (chance without it: 1e{chance}). Whoever tries "
        "the same seeds recomputes every true label. Draw the noise again from the operating "
        "system's randomness, and do not publish this release."
    )
    if alone:
        text += " Only if the true labels were simulated with that seed does it mean nothing."
    return Note.warning("seeds", text)
