"""All checks in the order in which a report shows them; a new one is a row of the table."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ldpaudit.error_budget import FEATURES
from ldpaudit.errors import quoted
from ldpaudit.estimators.epsilon.consistency import ACCUSED, HELD_UP
from ldpaudit.judging.checks.claimed_epsilon import CONSISTENCY, claimed_epsilon
from ldpaudit.judging.checks.interface import Answer, Case, Draft, Evidence, drafted
from ldpaudit.judging.policy.sections import CLAIM
from ldpaudit.mechanisms.capabilities import NoisyFeatures
from ldpaudit.receipt.words import REPLAYED, decided, outcome, reason
from ldpaudit.release import DeclaredColumns
from ldpaudit.result import CheckLevel, Curve, Estimate, Verdict
from ldpaudit.result.numbers import at_least, number, percent, rows
from ldpaudit.result.stated import (
    AGREEMENT_TEST,
    CLEAR_ROWS,
    COMPOSED_EPSILON,
    DATES,
    DECIDED,
    DECIDING,
    EXCEEDANCE,
    EXCEEDANCE_LEARNED,
    EXCESS,
    FEATURE_CURVE,
    FEATURE_DRAWN,
    FEATURE_NOISE,
    FEATURE_UNCHANGED,
    FEATURES_KEPT,
    IDENTIFIERS,
    INDICES,
    LAGGED,
    MEAN_LOSS,
    MEAN_LOSS_LEARNED,
    MEAN_LOSS_LOWER,
    NOT_INDEPENDENT,
    ONE_LABEL,
    ORDERED,
    POSITION,
    RARE_CLASSES,
    READ_OFF,
    RELEASE_CURVE,
    ROW_ORDER,
    SEEDS,
    SHARED_NOISE_TEST,
    SUMS_CONSISTENCY,
    TEXTS,
    TOLD,
    TRUTH_INSIDE,
    UNREAD,
)

PRIVATE_COLUMNS: Final = "private-columns"
# What a replay that proves the noise answers for good.
TESTS_OF_NOISE: Final = frozenset(
    (
        "claimed-epsilon",
        "undetected-excess",
        "claimed-channel",
        "rare-classes",
        "guessable-seed",
        "shared-noise",
    )
)
_FEATURES_EXACT = "mechanism.feature_epsilon"
# The error probability of each check that has one of its own: of seeds, and of kept features. What
# is wrong leaves a p-value far below, so the other checks need not share their level with it.
_OWN_ERROR: Final = 1e-9


@dataclass(frozen=True)
class Row:
    """A check: what it asks, and what answers that."""

    question: str
    """As a report shows it, where ``look`` asks nothing more exact."""
    look: Callable[[Case, Any], Draft | None]
    """What is asked of a case by its section of the policy; None: there is nothing to ask."""
    audit: str | None = None
    """The audit behind it, where it looks at one's numbers alone."""
    level: CheckLevel | None = None
    """Where no section of the policy asks for it."""
    no_test: bool = False
    """As in a draft."""
    own_error: float | None = None
    """As in a draft."""
    where_found: bool = False
    """Whether it is there only where its audit found something; open where that was left out."""

    def draft(self, name: str, case: Case) -> Draft | None:
        """Return the check of a case; None where it is not asked for, or there is none."""
        section: Any = getattr(case.policy.checks, name.replace("-", "_"), None)
        found = None if section is None and self.level is None else self.look(case, section)
        return None if found is None else self._of(found, name, self.level or section.level)

    def unseen(self, name: str, case: Case) -> Draft | None:
        """Return the check as open where it was not drafted and its audit was left out, else None.

        Without a policy, whoever leaves an audit out asks no question that it answers.
        """
        circumstances = case.circumstances
        could = circumstances.truth or name != "shared-noise"
        asked = case.policy.sha256 is not None and name in case.policy.checks.asked()
        if not (self.where_found and asked and could and self.audit in circumstances.left_out):
            return None
        found = drafted(Answer("inconclusive", None, "nothing was looked for"), no_test=True)
        level = getattr(case.policy.checks, name.replace("-", "_")).level
        return replace(self._of(found, name, level), own_error=None)

    def _of(self, found: Draft, name: str, level: str) -> Draft:
        return replace(
            found,
            id=name,
            level=level,
            question=found.question or self.question,
            no_test=found.no_test or self.no_test,
            own_error=self.own_error,
        )


