"""What the compared releases are called: by their mechanism, with more where that is not enough."""

from collections.abc import Sequence

from ldpaudit.mechanisms import traits_of
from ldpaudit.result import AuditResult


def setting(releases: Sequence[AuditResult]) -> str:
    """Return the parameter that all share, where they share one."""
    noises = {_noise(result) for result in releases}
    if len(noises) != 1:
        return ""
    noise = noises.pop()
    return "" if noise is None else f"at λ = {noise:.3g} "


def _noise(result: AuditResult) -> float | None:
    noise = result.mechanism.parameters.get("lambda")
    return float(noise) if isinstance(noise, int | float) else None


def titles(releases: Sequence[AuditResult]) -> list[str]:
    """Return what each release is called: its mechanism, with more where that is not enough."""
    names = [traits_of(r.mechanism.name).title for r in releases]
    if len(set(names)) == len(names):
        shared = len({_noise(r) for r in releases}) == 1
        return names if shared else [_detailed(n, r) for n, r in zip(names, releases, strict=True)]
    detailed = [_detailed(n, r) for n, r in zip(names, releases, strict=True)]
    if len(set(detailed)) == len(detailed):
        return detailed
    return [f"{title} ({chr(ord('A') + i)})" for i, title in enumerate(detailed)]


def _detailed(name: str, result: AuditResult) -> str:
    epsilon = result.mechanism.epsilon
    return name if epsilon is None else f"{name} with ε = {epsilon:.3g}"
