"""What the command line offers to a shell: completion, variables of the environment, signals."""

import errno
import gzip
import io
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import called, heed_interrupts, refused
from releases import table, written

import ldpaudit
from ldpaudit import cli
from ldpaudit.cli import process
from ldpaudit.cli.parameters import completer, parameters_of
from ldpaudit.cli.process import steady_streams
from ldpaudit.commands.interface import Gate
from ldpaudit.commands.requests import RunRequest
from ldpaudit.commands.run import work as demo
from ldpaudit.commands.run.work import demo_tables, write_demo
from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError, OutputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.judging.policy import STARTER, load_policy
from ldpaudit.mechanisms import from_declaration
from ldpaudit.reports.charts.svg import inline_svg
from ldpaudit.result import AuditResult
from ldpaudit.terminal import say, stream

Ran = tuple[int, str, str]
Command = Callable[..., Ran]
FAST = ("--only", "mechanism", "--only", "power")


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return written(tmp_path_factory.mktemp("honest"), rows=3000)


def stored(path):
    return AuditResult.from_json(path.read_text())


def test_an_honest_release_passes(command, honest):
    release, truth = honest
    status, out, _ = command("run", release, "--truth", truth)
    assert out.splitlines()[1].startswith("Publish: yes. Audited on ")
    assert "\nNo violation found" in out
    assert status == 0
    result = stored(release.with_name("release.audit.json"))
    assert result.verdict == "pass"
    assert release.with_name("release.audit.html").read_text().startswith("<!DOCTYPE html>")
    epsilon = result.estimate("mechanism.epsilon")
    assert (epsilon.kind, epsilon.value) == ("exact", pytest.approx(1.0))


def test_a_dishonest_release_fails(command, tmp_path):
    release, truth = written(tmp_path, made=3.0, rows=3000)
    words = ("run", release, "--truth", truth, "--only", "mechanism")
    status, out, _ = command(*words)
    assert status == 1
    assert re.search(r"Violation found: the release claims ε = 1, but at least ε = [23]\.\d", out)


def test_exit_zero_and_inconclusive(command, tmp_path):
    release, _ = written(tmp_path, claimed=None, rows=1000)
    words = ("run", release, "--only", "mechanism")
    status, out, _ = command(*words)
    assert (status, "nothing was claimed, so nothing was judged" in out) == (3, True)
    for more, ends in (("--inconclusive=fail", 1), ("--inconclusive=pass", 0), ("--exit-zero", 0)):
        assert command(*words, more)[0] == ends


@pytest.mark.parametrize(
    ("decision", "verdict", "given", "status"),
    [
        ("publish", "pass", {"not_yet": "fail"}, 0),
        ("not yet", "pass", {}, 0),
        ("not yet", "pass", {"policy": "ldpaudit:strict"}, 3),
        ("not yet", "pass", {"policy": "ldpaudit:strict", "not_yet": "pass"}, 0),
        ("not yet", "pass", {"not_yet": "fail"}, 3),
        ("not yet", "pass", {"not_yet": "fail", "exit_zero": True}, 0),
        ("not yet", "inconclusive", {"not_yet": "pass"}, 3),
        ("not yet", "inconclusive", {"not_yet": "fail", "inconclusive": "pass"}, 3),
        ("not yet", "inconclusive", {"inconclusive": "pass"}, 0),
        ("do not publish", "fail", {"not_yet": "pass"}, 1),
    ],
)
def test_not_yet_passes_or_fails_as_asked(decision, verdict, given, status):
    policy = load_policy(given["policy"]) if "policy" in given else None
    gate = Gate(**{key: value for key, value in given.items() if key != "policy"})
    result = SimpleNamespace(decision=decision, verdict=verdict)
    assert gate.status(policy, result) == status


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([("publish", "pass"), ("publish", "pass")], 0),
        ([("publish", "pass"), ("not yet", "pass")], 3),
        ([("not yet", "pass"), ("publish", "pass")], 3),
        ([("publish", "pass"), ("not yet", "inconclusive")], 3),
        ([("not yet", "inconclusive"), ("do not publish", "fail")], 1),
        ([("do not publish", "fail"), ("not yet", "pass"), ("publish", "pass")], 1),
    ],
)
def test_of_several_results_the_worst_decides(found, status):
    results = [SimpleNamespace(decision=decision, verdict=verdict) for decision, verdict in found]
    assert Gate(not_yet="fail").status(None, *results) == status