def draft_checks(case: Case) -> list[Draft]:
    """Return the checks of a policy in their order, those switched off left out."""
    found = {name: row.draft(name, case) for name, row in CHECKS.items()}
    if case.circumstances.proven:
        found = {name: _as_proven(name, draft, case) for name, draft in found.items()}
    unseen = [CHECKS[name].unseen(name, case) for name, draft in found.items() if draft is None]
    every = (*found.values(), *unseen)
    return [draft for draft in every if draft is not None and draft.level != "off"]


def _as_proven(name: str, draft: Draft | None, case: Case) -> Draft | None:
    """Return the check of a release whose noise is proven: no test of the noise counts any more."""
    beyond = name == "claimed-epsilon" and draft is not None and draft.no_test
    if draft is None or name not in TESTS_OF_NOISE or beyond:
        return draft  # More is declared than the policy allows, whatever was drawn.
    if name == "claimed-epsilon" and case.claim.epsilon == math.inf:
        return draft  # Labels that are released as they are: it promises nothing about these.
    answer = Answer("pass", None, "the noise was drawn again, and every label is as drawn")
    return replace(draft, test=lambda _: answer, failure=None, no_test=True, evidence=(REPLAYED,))


def audit_behind(check: str) -> str | None:
    """Return the audit whose numbers alone a check looks at, None where there are several."""
    return CHECKS[check].audit if check in CHECKS else None


def left_out_columns(declared: DeclaredColumns | None, audited: int) -> Draft | None:
    """Return the check, None where all declared columns were audited; no policy switches it off."""
    if declared is None:
        return None
    was = "was" if audited == 1 else "were"
    reason = f"{audited} of {declared.count} private columns {was} audited"
    found = drafted(Answer("fail", None, reason), no_test=True)
    return replace(
        found, id=PRIVATE_COLUMNS, level="warn", question=CHECKS[PRIVATE_COLUMNS].question
    )


def _unread(case: Case, _: Any) -> Draft | None:
    """Return the check, None where all cells were read; no policy switches it off."""
    unread = case.evidence.estimates.get(UNREAD)
    if unread is None:
        return None
    columns = "one column holds" if unread.value == 1 else f"{number(unread.value)} columns hold"
    reason = (
        f"{columns} numbers or dates but for cells of another kind, which hide what they reveal"
    )
    return drafted(Answer("fail", unread.value, reason), (UNREAD,))


def _unrelated(case: Case, _: Any) -> Draft | None:
    """Return the check, None where the true labels say something; no policy switches it off."""
    if not case.circumstances.unrelated:
        return None
    reason = "the true labels reveal nothing about the released ones, so they may be of other rows"
    return drafted(Answer("inconclusive", None, reason), no_test=True)


def _replay(case: Case, section: Any) -> Draft | None:
    found = case.circumstances.replay
    if found is None or not (decided(found) or section.required):
        if not section.required:
            return None
        why = "the release has no receipt, or its key was not given with the true labels"
        return drafted(Answer("inconclusive", None, why), no_test=True)
    share = found.columns[0].equal / max(found.columns[0].rows, 1) if found.columns else None
    ids, words = (REPLAYED,) if found.columns else (), reason(found)
    if found.status != "changed":
        return drafted(Answer(outcome(found), share, words), ids, no_test=True)
    return drafted(lambda alpha: Answer(outcome(found, alpha), share, words), ids)


