"""What every audit implements, what it is given, and which rows that are."""

import datetime
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Final, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import BoolArray, FloatArray, HalfArray, unwriteable
from ldpaudit.device import DeviceName
from ldpaudit.mechanisms import Mechanism
from ldpaudit.options.allowed_excess import DEFAULT_EXCESS, AllowedExcess
from ldpaudit.randomness import child_generator
from ldpaudit.receipt.found import Replay
from ldpaudit.release import Bags, IndexArray, IntArray, Release, Slices
from ldpaudit.result import Bound, Curve, Estimate, Finding, Histogram, Note, merged
from ldpaudit.work.memory import give_back, most_rows, rows_looked_at
from ldpaudit.work.progress import NoProgress, Progress, Stop
from ldpaudit.work.tasks import Tasks, Threads, held

T = TypeVar("T")

Counts = Literal["people", "rows"]
Need = Literal["truth", "labels", "rows", "order"]
Effort = Literal["full", "small"]


def _effort() -> Effort:
    return "small" if os.environ.get("LDPAUDIT_EFFORT") == "small" else "full"


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
    smoothness, smoothness_power : float or None, float
        C and β of the smoothness of P(label | features); None: it is assumed in words only.
    threads : int
        Threads for faiss, BLAS and boosting.
    device : {"auto", "cpu", "cuda"}
        Where torch models run.
    max_undetected_excess : AllowedExcess
        The excess ε that the audit must be able to find; a weaker one is inconclusive.
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
    effort : {"full", "small"}
        Small, to try things out: fewer seeds, fewer and smaller trees, models not fitted again with
        the rows held out, and bounds of means in coarser steps. Default: ``LDPAUDIT_EFFORT``, else
        full.
    """

    seed: int
    confidence: float = 0.95
    queries: int | Literal["all"] | None = None
    neighbors: int | None = None
    metric: Literal["l2", "raw", "learned"] = "l2"
    exact: bool = False
    smoothness: float | None = None
    smoothness_power: float = 1.0
    threads: int = 1
    device: DeviceName = "auto"
    max_undetected_excess: AllowedExcess = DEFAULT_EXCESS
    slices: tuple[Slices, ...] = ()
    seeds_tried: int | None = None
    attacks: tuple[str | type, ...] = ()
    made_on: datetime.date | None = None
    timeout: float | None = None
    memory: int | None = None
    effort: Effort = field(default_factory=_effort)


class Related(Protocol):
    """What else was released of the same people: other columns of the file, or other releases."""

    @property
    def private(self) -> AbstractSet[str]:
        """The names of the other private columns, whose noisy values are among the features."""

    def take(self, rows: IndexArray) -> "Related":
        """Return the same for some of the rows, int64 positions of shape (n,)."""


NOT_ASKED: Final = -1  # An attack was not asked about a row.


@dataclass
class HeldOutGuesses:
    """Every attack's right and wrong held-out guesses, row by row, while releases are compared.

    Nothing here is ever written, printed or put into a result: only counts and bounds made of
    several releases together leave a comparison.
    """

    outcomes: dict[str, npt.NDArray[np.int8]] = field(default_factory=dict, repr=False)
    """From the attack's name to an int8 (n,): 1 (right), 0 (wrong) or :data:`NOT_ASKED`."""
    values: dict[str, FloatArray] = field(default_factory=dict, repr=False)
    """From "<attack>.<measure>" to a float64 (n,), of attacks on numeric labels.

    Squared errors, or whether a guess was near; NaN where the attack was not asked.
    """
    halves: HalfArray = field(default_factory=lambda: np.empty(0, dtype=np.int8), repr=False)
    """In which half a row is, int8 (n,): the rows of one half are the held-out rows of one fold."""

    def record(self, name: str, rows: IndexArray, right: BoolArray, halves: HalfArray) -> None:
        """Remember for which held-out rows, by position in the release, the guess was right."""
        self.halves = halves
        unasked = np.full(len(halves), NOT_ASKED, dtype=np.int8)
        self.outcomes.setdefault(name, unasked)[rows] = right

    def record_values(
        self, name: str, rows: IndexArray, measured: Mapping[str, FloatArray], halves: HalfArray
    ) -> None:
        """Remember the values of an attack on numeric labels by measure, on some held-out rows."""
        self.halves = halves
        for measure, values in measured.items():
            unasked = np.full(len(halves), np.nan)
            self.values.setdefault(f"{name}.{measure}", unasked)[rows] = values


