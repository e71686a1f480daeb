"""The titles of the compared releases: their mechanism, with more where that is not enough."""

from collections.abc import Sequence

from ldpaudit.mechanisms import traits_of
from ldpaudit.result import AuditResult


def setting(releases: Sequence[AuditResult]) -> str:
    """Return the λ that all share, where they share one."""
    noises = {_noise(result) for result in releases}
    noise = noises.pop()
    return "" if noises or noise is None else f"at λ = {noise:.3g} "


def _noise(result: AuditResult) -> float | None:
    noise = result.mechanism.parameters.get("lambda")
    return float(noise) if isinstance(noise, int | float) else None


def titles(releases: Sequence[AuditResult]) -> list[str]:
    """Return the title of each release: its mechanism, with more where that is not enough."""
    names = [traits_of(r.mechanism.name).title for r in releases]
    detailed = [_detailed(n, r) for n, r in zip(names, releases, strict=True)]
    if len(set(names)) == len(names):
        return names if len({_noise(r) for r in releases}) == 1 else detailed
    if len(set(detailed)) == len(detailed):
        return detailed
    return [f"{title} ({chr(ord('A') + i)})" for i, title in enumerate(detailed)]


def _detailed(name: str, result: AuditResult) -> str:
    epsilon = result.mechanism.epsilon
    return name if epsilon is None else f"{name} with ε = {epsilon:.3g}"
