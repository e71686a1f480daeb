"""What an audit will take: seconds and memory, predicted from the size of the release alone.

The predictions are for one core of an ordinary machine, and right to about a factor of two.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ldpaudit.audits.interface import Audit, AuditContext, Cost, Costed
from ldpaudit.progress import duration

LONG: Final = 10.0
"""Seconds of work from which on a plan is announced."""
_MIB: Final = 1 << 20
_ALWAYS: Final = 300 * _MIB
"""What the program and its libraries take."""

_SECONDS: Final[Mapping[str, Callable[[float, float, float], float]]] = {
    "assumptions": lambda n, d, _: 0.5 + n * d * 4e-7,
    "mechanism": lambda n, d, k: 0.5 + n * d * k * 2e-7,
    "instance-loss": lambda n, d, k: 1.0 + n * d * k * 4e-7,
    "label-inference": lambda n, d, k: 2.0 + n * d * k * 1e-5,
    "numeric-inference": lambda n, d, k: 1.0 + n * d * k * 2e-7,
    "observational": lambda n, _, k: 0.5 + n * k * 5e-7,
    "aggregates": lambda n, _, k: 0.5 + n * k * 1e-6,
    "renyi": lambda n, d, k: 1.0 + n * d * k * 2e-7,
    "synthetic": lambda n, d, _: 2.0 + n * d * 2e-6,
    "seeds": lambda n, _, k: 1.0 + n * k * 1e-7,
    "power": lambda n, d, k: 0.5 + n * d * k * 1e-7,
}
"""Seconds of the audits that predict no cost themselves: of n rows, d columns, k classes."""

_WITHIN_BUDGET: Final = "label-inference"


def cost_of(name: str, audit: Audit, context: AuditContext) -> Cost:
    """Return what an audit will take; of an unknown one a second."""
    if isinstance(audit, Costed):
        return audit.cost(context)
    release = context.release
    predict = _SECONDS.get(name)
    if predict is None:
        return Cost()
    n, d, k = len(release), max(release.features.width, 1), len(release.classes)
    seconds = predict(n, d, k)
    return Cost(min(seconds, 2.0 + context.plan.budget) if name == _WITHIN_BUDGET else seconds)


def plan_line(context: AuditContext, costs: Sequence[Cost]) -> str:
    """Return in one line what is going to be done, and what it takes; nothing if it is short."""
    seconds = sum(cost.seconds for cost in costs)
    if seconds < LONG:
        return ""
    release, limit = context.release, context.plan.memory
    rows, columns = _large(len(release)), release.features.columns
    memory = _table(context) + max((cost.memory for cost in costs), default=0.0)
    memory = memory if limit is None else min(memory, limit)
    work = [cost.words for cost in costs if cost.words]
    parts = (*work, duration(seconds), f"about {memory / 2**30:.1f} GiB")
    return f"{rows} rows × {columns:,} column{'s' if columns != 1 else ''}: {', '.join(parts)}"


def _table(context: AuditContext) -> float:
    """Return the bytes that the program and the release take."""
    release = context.release
    return _ALWAYS + len(release) * (4.0 * release.features.width + 8.0 * len(release.classes) + 40)


def _large(count: int) -> str:
    if count < 100_000:
        return f"{count:,}"
    return f"{count / 1e6:.1f} M".replace(".0 M", " M")
