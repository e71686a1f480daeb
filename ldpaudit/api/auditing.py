"""An audit from Python: the same as on the command line. Reading, planning, one result."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np

from ldpaudit.api.reading import in_memory, notes_of, read_column, replays_of, with_tables_in_memory
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.errors import InputError
from ldpaudit.keywords import documented, in_python, made
from ldpaudit.options import AuditOptions, PlanOptions, ReleaseOptions, texts_of
from ldpaudit.randomness import seed_from
from ldpaudit.release import Release
from ldpaudit.result import AuditResult, Note
from ldpaudit.work.memory import size_of
from ldpaudit.work.notebook import notebook_progress
from ldpaudit.work.progress import NoProgress, Progress, Stop

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from ldpaudit.audits.interface import Plan
    from ldpaudit.judging.policy import Policy
    from ldpaudit.pipeline.trees import Tree
    from ldpaudit.receipt.found import Replay
    from ldpaudit.release import Slices
    from ldpaudit.work.memory import Scratch
    from ldpaudit.work.tasks import Pool

    Released: TypeAlias = str | Path | pd.DataFrame | pa.Table

    @dataclass(frozen=True)
    class _Keywords(AuditOptions):
        """What a call may say: an audit's options, and the claim's in single words."""

        _: KW_ONLY
        epsilon: float | None = None
        noise: float | None = None
        lambda_: float | None = None
        channel: str | Path | None = None
        labels: str | None = None
        seed: int | None = None


P = ParamSpec("P")
Asked = TypeVar("Asked", bound=ReleaseOptions)


class _Audit(Protocol[P]):
    """An audit that takes a release, and each option as a keyword."""

    def __call__(
        self, release: "Released | Sequence[Released]", *args: P.args, **keywords: P.kwargs
    ) -> AuditResult: ...


def _with_options(_options: "Callable[P, AuditOptions]") -> Callable[[Any], _Audit[P]]:
    """Let type checkers see the options of a function."""
    return lambda function: function


@_with_options(_Keywords if TYPE_CHECKING else AuditOptions)
def audit(release: Any, *args: Any, **keywords: Any) -> AuditResult:
    """Audit a released dataset: how much does it reveal about each person's label?

    Parameters
    ----------
    release : path, pandas.DataFrame or pyarrow.Table
        Features and one column of released labels, n rows; or several private columns. A list of
        releases of the same people, joined on ``id_column``, is audited as one.
    epsilon, noise, channel, labels : optional
        The claim in single words, for ``mechanism`` or its default, randomized response: ε in nats,
        or λ (also ``lambda_``); a CSV file with the channel; the range of a numeric label,
        ``"LO:HI"`` or ``"LO:HI:STEP"``. Other options may be called as on the command line, too:
        ``seed`` for ``rng``, ``id`` for ``id_column``.

    Returns
    -------
    AuditResult
        With ``verdict``, ``sentence``, ``estimates`` …; ``to_frame()`` gives the numbers,
        ``to_html(path)`` writes the report. Of several private columns ``labels`` holds the result
        of each, and the numbers beside it are of all together; of several releases ``releases``
        does.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input or the policy.

    Examples
    --------
    >>> import ldpaudit
    >>> from ldpaudit.datasets import affairs
    >>> features, truth = affairs()
    >>> table = features.assign(label=truth).sample(1000, random_state=0)
    >>> released = ldpaudit.privatize(table, "rr", epsilon=1.0)
    >>> result = ldpaudit.audit(released, table["label"], only=["mechanism", "power"])
    >>> result["mechanism.epsilon"].value
    1.0
    """
    given = dict(zip(_POSITIONS, args, strict=False))
    if len(args) > len(_POSITIONS) or given.keys() & keywords.keys():
        raise InputError("audit() takes a release, true labels, a claim and a seed by position.")
    with in_python(AuditOptions):
        options = made(AuditOptions, given | keywords, "audit")
        with notebook_progress(options.progress) as progress:
            return audit_with(release, replace(options, progress=progress))


_POSITIONS: Final = ("truth", "mechanism", "rng")
documented(audit, AuditOptions, ("release",), _POSITIONS)


def audit_with(release: Any, options: AuditOptions, *, outsiders: bool = True) -> AuditResult:
    """Audit a released dataset as the options ask.

    Parameters
    ----------
    release : path, pandas.DataFrame, pyarrow.Table, or a list of them
        Features and released labels; several are releases of the same people.
    options : AuditOptions
        True labels, claim, columns, policy and the way of working.
    outsiders : bool
        Whether the result also states what only the public page shows.

    Returns
    -------
    AuditResult

    Raises
    ------
    LdpAuditError
        One line about what is wrong with the input, the options or the policy.
    """
    options.check()
    stop, progress = options.stop or Stop.after(options.timeout), options.progress or NoProgress()
    # A list or tuple holds several releases; a pair of a sparse matrix and labels is one.
    sparse = isinstance(release, tuple) and len(release) == 2 and hasattr(release[0], "tocsr")
    several = isinstance(release, list | tuple) and bool(release) and not sparse
    every = tuple(map(in_memory, release if several else (release,)))
    options = with_tables_in_memory(options)
    # Said before what takes a second to import; in a log, bad input is one line.
    if sys.stderr.isatty():
        progress.step(f"reading the release{'s' * (len(every) > 1)}")
    from ldpaudit.datasets.groups import read_slices
    from ldpaudit.judging.policy import default_policy
    from ldpaudit.pipeline.audit import audit
    from ldpaudit.pipeline.terms import Terms
    from ldpaudit.work.memory import Scratch

    policy = policy_of(options)
    options = with_before(options, policy)
    with Scratch() as scratch, cluster_of(options, scratch, options.progress) as tasks:
        released, replay, notes = _read(every, options, progress)
        first = released if isinstance(released, Release) else released.leaves[0]
        slices: tuple[Slices, ...] = ()
        if len(every) == 1:
            slices = read_slices(every[0], options.slices, options, first.places)
        plan = plan_of(options, seed_of(options, first.sha256), slices)
        terms = Terms(
            plan,
            policy or default_policy(),
            command=options.command,
            only=options.only,
            skip=options.skip,
            outsiders=outsiders,
        )
        run = terms.execution(progress=progress, stop=stop, tasks=tasks)
        result = audit(released, terms, run, notes=notes, replay=replay)
    return result


@unchanged()
def _read(
    releases: Sequence[Any], options: AuditOptions, progress: Progress
) -> "tuple[Release | Tree, Replay | None, tuple[Note, ...]]":
    """Return what was given, what drawing a column's noise again found, and the reader's notes."""
    from ldpaudit.pipeline.trees import trees

    if len(releases) > 1:
        tree, notes = trees(f"{len(releases)} releases").read(releases, options, progress)
        return tree.with_replays(replays_of(releases, options)), None, notes
    reading = read_column(releases[0], options)
    if isinstance(reading, tuple):
        source, number = reading
        what = f"{number} private columns: name one of them (--label)"
        tree, notes = trees(what).read([source], options, progress)
        return tree.with_replays(replays_of(releases, options)), None, notes
    for remark in reading.remarks:
        progress.remark(remark)
    release = reading.release
    if options.public_posterior is not None or options.canaries is not None:
        from ldpaudit.datasets.probabilities import with_canaries, with_public_posterior

        release = with_public_posterior(release, options.public_posterior, options)
        release = with_canaries(release, options.canaries, options)
    (replay,) = replays_of(releases, options, release)
    replay = None if replay is None else replay.of(release.label)
    return release, replay, notes_of(reading)


@contextmanager
def cluster_of(
    options: PlanOptions, scratch: "Scratch", progress: "Progress | None" = None
) -> "Iterator[Pool | None]":
    """Give the cluster that the options name, None without one; it ends with the block."""
    from ldpaudit.work.cluster import open_cluster

    if options.cluster is None:
        yield None
        return
    memory = None if options.memory is None else size_of(options.memory)
    with open_cluster(
        options.cluster,
        scratch.folder,
        memory=memory,
        without_tls=options.cluster_without_tls,
        progress=progress,
    ) as pool:
        yield pool


def policy_of(options: PlanOptions) -> "Policy | None":
    """Return the policy of an audit, None for the default one."""
    from ldpaudit.judging.policy import Policy, load_policy

    policy: Any = options.policy
    if not isinstance(policy, str | Path | Policy | None):
        raise InputError(f"A policy must be a file, or a Policy. Got {type(policy).__name__}.")
    return load_policy(policy) if isinstance(policy, str | Path) else policy


def with_before(options: Asked, policy: "Policy | None") -> Asked:
    """Return options that also name the columns of the policy that are from before the noise."""
    given = texts_of(options.before, "before")
    named = () if policy is None else policy.release.before
    return replace(options, before=tuple(dict.fromkeys((*given, *named))))


def plan_of(
    options: PlanOptions, seed: int, slices: "tuple[Slices, ...]" = (), threads: int | None = None
) -> "Plan":
    """Return how an audit is to be run.

    Parameters
    ----------
    options : PlanOptions
    seed : int
        The root of all randomness.
    slices : tuple of Slices
        Groups of rows for which the strongest attack is scored separately.
    threads : int, optional
        Used where the options state none; default: ``OMP_NUM_THREADS``, else as many as there are
        processors.
    """
    from ldpaudit.audits.interface import Plan

    if options.attacks:
        from ldpaudit.attacks import available_attacks

        available_attacks(options.attacks)  # A mistake is told before any work.
    return Plan(
        seed=seed,
        queries=options.queries,
        neighbors=options.neighbors,
        metric=options.metric,
        exact=options.exact,
        smoothness=options.smoothness,
        smoothness_power=options.smoothness_power,
        threads=options.threads or threads or _threads_by_default(),
        device=options.device,
        slices=slices,
        seeds_tried=options.seeds_tried,
        attacks=tuple(options.attacks),
        made_on=options.made_on,
        timeout=options.timeout if isinstance(options, AuditOptions) else None,
        memory=None if options.memory is None else size_of(options.memory),
    )


def seed_of(options: ReleaseOptions, sha256: str | None) -> int:
    """Return the seed of an audit: that of the options, else one derived from the release.

    ``sha256`` is the released file's; None, for a table in memory, gives 0.
    """
    if isinstance(options.rng, np.random.Generator):
        return seed_from(options.rng)
    seed: Any = options.rng
    if seed is not None:
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            raise InputError("The seed must be a whole number, or a generator of NumPy.")
        return int(seed)
    return int(sha256[:12], 16) if sha256 else 0


def available_threads() -> int:
    """Return how many processors this process may use; its container may allow it only a few."""
    import joblib

    return int(joblib.cpu_count())


def _threads_by_default() -> int:
    """Return ``OMP_NUM_THREADS`` where that states a number, as for other libraries, else all."""
    stated, every = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0], available_threads()
    return min(int(stated), every) if stated.isdecimal() and int(stated) else every