def _min_rows(case: Case, _: Any) -> Draft | None:
    least = case.policy.audit.min_rows
    if least is None:
        return None
    enough: Verdict = "pass" if case.rows >= least else "inconclusive"
    reason = f"{rows(case.rows)} rows, {rows(least)} needed"
    return drafted(Answer(enough, float(case.rows), reason), limit=float(least))


def _undetected_excess(case: Case, section: Any) -> Draft | None:
    epsilon = case.claim.epsilon
    if epsilon is None or math.isinf(epsilon) or case.by_strata:
        return None
    allowed = section.max.at(epsilon)

    def test(alpha: float) -> Answer:
        missed = case.evidence.undetected_excess(alpha)
        if missed is None:
            return Answer("fail", None, "how much this audit could have missed is not known")
        if math.isinf(missed) and missed > allowed:
            return Answer("fail", missed, "this audit would have found no excess, however large")
        if missed <= allowed:
            words = f"an excess of {number(missed, 'up')} or more would have been found"
            return Answer("pass", missed, words)
        words = f"an excess of up to {number(missed, 'up')} over the claimed ε may be there"
        return Answer("fail", missed, f"{words} and not have been noticed")

    ids = (EXCESS,) if EXCESS in case.evidence.estimates else ()
    return drafted(test, ids, None if math.isinf(allowed) else allowed)


def _p_value(words: Mapping[str, tuple[str, str]]) -> Callable[[Case, Any], Draft | None]:
    """Return a check by the first of some p-values: its words where it is small, and where not."""

    def look(case: Case, _: Any) -> Draft | None:
        name = next((name for name in words if name in case.evidence.estimates), None)
        if name is None:
            return None
        p_value, (failed, passed) = case.evidence.estimates[name].value, words[name]

        def test(alpha: float) -> Answer:
            small = p_value <= alpha
            return Answer("fail" if small else "pass", p_value, failed if small else passed)

        return drafted(test, (name,))

    return look


_follow = _p_value(
    dict.fromkeys(
        CONSISTENCY,
        (
            "the released labels do not follow the claimed channel",
            "the released labels agree with the claimed channel",
        ),
    )
    | {
        SUMS_CONSISTENCY: (
            "the noise of the released sums was not drawn as is claimed",
            "the noise of the released sums agrees with the claim",
        )
    }
)


def _claimed_channel(case: Case, section: Any) -> Draft | None:
    found = _follow(case, section)
    if found is not None or case.claim.channel is None:
        return found
    return drafted(Answer("inconclusive", None, "no audit compared the counts with the claim"))


def _rare_classes(case: Case, _: Any) -> Draft | None:
    found = case.evidence.estimates.get(RARE_CLASSES)
    if found is None:
        return None

    def test(alpha: float) -> Answer:
        if found.value > max(alpha, HELD_UP):
            return Answer("pass", found.value, "the labels of rare classes agree with the claim")
        if found.kind == "estimated":
            why = "rows may share noise, or have been repeated or left out after it"
            return Answer("inconclusive", found.value, f"{found.title}: {why}")
        if found.value <= min(alpha, ACCUSED):
            return Answer("fail", found.value, found.title)
        return Answer("inconclusive", found.value, f"{found.title}: too few people to be sure")

    return drafted(test, (RARE_CLASSES,))


