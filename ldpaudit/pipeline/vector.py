"""An audit of several private columns of one release: each column, then all of them together."""

import datetime
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from ldpaudit.audits.interface import AuditContext, Beside, Plan
from ldpaudit.audits.listing import OF_COLUMNS, OF_VECTORS
from ldpaudit.audits.vectors.audit import claimed
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.judging.whole import About, shared
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.pipeline.about import column_words, run_info, vector_info, vector_mechanism_info
from ldpaudit.pipeline.choosing import chosen_audits
from ldpaudit.pipeline.claim import pinned
from ldpaudit.pipeline.one_release import advisable, run_audit
from ldpaudit.pipeline.public import released_alone, whole_facts
from ldpaudit.pipeline.whole import own_findings, whole_result
from ldpaudit.release import ReleasedVector
from ldpaudit.result import AuditRecord, AuditResult, Finding, Note
from ldpaudit.running.finished import Finished
from ldpaudit.running.progress import NoProgress, Progress
from ldpaudit.running.scratch import Scratch
from ldpaudit.running.stopping import Stop, Watched
from ldpaudit.tasks import Tasks, Threads

_NOT_JOINT: Final = "the released vectors do not follow the joint mechanism that is declared"


@dataclass(frozen=True)
class Running:
    """What the audits of all columns share: where and how long they work, and who is told.

    Attributes
    ----------
    progress : Progress
    command : str
        How to run it again, without paths or names.
    finished : Finished
        Where finished parts are kept.
    stop : Stop
    scratch : Scratch or None
    tasks : Tasks or None
    today : datetime.date or None
        Default: today, by UTC.
    """

    progress: Progress = field(default_factory=NoProgress)
    command: str = "ldpaudit.audit(…)"
    finished: Finished = field(default_factory=Finished)
    stop: Stop = field(default_factory=Stop)
    scratch: Scratch | None = None
    tasks: Tasks | None = None
    today: datetime.date | None = None

    def keywords(self) -> dict[str, Any]:
        """Return it as the keywords of :func:`~ldpaudit.pipeline.run_audit`."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


def run_vector(
    vector: ReleasedVector,
    plan: Plan,
    policy: Policy | None = None,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    notes: tuple[Note, ...] = (),
    running: Running | None = None,
) -> AuditResult:
    """Audit each private column and the whole vector, and judge them by a policy.

    The policy's error probability is shared among the columns and the whole, the budget of attacks
    and the time that is left among the columns.

    Parameters
    ----------
    vector : ReleasedVector
    plan : Plan
        Where the policy pins the seed or the confidence, the policy wins.
    policy : Policy, optional
        Default: ``ldpaudit:default``. Its claim is about the whole.
    only, skip : collections of audit ids
        Which audits to run.
    notes : tuple of Note
        The warnings of the file's reader.
    running : Running, optional

    Raises
    ------
    InputError
        If a claim is not one that can be audited, or ``only``/``skip`` name no audit.
    PolicyError
        If no check of a column could run.
    """
    start, running = time.perf_counter(), running or Running()
    policy = policy or default_policy()
    share = shared(policy, len(vector.columns))
    chosen = chosen_audits(only, skip, {**OF_COLUMNS, **OF_VECTORS})
    if chosen.keys() <= OF_VECTORS.keys():
        raise InputError("The columns need an audit, too: add one, such as --only mechanism.")
    today = running.today or datetime.datetime.now(datetime.UTC).date()
    running = replace(running, today=today)
    claim = claimed(vector)
    plan = replace(pinned(plan, share), budget=plan.budget / len(vector.columns))
    asked = [[name for name in names if name not in OF_VECTORS] for names in (only, skip)]
    parts = tuple(
        _column(vector, claim, place, plan, share, asked, running)
        for place in range(len(vector.columns))
    )
    records, finding = _own(vector, claim, plan, chosen, running)
    mechanism = vector_mechanism_info(claim, parts)
    joint = claim is not None and not claim.independent
    about = About(
        *(policy, "vector", mechanism.epsilon, column_words(vector), records),
        odd=_NOT_JOINT if joint else "",
        rests_on_draws=not joint,
        advisable=all(map(advisable, vector.columns)),
    )
    seconds = time.perf_counter() - start
    info, facts = vector_info(vector), tuple(filter(None, (part.public for part in parts)))
    seen = vector_mechanism_info(_claimed_alone(vector), parts)
    return whole_result(
        *(about, finding, parts, "labels"),
        sha256=vector.sha256,
        today=today,
        notes=notes,
        release=info,
        mechanism=mechanism,
        run=run_info(plan, running.command, seconds, policy),
        public=whole_facts(info, seen, facts, policy, today),
    )


def _claimed_alone(vector: ReleasedVector) -> JointMechanism | None:
    """Return what is claimed of the columns, with no class that only true labels have."""
    try:
        return claimed(replace(vector, columns=tuple(map(released_alone, vector.columns))))
    except InputError:  # One released label for all, and no classes declared.
        return None


def _column(
    vector: ReleasedVector,
    claim: JointMechanism | None,
    place: int,
    plan: Plan,
    share: Policy,
    asked: Sequence[Collection[str]],
    running: Running,
) -> AuditResult:
    """Return the result of one column; ``asked``: its audits of ``only`` and of ``skip``."""
    number, columns = place + 1, len(vector.columns)
    # Where draws go together a released column depends on the others, as its claim alone does not.
    apart = claim is None or claim.independent
    running.progress.remark(f"Column {vector.columns[place].label} ({number} of {columns}):")
    within = running.finished.within(f"column-{number}")
    with running.stop.share(columns - place):
        return run_audit(
            vector.columns[place] if apart else vector.alone(place),
            plan,
            share,
            only=asked[0],
            skip=asked[1],
            beside=Beside(vector, place, claim),
            **replace(running, finished=within).keywords(),
        )


def _own(
    vector: ReleasedVector,
    joint: JointMechanism | None,
    plan: Plan,
    chosen: Mapping[str, str],
    running: Running,
) -> tuple[tuple[AuditRecord, ...], Finding]:
    """Return what was found about all columns together, and whether those audits ran."""
    first = vector.columns[0]
    claim = from_declaration(first.declaration, first.classes)
    stop = running.stop
    context = AuditContext(
        *(first, claim, plan, Watched(running.progress, stop)),
        finished=running.finished.within("all"),
        stop=stop,
        scratch=running.scratch or Scratch(),
        tasks=running.tasks or Threads(plan.threads),
        beside=Beside(vector, 0, joint),
    )
    return own_findings(context, chosen, OF_VECTORS)