def test_true_labels_in_another_order_are_an_input_error(command, tmp_path, honest):
    release, truth = honest
    shuffled = tmp_path / "truth.csv"
    pq.read_table(truth).to_pandas().sample(frac=1, random_state=3).to_csv(shuffled, index=False)
    for words in (("run", release), ("compare", release, release)):
        status, _, err = command(*words, "--truth", shuffled, *FAST)
        assert status == 2
        assert "The true labels reveal nothing about the released ones" in err
    with pytest.raises(InputError, match="reveal nothing about the released ones"):
        ldpaudit.audit(release, shuffled, only=["mechanism", "power"])


def test_environment_twins(command, honest, monkeypatch, tmp_path):
    monkeypatch.setenv("LDPAUDIT_JSON", str(tmp_path / "twin.json"))
    monkeypatch.setenv("LDPAUDIT_SEED", "77")
    monkeypatch.setenv("LDPAUDIT_ONLY", "mechanism power")
    assert command("run", honest[0])[0] in (0, 3)
    assert stored(tmp_path / "twin.json").run.seed == 77


def test_policy_commands(command, tmp_path):
    path = tmp_path / "p.toml"
    assert (command("policy", "init", path)[0], path.read_text()) == (0, STARTER)
    assert (command("policy", "init", path)[0], command("policy", "check", path)[0]) == (2, 0)
    assert "max_undetected_excess" in command("policy", "explain", "claimed-epsilon")[1]
    assert command("policy", "explain", "claimed")[0] == 2


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['ldpaudit', '--help']\n"
        "from ldpaudit import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'faiss', 'sklearn', 'scipy', 'pandas', 'pyarrow', 'numpy', 'altair'}\n"
        "heavy |= {'pydantic', 'jinja2'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_every_option_is_documented(command):
    docs = Path(__file__).parent.parent / "docs"
    pages = "".join(page.read_text() for page in docs.rglob("*.md"))
    mechanism = [
        ("mechanism", name) for name in ("describe", "design", "compose", "channel", "audit")
    ]
    for words in (("run",), ("compare",), ("demo",), ("report",), *mechanism):
        shown = "".join(command(*words, screen)[1] for screen in ("--help", "--help-more"))
        for option in re.findall(r"--[a-z-]+", shown):
            assert option in pages or option in ("--help", "--help-more", "--no-"), option


def test_help_shows_every_option_once_on_screens_of_sixty_lines(command):
    for group in ("", "policy", "mechanism"):
        members = cli.members(group)
        for member in members:
            words = (group, member.__name__)[group == "" :]
            screens = [command(*words, screen)[1] for screen in ("--help", "--help-more")]
            assert all(screen.count("\n") <= 60 for screen in screens), words
            both = "--help-more" in screens[0]  # Else all is on the first.
            listed = re.findall(
                r"^  (?:-\w, )?(--[a-z-]+)", "".join(screens[: 1 + both]), re.MULTILINE
            )
            stated = {p.long for p in parameters_of(member) if p.long.startswith("--")}
            assert sorted(listed) == sorted({*stated, "--help"}), words


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    """Return a folder with releases, true labels and files that cannot be used."""
    folder = tmp_path_factory.mktemp("mistaken")
    release, truth = table(rows=300)
    bare = release.replace_schema_metadata({})
    frame = release.to_pandas().assign(x0=[{"a": 1}] * 300)
    files = {
        "r": release,
        "bare": bare,
        "truth": truth,
        "short": truth.slice(5),
        "alien": pa.table({"label": ["perhaps", "never"] * 150}),
        "ids": pa.table({"label": ["no"] * 300, "id": [1] * 300}),
        "nested": pa.Table.from_pandas(frame, preserve_index=False),
    }
    for name, content in files.items():
        pq.write_table(content, folder / f"{name}.parquet")
    whole = (folder / "r.parquet").read_bytes()
    for name, content in {
        "empty.parquet": b"",
        "text.parquet": b"no parquet at all, just words",
        "cut.parquet": whole[:-50],
        "cut.csv.gz": gzip.compress(b"label,x\n" + b"a,1\nb,2\n" * 999)[:-30],
        "channel.csv": b",no,yes\nno,0.7,0.2\nyes,0.3,0.7\n",
        "one.csv": b"label,x\n" + b"a,1\nb,2\n" * 9,
        "good.csv": b",no,yes\nno,0.7,0.3\nyes,0.3,0.7\n",
    }.items():
        (folder / name).write_bytes(content)
    return folder


