"""The likeliest causes of a violation, from what it looks like; each names what to look at.

A cause is a signature on the evidence and a sentence. Causes are guesses for the person who fixes
the release code, not findings: the verdict depends on none of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.stated import FEATURE_BLIND_TEST, SHARED_NOISE_TEST
from ldpaudit.audits.epsilon_proofs import INSIDER, LATTICE, SUBGROUPS
from ldpaudit.judging.checks.interface import Case
from ldpaudit.judging.circumstances import Circumstances
from ldpaudit.judging.fits import Slip, agrees, fitted_epsilon, likely_slip, unlike_the_claim
from ldpaudit.judging.policy.sections import RevealSection
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import BoolArray, IndexArray
from ldpaudit.reports.text.numbers import number
from ldpaudit.result import Check

MARGINAL = "mechanism.marginal_consistency"
_RARE, _HALF = 0.01, 0.5


@dataclass(frozen=True)
class Signs:
    """What signatures look at: the checks' answers, the evidence, and the counts."""

    case: Case
    known: Circumstances
    checks: Sequence[Check]

    @cached_property
    def table(self) -> tuple[IndexArray, Channel] | None:
        """Counts by true and released label and the claimed channel, where both are known."""
        counts, channel = self.known.counts, self.known.channel
        return None if counts is None or channel is None else (counts, channel)

    @cached_property
    def some_leak_more(self) -> bool:
        """Whether a group of rows leaks more than the claim allows and than all rows do."""
        estimates, claimed = self.case.evidence.estimates, self.case.claim.epsilon
        group, everyone = estimates.get(SUBGROUPS), estimates.get(INSIDER)
        if group is None or claimed is None or group.value <= claimed:
            return self.follows
        shared = max(0.0 if everyone is None else everyone.value, self.epsilon or 0.0)
        return self.follows or group.value > shared

    @cached_property
    def follows(self) -> bool:
        """Whether the counts agree with the claim."""
        return self.table is not None and agrees(self.table[0], self.table[1].matrix)

    @cached_property
    def epsilon(self) -> float | None:
        """The ε that the counts fit, where it is not the claimed one."""
        return None if self.table is None or self.follows else fitted_epsilon(*self.table)

    @cached_property
    def slip(self) -> Slip | None:
        """The slip in a formula that the counts fit."""
        return None if self.table is None or self.follows else likely_slip(*self.table)

    def failed(self, *names: str) -> bool:
        """Return whether one of these checks failed."""
        return any(c.id in names and c.verdict == "fail" for c in self.checks)

    def small_p_value(self, name: str) -> bool:
        """Return whether a p-value among the estimates is that of something rare."""
        estimate = self.case.evidence.estimates.get(name)
        return estimate is not None and estimate.value <= _RARE


Signature = Callable[[Signs], str | None]

SHARED = (
    "Look for noise that rows share: one draw for a household, an answer that is remembered, a "
    "short random sequence used again. Draw it again for every row; where a group shares one on "
    "purpose, name its column (--group)."
)
EVERY_COLUMN: Final = (
    "Audit every private column that the files declare: run without --label, or name all of them."
)
_BY_CHECK: Final[Mapping[str, str]] = {
    "rare-classes": (
        "Look for a branch on the rare class that the check names: it may be missing from the list "
        "of labels, or have a default."
    ),
    "identifiers": (
        "Remove the columns that number rows or may lead to a person, such as ids, exact dates and "
        "free text (a note says which; privatize leaves them out with --drop)."
    ),
    "private-columns": EVERY_COLUMN,
    "shared-noise": SHARED,
    "composition": (
        "Draw noise once for each person and repeat the answer in all of that person's rows, or "
        "divide ε by the rows of a person, and declare what they add up to. If rows that are "
        "alike are different people, nothing has to be done."
    ),
}
"""What to look at where a check failed that needs no further signature."""
_REFUTING: Final = ("claimed-epsilon", "claimed-channel", "guessable-seed")
OF_THE_CODE: Final = (*_REFUTING, "rare-classes", "shared-noise")
"""The checks that only a fault in the release code fails, or chance."""
ORDERED, _TRUTH_INSIDE = "columns.ordered", "columns.truth"
_FEATURES_ALONE = "attack.features-only.accuracy"


