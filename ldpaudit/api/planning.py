"""How an audit is to be run, from its options: seed, threads, policy, cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.options import PlanOptions, ReleaseOptions, keywords_for
from ldpaudit.randomness import seed_from
from ldpaudit.running.memory import size_of

if TYPE_CHECKING:
    from ldpaudit.audits.interface import Plan
    from ldpaudit.datasets.beside.slices import Slices
    from ldpaudit.judging.policy import Policy
    from ldpaudit.running.progress import Progress
    from ldpaudit.running.scratch import Scratch
    from ldpaudit.tasks.cluster import Cluster


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


def policy_of(options: PlanOptions) -> "Policy | None":
    """Return the policy of an audit, None for the default one."""
    from ldpaudit.judging.policy import Policy, load_policy

    policy: Any = options.policy
    if not isinstance(policy, str | Path | Policy | None):
        raise InputError(f"A policy must be a file, or a Policy. Got {type(policy).__name__}.")
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