class Shared:
    """What audits of several releases of one table share: nothing that a released label shows.

    ``numbers``: those of random generators. A copy in another process begins with nothing.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, Any] = {}
        self._tables: dict[bytes, Memo] = {}
        self._guard = threading.Lock()

    def __reduce__(self) -> tuple[type["Shared"], tuple[()]]:
        """Return how to make one without what is known."""
        return Shared, ()

    def of(self, table: bytes) -> "Memo":
        """Return what is known of a table, by its fingerprint; of two tables at most."""
        with self._guard:
            memo = self._tables.pop(table, None)
            self._tables[table] = Memo() if memo is None else memo
            while len(self._tables) > _MOST_TABLES:
                del self._tables[next(iter(self._tables))]
            return self._tables[table]


@dataclass(frozen=True)
class Execution:
    """How audits run: who hears of it, when it ends, and where it works.

    Attributes
    ----------
    progress : Progress
    stop : Stop
    tasks : Tasks
        Does independent pieces of work side by side.
    guesses : HeldOutGuesses or None
        Where it is recorded which held-out guesses were right.
    grouped : callable or None
        Codes of rows that must be in one half, int64 (n,), or None where every row is on its own;
        None: the groups of the release.
    shared : Shared or None
        What audits of other releases of the same table have computed; None: nothing is shared.
    """

    progress: Progress = field(default_factory=NoProgress)
    stop: Stop = field(default_factory=Stop)
    tasks: Tasks = field(default_factory=Threads)
    guesses: HeldOutGuesses | None = None
    grouped: "Callable[[AuditContext], IndexArray | None] | None" = None
    shared: Shared | None = None


class Memo(dict[str, Any]):
    """Values computed of some rows, by key; each is computed once, whatever thread asks."""

    def __init__(self, *values: Mapping[str, Any]) -> None:
        super().__init__(*values)
        self._guard = threading.Lock()
        self._locks: dict[str, Any] = {}

    def once(self, key: str, build: Callable[[], T]) -> T:
        """Return the value of a key, which ``build`` gives where it is not known yet."""
        if key not in self:
            with self._guard:
                lock = self._locks.setdefault(key, threading.RLock())
            # What is computed may need other values, never itself: so no two threads can wait for
            # one another.
            with held(lock):
                if key not in self:
                    self[key] = build()
                    give_back()
        value: T = self[key]
        return value


_MOST_TABLES: Final = 2

# Rows that are put into halves at once.
_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class AuditContext:
    """Everything an audit may use.

    A long audit asks :meth:`out_of_time` between its parts. Where that is True it returns what it
    has, with every bound at the level that was set beforehand, and is recorded as stopped. One that
    does not ask ends at the next step or advance of ``progress``, which then raises
    :class:`ldpaudit.work.progress.Stopped`, and what it had is lost.

    Attributes
    ----------
    release : Release
        The rows: features, released labels and, where they are known, true labels. Read-only for
        audits of other packages.
    claim : Mechanism
        The mechanism that is claimed; ask its traits and methods, never its name.
    plan : Plan
        Confidence, threads, device and the other options.
    related : Related or None
        What else was released of the same people; None: nothing.
    whole : AuditContext or None
        The context of all rows, where audits look at a part of them; None: these are all rows.
    assumes : tuple of str
        What every bound assumes because of which rows these are, in words.
    run : Execution
        Progress, the time limit and the workers.
    memo : dict
        What :meth:`once` has computed so far, by key.
    replay : Replay or None
        What drawing the noise of this column again found; None where that was not tried.
    """

    release: Release
    claim: Mechanism
    plan: Plan
    related: Related | None = None
    whole: "AuditContext | None" = field(default=None, repr=False)
    assumes: tuple[str, ...] = ()
    run: Execution = field(default_factory=Execution)
    memo: dict[str, Any] = field(default_factory=Memo, repr=False)
    replay: Replay | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.memo, Memo):
            object.__setattr__(self, "memo", Memo(self.memo))

    @property
    def proven(self) -> bool:
        """Whether the noise is proven: tests of it are only to be shown."""
        return self.replay is not None and self.replay.proven

    @property
    def progress(self) -> Progress:
        """Who hears what is being done."""
        return self.run.progress

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

    def of(
        self,
        release: Release,
        *,
        claim: Mechanism | None = None,
        memo: dict[str, Any] | None = None,
    ) -> "AuditContext":
        """Return the context of another release, of which nothing but ``memo`` is known yet.

        Its claim is ``claim``, or this one's; nothing else was released of its people.
        """
        return replace(
            self,
            release=release,
            claim=claim or self.claim,
            related=None,
            whole=None,
            assumes=(),
            memo={} if memo is None else memo,
        )

    def on_rows(
        self,
        rows: IndexArray | None,
        *,
        whole: "AuditContext | None" = None,
        memo: dict[str, Any] | None = None,
    ) -> "AuditContext":
        """Return the context of some of these rows, or of all rows of the file.

        All that belongs to the rows follows: their labels and features, their places in the file,
        the plan's groups and the related answers. What was computed on other rows is forgotten.

        Parameters
        ----------
        rows : int64 array of shape (m,) or None
            Positions in ``release``. None: all rows, where this context is a part of them.
        whole : AuditContext, optional
            The context of all rows, where audits are to look at ``rows`` as a part of them.
        memo : dict, optional
            What is known of those rows, by key of :meth:`once`; default: nothing.

        Returns
        -------
        AuditContext
            With this one's claim, confidence and workers.
        """
        memo = {} if memo is None else memo
        if rows is None:
            every = self.whole or self
            return replace(
                self,
                release=every.release,
                plan=replace(self.plan, slices=every.plan.slices),
                related=every.related,
                whole=None,
                memo=memo,
            )
        release = self.release.take(rows)
        if release.places is None:
            release = replace(release, places=rows)
        slices = tuple(replace(one, codes=one.codes[rows]) for one in self.plan.slices)
        return replace(
            self,
            release=release,
            plan=replace(self.plan, slices=slices),
            related=None if self.related is None else self.related.take(rows),
            whole=whole,
            memo=memo,
        )

    def out_of_time(self) -> bool:
        """Return whether the audit must end now; one that asks and is told so must end."""
        return self.run.stop.due()

    def rng(self, *names: str) -> np.random.Generator:
        """Return the generator of the part of the audit called ``names``, and of no other part.

        The same seed and names always give the same generator.
        """
        return child_generator(self.plan.seed, *names)

    def once(self, key: str, build: Callable[[], T]) -> T:
        """Return what ``build`` gives, computed once per audit run for each ``key``.

        It shares what several audits need, such as a fitted model: the first that asks pays for it.
        """
        memo: Any = self.memo
        value: T = memo.once(key, build)
        return value

    def once_for_table(self, key: str, build: Callable[[], T]) -> T:
        """Return what ``build`` gives, once for each ``key`` and all releases of a shared table.

        It may depend on features, true labels, halves and the seed, not on released labels.
        """
        if self.run.shared is None:
            return self.once(key, build)
        memo = self.run.shared.of(self.once("table", self._fingerprint))
        return self.once(key, lambda: memo.once(key, build))

    def _fingerprint(self) -> bytes:
        """Return the same for contexts with equal features, true labels, halves, seed, effort."""
        features, told = self.release.features, hashlib.sha256()
        parts = (features.numeric, features.categorical, features.extra, features.marks)
        for part in (*parts, self.release.truth, self.halves()):
            told.update(b"-" if part is None else str((part.dtype, part.shape)).encode())
            told.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
        plain = features.cardinalities, features.mark_sources, len(self.release.classes)
        told.update(repr((plain, self.plan.seed, self.plan.effort)).encode())
        return told.digest()

    def halves(self) -> HalfArray:
        """Return a random fair split of the rows, int8 zeros and ones of shape (n,).

        All audits use the same two halves: models fitted on one half are scored on the other. Rows
        that share noise, or belong together, are in one half.
        """
        return self.once("halves", lambda: unwriteable(self._draw_halves()))

    def half(self, half: int) -> IndexArray:
        """Return the rows of the half 0 or 1, int64 of about n/2 positions in order."""
        return np.flatnonzero(self.halves() == half)

    def sample(self, rows: IndexArray, most: int, *names: str) -> IndexArray:
        """Return ``most`` of the ``rows`` at random, int64 in order; all if there are no more.

        ``names`` are those of :meth:`rng`.
        """
        if len(rows) <= most:
            return rows
        return np.sort(self.rng(*names).choice(rows, size=most, replace=False))

    def _draw_halves(self) -> HalfArray:
        codes = self.release.groups if self.run.grouped is None else self.run.grouped(self)
        n = len(self.release) if codes is None else int(codes.max()) + 1
        rng, halves = self.rng("halves"), np.zeros(n, dtype=np.int8)
        # Of a large release a half of each block: a permutation of all rows takes much memory.
        for start in range(0, n, _AT_ONCE):
            part = halves[start : start + _AT_ONCE]
            part[rng.permutation(len(part))[: len(part) // 2]] = 1
        return halves if codes is None else halves[codes]


def in_part(context: AuditContext) -> AuditContext:
    """Return the context of a part of the rows, drawn blind to labels; the same where all are seen.

    Rows that were released in bags, and those of a comparison, are never left out.
    """
    release, plan = context.release, context.plan
    whole = release.bags is not None or context.run.guesses is not None
    most = most_rows(release.features.width, len(release.classes))
    rows = None if whole else rows_looked_at(len(release), plan.seed, most)
    return context if rows is None else context.on_rows(rows, whole=context)


def remembered(
    key: str,
) -> Callable[[Callable[[AuditContext], T]], Callable[[AuditContext], T]]:
    """Return a decorator of what several audits ask: it is computed once per audit run."""

    def decorate(build: Callable[[AuditContext], T]) -> Callable[[AuditContext], T]:
        @wraps(build)
        def ask(context: AuditContext) -> T:
            return context.once(key, lambda: build(context))

        return ask

    return decorate


Part = Estimate | Curve | Histogram | Note | Finding | Bound


_FIELDS: Final[dict[Any, str]] = {
    Estimate: "estimates",
    Curve: "curves",
    Histogram: "histograms",
    Note: "notes",
}


def collected(parts: Iterable[Part]) -> Finding:
    """Return what an audit yields as one finding: numbers, notes, and bounds by id."""

    def alone(part: Part) -> Finding:
        if isinstance(part, Finding):
            return part
        if isinstance(part, Bound):
            shown: Any = {} if part.shown is None else {_FIELDS[type(part.shown)]: (part.shown,)}
            return Finding(**shown, bounds={part.id: part.at})
        own: Any = {_FIELDS[type(part)]: (part,)}
        return Finding(**own)

    return merged(map(alone, parts))


class Audit(Protocol):
    """One audit; a package registers its class, or an instance, in the group ``ldpaudit.audits``.

    The class needs no base. Its ``id`` is the name of its entry point, and the ids of its numbers
    begin with it and a point.

    Attributes
    ----------
    id : str
        The stable id for ``--only`` and ``--skip``, for instance ``"instance-loss"``.
    counts : {"people", "rows"}, optional
        What its intervals count. ``"people"``, the default: it sees one row of each group, and its
        certified numbers become estimates where these rows still share noise. ``"rows"``: it sees
        every row and leaves out itself what shares noise (:func:`ldpaudit.doors.counted_rows`).
    needs : tuple of {"truth", "labels", "rows", "order"}, optional
        What it is skipped without, ``("labels", "rows")`` by default. ``"truth"``: true labels.
        ``"labels"``: more than one released label. ``"rows"``: labels released row by row, not in
        bags. ``"order"``: all rows in the order of the file, also where other audits look at a
        part of them.
    """

    @property
    def id(self) -> str:
        """The stable id for --only and --skip, for instance ``"instance-loss"``."""

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why the audit does not apply in this ``context``, in words; None: it does."""

    def run(self, context: AuditContext) -> Finding:
        """Return what the audit finds in the release of this ``context``.

        Raises
        ------
        ldpaudit.errors.InsufficientDataError
            If there are too few rows; the audit is then recorded as skipped with that reason.
        """


@dataclass(frozen=True)
class Dependence:
    """Whether what was released depends on the true labels, as valid p-values."""

    unrelated: float
    """Of true labels that are of other rows: small where the released ones depend on them."""
    as_claimed: Callable[[], float]
    """Of labels released as claimed: small where the released ones depend on them less."""


def _nothing(_: AuditContext) -> None:
    """Return None: what most audits have to say."""


@dataclass(frozen=True)
class BuiltIn:
    """An audit of this package: a function that yields what it found, and when it applies."""

    id: str
    parts: Callable[[AuditContext], Iterable[Part]]
    unavailable: Callable[[AuditContext], str | None] = _nothing
    counts: Counts = "rows"
    needs: tuple[Need, ...] = ("labels", "rows")
    power: Callable[[AuditContext], Iterable[Part] | None] = _nothing
    """What the bound of this audit could have found; None where another audit bounds ε."""
    dependence: Callable[[AuditContext], Dependence | None] = _nothing
    """How far what was released depends on the true labels; None where labels were released."""
    within: str = ""
    """The audit that this one is a part of; it is then none of its own."""

    def run(self, context: AuditContext) -> Finding:
        """Return everything that was found."""
        return collected(self.parts(context))