def _feature_noise(case: Case, _: Any) -> Draft | None:
    claim, evidence = case.claim.offers(NoisyFeatures), case.evidence
    if claim is None:
        return _features_kept(case)
    limit = claim.feature_epsilon
    if not claim.claim_holds():
        exact = evidence.at(_FEATURES_EXACT, 0.0)
        reason = "the declared σ is too small for the ε and δ that are claimed for the features"
        ids = (_FEATURES_EXACT,) if exact is not None else ()
        return drafted(Answer("fail", exact, reason), ids, limit, no_test=True)
    amount = evidence.estimates.get(FEATURE_NOISE)
    if amount is None:
        return None

    same = evidence.estimates.get(FEATURE_UNCHANGED)
    drawn = evidence.estimates.get(FEATURE_DRAWN)

    def test(alpha: float) -> Answer:
        bound = evidence.at(FEATURE_CURVE, FEATURES.of(alpha, "curve"))
        if same is not None and same.value <= FEATURES.of(alpha, "unchanged"):
            # No bound of ε says it, so none stands beside it.
            return Answer(
                "fail",
                None,
                "more feature values are exactly the true ones than noise could leave so: they are "
                "released in the clear",
            )
        if bound is not None and bound > limit:
            return Answer(
                "fail",
                bound,
                "if their noise is Gaussian, the features have a larger ε than is claimed",
                "lower",
            )
        if drawn is not None and drawn.value <= alpha:
            return Answer(
                "inconclusive",
                bound,
                "the noise on the features is not drawn as is declared, Gaussian and for each row "
                "by itself: it has few values, is shared by rows, has another shape, or goes with "
                "the label",
                None if bound is None else "lower",
            )
        if amount.value <= alpha:
            return Answer(
                "inconclusive",
                bound,
                "the released features are nearer to the true ones than the declared noise leaves "
                "them: there is less of it, or the features were rounded or clipped after it",
                None if bound is None else "lower",
            )
        reason = "the features have as much noise as is declared"
        return Answer("pass", bound, reason, None if bound is None else "lower")

    names = (FEATURE_CURVE, FEATURE_NOISE, FEATURE_UNCHANGED, FEATURE_DRAWN)
    seen = tuple(name for name in names if name in evidence.estimates)
    return drafted(test, seen, limit)


def _features_kept(case: Case) -> Draft | None:
    found = case.evidence.estimates.get(FEATURES_KEPT)
    if found is None:
        return None
    # So rare that it takes no share of the error.
    answer = Answer("pass", found.value, "no more features were kept than is declared")
    if found.value <= _OWN_ERROR:
        reason = "more rows have their true features than the declared λ leaves"
        answer = Answer("fail", found.value, reason)
    return drafted(answer, (FEATURES_KEPT,), no_test=True)


def _guessable_seed(case: Case, _: Any) -> Draft | None:
    found = case.evidence.estimates.get(SEEDS)
    if found is None:
        return None
    kind: Verdict = "pass"
    if found.value <= _OWN_ERROR:
        kind = "fail" if found.kind == "certified" else "inconclusive"
    return drafted(Answer(kind, found.value, _SEED_WORDS[kind]), (SEEDS,))


_SEED_WORDS: Final[Mapping[Verdict, str]] = {
    "pass": "the noise does not come from any of the common seeds and checksums tried",
    "fail": "anybody can compute the noise and recover every true label",
    "inconclusive": "the released labels follow numbers that anybody can compute: they are the "
    "noise, or, in simulated data, drew the true labels",
}


def _composition(case: Case, _: Any) -> Draft | None:
    composed, limit = case.evidence.estimates.get(COMPOSED_EPSILON), case.claim.epsilon
    if composed is None:
        return None
    seem = "have" if composed.kind == "exact" else "seem to have"
    reason = (
        f"people {seem} several rows, each with fresh noise: for some the claim adds up to "
        f"ε = {number(composed.value, 'up')}"
    )
    answer = Answer("fail", composed.value, reason)
    if limit is not None and composed.value <= limit:
        answer = Answer("pass", composed.value, "no person's rows add up to more than is claimed")
    return drafted(answer, (COMPOSED_EPSILON,), limit)


# What one column does, and several.
_KINDS = {
    INDICES: ("numbers the rows", "number the rows"),
    IDENTIFIERS: ("differs in nearly every row", "differ in nearly every row"),
    TEXTS: ("holds free text", "hold free text"),
    DATES: ("holds exact dates", "hold exact dates"),
}
_MOST_NAMED: Final = 3


