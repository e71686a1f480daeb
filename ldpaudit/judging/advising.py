"""The step that names ``ldpaudit advise``: what to release instead, under the same policy."""

from typing import Final

from ldpaudit.judging.policy import Policy

ADVISE: Final = "See what may be released instead, and at what cost: "
"""How the step begins."""
COMMAND: Final = "ldpaudit advise RELEASE --truth TRUTH"
"""Its command; a stored result names no file, and no column."""
_PRESET: Final = "ldpaudit:"
_DEFAULT: Final = f"{_PRESET}default"


def advice_step(policy: Policy) -> str:
    """Return the step for a release whose true labels are in a file of their own."""
    name = policy.name or (_DEFAULT if policy.sha256 is None else "")
    if name == _DEFAULT:
        return f"{ADVISE}{COMMAND}"
    return f"{ADVISE}{COMMAND} --policy {name if name.startswith(_PRESET) else 'POLICY'}"


def with_advice(steps: list[str], advice: str | None, most: int) -> tuple[str, ...]:
    """Return at most so many steps, the last of which is the advice, where there is one."""
    own = [step for step in dict.fromkeys(steps) if not step.startswith(ADVISE)]
    return tuple(own[:most]) if advice is None else (*own[: most - 1], advice)
