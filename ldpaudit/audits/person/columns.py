"""The private columns of a release together: claimed ε, what it is at least, and shared draws.

With true labels the columns' own bounds are added up, where independent draws are declared and not
refuted; their values as one label are bounded however the draws depend on each other. Without true
labels the release alone must do.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT, NOT_DERIVED
from ldpaudit.audits.interface import AuditContext, Counts
from ldpaudit.audits.observational.power import WANTED_POWER
from ldpaudit.audits.person.column_draws import DrawTest, draws_as_claimed
from ldpaudit.audits.person.insider import columns_evidence, detectable_excess
from ldpaudit.audits.person.names import DRAWS, EPSILON, EXCESS, LOWER, RELEASE_ONLY
from ldpaudit.audits.person.outsider import released_bound
from ldpaudit.audits.person.seen_columns import SeenColumns
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.person.columns import ColumnsEvidence
from ldpaudit.mechanisms.joint import JointMechanism, from_declaration
from ldpaudit.release import ReleasedVector
from ldpaudit.result import Estimate, Finding, Note

OWN_DRAWS: Final = "the columns of a row were drawn independently of each other"
REFUTED_DRAWS: Final = 0.05
"""The p-value of the test of independent draws from which the columns' bounds are not added up."""
_METHODS: Final = {
    "added": "the bounds of the columns' own ε, added up: their evidence is independent, and "
    "together they may miss as often as one (Fisher's method)",
    "labels": "the values of all columns (or of two) as one label",
}
_TITLES: Final = {
    "added": "The columns' bounds added up",
    "labels": "All columns as one label",
}


class ColumnsAudit:
    """Bounds ε of all private columns together, and tests their draws."""

    id = "person"
    counts: Counts = "rows"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why it does not apply, None where it does."""
        if context.beside is None:
            return "the release has one private column"
        if any(column.bags is not None for column in context.beside.vector.columns):
            return "labels were released in bags, not row by row"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it."""
        assert context.beside is not None
        vector = context.beside.vector
        return vector_finding(vector, claimed(vector), context)


def claimed(vector: ReleasedVector) -> JointMechanism | None:
    """Return what is claimed of the whole vector, None where nothing was declared."""
    if vector.declaration is None:
        return None
    return from_declaration(vector.declaration, [one.classes for one in vector.columns])


def vector_finding(
    vector: ReleasedVector, joint: JointMechanism | None, context: AuditContext
) -> Finding:
    """Return what is found about all private columns together.

    Parameters
    ----------
    vector : ReleasedVector
    joint : JointMechanism or None
        What is claimed of it.
    context : AuditContext
        Of any of its columns: it lends its plan, its progress and what ends it early.
    """
    seen = SeenColumns.of(vector, joint, context)
    estimates = list(_exact(joint))
    reason = seen.refusal()
    if reason is not None:
        text = f"The columns together were not bounded: {reason}."
        return Finding(tuple(estimates), notes=(Note.warning("person", text),))
    test = draws_as_claimed(seen, context.rng("person", "draws"))
    notes: list[Note] = []
    if isinstance(test, DrawTest):
        estimates.append(_draws(seen, test))
        notes += _refuted(test, 1 - context.plan.confidence)
    else:
        notes.append(Note.info("person", f"How draws go together was not tested: {test}."))
    if seen.knows_truth:
        found, bounds = _insider(seen, test, context)
    else:
        found, bounds = _outsider(seen, test, context)
    return Finding(estimates=(*estimates, *found), notes=tuple(notes), bounds=bounds)


def _exact(joint: JointMechanism | None) -> Iterator[Estimate]:
    if joint is None or joint.epsilon is None:
        return
    method = "the columns' ε added up" if joint.independent else "the exact channel of the vector"
    yield Estimate.exact(
        EPSILON,
        "Claimed ε of all columns together",
        joint.epsilon,
        axis="epsilon",
        unit="nats",
        method=method,
    )


def _draws(seen: SeenColumns, test: DrawTest) -> Estimate:
    kind, assumptions = seen.standing(INDEPENDENT)
    return Estimate.upper_bound(
        DRAWS,
        test.title,
        max(test.p_value, SMALLEST_P_VALUE),
        seen.contexts[0].plan.confidence,
        kind=kind,
        n=test.rows,
        unit="p-value",
        method=f"p-value: {test.method}",
        assumptions=(*assumptions, *test.assumptions),
        reference=test.reference,
    )


