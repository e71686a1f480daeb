"""What every audit implements, and what it is given."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from ldpaudit.arrays import HalfArray
from ldpaudit.audits.allowed_excess import DEFAULT_EXCESS, AllowedExcess
from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.datasets.beside.slices import Slices
from ldpaudit.device import DeviceName
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.randomness import child_generator
from ldpaudit.release import Bags, ColumnReleases, FileColumns, IndexArray, IntArray, Release
from ldpaudit.result import Finding
from ldpaudit.running.finished import Finished
from ldpaudit.running.progress import NoProgress, Progress
from ldpaudit.running.stopping import Stop
from ldpaudit.tasks import Tasks, Threads

T = TypeVar("T")

Counts = Literal["people", "rows"]
Need = Literal["truth", "labels", "rows", "order"]

DEFAULT_BUDGET = 60.0
"""Seconds for all attacks, as predicted for one core."""


@dataclass(frozen=True)
class Plan:
    """How an audit is to be run.

    Attributes
    ----------
    seed : int
        The root of all randomness.
    confidence : float
        The confidence of each interval, in (0, 1).
    queries : int or "all" or None
        How many rows ask for their neighbours; None: 20,000.
    neighbors : int or None
        k of the nearest neighbours; None: adapts to the number of rows.
    metric : {"l2", "raw", "learned"}
        The space in which neighbours are near.
    exact : bool
        Whether neighbours are found by comparing all rows.
    threads : int
        Threads for faiss, BLAS and boosting.
    device : {"auto", "cpu", "cuda"}
        Where torch models run.
    max_undetected_excess : AllowedExcess
        The excess ε that the audit must be able to find; a weaker one is inconclusive.
    budget : float
        Seconds that attacks may take; those that do not fit are left out, and named.
    thorough : bool
        Whether all attacks run, without a budget.
    slices : tuple of Slices
        Groups of rows for which the strongest attack is scored separately.
    seeds_tried : int or None
        Seeds of random generators to try, from 0; None: those that people choose.
    memory : int or None
        The most bytes of memory to use; None: half of the machine's.
    attacks : tuple of str or class
        Attacks to run besides the others: ``FILE.py:CLASS``, ``MODULE:CLASS`` or classes.
    made_on : datetime.date or None
        When the noise was drawn: the seconds of that day are tried as seeds, too.
    timeout : float or None
        Seconds after which the audit ends with what it has; None: when it is done.
    """

    seed: int
    confidence: float = 0.95
    queries: int | Literal["all"] | None = None
    neighbors: int | None = None
    metric: Literal["l2", "raw", "learned"] = "l2"
    exact: bool = False
    threads: int = 1
    device: DeviceName = "auto"
    max_undetected_excess: AllowedExcess = DEFAULT_EXCESS
    budget: float = DEFAULT_BUDGET
    thorough: bool = False
    slices: tuple[Slices, ...] = ()
    seeds_tried: int | None = None
    attacks: tuple[str | type, ...] = ()
    made_on: datetime.date | None = None
    timeout: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Companions:
    """The other private columns of a release, where it has several.

    Attributes
    ----------
    file : FileColumns
    position : int
        Of the column that is audited.
    claim : JointMechanism or None
        What is claimed of all columns; None where nothing is.
    rows : int64 array or None
        The rows that the audit looks at; None: all.
    """

    file: FileColumns
    position: int
    claim: JointMechanism | None = None
    rows: IndexArray | None = None

    def with_companions(self) -> Release:
        """Return the column with the other released columns among its features."""
        return self._taken(self.file.columns[self.position])

    def alone(self) -> Release:
        """Return the column without them."""
        return self._taken(self.file.alone(self.position))

    def take(self, rows: IndexArray) -> "Companions":
        """Return the same for some of its rows."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def _taken(self, release: Release) -> Release:
        return release if self.rows is None else release.take(self.rows)


@dataclass(frozen=True)
class OverReleases:
    """Several releases of the same people, and what is claimed of their noise.

    Attributes
    ----------
    releases : ColumnReleases
    noise : {"fresh", "remembered"} or None
        Whether each release draws again, or repeats the answer for a label that did not change.
    """

    releases: ColumnReleases
    noise: Literal["fresh", "remembered"] | None = None


_AT_ONCE = 1 << 22
"""Rows that are put into halves at once."""


