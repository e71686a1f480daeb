"""What a result says of a private column and of its claim."""

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from ldpaudit.mechanisms import Mechanism, from_declaration
from ldpaudit.mechanisms.registry import plain_parameters
from ldpaudit.release import Release
from ldpaudit.result import BeforeNoise, MechanismInfo, ReleaseInfo

if TYPE_CHECKING:
    from ldpaudit.mechanisms.joint import JointMechanism


def claim_of(release: Release) -> Mechanism:
    """Return what a private column declares."""
    return from_declaration(release.declaration, release.classes)


def release_info(release: Release, private: AbstractSet[str] = frozenset()) -> ReleaseInfo:
    """Return what was audited; ``private``: the private columns among the features."""
    return ReleaseInfo(
        name=release.name,
        sha256=release.sha256,
        rows=len(release),
        features=release.features.columns,
        classes=len(release.classes),
        class_names=tuple(map(str, release.classes)),
        label=release.label,
        truth=release.truth is not None,
        before=before_noise(release, private),
    )


def before_noise(release: Release, private: AbstractSet[str]) -> BeforeNoise:
    """Return which features are known to be from before the noise; ``private`` ones are not."""
    columns: dict[str, list[str]] = {}
    for column in release.columns:
        feature = column.arrays and column.arrays[0] < release.features.width
        if feature and column.name not in private:
            columns.setdefault(column.before or "unknown", []).append(column.name)
    return BeforeNoise(**{how: tuple(names) for how, names in columns.items()})


def mechanism_info(
    release: Release, claim: "Mechanism | JointMechanism", epsilon: float | None
) -> MechanismInfo:
    """Return what was claimed of a release; ``epsilon``: of all that the claim is about."""
    declaration = release.declaration
    return MechanismInfo(
        name=claim.name,
        declared=None if declaration is None else declaration.source,
        parameters=plain_parameters(claim.declaration()),
        description=claim.description,
        epsilon=epsilon,
    )
