"""What a sweep shows while it runs: point, audit, share and the time left."""

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ldpaudit.extras.choose.sweep import run
from ldpaudit.extras.choose.sweep.request import Point
from ldpaudit.work.progress import NoProgress

POINTS = [Point("rr", "lambda", value, 1) for value in (0.2, 0.8)]


class Heard(NoProgress):
    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, text: str) -> None:
        self.steps.append(text)


def made(generator: str | None = None) -> Any:
    request = SimpleNamespace(points=lambda: POINTS, only=(), generator=generator)
    return SimpleNamespace(request=request, ended=0, progress=Heard())


def waited(heard: Heard, words: str) -> str:
    for _ in range(200):
        for text in heard.steps:
            if words in text:
                return text
        time.sleep(0.02)
    raise AssertionError(heard.steps)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_LOOK", 0.01)


def test_the_audit_within_a_point_its_share_and_the_time_left(tmp_path: Path) -> None:
    sweep = made()
    shown = run._Shown(sweep, POINTS)
    noting = run._Noting(run.note_of(POINTS[0], tmp_path))
    with shown.looking(tmp_path):
        assert "all audits; 0 of 2 points done (attacks" in sweep.progress.steps[0]
        assert sweep.progress.steps[0].endswith("quicker: --only label-inference)")
        noting.step("drawing the release")
        waited(sweep.progress, "λ = 0.2, draw 1: drawing the release; 0 of 2 points done")
        noting.phases(["assumptions", "seeds"])
        noting.phase(1)
        noting.step("trying seeds")  # Within an audit: not shown.
        text = waited(sweep.progress, "seeds (2 of 2 audits)")
        assert re.search(r"0 of 2 points done, 20% of all, about \d+ (s|min) left$", text)
        noting.phases(())
        noting.step("training the learner")
        waited(sweep.progress, "training the learner; 0 of 2 points done, 40% of all")
        sweep.ended = 1
        shown.end(POINTS[0])
    assert "λ = 0.8, draw 1: all audits; 1 of 2 points done, 50% of all" in sweep.progress.steps[-1]
    assert not any("trying seeds" in text for text in sweep.progress.steps)
    assert len(set(sweep.progress.steps)) == len(sweep.progress.steps)


def test_how_far_the_generator_is(tmp_path: Path) -> None:
    sweep = made("gan")
    noting = run._Noting(run.note_of("generator", tmp_path))
    with run._Shown(sweep, ["generator"]).looking(tmp_path):
        noting.step("generator: 600 rows")
        for step in range(0, 101, 5):
            noting.advance(step, 100)
            if step == 50:
                waited(sweep.progress, "fitting the generator gan: 50%, about")
    assert sweep.progress.steps[0] == "fitting the generator gan"
    assert len(sweep.progress.steps) < 13


def test_a_note_that_is_half_written_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.at").write_text('{"words": "se', encoding="utf-8")
    assert run._read_note(tmp_path / "x.at") is None
    assert run._read_note(tmp_path / "y.at") is None
