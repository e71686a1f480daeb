"""Progress on a terminal and in a log; an audit that ends early: by its time, or by a signal."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest
from judging.cases import evidence, judged, p_value, power, record
from processes import heed_interrupts
from releases import written

import ldpaudit
from ldpaudit.result import AuditRecord, AuditResult
from ldpaudit.terminal import progress_on_terminal
from ldpaudit.work.progress import INTERRUPTED, InTurn, NoProgress, Stop, Stopped, Watched

TIME = "its time was over (--timeout 60)"


def test_the_time_is_over_when_it_is():
    now = [0.0]
    stop = Stop(deadline=60.0, seconds=60, clock=lambda: now[0])
    assert not stop.due()
    assert not stop.obeyed
    now[0] = 60.0
    assert stop.due()
    assert stop.obeyed
    assert stop.reason == TIME
    assert not Stop().due()
    assert not Stop.after(None).due()


def test_who_does_not_ask_ends_at_the_next_step_and_who_asks_is_trusted():
    stop = Stop()
    watched = Watched(NoProgress(), stop)
    for report in (lambda: watched.step("a"), lambda: watched.advance(1, 2)):
        report()
        stop.asked = INTERRUPTED
        with pytest.raises(Stopped):
            report()
        report()  # It has been told: what it still does belongs to ending.
        stop.asked, stop.obeyed = "", False
    stop.asked = INTERRUPTED
    assert stop.due()
    watched.step("the last words")
    assert not isinstance(Stopped(), Exception)  # What catches errors lets it pass.


def test_signals_ask_first_and_interrupt_then(capfd):
    now = [0.0]
    stop = Stop(clock=lambda: now[0])
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with stop.on_signals():
        with pytest.raises(KeyboardInterrupt):  # Nothing is there to be reported.
            os.kill(os.getpid(), signal.SIGINT)
        stop.running = True
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # To the process, then to its group: one request.
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.due()
        now[0] = 2.0
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert capfd.readouterr().err.count("the report will say what is missing") == 1


class Told(NoProgress):
    """Progress that remembers what it was told."""

    def __init__(self):
        self.lines = []

    def step(self, text):
        self.lines.append(text)

    def advance(self, done, total):
        self.lines.append((done, total))


def test_parts_side_by_side_are_reported_in_their_order():
    told = Told()
    turns = InTurn(Watched(told, name="a release"))
    first, second = turns.of(0), turns.of(1)
    second.step("c")
    second.advance(1, 9)
    second.advance(2, 9)
    first.step("a")
    assert told.lines == ["a release: a"]
    turns.done(0)
    second.step("d")
    assert told.lines == ["a release: a", "a release: c", (2, 9), "a release: d"]
    turns.end(after=0)
    with pytest.raises(Stopped):
        second.step("e")
    first.step("b")


def test_a_part_that_was_told_to_end_says_nothing_of_another():
    stop = Stop(asked=INTERRUPTED)
    with stop.part():
        assert stop.due()
        with stop.part():
            assert not stop.obeyed
    assert stop.obeyed
    other = Stop(asked=INTERRUPTED)
    with other.part(told=True):
        Watched(NoProgress(), other).step("it is trusted to end")
    assert not other.obeyed


def stopped(*names):
    return (record("mechanism"), *(AuditRecord(id=n, status="stopped", reason=TIME) for n in names))


def test_an_audit_that_was_stopped_never_passes():
    found = evidence(power(0.2), epsilon=0.9)
    assert judged(found).verdict == "pass"
    judgement = judged(found, records=stopped("renyi"))
    assert judgement.verdict == "inconclusive"
    assert f"{TIME} before renyi ended" in judgement.sentence
    assert len(judgement.next_steps) == 1
    assert judgement.next_steps[0].startswith("Let the audit finish")
    judgement = judged(evidence(), records=stopped("mechanism", "power"))
    assert judgement.sentence == f"Inconclusive: the audit mechanism was stopped: {TIME}."


def test_a_violation_stays_one_at_the_same_level():
    found = evidence(power(0.2), epsilon=1.2)
    whole, part = judged(found), judged(found, records=stopped("renyi", "power"))
    assert part.verdict == whole.verdict == "fail"
    assert part.checks == whole.checks
    warned = evidence(power(0.2), p_value("assumptions.feature_blind", 1e-9), epsilon=0.9)
    assert judged(warned, records=stopped("renyi")).verdict == judged(warned).verdict


class Slow(NoProgress):
    """Progress that lets time pass at a step."""

    def __init__(self, at, stop):
        self.at, self.stop, self.names = at, stop, ("",)

    def step(self, text):
        if text.startswith(self.at):
            self.stop.deadline = time.monotonic()

    def phases(self, names):
        self.names = tuple(names)

    def phase(self, number):
        self.step(self.names[number])


@pytest.mark.parametrize(
    ("at", "ended"),
    [
        (
            "looking for groups",
            {"mechanism": "stopped", "label-inference": "stopped", "power": "stopped"},
        ),
        (
            "attack: oracle",
            {"mechanism": "ran", "label-inference": "stopped", "power": "stopped"},
        ),
        ("power", {"mechanism": "ran", "label-inference": "ran", "power": "ran"}),
    ],
)
def test_what_is_finished_is_reported(at, ended, tmp_path):
    path, truth = written(tmp_path, rows=400)
    stop = Stop(seconds=60)
    options = {"only": tuple(ended), "threads": 1}
    result = ldpaudit.audit(
        str(path), truth=str(truth), stop=stop, progress=Slow(at, stop), **options
    )
    assert {r.id: r.status for r in result.audits} == ended
    assert (result.verdict == "inconclusive") == ("stopped" in ended.values())
    assert (result.estimate("attack.best.accuracy") is None) == (at == "looking for groups")
    assert AuditResult.from_json(result.to_json()) == result
    page = result.to_html().replace("<kbd>", "").replace("</kbd>", "")
    assert ("its time was over (timeout=60)" in page) == ("stopped" in ended.values())


def test_one_signal_writes_what_is_finished(tmp_path):
    path, truth = written(tmp_path, rows=1000)
    words = [sys.executable, "-m", "ldpaudit", "run", str(path), "--truth", str(truth)]
    words += ["--threads", "1"]
    process = subprocess.Popen(
        [*words, "--only", "mechanism", "--only", "label-inference", "--only", "power"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    while "label inference" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "the report will say what is missing" in err
    assert "stopped" in out
    result = AuditResult.from_json((tmp_path / "release.audit.json").read_text())
    status = {r.id: r.status for r in result.audits}
    assert status["mechanism"] == "ran"
    assert status["label-inference"] == status["power"] == "stopped"
    assert "it was interrupted" in result.sentence
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["release.parquet", "truth.parquet", "release.audit.json", "release.audit.html"]
    )


def test_a_log_has_one_line_a_phase(capsys):
    with progress_on_terminal(quiet=False) as progress:
        progress.step("reading")
        progress.remark("a plan")
        progress.phases(["label inference", "power"])
        for number in (0, 1):
            progress.phase(number)
            progress.step("fitting")
            progress.advance(1, 2)
        progress.phases(())
        progress.step("differences")
    assert capsys.readouterr().err.splitlines() == [
        "ldpaudit: reading …",
        "ldpaudit: a plan",
        "ldpaudit: 1 of 2: label inference …",
        "ldpaudit: 2 of 2: power …",
        "ldpaudit: differences …",
    ]
    with progress_on_terminal(quiet=True) as progress:
        progress.phases(["a"])
        progress.phase(0)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar(tmp_path):
    path, truth = written(tmp_path, rows=300)
    words = [sys.executable, "-m", "ldpaudit", "run", str(path), "--truth", str(truth)]
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
