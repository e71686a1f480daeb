"""An audit from Python: the same as on the command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol

import numpy as np

from ldpaudit.claim import declaration_of
from ldpaudit.errors import InputError
from ldpaudit.keywords import documented, made
from ldpaudit.options import (
    AS_FOUND,
    AuditOptions,
    FileOptions,
    PlanOptions,
    ReleaseOptions,
    keywords_for,
)
from ldpaudit.randomness import seed_from
from ldpaudit.result import AuditResult, Note
from ldpaudit.running.finished import Finished
from ldpaudit.running.memory import size_of
from ldpaudit.running.progress import NoProgress
from ldpaudit.running.stopping import Stop

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from ldpaudit.audits.interface import Plan
    from ldpaudit.datasets.beside.slices import Slices
    from ldpaudit.datasets.reading import ReadReport
    from ldpaudit.judging.policy import Policy
    from ldpaudit.release import Release
    from ldpaudit.running.progress import Progress
    from ldpaudit.running.scratch import Scratch
    from ldpaudit.tasks.cluster import Cluster

    @dataclass(frozen=True)
    class _Keywords(AuditOptions):
        """What a call may state: an audit's options, and the claim's in single words."""

        _: KW_ONLY
        epsilon: float | None = None
        noise: float | None = None
        lambda_: float | None = None
        channel: str | Path | None = None
        labels: str | None = None
        seed: int | None = None


P = ParamSpec("P")


class _Audit(Protocol[P]):
    """An audit that takes a release, and each option as a keyword."""

    def __call__(
        self, release: "str | Path | pd.DataFrame | pa.Table", *args: P.args, **keywords: P.kwargs
    ) -> AuditResult: ...


def _with_options(_options: "Callable[P, AuditOptions]") -> Callable[[Any], _Audit[P]]:
    """Let type checkers see the options of a function."""
    return lambda function: function


@_with_options(_Keywords if TYPE_CHECKING else AuditOptions)
def audit(release: Any, *args: Any, **keywords: Any) -> AuditResult:
    """Audit a released dataset: how much does it give away about each person's label?

    Parameters
    ----------
    release : path, pandas.DataFrame or pyarrow.Table
        Features and one column of released labels, n rows.
    epsilon, noise, channel, labels : optional
        The claim in single words, for ``mechanism`` or its default, randomized response: ε in nats,
        or λ (also ``lambda_``); a CSV file with the channel; the range of a numeric label,
        ``"LO:HI"`` or ``"LO:HI:STEP"``. Other options may be called as on the command line, too:
        ``seed`` for ``rng``, ``id`` for ``id_column``.

    Returns
    -------
    AuditResult
        With ``verdict``, ``sentence``, ``estimates`` …; ``to_frame()`` gives the numbers,
        ``to_html(path)`` writes the report.

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
    stated = dict(zip(_POSITIONS, args, strict=False))
    if len(args) > len(_POSITIONS) or stated.keys() & keywords.keys():
        raise InputError("audit() takes a release, true labels, a claim and a seed by position.")
    return audit_with(release, made(AuditOptions, stated | keywords, "audit"))


_POSITIONS: Final = ("truth", "mechanism", "rng")
documented(audit, AuditOptions, ("release",), _POSITIONS)


def audit_with(release: Any, options: AuditOptions) -> AuditResult:
    """Audit a released dataset as the options ask.

    With ``resume``, the finished parts are removed when the result is whole.
    """
    with unwritten_result(release, options) as result:
        return result