def _identifiers(case: Case, section: Any) -> Draft:
    estimates = case.evidence.estimates
    counts = {name: round(estimates[name].value) for name in _KINDS if name in estimates}
    total = float(sum(counts.values()))
    if not counts:
        answer = Answer("inconclusive", None, "the columns were not looked at when they were read")
    elif total <= section.max:
        answer = Answer("pass", total, "no column looks like an identifier")
    else:
        answer = Answer("fail", total, leads_back(counts, case.circumstances.concerns))
    return drafted(answer, tuple(counts), float(section.max))


def leads_back(counts: Mapping[str, int], concerns: Mapping[str, Sequence[str]]) -> str:
    """Return which columns may lead back to a person, and why."""
    total = sum(counts.values())
    if total == 1:
        (kind,) = (name for name, count in counts.items() if count)
        which = f"column {named(concerns[kind])}" if concerns.get(kind) else "1 column"
        return f"{which} may lead back to a person: it {_KINDS[kind][0]}"
    kinds = []
    for name, count in counts.items():
        which = named(concerns[name]) if concerns.get(name) else str(count)
        kinds += [f"{which} {_KINDS[name][count > 1]}"] if count else []
    return f"{total} columns may lead back to a person: {', '.join(kinds)}"


def named(columns: Sequence[str]) -> str:
    """Return the names of columns for a sentence, at most a few of them."""
    first, more = [*map(quoted, columns[:_MOST_NAMED])], len(columns) - _MOST_NAMED
    last = f"{more} more" if more > 0 else first.pop()
    return f"{', '.join(first)} and {last}" if first else last


# Learnt from the released labels; it stands for the attack on features where no truth is known.
_CLASSIFIER = "attack.classifier.accuracy"
_BALANCED, _AUC = "attack.features-only.balanced_accuracy", "attack.features-only.auc"
# Shares of labels, and what it means if one is above the limit.
_SHARES = {
    _BALANCED: "the features alone reveal {} of the labels",
    _CLASSIFIER: "the features alone reveal, by estimate, {} of the labels",
    _AUC: "the features alone rank people by label (AUC {})",
    TOLD: "one column reveals {} of the labels by itself",
    POSITION: "the order of the rows reveals {} of the labels",
}
_COLUMNS = {
    DECIDING: ("one column decides", "{} columns decide, each by itself,"),
    LAGGED: (
        "one column of a row near by decides",
        "{} columns of a row near by decide, each by itself,",
    ),
}
_MOST = 0.5
# Without true labels nothing is known of what features reveal about them.
_SEEN = "by the released labels, "
_ALIKE: Final = "rows with equal values of one column"
_CLEAR: Final = "the released label"
_NOT_ALONE: Final = (_ALIKE, _CLEAR)
_MADE = (
    ", unless columns were computed from the released labels: otherwise noise on the label "
    "protects little"
)
_UNSEEN = "; what they reveal about the true labels was not measured"
_NOT_ONE = {
    True: "no column by itself reveals the labels, nor does the order of the rows; what all "
    "columns reveal together was not measured",
    False: "no column by itself reveals the labels; what all columns together and the order of "
    "the rows reveal was not measured",
}


def _features_reveal(case: Case, section: Any) -> Draft:
    estimates = case.evidence.estimates
    every = (TRUTH_INSIDE, *_SHARES, *_COLUMNS, ORDERED, DECIDED, READ_OFF, CLEAR_ROWS, ONE_LABEL)
    known = [name for name in every if name in estimates]
    ids = tuple(name for name in known if name != _CLASSIFIER or _says_enough(estimates))
    shares = {name: estimates[name].value for name in ids if name in _SHARES}
    observed = max(shares.values(), default=0.0)
    reasons, order = list(_revealing(estimates, ids, shares, section)), _order(estimates)
    found = ", and ".join(reasons)
    seen, unseen = ("", "") if case.circumstances.truth else (_SEEN, _UNSEEN)
    # Neither an order nor a person's rows reveal a label to somebody who knows none, nor do columns
    # that tell where the released label is true.
    alone = found not in ("", order) and not all(one.startswith(_NOT_ALONE) for one in reasons)
    made = _MADE if alone and not case.circumstances.truth else ""
    by = seen if made else ""
    if not ids:
        answer = Answer("inconclusive", None, "no label is known that features could reveal")
    elif found:
        little = "" if not alone else ": noise on the label protects little"
        answer = Answer("fail", observed, f"{by}{found}{made or little}")
    elif {_BALANCED, _AUC, _CLASSIFIER} & shares.keys():
        answer = Answer("pass", observed, f"{seen}the features alone leave labels open{unseen}")
    else:
        answer = Answer("pass", observed, f"{seen}{_NOT_ONE[POSITION in shares]}")
    return drafted(answer, ids, section.max)