@dataclass(frozen=True)
class AuditContext:
    """Everything an audit may use.

    ``once`` shares what several audits need (a fitted model, a posterior): the first one that asks
    pays for it. ``guesses``, where not None, records which held-out guesses were right. ``tasks``
    does independent pieces of work side by side. ``whole``: the whole release, where ``release``
    holds a part of its rows (:mod:`ldpaudit.audits.part`). ``companions``: the other private
    columns of its file. ``over``: the other releases of the same people, where there are several.

    A long audit asks :meth:`out_of_time` between its parts; where that is True it returns what it
    has, with every bound at the level that was set beforehand, and is recorded as stopped. One that
    does not ask ends at the next step or advance of ``progress``, which then raises
    :class:`ldpaudit.running.stopping.Stopped`, and what it had is lost. What is dear is kept in
    ``finished``, part by part.
    """

    release: Release
    claim: Mechanism
    plan: Plan
    progress: Progress = field(default_factory=NoProgress)
    guesses: HeldOutGuesses | None = None
    finished: Finished = field(default_factory=Finished)
    stop: Stop = field(default_factory=Stop)
    whole: Release | None = None
    tasks: Tasks = field(default_factory=Threads)
    companions: Companions | None = None
    over: OverReleases | None = None
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def truth(self) -> IntArray:
        """The true labels, int32 of shape (n,), for code that runs only where they are known."""
        assert self.release.truth is not None
        return self.release.truth

    @property
    def bags(self) -> Bags:
        """The bags, for code that runs only on releases of bags."""
        assert self.release.bags is not None
        return self.release.bags

    def out_of_time(self) -> bool:
        """Return whether the audit is to end now; who asks and is told so must end."""
        return self.stop.due()

    def rng(self, *names: str) -> np.random.Generator:
        """Return the generator of a part of the audit, independent of every other part."""
        return child_generator(self.plan.seed, *names)

    def once(self, key: str, build: Callable[[], T]) -> T:
        """Return what ``build`` gives, computed once per audit run for each ``key``."""
        if key not in self._shared:
            self._shared[key] = build()
        value: T = self._shared[key]
        return value

    def halves(self) -> HalfArray:
        """Return a random fair split of the rows, int8 zeros and ones of shape (n,).

        All audits use the same two halves: models fitted on one half are scored on the other. Rows
        that share noise, or belong together, are in one half.
        """
        return self.once("halves", self._draw_halves)

    def half(self, half: int) -> IndexArray:
        """Return the rows of one of the two halves, in order."""
        return np.flatnonzero(self.halves() == half)

    def sample(self, rows: IndexArray, most: int, *names: str) -> IndexArray:
        """Return ``most`` of the rows at random, in order; all if there are no more than that."""
        if len(rows) <= most:
            return rows
        return np.sort(self.rng(*names).choice(rows, size=most, replace=False))

    def _draw_halves(self) -> HalfArray:
        from ldpaudit.audits.assumptions.rows import clusters

        codes = clusters(self)
        n = len(self.release) if codes is None else int(codes.max()) + 1
        rng, halves = self.rng("halves"), np.zeros(n, dtype=np.int8)
        # Of a large release a half of each block: a permutation of all rows takes much memory.
        for start in range(0, n, _AT_ONCE):
            part = halves[start : start + _AT_ONCE]
            part[rng.permutation(len(part))[: len(part) // 2]] = 1
        return halves if codes is None else halves[codes]


@dataclass(frozen=True)
class Cost:
    """What an audit is predicted to take on an ordinary machine, from the release's size alone.

    Attributes
    ----------
    seconds : float
    memory : float
        Bytes at its peak, the table not counted.
    words : str
        What there is to do, such as ``"12 attacks"``; may be empty.
    """

    seconds: float = 1.0
    memory: float = 0.0
    words: str = ""


@runtime_checkable
class Costed(Protocol):
    """An audit that predicts its cost."""

    def cost(self, context: AuditContext) -> Cost:
        """Return what :meth:`Audit.run` will take; called where it is available, before it."""


@runtime_checkable
class Counting(Protocol):
    """An audit that says what its intervals count; one that does not counts people.

    ``"people"``: it sees one row of each group, and its certified numbers are estimates where these
    rows still share noise. ``"rows"``: it sees every row and leaves out itself what shares noise
    (:func:`ldpaudit.audits.assumptions.rows.counted_rows`).
    """

    @property
    def counts(self) -> Counts:
        """What it counts."""


@runtime_checkable
class Needing(Protocol):
    """An audit that says what it needs; without it the audit is skipped.

    ``"truth"``: true labels. ``"labels"``: more than one released label. ``"rows"``: labels
    released row by row, not in bags. ``"order"``: all rows in the order of the file, also where
    other audits look at a part of them. One that does not say needs labels and rows.
    """

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it needs."""


class Audit(Protocol):
    """One audit: a folder here, or a plug-in of the entry-point group ldpaudit.audits."""

    @property
    def id(self) -> str:
        """The stable id for --only and --skip, for instance ``"instance-loss"``."""

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why the audit does not apply here, None where it does."""

    def run(self, context: AuditContext) -> Finding:
        """Run it.

        Raises
        ------
        ldpaudit.errors.InsufficientDataError
            If there are too few rows; the audit is then recorded as skipped with that reason.
        """
