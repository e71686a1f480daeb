"""A private column of a tree, and one whose strata have channels of their own."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ldpaudit.audits.alignment import Fit, truth_fit
from ldpaudit.audits.assumptions.standing import check_alignment
from ldpaudit.audits.interface import Execution
from ldpaudit.audits.models import one_channel
from ldpaudit.audits.running import part_notes, refusals
from ldpaudit.doors import (
    AuditContext,
    AuditResult,
    Declaration,
    IndexArray,
    Mechanism,
    Note,
    Release,
)
from ldpaudit.extras.several.judging import share_of
from ldpaudit.extras.several.nodes import Node
from ldpaudit.extras.several.related import Companions
from ldpaudit.extras.several.words import of_strata
from ldpaudit.judging.advice import next_steps
from ldpaudit.judging.checks.interface import Case, Evidence
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.sentence import sentence
from ldpaudit.judging.verdict import Answered, Judgement, answered, judge
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.pipeline.audit import (
    audit_column,
    check_some_ran,
    chosen_audits,
    claimed,
    column_result,
    context_of,
    examined,
    examined_column,
    limited_threads,
)
from ldpaudit.pipeline.terms import Terms
from ldpaudit.result import decision_of, overall, verdict_of

OF_COLUMNS: Final[Mapping[str, str]] = {
    "companions": "ldpaudit.extras.several.person.guessing:OTHER_COLUMNS",
}
"""The audits of one of several private columns besides the ordinary ones, places by id."""
_OF_A_STRATUM: Final = frozenset(("assumptions", "mechanism", "power"))
"""The audits of a stratum; all others look at the column with all of its rows."""
_CHECKS_OF_A_STRATUM: Final = frozenset(
    (
        "claimed_epsilon",
        "undetected_excess",
        "claimed_channel",
        "rare_classes",
        "shared_noise",
        "composition",
    )
)


def audit_leaf(
    terms: Terms, node: Node, policy: Policy, run: Execution, notes: tuple[Note, ...] = ()
) -> AuditResult:
    """Return the result of a private column; where its strata have channels, of each of them, too.

    ``policy``: what is asked of this column.
    """
    release, claim = claimed(node.leaves[0], policy)
    strata = tuple(strata_of(release, claim))
    more = OF_COLUMNS if isinstance(node.related, Companions) else MappingProxyType({})
    replay = node.replays[0] if node.replays else None
    around: Any = {"related": node.related, "replay": replay}
    if not strata:
        return audit_column(terms, node.leaves[0], policy, run, notes, **around, more=more)
    start, share = time.perf_counter(), share_of(policy, len(strata) + 1)
    context = context_of(terms, release, claim, share, run, **around)
    chosen = chosen_audits(terms.only, terms.skip, more)
    check_alignment(one_channel(context))
    # Each stratum has a channel of its own, and answers for its rows.
    parts = [_audited(terms, context, view, rows, share) for view, rows in strata]
    with limited_threads(context.plan.threads):
        column = examined_column(terms, context, chosen, policy)
        circumstances = column.circumstances(terms.skip)
        evidence = Evidence.collect(column.findings)
        case = Case(share, claim, evidence, len(release), circumstances, by_strata=True)
        judgement = _judged(answered(case, release.sha256, terms.today), parts)
    check_some_ran(judgement, [*column.records, *(one for part in parts for one in part.audits)])
    notes = (*notes, *column.notes(), *refusals())
    return column_result(terms, share, column, judgement, notes, start, tuple(parts))


def _audited(
    terms: Terms, column: AuditContext, view: Release, rows: IndexArray, policy: Policy
) -> AuditResult:
    """Return the result of a stratum, of which the channel alone is audited."""
    start = time.perf_counter()
    column.run.progress.remark(f"Stratum {view.label}:")
    run = replace(column.run, guesses=None)
    policy = _of_a_stratum(policy)
    release, claim = claimed(view, policy)
    replay = column.replay if column.proven else None
    slices = tuple(replace(one, codes=one.codes[rows]) for one in column.plan.slices)
    own = replace(terms, plan=replace(column.plan, slices=slices))
    context = context_of(own, release, claim, policy, run, replay=replay)
    of_all = chosen_audits(terms.only, terms.skip, OF_COLUMNS)
    chosen = {name: place for name, place in of_all.items() if name in _OF_A_STRATUM}
    check_alignment(one_channel(context))
    fit = Fit() if context.proven else truth_fit(one_channel(context))
    with limited_threads(context.plan.threads):
        found, _ = examined(own, context, chosen, policy)
        circumstances = replace(found.circumstances(terms.skip), unrelated=fit.unrelated)
        judgement = judge(
            policy,
            claim,
            Evidence.collect(found.findings),
            rows=len(release),
            sha256=release.sha256,
            today=terms.today,
            circumstances=circumstances,
        )
    notes = (*fit.notes, *part_notes(found.context))
    return column_result(own, policy, found, judgement, notes, start)


def _judged(found: Answered, strata: Sequence[AuditResult]) -> Judgement:
    """Return the judgement of a column by its own checks and the results of its strata."""
    case, checks = found.case, found.checks
    verdict = overall(checks, strata)
    decision = decision_of(verdict, [*checks, *(check for part in strata for check in part.checks)])
    own = verdict_of(checks) if any(check.level == "error" for check in checks) else "pass"
    # Where the strata decide, its own checks say nothing.
    words = sentence(verdict, checks, case) if own == verdict else ""
    steps = next_steps(decision, case, checks) if decision_of(own, checks) == decision else ()
    words, steps = of_strata(words, steps, verdict, decision, checks, strata)
    return found.judgement(verdict, words, steps)


def strata_of(release: Release, claim: Mechanism) -> Iterator[tuple[Release, IndexArray]]:
    """Yield a release of each stratum that has rows, in the declared order, and those rows."""
    # Nothing where one channel serves all rows. Rows of different strata are never compared, so all
    # that bounds and tests assume of one channel holds within a stratum.
    strata, declared, by_value = release.strata, release.declaration, claim.offers(LabelByStratum)
    if strata is None or declared is None or by_value is None:
        return
    for place in np.unique(strata.codes):
        rows, own = np.flatnonzero(strata.codes == place), claim.by_stratum[place]
        stated, label = own.declaration(), str(by_value.values[place])
        view = replace(release.take(rows), strata=None, declared=None, label=label)
        yield replace(view, declaration=Declaration(own.name, stated, declared.source)), rows


def _of_a_stratum(policy: Policy) -> Policy:
    """Return what a policy asks of a stratum: the checks of its channel alone."""
    others = type(policy.checks).model_fields.keys() - _CHECKS_OF_A_STRATUM
    checks = policy.checks.model_copy(update=dict.fromkeys(others))
    audit = policy.audit.model_copy(update={"min_rows": None})
    return policy.model_copy(update={"checks": checks, "audit": audit, "claim": None}).of_all()