def _says_enough(estimates: Mapping[str, Estimate]) -> bool:
    """Return whether the classifier stands for the features, and beats the commonest label."""
    ours, prior = estimates[_CLASSIFIER], estimates.get("attack.prior.accuracy")
    if _AUC in estimates or prior is None or ours.low is None:
        return False
    return ours.low > prior.value + 0.5 * (1 - prior.value)


def _order(estimates: Mapping[str, Estimate]) -> str:
    excess = abs(estimates[ROW_ORDER].value) if ROW_ORDER in estimates else 0.0
    return "the order of the rows reveals " + ("most labels" if excess >= _MOST else "labels")


def _revealing(
    estimates: Mapping[str, Estimate],
    ids: tuple[str, ...],
    shares: Mapping[str, float],
    section: Any,
) -> Iterator[str]:
    """Yield what reveals labels, in words."""
    counts = {i: round(estimates[i].value) for i in ids if i in _COLUMNS or i == ORDERED}
    beyond = {name: share for name, share in shares.items() if share > section.max}
    if counts.get(DECIDING):
        beyond.pop(TOLD, None)
    if TRUTH_INSIDE in ids:
        yield "the release holds the true labels themselves (--truth-column)"
    if beyond:
        name = next(iter(beyond))
        yield _SHARES[name].format(percent(beyond[name]))
    for name, (one, several) in _COLUMNS.items():
        if counts.get(name):
            which = several.format(counts[name]) if counts[name] > 1 else one
            yield f"{which} at least 98 % of the labels"
    if counts.get(ORDERED) and POSITION not in beyond:
        yield _order(estimates)
    some = estimates[DECIDED].value if DECIDED in ids else 0.0
    if some > section.max_decided and not counts.get(DECIDING):
        people = f"{at_least(some)} of the people"
        yield f"the value of one column decides the label of {people}"
    read = estimates[READ_OFF].value if READ_OFF in ids else 0.0
    if read > section.max_decided and not counts.get(DECIDING):
        yield f"features reveal the label of {at_least(read)} of the people"
    clear = estimates[CLEAR_ROWS].value if CLEAR_ROWS in ids else 0.0
    if clear > section.max_decided:
        yield f"{_CLEAR} of {at_least(clear)} of the people shows the true one"
    alike = estimates[ONE_LABEL].value if ONE_LABEL in ids else 0.0
    if alike > section.max_decided:
        yield f"{_ALIKE}, {at_least(alike)} of the rows, have one label, as one person's rows do"


_LOSSES = (EXCEEDANCE, EXCEEDANCE_LEARNED)
_MEANS = (MEAN_LOSS, MEAN_LOSS_LEARNED)
_TOO_COARSE = (
    "people's mean loss is certified to lie above its estimate by neighbours, so more people than "
    "estimated may lose that much: the neighbourhoods are too coarse"
)


