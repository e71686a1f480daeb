"""The Python interface: one function, the same audit as the command line."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ldpaudit.claim import declaration_of
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.progress import Progress
from ldpaudit.randomness import seed_from
from ldpaudit.release import Declaration
from ldpaudit.result import AuditResult, Note

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from ldpaudit.policy import Policy


def audit(
    release: "str | Path | pd.DataFrame | pa.Table",
    truth: Any = None,
    mechanism: Mechanism | Declaration | Mapping[str, Any] | str | None = None,
    rng: np.random.Generator | int | None = None,
    *,
    label: str | None = None,
    truth_column: str | None = None,
    id_column: str | None = None,
    drop: Collection[str] = (),
    features: Collection[str] | None = None,
    original: Any = None,
    synthetic: Any = None,
    held_out: Any = None,
    policy: "Policy | str | Path | None" = None,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    queries: int | Literal["all"] | None = None,
    neighbors: int | None = None,
    metric: Literal["l2", "raw", "learned"] = "l2",
    threads: int | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    show_class_names: bool = False,
    slices: Collection[str] = (),
    budget: float | None = None,
    public_posterior: Any = None,
    public: Any = None,
    canaries: Any = None,
    progress: Progress | None = None,
    command: str = "ldpaudit.audit(…)",
) -> AuditResult:
    """Audit a released dataset: how much does it give away about each person's label?

    Parameters
    ----------
    release : path, pandas.DataFrame or pyarrow.Table
        Features and one column of released labels, n rows.
    truth : path, DataFrame, Series, Arrow table or array of shape (n,), optional
        The true labels: in the same row order, or joined on ``id_column``. Without them the audit
        is the outsider's.
    mechanism : Mechanism, Declaration, mapping or str, optional
        The claim, where the release carries none: a mechanism, its declaration, a mapping such as
        ``{"name": "randomized-response", "epsilon": 1.0}``, or ``"unknown"``.
    rng : numpy.random.Generator or int, optional
        The source of all randomness, or its seed. Default: a seed derived from the released file,
        so that an audit gives the same numbers every time; for a table in memory, 0.
    label, truth_column, id_column, drop, features
        The columns' roles, as on the command line.
    original, synthetic, held_out : path or table, optional
        The original features in the same row order (or joined on ``id_column``), the synthetic
        rows that features were replaced with, with the column ``label``, and rows of the same
        population that no generator was trained on.
    policy : Policy or path, optional
        What is allowed; default: only that the claim is not refuted.
    only, skip : collections of audit ids, optional
    queries, neighbors, metric, threads, device, show_class_names
        See :class:`ldpaudit.audits.interface.Plan`.
    slices : collection of str
        Columns of the release by whose values the strongest attack is scored, group by group.
    budget : float, optional
        Seconds for the attacks; default: 60.
    public_posterior : path, table or float array of shape (n, k), optional
        For model-based randomized response: P̂(label | features) of the public model, one column
        for each class, named by it; an array has them in the order of the declared classes.
    public : path or table, optional
        Public rows with labels, for the observational audit: what can be learnt without the
        release.
    canaries : path, table or float array of shape (n, k), optional
        For the observational audit: the probabilities with which the auditor drew the true labels
        of some rows, one column for each class; empty for rows with labels of their own.
    progress : Progress, optional

    Returns
    -------
    AuditResult
        With ``verdict``, ``sentence``, ``estimates`` …; ``to_html(path)`` writes the report.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input or the policy.
    """
    from ldpaudit.audits.interface import DEFAULT_BUDGET, Plan
    from ldpaudit.datasets import read_release
    from ldpaudit.datasets.beside.canaries import with_canaries
    from ldpaudit.datasets.beside.public_posterior import with_public_posterior
    from ldpaudit.datasets.beside.slices import read_slices
    from ldpaudit.mechanisms.coding import DeclaredCoding
    from ldpaudit.pipeline import run_audit
    from ldpaudit.policy import load_policy

    if isinstance(policy, str | Path):
        policy = load_policy(Path(policy))
    _at_least_one("queries", queries)
    _at_least_one("neighbors", neighbors)
    _at_least_one("threads", threads)
    reading = read_release(
        release,
        label=label,
        truth=truth,
        truth_column=truth_column,
        original=original,
        synthetic=synthetic,
        held_out=held_out,
        public=public,
        id_column=id_column,
        drop=tuple(drop),
        features=None if features is None else tuple(features),
        declaration=declaration_of(mechanism),
        coding=DeclaredCoding,
    )
    plan = Plan(
        seed=_seed(rng, reading.release.sha256),
        queries=queries,
        neighbors=neighbors,
        metric=metric,
        threads=threads or available_threads(),
        device=device,
        show_class_names=show_class_names,
        budget=_budget(budget, DEFAULT_BUDGET),
        slices=read_slices(release, slices),
    )
    audited = with_public_posterior(reading.release, public_posterior)
    audited = with_canaries(audited, canaries)
    notes = tuple(Note(audit="reading", text=t, level="warning") for t in reading.warnings)
    return run_audit(
        audited,
        plan,
        policy,
        only=only,
        skip=skip,
        progress=progress,
        command=command,
        notes=notes,
    )


def available_threads() -> int:
    """Return how many processors this process may use."""
    import os

    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else (os.cpu_count() or 1)


def _at_least_one(name: str, value: int | str | None) -> None:
    if isinstance(value, int) and value < 1:
        raise InputError(f"The {name!r} parameter must be at least 1. Got {value} instead.")


def _budget(seconds: float | None, default: float) -> float:
    if seconds is None:
        return default
    if not seconds >= 0:
        raise InputError(f"The 'budget' must be at least 0 seconds. Got {seconds!r} instead.")
    return float(seconds)


def _seed(rng: np.random.Generator | int | None, sha256: str | None) -> int:
    if isinstance(rng, np.random.Generator):
        return seed_from(rng)
    if rng is not None:
        if rng < 0:
            raise InputError("The seed must not be negative.")
        return int(rng)
    return int(sha256[:12], 16) if sha256 else 0