@contextmanager
def unwritten_result(release: Any, options: AuditOptions) -> Iterator[AuditResult]:
    """Give the result of an audit; finished parts are kept until the block has ended well."""
    from ldpaudit.datasets.beside.canaries import with_canaries
    from ldpaudit.datasets.beside.public_posterior import with_public_posterior
    from ldpaudit.datasets.beside.slices import read_slices
    from ldpaudit.pipeline import run_audit
    from ldpaudit.running.scratch import Scratch

    options.check()
    stop = options.stop or Stop.after(options.timeout)
    policy = policy_of(options)
    with Scratch() as scratch, cluster_of(options, scratch, options.progress) as tasks:
        reading = read_with(release, options, scratch)
        for remark in reading.remarks:
            (options.progress or NoProgress()).remark(remark)
        seed = seed_of(options, reading.release.sha256)
        plan = plan_of(options, seed, read_slices(release, options.slices, options))
        audited = with_public_posterior(reading.release, options.public_posterior, options)
        finished = _finished(reading.release, options, plan, policy)
        result = run_audit(
            with_canaries(audited, options.canaries, options),
            plan,
            policy,
            only=options.only,
            skip=options.skip,
            progress=options.progress,
            command=options.command,
            notes=notes_of(reading),
            finished=finished,
            stop=stop,
            scratch=scratch,
            tasks=tasks,
        )
    yield result
    if not any(record.status == "stopped" for record in result.audits):
        finished.remove()


def _finished(
    release: "Release", options: AuditOptions, plan: "Plan", policy: "Policy | None"
) -> Finished:
    if options.resume is None:
        return Finished()
    from ldpaudit.pipeline import run_info
    from ldpaudit.resume import finished_parts

    info = run_info(plan, "", 0.0, policy)
    known = {"--seed": info.seed, "--threads": info.threads, "versions": info.versions}
    return finished_parts(Path(options.resume), release, options, policy, **known)


@contextmanager
def cluster_of(
    options: PlanOptions, scratch: "Scratch", progress: "Progress | None" = None
) -> "Iterator[Cluster | None]":
    """Give the cluster that the options name, None without one; it ends with the block."""
    from ldpaudit.tasks.opening import open_cluster

    if options.cluster is None:
        yield None
        return
    memory = None if options.memory is None else size_of(options.memory)
    place, folder = options.cluster, scratch.folder
    with open_cluster(place, folder, memory=memory, progress=progress) as cluster:
        yield cluster


def read_with(
    release: Any, options: ReleaseOptions, scratch: "Scratch | None" = None
) -> "ReadReport":
    """Read a release with what the options say about it."""
    from ldpaudit.datasets import read_release
    from ldpaudit.mechanisms.coding import DeclaredCoding

    files = options if isinstance(options, FileOptions) else AS_FOUND
    return read_release(
        release,
        declaration=declaration_of(options.mechanism, files),
        coding=DeclaredCoding,
        scratch=scratch,
        files=files,
        **keywords_for(read_release, options),
    )


def notes_of(reading: "ReadReport") -> tuple[Note, ...]:
    """Return the reader's remarks and warnings as notes."""
    remarks = tuple(Note.info("reading", text) for text in reading.remarks)
    return remarks + tuple(Note.warning("reading", text) for text in reading.warnings)


def policy_of(options: PlanOptions) -> "Policy | None":
    """Return the policy of an audit, None for the default one."""
    from ldpaudit.judging.policy import load_policy

    policy = options.policy
    return load_policy(policy) if isinstance(policy, str | Path) else policy


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
        Used where the options state none; default: the number of processors.
    """
    from ldpaudit.audits.interface import Plan

    if options.attacks:
        from ldpaudit.attacks import available_attacks

        available_attacks(options.attacks)  # A mistake is told before any work.
    asked: dict[str, Any] = {"threads": threads or available_threads()}
    asked |= keywords_for(Plan, options)
    return Plan(**asked | {"seed": seed, "slices": slices})


def seed_of(options: ReleaseOptions, sha256: str | None) -> int:
    """Return the seed of an audit: that of the options, else one derived from the release.

    ``sha256`` is the released file's; None, for a table in memory, gives 0.
    """
    if isinstance(options.rng, np.random.Generator):
        return seed_from(options.rng)
    if options.rng is not None:
        return int(options.rng)
    return int(sha256[:12], 16) if sha256 else 0


def available_threads() -> int:
    """Return how many processors this process may use; its container may allow it only a few."""
    import joblib

    return int(joblib.cpu_count())
