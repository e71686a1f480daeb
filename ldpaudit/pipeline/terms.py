"""What is the same for every column of an audit, and how its audits run."""

import datetime
from collections.abc import Collection
from dataclasses import dataclass, field

from ldpaudit.audits.assumptions.rows import clusters
from ldpaudit.audits.interface import Execution, HeldOutGuesses, Plan, Shared
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.work.progress import NoProgress, Progress, Stop, Watched
from ldpaudit.work.tasks import Tasks, Threads


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


@dataclass(frozen=True)
class Terms:
    """What is the same for every column of an audit."""

    plan: Plan
    """Where the policy pins the seed or the confidence, the policy wins."""
    policy: Policy = field(default_factory=default_policy)
    """As it was given."""
    command: str = "ldpaudit.audit(…)"
    """How to run the audit again, without paths or names."""
    today: datetime.date = field(default_factory=_today)
    """Of the audit, and for the expiry of waivers; default: today, by UTC."""
    only: Collection[str] = ()
    """The audits to run; empty: all."""
    skip: Collection[str] = ()
    """The audits not to run."""
    outsiders: bool = True
    """Whether the result states what an audit could find, as far as everybody may know it; only the
    public page shows that."""

    def execution(
        self,
        *,
        progress: Progress | None = None,
        stop: Stop | None = None,
        tasks: Tasks | None = None,
        guesses: HeldOutGuesses | None = None,
        shared: Shared | None = None,
    ) -> Execution:
        """Return how the audits run; parameters as of :class:`Execution`.

        ``stop``: default: after the plan's ``timeout``. ``tasks``: default: threads, as many as the
        plan says.
        """
        stop = stop or Stop.after(self.plan.timeout)
        watched = Watched(progress or NoProgress(), stop)
        work = tasks or Threads(self.plan.threads)
        return Execution(watched, stop, work, guesses, clusters, shared)