def _exceedance(case: Case, section: Any) -> Draft:
    evidence, limit, at = case.evidence, section.max, section.at.at(case.claim.epsilon)
    if at is None:
        why = "nothing finite was claimed that the limit could follow"
        question = "Is the share of people whose loss is far above the claimed ε too large?"
        return drafted(Answer("inconclusive", None, why), limit=limit, question=question)
    curves = [evidence.curves[name] for name in _LOSSES if name in evidence.curves]
    curves = [curve for curve in curves if curve.low is not None]
    places = [(curve, _grid_point(curve, at)) for curve in curves]
    points = [(curve, place) for curve, place in places if place is not None]

    def test(alpha: float) -> Answer:
        if not points:
            return Answer("inconclusive", None, "the instance-based loss was not estimated")
        # One bound per metric: together they may err as often as one.
        part = alpha / len(curves)
        low = max(evidence.curve_bound(curve, place, part) for curve, place in points)
        value = max(curve.value[place] for curve, place in points)
        if low > limit:
            return Answer("fail", low, "the lower bound of the share lies above the limit", "lower")
        if value > limit:
            return Answer("inconclusive", value, "the share's estimate straddles the limit")
        # Where d nats of the mean are missed, a share of d/τ more people may lose τ nats: nobody
        # loses less than 0 on average over what is released.
        if value + _missed_mean(evidence) / max(at, 1e-9) > limit:
            return Answer("inconclusive", value, _TOO_COARSE)
        return Answer("pass", value, "the estimated share lies within the limit")

    question = f"Is the share of people whose loss is at least {number(at)} nats too large?"
    return drafted(test, tuple(curve.id for curve in curves), limit, question)


def _missed_mean(evidence: Evidence) -> float:
    """Return how much of the certified mean loss the estimates by neighbours miss, in nats."""
    means = [evidence.estimates[name].value for name in _MEANS if name in evidence.estimates]
    if MEAN_LOSS_LOWER not in evidence.estimates or not means:
        return 0.0
    return max(evidence.estimates[MEAN_LOSS_LOWER].value - max(means), 0.0)


def _grid_point(curve: Curve, at: float) -> int | None:
    """Return the first grid point at or above ``at``: J falls, so its bound is the safe one."""
    return next((i for i, x in enumerate(curve.x) if x >= at - 1e-9), None)


def _renyi(case: Case, section: Any) -> Draft:
    evidence, limit, order = case.evidence, section.max, section.alpha
    names = RELEASE_CURVE, f"{RELEASE_CURVE}.estimate"
    bound, estimate = (evidence.curves.get(name) for name in names)

    def test(alpha: float) -> Answer:
        # D grows with the order, so a lower bound at the last grid point below it is safe.
        points = [] if bound is None else [i for i, x in enumerate(bound.x) if x <= order + 1e-9]
        if bound is None or not points:
            return Answer("inconclusive", None, "the Rényi divergence was not audited there")
        low = evidence.curve_bound(bound, points[-1], alpha)
        if low > limit:
            return Answer("fail", low, "the certified lower bound lies above the limit", "lower")
        above = None if estimate is None else _grid_point(estimate, order)
        if estimate is None or above is None:
            reason = "the rows cannot support an estimate at this order"
            return Answer("inconclusive", low, reason, "lower")
        if estimate.value[above] <= limit:
            return Answer("pass", estimate.value[above], "the estimate lies within the limit")
        return Answer("inconclusive", estimate.value[above], "the estimate straddles the limit")

    question = f"Is the Rényi divergence at order {number(order)} above the limit?"
    return drafted(test, tuple(name for name in names if name in evidence.curves), limit, question)


def _attack(what: str) -> Callable[[Case, Any], Draft]:
    """Return how the score of the strongest attack, with its interval, is held against a limit."""

    def look(case: Case, section: Any) -> Draft:
        evidence, limit = case.evidence, section.max
        score = evidence.estimates.get(name := f"attack.best.{what}")
        if limit == CLAIM:  # The most that the claimed ε allows.
            ceiling = evidence.estimates.get("attack.ceiling.advantage")
            limit = None if ceiling is None else ceiling.value
        if score is None or score.low is None or score.high is None:
            answer = Answer("inconclusive", None, "no attack could be scored against true labels")
            return drafted(answer, (name,) if score else (), limit)
        why = "the attack could be scored only under the claim's own assumption"
        if limit is None:
            why = "nothing was claimed that the limit could follow"
        elif NOT_INDEPENDENT in score.assumptions:
            why = "rows share noise, so no certified interval holds for the attack's score"
        if limit is None or score.kind != "certified":
            return drafted(Answer("inconclusive", score.value, why), (name,), limit)
        value, low, high, certain = score.value, score.low, score.high, score.level or 1.0

        def test(alpha: float) -> Answer:
            certified = low if alpha >= (1 - certain) / 2 else -math.inf
            least = evidence.bounds[name](alpha) if name in evidence.bounds else certified
            if least > limit:
                return Answer(
                    "fail", least, f"the best attack's {what} lies above the limit", "lower"
                )
            if high <= limit:
                return Answer("pass", value, f"the best attack's {what} is within the limit")
            return Answer("inconclusive", value, "the interval straddles the limit")

        return drafted(test, (name,), limit)

    return look