MISTAKES = {
    "run nested.parquet": "Column 1 holds nested",
    "run nowhere.parquet": "nowhere.parquet",
    "run empty.parquet": "empty.parquet",
    "run text.parquet": "text.parquet",
    "run cut.parquet": "cut.parquet",
    "run cut.csv.gz": "cut.csv.gz",
    "run data:,hello --epsilon 1": "cannot be reached",
    "run bare.parquet --epsilon 2 --lambda 0.3": "must agree",
    "run bare.parquet --lambda 1.5": "[0, 1]",
    "run bare.parquet --epsilon 0": "above 0",
    "run bare.parquet --label labell": "columns; did you mean 'label'?",
    "run r.parquet --label Label": "that the file declares, and its claim is about those only; did",
    "run r.parquet --policy r.parquet": "A policy is a TOML file",
    "run one.csv --separator ; --epsilon 1": "Without --separator they are detected.",
    "run bare.parquet --lambda 30%": "it must be a number; write a share: 0.3.",
    "privatize bare.parquet -o x.pdf --mechanism rr --epsilon 1": "the format of its name",
    "run bare.parquet --only mechanisms": "no audit",
    "run bare.parquet --queries some": "--queries",
    "run bare.parquet --neighbors 0": "at least 1",
    "run bare.parquet --policy nowhere.toml": "policy",
    "run bare.parquet --html /nowhere/at/all/report.html": "folder",
    "run bare.parquet --epsilom 1": "No such option",
    "run bare.parquet --output r.html": "--html FILE writes the report",
    "compare r.parquet r.parquet -o r.html": "--html FILE writes the report",
    "run bare.parquet --channel channel.csv": "sum to 1",
    "run r.parquet --truth short.parquet": "295",
    "run r.parquet --truth alien.parquet": "declared classes",
    "run r.parquet --truth ids.parquet --id id": "id column",
    "run r.parquet --html r.parquet": "not overwritten",
    "run r.parquet --truth truth.parquet --json truth.parquet": "not overwritten",
    "run bare.parquet --channel good.csv --json good.csv": "not overwritten",
    "run r.parquet --epsilon 1 --epsilon 2": "--epsilon was given twice, and takes one value.",
    "run r.parquet --html=a.html --html b.html": "--html was given twice",
    "report run --schema --html a.html": "--schema prints a schema alone",
    "sweep truth.parquet --mechanism rr --epsilon 1 --test r.parquet --test-share 0.4": "all test",
    "audit r.parquet": "No such command 'audit'; did you mean 'run'?",
    "compose": "No such command 'compose'. Did you mean 'compare'?",
    "run r.parquet --epsilon 1,5": "it must be a number; write a decimal point: 1.5.",
    "run r.parquet --epsilon=a": "Invalid value for '--epsilon': it must be a number.",
    "run r.parquet --threads=1.5": "it must be a whole number.",
    "run r.parquet --policy strict": "The preset is called ldpaudit:strict.",
    "report r.parquet": "it is no result (.json); a release is read by ldpaudit run.",
    "run .": "A folder is read, all its Parquet files as one table, and 'data.audit.html' would "
    "lie in it. Name one file, or write the report elsewhere (--html, --json).",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_written(words, mistaken, monkeypatch):
    monkeypatch.chdir(mistaken)
    line = refused(*words.split(), folder=mistaken)
    assert (MISTAKES[words] in line, "perhaps" in line, "Traceback" in line) == (True, False, False)


def test_label_only_releases_still_run(command, tmp_path):
    release, truth = table(rows=1000)
    pq.write_table(truth, tmp_path / "truth.parquet")
    for name, columns in {"none": ["label"], "constant": ["label", "c"]}.items():
        whole = release.append_column("c", pa.array([1.0] * 1000))
        path = tmp_path / f"{name}.parquet"
        pq.write_table(whole.select(columns).replace_schema_metadata(release.schema.metadata), path)
        status, out, err = command("run", path, "--truth", tmp_path / "truth.parquet")
        assert status == 0, (out, err)


def test_a_second_interruption_leaves_nothing(tmp_path):
    path, truth = written(tmp_path, rows=20000)
    before = sorted(tmp_path.iterdir())
    command = [sys.executable, "-m", "ldpaudit", "run", str(path), "--truth", str(truth)]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ,
        preexec_fn=heed_interrupts,
    ) as process:
        err = process.stderr.readline()  # The first audit has begun.
        process.send_signal(signal.SIGINT)
        while "stopping at the next" not in err and (line := process.stderr.readline()):
            err += line
        process.send_signal(signal.SIGINT)
        err += process.stderr.read()
        assert process.wait(timeout=60) == 2, err
    assert err.strip().splitlines()[-1] == "ldpaudit: Interrupted; nothing was written."
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_an_interruption_of_an_import_exits_2(tmp_path):
    """CPython remembers an interruption inside an exec, as when a dataclass is being made."""
    (tmp_path / "interrupted.py").write_text(
        "from ldpaudit import cli\n"
        "def main(**_):\n"
        "    exec('raise KeyboardInterrupt')\n"
        "cli._commands().main = main\n"
        "cli.main()\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("ldpaudit: Interrupted; nothing was written.\n", 2)


@pytest.mark.parametrize(
    ("words", "ends", "status"),
    [
        ("explain claimed-epsilon", "| true", 0),
        ("explain claimed-epsilon", ">/dev/full", 0),
        ("check none.toml", ">&- 2>&-", 2),
    ],
)
def test_the_status_is_that_of_the_work_whatever_becomes_of_the_streams(words, status, ends):
    command = f"set -o pipefail; {sys.executable} -m ldpaudit policy {words} {ends}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("comp", ["compare"]),
        ("mechanism des", ["describe", "design"]),
        ("run --on", ["--only"]),
        ("run --only m", ["mechanism"]),
        ("run --skip ren", ["renyi"]),
        ("sweep x.csv --mechanism double", ["double-rr"]),
        ("privatize x.csv --mechanism rr", ["rr-top-k", "rr-on-bins", "rr"]),
        ("mechanism describe stair", ["staircase"]),
        ("run x.parquet --metric l", ["l2", "learned"]),
    ],
)
def test_names_are_completed(words, offered, monkeypatch):
    """As bash asks for them, for the last word."""
    variables = {"COMP_WORDS": f"ldpaudit {words}", "COMP_CWORD": str(len(words.split(" ")))}
    for name, value in {**variables, "_LDPAUDIT_COMPLETE": "complete_bash"}.items():
        monkeypatch.setenv(name, value)
    status, out = called()
    assert (status, out.split()) == (0, offered)