def causes(signs: Signs, check: Check) -> Iterator[str]:
    """Yield what to look at, or to do, because a check failed: the likeliest cause first."""
    if check.id in _BY_CHECK:
        yield _BY_CHECK[check.id]
    elif check.id == "features-reveal-label":
        yield from _revealing(signs, check)
    elif check.id not in _REFUTING:
        yield _too_much(signs, check)
    elif check.confidence is None and check.limit is not None:
        yield (
            f"Release with ε = {number(check.limit, 'down')} or less (privatize --epsilon), or "
            "have the policy changed by the person who answers for it."
        )
    else:
        found = [sentence for signature in SIGNATURES if (sentence := signature(signs))]
        yield from found or [
            "Compare the declaration with the release code, step by step: mechanism, ε, labels."
        ]


def _revealing(signs: Signs, check: Check) -> Iterator[str]:
    """Yield what to remove or change where the features or the order of the rows reveal labels."""
    estimates = signs.case.evidence.estimates
    if _TRUTH_INSIDE in check.evidence:
        yield "Remove the column of true labels from the release (--truth reads it from a file)."
    if ORDERED in check.evidence and estimates[ORDERED].value > 0:
        yield "Shuffle the rows, and audit the new file: their order reveals labels."
    section = signs.case.policy.checks.features_reveal_label or RevealSection()
    limits = {"columns.decided": section.max_decided, "columns.deciding": 0, "columns.lagged": 0}
    columns = set(check.evidence) - {ORDERED, _TRUTH_INSIDE, "columns.position"}
    if any(estimates[one].value > limits.get(one, section.max) for one in columns):
        yield (
            "Remove the columns that reveal the label, or make them coarser (privatize names "
            "them): adding noise to the label does not help while other columns reveal it."
        )


def _too_much(signs: Signs, check: Check) -> str:
    """Return what to do where a limit is exceeded on what a release reveals, claim or not."""
    alone = signs.case.evidence.estimates.get(_FEATURES_ALONE)
    accuracy = check.id == "label-inference-accuracy" and check.limit is not None
    if accuracy and alone is not None and alone.value > (check.limit or 0.0):
        return (
            "Remove features that go with the label, or make them coarser: with them alone an "
            "attacker exceeds this limit, whatever the noise on the label."
        )
    return (
        "Add noise (privatize with a smaller --epsilon), or remove features that go with the "
        "label: the release reveals more than this limit of the policy allows. ldpaudit sweep "
        "finds the least noise that meets the policy."
    )


def _guessable_seed(signs: Signs) -> str | None:
    if not signs.failed("guessable-seed"):
        return None
    return (
        "Draw the noise from the operating system (in Python: secrets, not random or numpy), with "
        "no seed and no checksum of a column: anybody can compute such noise again."
    )


def _in_the_clear(signs: Signs) -> str | None:
    if signs.epsilon is None or not math.isinf(signs.epsilon):
        return None
    return (
        "Check that noise is added at all: every label was released as it is. Or the release "
        "itself was given as the truth; give the labels from before the noise."
    )


def _wrong_formula(signs: Signs) -> str | None:
    if signs.slip is None:
        return None
    return (
        f"Check how the probability is computed: where {signs.slip.words}, "
        f"ε = {_rough(signs.slip.epsilon)} comes out, and the counts fit that."
    )


def _another_epsilon(signs: Signs) -> str | None:
    if signs.epsilon is None or math.isinf(signs.epsilon):
        return None
    if signs.slip is not None:
        return "Or the release code was given another ε: a default, a test setting, an old file."
    return (
        f"Check which ε the release code was given: the counts fit ε = {_rough(signs.epsilon)} for "
        f"every label. Look for a default, a test setting or an old file{_clear_share(signs)}."
    )


