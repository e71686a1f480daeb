"""Progress: the time that is left, on a terminal, in a log, and not at all."""

import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from releases import written

from ldpaudit.running.progress import Pace, duration
from ldpaudit.terminal import progress_on_terminal


@dataclass
class Clock:
    """A clock that a test sets."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def walked(
    predicted: list[float], took: list[float], tick: float = 0.5
) -> list[tuple[float, float]]:
    """Return, at each tick, the seconds left as shown and as they were."""
    clock, seen = Clock(), []
    pace = Pace([str(i) for i in range(len(predicted))], predicted, clock)
    for number, seconds in enumerate(took):
        pace.begin(number)
        end = clock.now + seconds
        while clock.now < end:
            seen.append((pace.left(), sum(took) - pace.so_far))
            clock.now += tick
    return seen


def test_a_right_prediction_counts_down() -> None:
    seen = walked([10, 60, 30], [10, 60, 30])
    assert all(abs(shown - true) < 4 for shown, true in seen)


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_the_pace_so_far_corrects_the_prediction(factor: float) -> None:
    predicted = [20.0, 40, 40, 20]
    seen = walked(predicted, [factor * seconds for seconds in predicted])
    total = factor * 120
    later = [(shown, true) for shown, true in seen if 0.1 * total < true < 0.5 * total]
    assert all(0.5 * true < shown < 2.2 * true for shown, true in later)


@pytest.mark.parametrize("took", [[5, 5, 5], [5, 300, 5], [60, 1, 1], [1, 1, 200], [0.1, 0.1, 0.1]])
def test_what_is_left_is_smooth_and_never_nothing(took: list[float]) -> None:
    seen = walked([5, 20, 5], took)
    shown = [left for left, _ in seen]
    assert all(left > 0 for left in shown)
    # It never jumps: a tick of half a second moves it by a quarter of what was wrong at most.
    assert all(b - a <= 0.25 * max(took) and a - b <= 0.5 + 0.25 * a for a, b in pairwise(shown))
    # However wrong the prediction is, "a few seconds" are not said for long.
    few = [true for left, true in seen if left < 5 and true > 30]
    assert len(few) <= 2 * 20


def test_lengths_of_time_in_words() -> None:
    words = [duration(s) for s in (0, 9, 12, 57, 59, 89, 200, 5_000, 5_500, 7_200)]
    assert words == [
        *("a few seconds", "a few seconds", "about 10 s", "about 55 s", "about 1 min"),
        *("about 1 min", "about 3 min", "about 83 min", "about 1.5 h", "about 2 h"),
    ]


def test_a_log_has_one_line_a_phase(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_on_terminal(quiet=False) as progress:
        progress.step("reading")
        progress.remark("a plan")
        progress.phases(["label inference", "power"], [100.0, 1.0])
        for number in (0, 1):
            progress.phase(number)
            progress.step("fitting")
            progress.advance(1, 2)
        progress.phases((), ())
        progress.step("differences")
    assert capsys.readouterr().err.splitlines() == [
        "ldpaudit: reading …",
        "ldpaudit: a plan",
        "ldpaudit: 1 of 2: label inference, 0 s so far, about 2 min left …",
        "ldpaudit: 2 of 2: power, 0 s so far, about 2 min left …",
        "ldpaudit: differences …",
    ]
    with progress_on_terminal(quiet=True) as progress:
        progress.phases(["a"], [100.0])
        progress.phase(0)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar(tmp_path: Path) -> None:
    path, truth = written(tmp_path, rows=300)
    words = [sys.executable, "-m", "ldpaudit.cli", "run", str(path), "--truth", str(truth)]
    main, side = pty.openpty()
    process = subprocess.Popen(
        [*words, "--only", "mechanism", "--only", "power"],
        stderr=side,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(side)
    seen = b""
    try:
        while block := os.read(main, 4096):
            seen += block
    except OSError:  # The other end is closed.
        pass
    assert process.wait() in (0, 3)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert "1 of 2: mechanism" in text
    assert "2 of 2: power" in text
    assert "0:00:0" in text
    assert "ldpaudit:" not in text
