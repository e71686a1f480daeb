"""What a result says of the release, the claim and the run."""

import hashlib
import importlib.metadata
import math
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress

import ldpaudit
from ldpaudit.audits.interface import Plan
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.whole_words import Words
from ldpaudit.mechanisms import UNKNOWN, Mechanism
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.mechanisms.shown import plain_parameters
from ldpaudit.release import Release, ReleasedVector, RepeatedReleases
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


def vector_info(vector: ReleasedVector) -> ReleaseInfo:
    """Return what was audited, of several private columns."""
    first = vector.columns[0]
    return ReleaseInfo(
        name=vector.name,
        sha256=vector.sha256,
        rows=len(vector),
        features=max(first.features.columns - (len(vector.columns) - 1), 0),
        classes=math.prod(len(column.classes) for column in vector.columns),
        class_names=(),
        label=None,
        truth=all(column.truth is not None for column in vector.columns),
    )


def vector_mechanism_info(
    claim: JointMechanism | None, parts: Sequence[AuditResult]
) -> MechanismInfo:
    """Return what was claimed of several private columns together; ``parts``: of each alone."""
    declared = parts[0].mechanism.declared
    if claim is None:
        text = "nothing is claimed about the columns together"
        return MechanismInfo(
            name=UNKNOWN, declared=declared, parameters={}, epsilon=None, description=text
        )
    return MechanismInfo(
        name=claim.name,
        declared=declared,
        parameters=plain_parameters(claim.declaration()),
        epsilon=claim.epsilon,
        description=claim.description,
    )


def column_words(vector: ReleasedVector) -> Words:
    """Return what the columns are called: by their names."""
    names = tuple(column.label for column in vector.columns)
    return Words("column", f"the {len(vector.columns)} columns together", names)


def together_sha256(releases: Sequence[Release]) -> str | None:
    """Return what stands for several files in a waiver: the SHA-256 of theirs, a line for each."""
    digests = [one.sha256 for one in releases]
    if None in digests:
        return None
    return hashlib.sha256("".join(f"{one}\n" for one in digests).encode()).hexdigest()


def repeats_info(
    releases: RepeatedReleases, parts: Sequence[AuditResult], sha256: str | None
) -> ReleaseInfo:
    """Return what was audited, of several releases of the same people; ``rows``: people."""
    first = releases.releases[0]
    return ReleaseInfo(
        name=" + ".join(one.name for one in releases.releases),
        sha256=sha256,
        rows=len(releases.rows),
        features=max(part.release.features for part in parts),
        classes=len(first.classes),
        class_names=parts[0].release.class_names,
        label=parts[0].release.label,
        truth=releases.known,
    )


def repeats_mechanism_info(
    parts: Sequence[AuditResult], answers: str | None, epsilon: float | None
) -> MechanismInfo:
    """Return what was claimed of several releases together; ``parts``: of each alone."""
    drawn = {
        "fresh": "each with answers drawn anew",
        "remembered": "which repeat the answer for a label that did not change",
        None: "of which nothing says whether answers are drawn anew or remembered",
    }
    return MechanismInfo(
        name="repeated",
        declared=parts[0].mechanism.declared,
        parameters={} if answers is None else {"answers": answers},
        epsilon=epsilon,
        description=f"{len(parts)} releases of the same people, {drawn[answers]}",
    )


def release_words(releases: RepeatedReleases) -> Words:
    """Return what the releases are called: by number and file."""
    names = tuple(one.name for one in releases.releases)
    return Words("release", f"the {len(names)} releases together", names)
