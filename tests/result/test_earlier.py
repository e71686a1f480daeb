"""Results that were stored under schema 1.0 can be read, shown and compared."""

import json
from typing import Any

import pytest
from golden.results import NAMES, stored

from ldpaudit.result import SCHEMA_VERSION, AuditResult, readable

PARTS = ("estimates", "curves", "histograms")
ADDED = ("title", "section", "axis", "score")
SINCE = ("synthetic.singling_out.", "synthetic.linkability.")
"""Scores that no earlier schema had."""


def earlier(name: str) -> dict[str, Any]:
    result = stored(name)
    for part in PARTS:
        for number in result[part]:
            for key in ADDED:
                number.pop(key, None)
    return result | {"schema_version": "1.0"}


@pytest.mark.parametrize("name", NAMES)
def test_every_number_states_its_title_and_section(name: str) -> None:
    for part in PARTS:
        for number in stored(name)[part]:
            assert number["section"], number["id"]
            assert number["title"] not in ("", readable(number["id"])), number["id"]


@pytest.mark.parametrize("name", NAMES)
def test_what_the_ids_say_is_what_numbers_now_state(name: str) -> None:
    text = json.dumps(earlier(name))
    result = AuditResult.from_json(text)
    assert result.schema_version == SCHEMA_VERSION
    for part in PARTS:
        for then, now in zip(getattr(result, part), stored(name)[part], strict=True):
            assert (then.id, then.section) == (now["id"], now["section"])
            if part != "histograms" and not then.id.startswith("aggregates."):
                assert then.axis == now["axis"], then.id
            if then.id.startswith(SINCE):
                continue
            score, stated = getattr(then, "score", None), now.get("score")
            assert (score is None) == (stated is None), then.id
            if score is not None and stated is not None:
                for key in ("subject", "measure", "group"):
                    assert getattr(score, key) == stated[key]


def test_it_is_shown_with_words_of_its_ids() -> None:
    result = AuditResult.from_json(json.dumps(earlier("run-rr-all-audits")))
    page = result.to_html()
    for words in ("Every score of every attack", "Features only", "Mechanism epsilon lower"):
        assert words in page
    assert AuditResult.from_json(result.to_json()) == result