def _clear_share(signs: Signs) -> str:
    """Return how many rows in the clear give the same counts, where some do."""
    assert signs.table is not None
    counts, channel = signs.table
    if channel.outputs != channel.classes:
        return ""
    sizes = counts.sum(axis=1)
    promised = float(sizes @ channel.matrix.diagonal() / sizes.sum())
    share = (float(np.trace(counts) / sizes.sum()) - promised) / max(1 - promised, 1e-12)
    if not _RARE < share < _HALF:
        return ""
    return f"; {100 * share:.0f} % of rows released as they are would look alike"


def _rough(epsilon: float) -> str:
    return number(epsilon, digits=2)


def _one_class(signs: Signs) -> str | None:
    if signs.table is None or signs.follows or signs.epsilon is not None:
        return None
    counts, channel = signs.table
    odd = unlike_the_claim(counts, channel.matrix)
    if not odd.any() or odd.sum() > max(len(odd) / 2, 1):
        return None
    which = int(np.flatnonzero(odd)[0])
    return (
        f"Look for a branch on the true label: {_classes(odd, channel)} treated differently from "
        f"the others{_kept(which, counts, channel)}. A class may be missing from a list, or have a "
        "default."
    )


def _classes(odd: BoolArray, channel: Channel) -> str:
    found = [str(channel.classes[i]) for i in np.flatnonzero(odd)]
    if len(found) == 1:
        return f"class {found[0]} is"
    return f"classes {', '.join(found[:-1])} and {found[-1]} are"


def _kept(which: int, counts: IndexArray, channel: Channel) -> str:
    """Return how often a class was kept."""
    row = counts[which]
    if channel.outputs != channel.classes:
        return ""
    share, claimed = row[which] / row.sum(), channel.matrix[which, which]
    return (
        f" (kept in {100 * share:.0f} % of its rows, where the claim keeps {100 * claimed:.0f} %)"
    )


def _changed_afterwards(signs: Signs) -> str | None:
    if not signs.small_p_value(MARGINAL):
        return None
    return (
        "Check what happened to the labels after the noise: no true labels give these shares of "
        "released labels. Rows may have been filtered, balanced, cleaned or filled in."
    )


def _shared_noise(signs: Signs) -> str | None:
    return SHARED if signs.small_p_value(SHARED_NOISE_TEST) else None


def _lattice(signs: Signs) -> str | None:
    found, claimed = signs.case.evidence.estimates.get(LATTICE), signs.case.claim.epsilon
    if found is None or claimed is None or found.value <= claimed:
        return None
    return (
        "Look at how the noise on numbers is drawn: its steps are not those of the labels, or it "
        "takes few values, so remainders or digits of released numbers reveal the true ones."
    )


def _by_feature(signs: Signs) -> str | None:
    if not signs.small_p_value(FEATURE_BLIND_TEST):
        return None
    return (
        "Look where the release code uses a feature: the noise, or the label put in its place, "
        "depends on one. Use one probability for all rows, or declare a mechanism that uses "
        "features, such as model-based-rr."
    )


def _some_rows(signs: Signs) -> str | None:
    if not signs.some_leak_more or not signs.failed("claimed-epsilon"):
        return None
    return (
        "Look for rows that are treated differently: some leak more than all do together. A "
        "filter, a join or a fallback may release a group as it is, or the noise may depend on a "
        "feature."
    )


def _derived_column(signs: Signs) -> str | None:
    if signs.known.truth or not signs.failed("claimed-epsilon"):
        return None
    return (
        "Look for columns computed from the released label (a code, a copy, a score) and leave "
        "them out (--drop): they reveal nothing about the true label, but look like a leak here."
    )


SIGNATURES: tuple[Signature, ...] = (
    _guessable_seed,
    _lattice,
    _in_the_clear,
    _shared_noise,
    _by_feature,
    _some_rows,
    _wrong_formula,
    _another_epsilon,
    _one_class,
    _changed_afterwards,
    _derived_column,
)
"""The likeliest first."""