def test_files_are_left_to_the_shell():
    assert completer("--truth") is None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell, monkeypatch):
    monkeypatch.setenv("_LDPAUDIT_COMPLETE", f"source_{shell}")
    assert f"complete_{shell}" in called()[1]


@pytest.mark.parametrize(
    ("variables", "words", "named"),
    [
        ({"SEED": "abc"}, [], "LDPAUDIT_SEED"),
        ({"SEED": "-1"}, [], "LDPAUDIT_SEED"),
        ({"SEEDS_TRIED": "-1"}, [], "LDPAUDIT_SEEDS_TRIED"),
        ({"METRIC": "l3", "NEIGHBORS": "5"}, [], "LDPAUDIT_METRIC"),
        ({"QUERIES": "some"}, ["--seed", "1"], "LDPAUDIT_QUERIES"),
        ({"SEED": "1"}, ["--seed=abc"], ""),
        ({"SEED": "1"}, ["--neighbors", "-1"], ""),
    ],
)
def test_a_mistake_in_the_environment_is_told_by_its_variable(
    variables, words, named, tmp_path, monkeypatch
):
    for name, value in variables.items():
        monkeypatch.setenv(f"LDPAUDIT_{name}", value)
    file = tmp_path / "release.csv"
    file.write_text("x,label\n1,a\n2,b\n")
    status, line = called("run", file, *words)
    assert status == 2
    assert line.rstrip().endswith(f"({named}: set in the environment)" if named else line.rstrip())
    assert ("LDPAUDIT_" in line) == bool(named)