def _refuted(test: DrawTest, alpha: float) -> Iterator[Note]:
    if test.p_value <= alpha:
        yield Note.warning("person", test.warning)


def _refutes(test: DrawTest | str) -> bool:
    """Return whether draws turned out to go together, so that the columns' ε do not add up."""
    return isinstance(test, DrawTest) and test.p_value <= REFUTED_DRAWS


def _insider(
    seen: SeenColumns, test: DrawTest | str, context: AuditContext
) -> tuple[list[Estimate], dict[str, Callable[[float], float]]]:
    context.progress.step("bounding ε of all columns together")
    evidence = columns_evidence(seen, seen.released, context.rng("person", "epsilon"))
    if _refutes(test):
        evidence = evidence.without_sums()
    if not (evidence.columns or evidence.vectors):
        return [], {}
    estimates = list(_bounds(seen, evidence, context))
    if estimates[0].kind != "certified":
        return estimates, {}
    limit = None if seen.joint is None else seen.joint.epsilon
    bounds: dict[str, Callable[[float], float]] = {
        LOWER: lambda alpha: evidence.bound(alpha).epsilon
    }
    rng = context.rng("person", "power")
    excess = None if limit is None else detectable_excess(seen, limit, rng)
    if excess is not None:
        estimates.append(_power(excess, context))
        bounds[EXCESS] = excess
    return estimates, bounds


def _power(excess: Callable[[float], float], context: AuditContext) -> Estimate:
    return Estimate.estimated(
        EXCESS,
        "Smallest excess over the claim of all columns that would be found",
        excess(1 - context.plan.confidence),
        unit="nats",
        method="from a simulated release as claimed: an excess that the bound would exceed the "
        f"claim by with probability {WANTED_POWER:.0%}",
        assumptions=("the bound's standard error is that of the simulated release",),
    )


def _bounds(
    seen: SeenColumns, evidence: ColumnsEvidence, context: AuditContext
) -> Iterator[Estimate]:
    alpha, added = 1 - context.plan.confidence, bool(evidence.columns)
    own = {"added": evidence.added_up(alpha)} if added else {}
    own |= {"labels": evidence.as_labels(alpha)} if evidence.vectors else {}
    text = "; or ".join(_METHODS[name] for name in own) + "; each has its share of the error"
    names = LOWER, "All columns together, strongest bound"
    yield _bound(seen, names, evidence.bound(alpha), text, added)
    for name, bound in own.items():
        words = f"{_METHODS[name]}; at its own level"
        yield _bound(seen, (f"{LOWER}.{name}", _TITLES[name]), bound, words, name == "added")


def _bound(
    seen: SeenColumns,
    names: tuple[str, str],
    bound: EpsilonBound,
    method: str,
    independent_draws: bool,
) -> Estimate:
    kind, assumptions = seen.standing(FEATURE_BLIND, INDEPENDENT)
    assumed = (OWN_DRAWS,) if independent_draws else ()
    return Estimate.lower_bound(
        *names,
        bound.epsilon,
        seen.contexts[0].plan.confidence,
        kind=kind,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method=method,
        assumptions=(*assumptions, *assumed),
        reference="Hoeffding (1956), Theorem 5; Fisher (1932), section 21.1",
    )


def _outsider(
    seen: SeenColumns, test: DrawTest | str, context: AuditContext
) -> tuple[list[Estimate], dict[str, Callable[[float], float]]]:
    adds_up = seen.independent and not _refutes(test)
    bound = released_bound(seen, adds_up=adds_up)
    if bound is None:
        return [], {}
    kind, assumptions = seen.standing(FEATURE_BLIND, INDEPENDENT, NOT_DERIVED)
    estimate = Estimate.lower_bound(
        RELEASE_ONLY,
        "All columns together, the release alone",
        bound(1 - context.plan.confidence),
        context.plan.confidence,
        kind=kind,
        axis="epsilon",
        unit="nats",
        n=len(seen.contexts[0].release),
        method="how unanimous groups of rows are that features find: "
        + ("of each column, added up, and " if adds_up else "")
        + "of all columns as one label where it has few values; corrected for the choice",
        assumptions=(*assumptions, *((OWN_DRAWS,) if adds_up else ())),
        reference="Reeve & Kabán (2019), Theorem 3; Hoeffding (1956), Theorem 5",
    )
    return [estimate], {RELEASE_ONLY: bound} if kind == "certified" else {}
