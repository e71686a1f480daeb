"""Several answers of each person, over columns or releases: claimed ε, its bound, shared noise.

With true labels the answers' own bounds are added up, where their noise is independent and not
refuted; all answers as one code are bounded however their noise goes together. Without true labels
columns are bounded by the release alone, and releases each by itself.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT, NOT_DERIVED
from ldpaudit.audits.interface import AuditContext, Counts
from ldpaudit.audits.observational.power import WANTED_POWER
from ldpaudit.audits.person.answers import DRAWS, EXCESS, LOWER, RELEASE_ONLY, Answers
from ldpaudit.audits.person.claimed import (
    UNCHANGED,
    claimed_epsilon,
    claimed_estimates,
    guess_curve,
    joint_estimates,
)
from ldpaudit.audits.person.column_draws import DrawTest, draws_as_claimed
from ldpaudit.audits.person.counting import FEWEST, detectable_excess, evidence_of
from ldpaudit.audits.person.noise import found_noise
from ldpaudit.audits.person.outsider import released_bound
from ldpaudit.audits.person.people import people_estimates, people_notes
from ldpaudit.audits.person.votes import votes_finding
from ldpaudit.audits.person.words import noise_estimates, noise_notes
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.person.evidence import AnswersEvidence
from ldpaudit.result import Estimate, Finding, Note, together

REFUTED_DRAWS: Final = 0.05
"""The p-value of the test of independent draws from which the columns' bounds are not added up."""
_REFUTED_NOISE: Final = 0.001
"""That of fresh noise from which the releases' bounds are not."""
OWN_DRAWS: Final = "the columns of a row were drawn independently of each other"
_OWN_NOISE: Final = "given the true labels, each release drew noise of its own"
_Way = tuple[str, Callable[[float], EpsilonBound], tuple[str, ...]]
_ONE: Final = "all answers as one (or those of two columns), however their noise goes together"
_ADDED_COLUMNS: Final = (
    "the bounds of the columns' own ε, added up: their evidence is independent, and together they "
    "may miss as often as one (Fisher's method)"
)
_ADDED_RELEASES: Final = (
    "one event of each release, counted for one label and for the others, and added up"
)
_NO_TRUTH: Final = (
    "Without true labels (--truth) ε of all releases together is not bounded from below; each "
    "release is bounded by itself."
)


class PersonAudit:
    """Bounds ε of several answers of each person, and tests how their noise goes together."""

    id = "person"
    counts: Counts = "rows"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why it does not apply, None where it does."""
        if context.over is not None:
            return None
        if context.companions is None:
            return "the release has one private column"
        if any(column.bags is not None for column in context.companions.file.columns):
            return "labels were released in bags, not row by row"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it."""
        seen = Answers.of(context)
        return _columns(seen) if seen.joined is None else _releases(seen)


def _columns(seen: Answers) -> Finding:
    estimates, context = list(joint_estimates(seen.joint)), seen.context
    reason = seen.refusal()
    if reason is not None:
        return Finding(tuple(estimates), notes=(_not_bounded("columns", reason),))
    test = draws_as_claimed(seen, context.rng("person", "draws"))
    notes: list[Note] = []
    if isinstance(test, DrawTest):
        estimates.append(_draws(seen, test))
        notes += [Note.warning("person", test.warning)] * (test.p_value <= seen.alpha)
    else:
        notes.append(Note.info("person", f"How draws go together was not tested: {test}."))
    adds_up = not (isinstance(test, DrawTest) and test.p_value <= REFUTED_DRAWS)
    limit = None if seen.joint is None else seen.joint.epsilon
    known = seen.knows_truth
    found = _bounds(seen, limit, adds_up=adds_up) if known else _alone(seen, adds_up=adds_up)
    return together([Finding(tuple(estimates), notes=tuple(notes)), found])


def _releases(seen: Answers) -> Finding:
    context = seen.context
    context.progress.step("comparing the noise of the releases")
    noise = found_noise(seen)
    findings = [
        Finding((*people_estimates(seen),), notes=(*people_notes(seen),)),
        Finding((*claimed_estimates(seen),), (*guess_curve(seen),)),
        Finding((*noise_estimates(seen, noise),), notes=(*noise_notes(seen, noise),)),
    ]
    if not seen.knows_truth:
        return together([*findings, Finding(notes=(Note.info("person", _NO_TRUTH),))])
    reason = seen.refusal()
    if reason is None and len(seen.unchanged) < FEWEST:
        reason = f"fewer than {FEWEST} people are in all of them with a label that did not change"
    if reason is None:
        fresh = noise.told == "fresh" or (seen.noise == "fresh" and noise.told == "unclear")
        adds_up = fresh and (noise.fresh is None or noise.fresh > _REFUTED_NOISE)
        findings.append(_bounds(seen, claimed_epsilon(seen, seen.noise), adds_up=adds_up))
    else:
        findings.append(Finding(notes=(_not_bounded("releases", reason),)))
    if not context.out_of_time():
        context.progress.step("guessing labels by vote over the releases")
        findings.append(votes_finding(seen, noise))
    return together(findings)


