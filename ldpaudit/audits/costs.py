"""What an audit will take: seconds and memory, predicted from the size of the release alone.

The predictions are for one core of an ordinary machine, and right to about a factor of two.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ldpaudit.audits.instance_loss.queries import MOST_CELLS, QUERIES
from ldpaudit.audits.interface import Audit, AuditContext, Cost, Costed
from ldpaudit.estimators.neighbors.counts import SECONDS_PER_PAIR
from ldpaudit.running.memory import allowance
from ldpaudit.running.progress import duration

LONG: Final = 10.0
"""Seconds of work from which on a plan is announced."""
_MIB: Final = 1 << 20
_ALWAYS: Final = 600 * _MIB
"""What the program, its libraries and models of a sample of the rows take."""
_COPIED: Final = 1_000_000
"""Rows up to which audits hold a few copies of what they look at."""

_SECONDS: Final[Mapping[str, Callable[[float, float, float], float]]] = {
    "assumptions": lambda n, d, _: 0.2 + 1.9e-7 * n * d,
    "mechanism": lambda n, d, k: 0.4 + 2e-7 * min(n * d * k, 1.2e7),
    "instance-loss": lambda n, d, k: 0.5 + 2.4e-3 * math.sqrt(n * d * k),
    "numeric-inference": lambda n, d, k: 0.5 + 2e-7 * min(n * d * k, 1.2e7),
    "observational": lambda n, _, __: 0.3 + 1.8e-6 * n,
    "aggregates": lambda n, _, __: 0.5 + 1e-6 * n,
    "renyi": lambda n, d, k: 0.4 + 4e-7 * min(n * d * k, 2e6),
    "synthetic": lambda n, d, _: 2.0 + 2e-6 * n * d,
    "seeds": lambda *_: 0.9,
    "power": lambda n, _, k: 1.0 + 8e-7 * n + 0.06 * min(k, 10) ** 2,
}
"""Seconds of the audits that predict no cost themselves: of n rows, d columns, k labels.

Processor time of one core, measured on 3,000 × 8 to 1,000,000 × 20, and on 40,000 × 40 with 7.
"""
_ASKED: Final = 1e-4
"""Seconds of a row more that looks for its neighbours, in both metrics."""


def cost_of(name: str, audit: Audit, context: AuditContext) -> Cost:
    """Return what an audit will take; of an unknown one a second."""
    if isinstance(audit, Costed):
        return audit.cost(context)
    predict = _SECONDS.get(name)
    if predict is None:
        return Cost()
    if name == "instance-loss":
        return _of_neighbours(predict, context)
    release = context.release
    return Cost(predict(len(release), max(release.features.width, 1), len(release.classes)))


def _of_neighbours(predict: Callable[[float, float, float], float], context: AuditContext) -> Cost:
    """Return what the search takes among half of all rows, of which the others ask."""
    release, plan = context.whole or context.release, context.plan
    n, width, labels = len(release) // 2, max(release.features.width, 1), len(release.classes)
    asked = min(n if plan.queries == "all" else plan.queries or QUERIES, n)
    seconds = predict(2 * n, width, labels) + _ASKED * max(asked - QUERIES, 0)
    if plan.exact:
        seconds += SECONDS_PER_PAIR * n * asked
    words = f"neighbours of {asked:,} rows"
    index = n * width if plan.exact else min(n * width, MOST_CELLS)
    return Cost(seconds, memory=4.0 * asked * labels + 8.0 * index, words=words)


def plan_line(context: AuditContext, costs: Sequence[Cost]) -> str:
    """Return in one line what is going to be done, and what it takes; nothing if it is short."""
    seconds = sum(cost.seconds for cost in costs)
    if seconds < LONG:
        return ""
    release, limit = context.whole or context.release, context.plan.memory
    rows, columns = _large(len(release)), release.features.columns
    memory = _table(context) + max((cost.memory for cost in costs), default=0.0)
    memory = memory if limit is None else min(memory, limit)
    work = [cost.words for cost in costs if cost.words]
    most = f"about {memory / 2**30:.1f} of at most {allowance(limit) / 2**30:.1f} GiB"
    parts = (*work, duration(seconds), most)
    return f"{rows} rows × {columns:,} column{'s' if columns != 1 else ''}: {', '.join(parts)}"


def _table(context: AuditContext) -> float:
    """Return the bytes that the program and the release take."""
    whole = context.whole or context.release
    n, width = len(whole), whole.features.width
    row = 8.0 * width + 16.0 * len(whole.classes) + 60
    return _ALWAYS + row * (3 * min(n, _COPIED) + max(n - _COPIED, 0))


def _large(count: int) -> str:
    if count < 1_000_000:
        return f"{count:,}"
    return f"{count / 1e6:.1f} M".replace(".0 M", " M")
