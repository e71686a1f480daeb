"""Run an invocation of the command line, keep what it gave, and hold that against a recording."""

import contextlib
import hashlib
import io
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from golden.invocations import PICTURED, Invocation
from releases import declare_as_released

from ldpaudit import cli

HERE = Path(__file__).parent / "recorded"
TEXTS = HERE / "_texts.json"
SETTINGS = {"SEED": "7", "THREADS": "1", "DEVICE": "cpu"}
"""The options that all invocations have unless they say otherwise, by environment variable."""
VOLATILE = {"seconds", "versions", "sha256", "release_sha256", "ldpaudit_version", "date"}
_FOR_PICTURES = {"columns", "confusion"}
"""Parts of a result for pictures: many numbers, recorded for a few invocations alone."""
LOOSE = {
    r"\.(auc|calibration_error)/|features-reveal-label/observed": 1e-3,
    r"/curves/aggregates\.": 0.1,
    "": 1e-5,
}
"""How far numbers may be off, relatively, by what their path contains: another processor's last
digit breaks ties among ranks, and moves a model's fit and the draws that are counted from it."""
LONG = 32
"""Longer texts are kept once for all recordings, under a digest."""


def call(line: str) -> tuple[int, str, str]:
    """Run a command line in this process; return exit status, stdout and stderr."""
    words = ["ldpaudit", *line.split()]
    ours = {f"LDPAUDIT_{name}": value for name, value in SETTINGS.items()}
    others = {k: v for k, v in os.environ.items() if not k.startswith("LDPAUDIT_")}
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", words),
        patch.dict(os.environ, others | ours, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as stopped:
            return int(stopped.code or 0), out.getvalue(), err.getvalue()
    raise AssertionError("the command line always exits")


def outcome(invocation: Invocation, inputs: Path, folder: Path) -> dict[str, Any]:
    """Run the invocation among copies of the inputs; return everything it gave."""
    shutil.copytree(inputs, folder)
    with contextlib.chdir(folder):
        for line in invocation.before:
            status, _, err = call(line)
            assert status in (0, 1, 3), f"{line}: {err}"
            declare_as_released(Path())
        known = set(Path().rglob("*"))
        status, out, err = call(invocation.line)
        made = sorted(set(Path().rglob("*")) - known)
        found: dict[str, Any] = {"line": invocation.line, "status": status}
        if status == 2:
            found["stderr"] = _kept([x for x in err.splitlines() if not x.endswith(" …")])
        seconds = r"\d+\.\d{3}$" if invocation.timed else "(?!)"
        found["stdout"] = _kept([re.sub(seconds, "…", text) for text in out.splitlines()])
        for path in made:
            if path.suffix == ".json" and len(path.parts) == 1:
                found[path.name] = _kept(_pictured(json.loads(path.read_text()), invocation))
            elif path.suffix == ".parquet":
                found[path.name] = _table(pq.read_table(path))
            elif path.suffix == ".html" and invocation.page:
                found[path.name] = _page(path.read_text(encoding="utf-8"))
    return found


def _pictured(value: Any, invocation: Invocation) -> Any:
    """Leave out of results what is recorded for a few invocations alone."""
    if isinstance(value, list):
        return [_pictured(item, invocation) for item in value]
    if not isinstance(value, dict):
        return value
    result = "schema_version" in value and "confusion" in value
    left = _FOR_PICTURES if result and invocation.name not in PICTURED else set()
    return {key: _pictured(item, invocation) for key, item in value.items() if key not in left}


def _kept(value: Any) -> Any:
    """Leave out what differs from run to run or machine to machine; round numbers to 9 digits."""
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_kept(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"\b([0-9a-f]{12,}|(?<=Audited on )\d{4}-\d\d-\d\d)", "…", value)
    return float(f"{value:.9g}") if isinstance(value, float) and math.isfinite(value) else value


def _table(table: pa.Table) -> dict[str, Any]:
    """Describe a released table: its declaration, and of each column the start and a digest."""
    metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    found: dict[str, Any] = {
        key: _kept(json.loads(text)) if key == "ldpaudit" else text
        for key, text in metadata.items()
    }
    for name in table.column_names:
        values = _kept(table[name].to_pylist())
        column: dict[str, Any] = {"type": str(table.schema.field(name).type), "start": values[:6]}
        if all(isinstance(value, float) for value in values):
            column["sum"] = _kept(math.fsum(value * (i % 7) for i, value in enumerate(values)))
        else:
            column["digest"] = hashlib.sha256(repr(values).encode()).hexdigest()[:16]
        found[f"column {name}"] = column
    return {"rows": len(table), **found}


def _page(html: str) -> list[str]:
    """Return the visible lines of a page, without pictures, seconds, versions and the date."""
    html = re.sub(r"</?kbd>", "", html)
    html = re.sub(r"(?s)<(style|script|svg)\b.*?</\1>", "", html)
    lines = (" ".join(line.split()) for line in re.sub(r"<[^>]*>", "\n", html).split("\n"))
    other = r"[\d.]+ s\b|\d+\.\d+\.\d\S*|^\d{4}-\d\d-\d\d$"
    return _kept([re.sub(other, "…", line) for line in lines if line])


def differences(recorded: Any, found: Any, exact: bool = False, at: str = "") -> Iterator[str]:
    """Yield where the two differ, each with its path."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in sorted(recorded.keys() | found.keys()):
            if key not in found:
                yield f"{at}/{key}: is missing"
            elif key not in recorded:
                yield f"{at}/{key}: is new: {_short(found[key])}"
            else:
                yield from differences(recorded[key], found[key], exact, f"{at}/{key}")
    elif isinstance(recorded, list) and isinstance(found, list):
        if len(recorded) != len(found):
            yield f"{at}: {len(recorded)} items were recorded, now {len(found)}"
        for i, (old, new) in enumerate(zip(recorded, found, strict=False)):
            name = old.get("id", i) if isinstance(old, dict) else i
            yield from differences(old, new, exact, f"{at}/{name}")
    elif not _equal(recorded, found, exact, next(t for p, t in LOOSE.items() if re.search(p, at))):
        yield f"{at}: {_short(recorded)} was recorded, now {_short(found)}"


def _equal(old: Any, new: Any, exact: bool, tolerance: float) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (old, new))
    if numbers and not exact:
        return math.isclose(old, new, rel_tol=tolerance, abs_tol=1e-9)
    return bool(old == new) and (numbers or type(old) is type(new))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def load(name: str) -> Any:
    """Return a recording with its texts in place."""
    texts = json.loads(TEXTS.read_text(encoding="utf-8"))
    return _mapped(
        json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")),
        lambda word: texts.get(word, word),
    )


def save(found: dict[str, dict[str, Any]]) -> None:
    """Write recordings by name, and the texts of all."""
    old = {path.stem: load(path.stem) for path in HERE.glob("[!_]*.json")} if TEXTS.exists() else {}
    texts: dict[str, str] = {}

    def short(text: str) -> str:
        if len(text) <= LONG:
            return text
        digest = "§" + hashlib.sha256(text.encode()).hexdigest()[:8]
        texts[digest] = text
        return digest

    HERE.mkdir(exist_ok=True)
    for name, content in (old | found).items():
        shortened = {k: _mapped(v, short) if "." in k else v for k, v in content.items()}
        (HERE / f"{name}.json").write_text(f"{_lines(shortened)}\n", encoding="utf-8")
    ordered = dict(sorted(texts.items(), key=lambda item: item[1]))
    TEXTS.write_text(json.dumps(ordered, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def _lines(value: Any, depth: int = 0) -> str:
    """Return JSON with one line for each estimate, curve or record."""
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if depth > 3 or len(flat) < 80 or not isinstance(value, dict | list) or _leaf(value):
        return flat
    if isinstance(value, list):
        return "[\n" + ",\n".join(_lines(item, depth + 1) for item in value) + "\n]"
    items = (f"{json.dumps(k)}: {_lines(v, depth + 1)}" for k, v in sorted(value.items()))
    return "{\n" + ",\n".join(items) + "\n}"


def _leaf(value: Any) -> bool:
    """Whether this is an estimate, a curve, a check or a list of numbers."""
    return (
        "id" in value
        if isinstance(value, dict)
        else not any(isinstance(item, dict | list | str) for item in value)
    )