CHECKS: Final[Mapping[str, Row]] = {
    PRIVATE_COLUMNS: Row(
        "Was every private column that is declared audited?",
        lambda case, _: left_out_columns(case.circumstances.columns, 1),
        level="warn",
    ),
    "cells-read": Row(
        "Was every cell of the columns read as what it is?", _unread, level="warn", no_test=True
    ),
    "truth-fits": Row(
        "Do the true labels belong to the released rows?", _unrelated, level="error", no_test=True
    ),
    "min-rows": Row(
        "Has the release as many rows as the policy asks for?",
        _min_rows,
        level="error",
        no_test=True,
    ),
    "replay": Row(
        "Is every released label what the declared mechanism draws with the committed key?",
        _replay,
    ),
    "claimed-epsilon": Row(
        "Does the release leak more about a label than the claimed ε?", claimed_epsilon
    ),
    "undetected-excess": Row(
        "How large an excess over the claimed ε could this audit have missed?",
        _undetected_excess,
        no_test=True,
    ),
    "claimed-channel": Row(
        "Are the released labels distributed as the claimed mechanism makes them (p-value)?",
        _claimed_channel,
        "mechanism",
    ),
    "rare-classes": Row(
        "Were the labels of rare classes released as claimed (p-value)?",
        _rare_classes,
        "mechanism",
    ),
    "feature-noise": Row(
        "Do the released features have the noise that is claimed of them?",
        _feature_noise,
        "mechanism",
    ),
    "features-reveal-label": Row(
        "Do the features alone reveal the labels, whatever the noise?",
        _features_reveal,
        no_test=True,
    ),
    "identifiers": Row(
        "Are there columns that may lead back to a person?", _identifiers, no_test=True
    ),
    "guessable-seed": Row(
        "Can anybody compute the noise, from a common seed or a checksum (p-value)?",
        _guessable_seed,
        "seeds",
        own_error=_OWN_ERROR,
        where_found=True,
    ),
    "shared-noise": Row(
        "Was noise drawn for each row on its own (p-value)?",
        _p_value(
            {
                SHARED_NOISE_TEST: (
                    "one row's noise reveals another's, or noise changes along the file",
                    "no noise shared by rows was found, and none that changes along the file",
                ),
                AGREEMENT_TEST: (
                    "in one part of the file the released labels relate to the features "
                    "differently than elsewhere: noise may have been added differently there",
                    "released labels relate to the features in the same way along the file; only "
                    "true labels show whether rows share noise",
                ),
            }
        ),
        "assumptions",
        where_found=True,
    ),
    "composition": Row(
        "Is one person's label released several times, each time with fresh noise?",
        _composition,
        "assumptions",
        no_test=True,
        where_found=True,
    ),
    "instance-loss-exceedance": Row("", _exceedance, "instance-loss"),
    "label-inference-advantage": Row(
        "Is the best label-inference attack's advantage above the limit?",
        _attack("advantage"),
        "label-inference",
    ),
    "label-inference-accuracy": Row(
        "Is the best label-inference attack's accuracy above the limit?",
        _attack("accuracy"),
        "label-inference",
    ),
    "renyi-epsilon": Row("", _renyi, "renyi"),
}