@pytest.fixture
def kept_handlers():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("kept_handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_parent_reaches_the_child(number, monkeypatch):
    got = []

    class Child:
        def __init__(self, *_, **__):
            pass

        def send_signal(self, number):
            got.append(number)

        def wait(self):
            os.kill(os.getpid(), number)
            return 3

    monkeypatch.setattr(subprocess, "Popen", Child)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert (process._child(), got) == (3, [number])


def printed(printing, monkeypatch):
    content = io.BytesIO()
    terminal = io.TextIOWrapper(content, encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    with steady_streams():
        printing("é: ε = 1")
    monkeypatch.undo()
    return content.getvalue()


def test_letters_that_the_terminal_lacks_are_question_marks_but_in_a_report(monkeypatch):
    assert printed(say, monkeypatch).decode("latin-1") == "é: ? = 1\n"
    assert printed(stream, monkeypatch).decode("utf-8") == "é: ε = 1"


class Full(io.StringIO):
    """A stream on a disk that has no room."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def flush(self):
        raise self.error


def test_a_report_that_is_lost_is_told_and_changes_no_status(monkeypatch, capsys):
    for broken in (Full(OSError(errno.ENOSPC, "No space left on device")), None):
        monkeypatch.setattr(sys, "stdout", broken)
        with steady_streams():
            steady = sys.stdout
            stream("{}")
        assert capsys.readouterr().err.count("Standard output is lost") == 1
    steady.close()
    monkeypatch.setattr(sys, "stdout", Full(BrokenPipeError()))  # A reader that has enough.
    with steady_streams():
        stream("{}")


def limited(kibibytes, *words):
    """Run the command line as after ``ulimit -v``."""
    script = f"ulimit -v {kibibytes}; exec {sys.executable} -m ldpaudit " + " ".join(words)
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120)


def test_a_report_without_pictures_is_better_than_none(tmp_path):
    page = tmp_path / "p.html"
    words = "mechanism describe randomized-response --classes a,b --epsilon 1 --html"
    done = limited(3_000_000, words, str(page))
    assert (done.returncode, done.stderr) == (0, "")
    assert "This chart is not drawn" in page.read_text()


def test_far_too_little_is_one_line():
    done = limited(700_000, "demo")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "(ulimit -v) is 684 MiB; at least 1.2 GiB are needed" in done.stderr


@pytest.mark.parametrize(("ends", "status"), [(-6, 2), (127, 2), (3, 3), (1, 1), (0, 0)])
def test_whatever_becomes_of_the_child(ends, status, monkeypatch):
    monkeypatch.setattr(process, "address_limit", lambda: 2 << 30)
    monkeypatch.setattr(process, "_child", lambda: ends)
    ended, said = called()
    assert (ended, said.count("\n")) == (status, ends not in (0, 1, 3))


def test_what_libraries_say_of_memory(monkeypatch):
    said = "failed to map segment from shared object"
    assert "more memory" in cli._one_line(ImportError(said))
    assert "more memory" in cli._one_line(MemoryError())
    assert "Internal fault" in cli._one_line(RuntimeError("the cell 'secret'"))
    monkeypatch.setattr("ldpaudit.work.memory.address_limit", lambda: 1 << 30)
    monkeypatch.setattr(
        "ldpaudit.work.memory.mmap.mmap", lambda *_, **__: (_ for _ in ()).throw(OSError)
    )
    assert "not drawn" in inline_svg({}, "t", "d", "k")
    assert inline_svg({}, "t", "d", "k-n", twin="k") == ""


def test_the_demonstration_holds_what_it_says(tmp_path):
    files = write_demo(tmp_path / "new" / "folder", seed=20260101)
    for path, made in ((files.honest, 1.0), (files.dishonest, 3.0)):
        report = read_release(path, truth=files.truth)
        release = report.release
        assert (report.warnings, release.features.columns) == ((), 8)
        assert from_declaration(release.declaration, release.classes).epsilon == pytest.approx(1.0)
        kept = int(np.sum(release.released == release.truth))
        low, high = clopper_pearson(kept, len(release), 1e-6)  # flakes never: the seed is fixed
        assert low < 1 / (1 + np.exp(-made)) < high
        assert (high - low) < 0.06


def test_the_same_seed_gives_the_same_files(tmp_path):
    first, again = write_demo(tmp_path, 5), write_demo(tmp_path, 5)
    assert first == again
    honest, dishonest, truth = demo_tables(5)
    other, *_ = demo_tables(6)
    assert honest.equals(demo_tables(5)[0])
    assert not honest.equals(other)
    assert honest.num_rows == dishonest.num_rows == truth.num_rows == 6366


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        write_demo(tmp_path / "file", 1)


def test_the_command_audits_both_and_says_what_to_open(command, monkeypatch, tmp_path):
    """In this process, and only the audits that decide; the recorded run has all, in two."""

    def here(jobs):
        return [demo._audit(job, 1) for job in jobs]

    monkeypatch.setattr(demo, "_audited", here)
    monkeypatch.setattr(demo, "RunRequest", partial(RunRequest, only=("mechanism", "power")))
    status, out, err = command("demo", "--folder", tmp_path)
    assert (status, err) == (0, "")
    assert out.index("Proven: ") < out.index("Violation found")
    assert "made with ε = 3" in out
    assert out.rstrip().endswith(f"Open {tmp_path / 'dishonest.audit.html'} in a browser.")
    assert len(list(tmp_path.glob("*.audit.*"))) == 4