def _not_bounded(kind: str, reason: str) -> Note:
    return Note.warning("person", f"The {kind} together were not bounded: {reason}.")


def _draws(seen: Answers, test: DrawTest) -> Estimate:
    kind, assumptions = seen.standing(INDEPENDENT)
    return Estimate.upper_bound(
        DRAWS,
        test.title,
        max(test.p_value, SMALLEST_P_VALUE),
        seen.context.plan.confidence,
        kind=kind,
        n=test.rows,
        unit="p-value",
        method=f"p-value: {test.method}",
        assumptions=(*assumptions, *test.assumptions),
        reference=test.reference,
    )


def _bounds(seen: Answers, limit: float | None, *, adds_up: bool) -> Finding:
    """Return the bounds with true labels, and the excess over the limit that they would find."""
    context = seen.context
    context.progress.step(f"bounding ε of {seen.called}")
    evidence = evidence_of(seen, context.rng("person", "epsilon"))
    if evidence is not None and not adds_up:
        evidence = evidence.without_sums(all_of_it=seen.joined is None)
    if evidence is None:
        note = _not_bounded("releases", "fewer than two classes occur among unchanged labels")
        return Finding(notes=() if seen.joined is None else (note,))
    estimates = list(_estimates(seen, evidence))
    if estimates[0].kind != "certified":
        return Finding(tuple(estimates))
    known = evidence
    bounds: dict[str, Callable[[float], float]] = {LOWER: lambda alpha: known.bound(alpha).epsilon}
    excess = None
    if limit is not None:
        excess = detectable_excess(seen, limit, context.rng("person", "power"), adds_up=adds_up)
    if excess is not None:
        estimates.append(_power(seen, excess(seen.alpha)))
        bounds[EXCESS] = excess
    return Finding(tuple(estimates), bounds=bounds)


def _power(seen: Answers, value: float) -> Estimate:
    return Estimate.estimated(
        EXCESS,
        f"Smallest excess over the claim of {seen.called} that would be found",
        value,
        unit="nats",
        method="from a simulated release as claimed: an excess that the bound would exceed the "
        f"claim by with probability {WANTED_POWER:.0%}",
        assumptions=("the bound's standard error is that of the simulated release",),
    )


def _estimates(seen: Answers, evidence: AnswersEvidence) -> Iterator[Estimate]:
    """Yield the strongest bound, and each method's at its own level."""
    columns = seen.joined is None
    added, own = (_ADDED_COLUMNS, OWN_DRAWS) if columns else (_ADDED_RELEASES, _OWN_NOISE)
    ways: dict[str, _Way] = {"added": (added, evidence.added_up, (own,))} if evidence.added else {}
    ways |= {"joint": (_ONE, evidence.as_one, ())} if evidence.codes else {}
    text = "; or ".join(words for words, _, _ in ways.values())
    text = f"{text}; each has its share of the error" if len(ways) > 1 else text
    further = (own,) if evidence.added else ()
    called = f"{seen.called[:1].upper()}{seen.called[1:]}"
    title = f"{called}, strongest bound"
    yield _bound(seen, (LOWER, title), evidence.bound(seen.alpha), text, further)
    titles = {"added": "The answers' bounds added up", "joint": "All answers as one"}
    for name, (words, bound, assumed) in ways.items():
        names = f"{LOWER}.{name}", titles[name]
        yield _bound(seen, names, bound(seen.alpha), f"{words}; at its own level", assumed)


def _bound(
    seen: Answers,
    names: tuple[str, str],
    bound: EpsilonBound,
    method: str,
    further: tuple[str, ...],
) -> Estimate:
    kind, assumptions = seen.standing(FEATURE_BLIND, INDEPENDENT)
    return Estimate.lower_bound(
        *names,
        bound.epsilon,
        seen.context.plan.confidence,
        kind=kind,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method=method if seen.joined is None else f"{method}; {UNCHANGED}",
        assumptions=(*assumptions, *further),
        reference="Hoeffding (1956), Theorem 5; Fisher (1932), section 21.1",
    )


def _alone(seen: Answers, *, adds_up: bool) -> Finding:
    """Return the bound of the columns from the release alone."""
    adds_up = adds_up and seen.independent
    bound = released_bound(seen, adds_up=adds_up)
    if bound is None:
        return Finding()
    kind, assumptions = seen.standing(FEATURE_BLIND, INDEPENDENT, NOT_DERIVED)
    estimate = Estimate.lower_bound(
        RELEASE_ONLY,
        "All columns together, the release alone",
        bound(seen.alpha),
        seen.context.plan.confidence,
        kind=kind,
        axis="epsilon",
        unit="nats",
        n=len(seen.context.release),
        method="how unanimous groups of rows are that features find: "
        + ("of each column, added up, and " if adds_up else "")
        + "of all columns as one label where it has few values; corrected for the choice",
        assumptions=(*assumptions, *((OWN_DRAWS,) if adds_up else ())),
        reference="Reeve & Kabán (2019), Theorem 3; Hoeffding (1956), Theorem 5",
    )
    return Finding((estimate,), bounds={RELEASE_ONLY: bound} if kind == "certified" else {})
