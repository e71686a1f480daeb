"""All private columns together: what an audit of the whole release could miss."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.person.answers import Answers
from ldpaudit.audits.person.counting import detectable_excess
from ldpaudit.commands.advise.closed_forms.candidates import Candidate
from ldpaudit.commands.advise.closed_forms.study import Study
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.measuring import reading_of
from ldpaudit.commands.sweep.points.simulation import simulate
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms.joint.independent import IndependentColumns
from ldpaudit.randomness import child_generator
from ldpaudit.reports.text.numbers import against

_DRAWS: Final = 3
"""Simulated releases, of which the one that shows least counts: chance is allowed for."""
_OF_WHOLE: Final = ("claimed_epsilon", "claimed_channel")
"""The checks of all columns together, which share the whole's error probability."""


def too_weak(studies: Sequence[Study], chosen: Sequence[Candidate], policy: Policy) -> str | None:
    """Return in a sentence that an audit of all columns could not pass; None where it could.

    Parameters
    ----------
    studies : sequence of Study
        One for each private column.
    chosen : sequence of Candidate
        Their mechanisms.
    policy : Policy
    """
    section = policy.checks.claimed_epsilon
    if section is None or section.level != "error":
        return None
    contexts = [_context(study, one) for study, one in zip(studies, chosen, strict=True)]
    joint = IndependentColumns(tuple(context.claim for context in contexts))
    if joint.epsilon is None or not math.isfinite(joint.epsilon):
        return None
    rng = child_generator(studies[0].tables.seed, "advise", "together")
    seen, error = Answers(tuple(contexts), joint), _error(policy, len(contexts))
    tried = [detectable_excess(seen, joint.epsilon, rng) for _ in range(_DRAWS)]
    missed = max((excess(error) for excess in tried if excess is not None), default=0.0)
    allowed = policy.audit.max_undetected_excess.at(joint.epsilon)
    if missed <= allowed:
        return None
    could, most = against(missed, allowed)
    return (
        f"Nothing was found that the policy lets pass: an audit of the {len(contexts)} private "
        f"columns together could miss an excess of {could} over the claimed ε, and the policy "
        f"allows {most}. It takes more rows, or fewer private columns."
    )


def _context(study: Study, candidate: Candidate) -> AuditContext:
    """Return all rows of a column as they could be released, with the true labels."""
    tables = replace(study.tables, training=study.tables.everything.table, test=None)
    drawn = simulate(tables, Point(candidate.name, "epsilon", candidate.epsilon, 1), None)
    release = reading_of(tables, drawn.table, drawn.mechanism, None).release
    return AuditContext(release, drawn.mechanism, study.context.plan, study.progress)


def _error(policy: Policy, columns: int) -> float:
    """Return the error probability of the claim for the whole: columns and whole share it."""
    sections = (getattr(policy.checks, name) for name in _OF_WHOLE)
    grave = sum(one is not None and one.level == "error" for one in sections)
    return float((1 - policy.audit.confidence) / (columns + 1) / max(grave, 1))
