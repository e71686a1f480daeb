"""ε of all columns or of all releases together, as claimed: exact."""

from collections.abc import Iterator

import numpy as np

from ldpaudit.audits.person.answers import EPSILON, Answers
from ldpaudit.estimators.person.evidence import Noise
from ldpaudit.estimators.person.votes import best_guess
from ldpaudit.mechanisms.channel import largest_log_ratios
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.result import Curve, Estimate

UNCHANGED = "of a person whose true label is the same in all releases"
_METHODS: dict[Noise, str] = {
    "fresh": "the largest log-ratio of each release for two labels, added up over the releases: "
    "each draws noise of its own",
    "remembered": "that of one release: the same answer is given again, and tells nothing new",
}
_MOST_DRAWN = 24


def claimed_epsilon(seen: Answers, noise: Noise | None) -> float | None:
    """Return ε of all releases together in nats, with either noise; None where it has none.

    Where nothing is claimed of the noise it is that of fresh noise, the larger of the two.
    """
    if noise == "remembered":
        return seen.contexts[0].claim.epsilon if seen.alike else None
    matrices, numbers = seen.matrices, any(c.release.numeric is not None for c in seen.contexts)
    if matrices is not None and not numbers:
        return float(np.sum([largest_log_ratios(matrix) for matrix in matrices], axis=0).max())
    stated = [one.claim.epsilon for one in seen.contexts]
    known = [epsilon for epsilon in stated if epsilon is not None]
    return float(sum(known)) if len(known) == len(stated) else None


def joint_estimates(joint: JointMechanism | None) -> Iterator[Estimate]:
    """Return ε of all columns, as claimed."""
    if joint is not None and joint.epsilon is not None:
        title = "Claimed ε of all columns together"
        method = "the columns' ε added up" if joint.independent else "the exact joint channel"
        known = {"axis": "epsilon", "unit": "nats", "method": method}
        yield Estimate.exact(EPSILON, title, joint.epsilon, **known)  # type: ignore[arg-type]


def claimed_estimates(seen: Answers) -> Iterator[Estimate]:
    """Return ε of all releases, as claimed and with either noise."""
    claimed = seen.noise
    value = claimed_epsilon(seen, claimed)
    if claimed is not None and value is not None:
        title = f"Claimed ε of all releases together, {claimed} noise"
        yield _exact(EPSILON, title, value, claimed)
    for noise in ("fresh", "remembered"):
        value = claimed_epsilon(seen, noise)
        if value is not None:
            title = f"ε of all releases together if noise is {noise}"
            yield _exact(f"{EPSILON}_if_{noise}", title, value, noise)


def guess_curve(seen: Answers) -> Iterator[Curve]:
    """Return how often the best guess is right over the number of releases, for fresh noise."""
    matrices = seen.matrices
    if matrices is None or len(matrices) > _MOST_DRAWN:
        return
    right = [best_guess(matrices[:used]) for used in range(1, len(matrices) + 1)]
    known = [value for value in right if value is not None]
    if len(known) < 2:
        return
    yield Curve(
        id="person.best_guess",
        title="How often the best guess of a label is right, with fresh noise in each release",
        kind="exact",
        x=tuple(range(1, len(known) + 1)),
        value=tuple(min(value, 1.0) for value in known),
        x_label="releases",
        unit="proportion",
        method="from the claimed channels, all labels being equally likely",
    )


def _exact(name: str, title: str, value: float, noise: Noise) -> Estimate:
    method = f"{_METHODS[noise]}; {UNCHANGED}"
    return Estimate.exact(name, title, value, axis="epsilon", unit="nats", method=method)
