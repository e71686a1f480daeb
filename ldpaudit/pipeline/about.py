"""What a result says of the release, the claim and the run."""

import hashlib
import importlib.metadata
import math
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import ldpaudit
from ldpaudit.audits.interface import Plan
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import UNKNOWN, Mechanism
from ldpaudit.mechanisms.shown import plain_parameters
from ldpaudit.pipeline.nodes import Columns, Files, Node, Releases
from ldpaudit.release import Release
from ldpaudit.result import AuditResult, MechanismInfo, PlugIn, ReleaseInfo, RunInfo

_VERSIONS = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "torch", "pyarrow")


def release_info(release: Release) -> ReleaseInfo:
    """Return what was audited."""
    return ReleaseInfo(
        name=release.name,
        sha256=release.sha256,
        rows=len(release),
        features=release.features.columns,
        classes=len(release.classes),
        class_names=tuple(map(str, release.classes)),
        label=release.label,
        truth=release.truth is not None,
    )


def mechanism_info(release: Release, claim: Mechanism) -> MechanismInfo:
    """Return what was claimed."""
    return MechanismInfo(
        name=claim.name,
        declared=None if release.declaration is None else release.declaration.source,
        parameters=plain_parameters(claim.declaration()),
        epsilon=claim.epsilon,
        description=claim.description,
    )


def run_info(
    plan: Plan,
    command: str,
    seconds: float,
    policy: Policy | None,
    plugins: tuple[PlugIn, ...] = (),
) -> RunInfo:
    """Return how a result was made: seed, command, versions, threads, time, policy, plug-ins."""
    python = {"ldpaudit": ldpaudit.__version__, "python": platform.python_version()}
    return RunInfo(
        seed=plan.seed,
        command=command,
        versions=python | dict(_installed_versions()),
        threads=plan.threads,
        seconds=round(seconds, 3),
        policy=None if policy is None else policy.name,
        policy_sha256=None if policy is None else policy.sha256,
        plugins=plugins,
    )


def _installed_versions() -> Iterator[tuple[str, str]]:
    """Give the version of each library that numbers come from; torch is not always there."""
    for name in _VERSIONS:
        with suppress(importlib.metadata.PackageNotFoundError):
            yield name, importlib.metadata.version(name)


def digest_of(node: Node) -> str | None:
    """Return the digest of a file; of several that of theirs, a line for each, for waivers."""
    if isinstance(node, Files):
        digests = [digest_of(file) for file in node.releases]
    elif isinstance(node, Releases):
        digests = [one.sha256 for one in node.leaves]
    else:
        return node.file.sha256 if isinstance(node, Columns) else node.release.sha256
    if None in digests:
        return None
    return hashlib.sha256("".join(f"{one}\n" for one in digests).encode()).hexdigest()


def node_info(
    node: Columns | Releases | Files, parts: Sequence[AuditResult], sha256: str | None
) -> ReleaseInfo:
    """Return what was audited, of several columns or releases; ``rows``: people."""
    first = node.leaves[0]
    if isinstance(node, Columns):
        return ReleaseInfo(
            name=node.file.name,
            sha256=sha256,
            rows=len(node.file),
            features=max(first.features.columns - (len(node.leaves) - 1), 0),
            classes=math.prod(len(column.classes) for column in node.leaves),
            class_names=(),
            label=None,
            truth=all(column.truth is not None for column in node.leaves),
        )
    of_one = isinstance(node, Releases)
    files = node.leaves if isinstance(node, Releases) else node.files.files
    rows = node.over.releases.rows if isinstance(node, Releases) else node.files.rows
    return ReleaseInfo(
        name=" + ".join(one.name for one in files),
        sha256=sha256,
        rows=len(rows),
        features=max((part.release.features for part in parts), default=first.features.columns),
        classes=len(first.classes) if of_one else max(p.release.classes for p in parts),
        class_names=tuple(map(str, first.classes)) if of_one else (),
        label=first.label if of_one else None,
        truth=all(one.truth is not None for one in node.leaves),
    )


def node_mechanism_info(node: Columns | Releases | Files, epsilon: float | None) -> MechanismInfo:
    """Return what was claimed of several columns or releases."""
    claim = node.leaves[0].declaration
    declared = None if claim is None else claim.source
    if isinstance(node, Columns):
        joint = node.joint
        if joint is None:
            text = "nothing is claimed about the columns together"
            known: dict[str, Any] = {"name": UNKNOWN, "parameters": {}, "description": text}
        else:
            stated = plain_parameters(joint.declaration())
            known = {"name": joint.name, "parameters": stated, "description": joint.description}
        return MechanismInfo(declared=declared, epsilon=epsilon, **known)
    files = len(node.leaves) if isinstance(node, Releases) else len(node.releases)
    return MechanismInfo(
        name="repeated",
        declared=declared,
        parameters={} if node.noise is None else {"answers": node.noise},
        epsilon=epsilon,
        description=f"{files} releases of the same people, {_DRAWN[node.noise]}",
    )


_DRAWN: Final = {
    "fresh": "each with new noise",
    "remembered": "which repeat the answer for a label that did not change",
    None: "without saying whether noise is new or answers are remembered",
}
