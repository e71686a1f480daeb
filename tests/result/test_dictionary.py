"""Every id that was ever recorded is documented, and every documented id exists."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from golden.recording import HERE, load

from ldpaudit.result.dictionary import CURVES, ESTIMATES, HISTOGRAMS, PLACEHOLDERS, meaning

ROOT = Path(__file__).parents[2]
KINDS = {"estimates": ESTIMATES, "curves": CURVES, "histograms": HISTOGRAMS}


def numbers(content: Any) -> Iterator[tuple[str, str]]:
    """Yield kind and id of every number in what was recorded."""
    if isinstance(content, dict):
        for kind in KINDS:
            listed = content.get(kind)
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict) and "id" in one and "section" in one:
                    yield kind, one["id"]
        content = list(content.values())
    if isinstance(content, list):
        for part in content:
            yield from numbers(part)


@cache
def recorded() -> set[tuple[str, str]]:
    names = [path.stem for path in HERE.glob("*.json") if not path.stem.startswith("_")]
    return {found for name in names for found in numbers(load(name))}


def pattern(documented: str) -> str:
    return re.sub(r"<\w+>", "[a-z0-9_-]+", re.escape(documented))


def test_every_recorded_id_is_documented() -> None:
    assert len(recorded()) > 200
    for kind, identifier in recorded():
        assert meaning(identifier), identifier
        assert any(re.fullmatch(pattern(one), identifier) for one in KINDS[kind]), identifier


@cache
def source() -> str:
    places = ("ldpaudit", "attacks")
    files = [file for place in places for file in (ROOT / place).rglob("*.py")]
    return "\n".join(f.read_text(encoding="utf-8") for f in files if f.name != "dictionary.py")


FROM_PARTS = {"renyi.release.dp_at_delta", "renyi.release.attack_bound"}
FROM_PARTS |= {"person.epsilon_lower.<method>"}
FROM_PARTS |= {f"person.{kind}_noise" for kind in ("fresh", "remembered", "reused")}
FROM_PARTS |= {
    f"person.{what}_if_{kind}"
    for what in ("epsilon", "least_changed")
    for kind in ("fresh", "remembered")
} | {"person.people", "person.people_in_all", "person.unchanged"}
"""Not recorded, and put together from a name and an ending."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_documented_id_exists(kind: str) -> None:
    seen = {identifier for found, identifier in recorded() if found == kind}
    for documented in KINDS[kind]:
        matched = any(re.fullmatch(pattern(documented), one) for one in seen)
        assert matched or f'"{documented}"' in source() or documented in FROM_PARTS, documented


def test_every_placeholder_is_explained() -> None:
    used = set(re.findall(r"<(\w+)>", " ".join(ESTIMATES)))
    assert used == set(PLACEHOLDERS)


def test_an_id_of_another_package_has_no_meaning() -> None:
    assert meaning("plug-in.share") is None
    assert meaning("attack.best.class-2.accuracy") == ESTIMATES["attack.best.<group>.<measure>"]
