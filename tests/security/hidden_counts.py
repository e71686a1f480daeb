"""What a reader can work out of hidden counts: all counts that fit what a result says."""

import re
from typing import Any

from ldpaudit.result import Estimate

LARGEST_HIDDEN = 9


def class_counts(result: dict[str, Any]) -> list[set[int]]:
    """Return for each true class the numbers of people that fit every printed number.

    The reader knows the release, the rules by which counts are hidden, and that the counts of all
    classes add up to the rows.
    """
    rows, k = result["release"]["rows"], result["release"]["classes"]
    scores = {e["id"]: e for e in result["estimates"] if ".class-" in e["id"]}
    if not scores:  # Classes were not scored, or the true labels not used.
        return [set(range(rows + 1))] * k
    left = rows - _looked_at(result)
    options = [_options(scores.get(f"attack.best.class-{y}.accuracy"), rows, left) for y in _to(k)]
    return [_that_add_up(options, place, rows) for place in range(k)]


def texts(result: Any) -> list[str]:
    """Return every text of a result."""
    if isinstance(result, dict):
        return [text for value in result.values() for text in texts(value)]
    if isinstance(result, list):
        return [text for value in result for text in texts(value)]
    return [result] if isinstance(result, str) else []


def small_counts(result: Any) -> list[int]:
    """Return every count of 1 to 9 in the fields of a result that hold counts."""
    if isinstance(result, list):
        return [count for one in result for count in small_counts(one)]
    if not isinstance(result, dict):
        return []
    own = [result.get("n"), result.get("count"), *(result.get("counts") or ())]
    if isinstance(result.get("n"), int) and isinstance(result.get("count"), int):
        own.append(result["n"] - result["count"])
    inside = [count for value in result.values() for count in small_counts(value)]
    return [c for c in own if isinstance(c, int) and 0 < c <= LARGEST_HIDDEN] + inside


def _to(k: int) -> range:
    return range(1, k + 1)


def _looked_at(result: dict[str, Any]) -> int:
    """Return the rows that the numbers are of, as a note says where they are not all."""
    for note in result["notes"]:
        found = re.search(r"of the largest class, ([\d,]+) of ([\d,]+) rows", note["text"])
        if found:
            left, rows = (int(text.replace(",", "")) for text in found.groups())
            return rows - left
    return int(result["release"]["rows"])


def _options(estimate: dict[str, Any] | None, rows: int, left: int) -> set[int]:
    if estimate is None:
        return set(range(LARGEST_HIDDEN + 1))
    if estimate["n"] is not None:
        return set(range(estimate["n"], estimate["n"] + left + 1))
    return {n for n in range(1, rows + 1) if _fits(estimate, n)}


def _fits(estimate: dict[str, Any], n: int) -> bool:
    """Return whether some number of right guesses among ``n`` people is printed like that."""
    if any(abs(estimate["value"] * n - count) < 1 for count in (0, n)):
        near = range(n + 1)
    else:
        middle = round(estimate["value"] * n)
        near = range(max(middle - n // 2 - 1, 0), min(middle + n // 2 + 2, n + 1))
    return any(abs(_printed(count, n) - estimate["value"]) < 1e-12 for count in near)


def _printed(count: int, n: int) -> float:
    fields: dict[str, Any] = {"unit": "proportion", "n": n, "smallest_cell": 1}
    return Estimate.interval("a", "A", count / n, (0.0, 1.0), 0.95, **fields).value


def _that_add_up(options: list[set[int]], place: int, rows: int) -> set[int]:
    """Return the counts of one class for which the others can make up all rows."""
    sums = {0}
    for other, counts in enumerate(options):
        if other != place:
            sums = {s + count for s in sums for count in counts if s + count <= rows}
    return {count for count in options[place] if rows - count in sums}
