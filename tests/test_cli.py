import gzip
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import heed_interrupts
from releases import table, written

import ldpaudit
from ldpaudit import cli
from ldpaudit.cli.commands import Gate
from ldpaudit.cli.parameters import parameters_of
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import STARTER, load_policy
from ldpaudit.result import AuditResult

Ran = tuple[int, str, str]
Command = Callable[..., Ran]
FAST = ("--only", "mechanism", "--only", "power")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return written(tmp_path_factory.mktemp("honest"), rows=3000)


def stored(path: Path) -> AuditResult:
    return AuditResult.from_json(path.read_text())


def test_an_honest_release_passes(command: Command, honest: tuple[Path, Path]) -> None:
    release, truth = honest
    status, out, _ = command("run", release, "--truth", truth)
    assert out.splitlines()[1].startswith("Publish: yes. Audited on ")
    assert "\nNo violation found" in out
    assert status == 0
    result = stored(release.with_name("release.audit.json"))
    assert result.verdict == "pass"
    assert release.with_name("release.audit.html").read_text().startswith("<!DOCTYPE html>")
    epsilon = result.estimate("mechanism.epsilon")
    assert epsilon is not None
    assert epsilon.kind == "exact"
    assert epsilon.value == pytest.approx(1.0)


def test_a_dishonest_release_fails(command: Command, tmp_path: Path) -> None:
    release, truth = written(tmp_path, made=3.0, rows=3000)
    words = ("run", release, "--truth", truth, "--only", "label-inference", *FAST)
    status, out, _ = command(*words)
    assert status == 1
    assert re.search(r"Violation found: the release claims ε = 1, but at least ε = [23]\.\d", out)


def test_exit_zero_and_inconclusive(command: Command, tmp_path: Path) -> None:
    release, _ = written(tmp_path, claimed=None, rows=1000)
    assert command("run", release, *FAST)[0] == 3
    assert command("run", release, *FAST, "--inconclusive", "fail")[0] == 1
    assert command("run", release, *FAST, "--inconclusive", "pass")[0] == 0
    assert command("run", release, *FAST, "--exit-zero")[0] == 0
    assert "nothing was claimed, so nothing was judged" in command("run", release, *FAST)[1]


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
def test_not_yet_passes_or_fails_as_asked(
    decision: str, verdict: str, given: dict[str, Any], status: int
) -> None:
    policy = load_policy(given["policy"]) if "policy" in given else None
    gate = Gate(**{key: value for key, value in given.items() if key != "policy"})
    result: Any = SimpleNamespace(decision=decision, verdict=verdict)
    assert gate.status(policy, result) == status


def test_true_labels_in_another_order_are_an_input_error(
    command: Command, tmp_path: Path, honest: tuple[Path, Path]
) -> None:
    release, truth = honest
    shuffled = tmp_path / "truth.csv"
    pq.read_table(truth).to_pandas().sample(frac=1, random_state=3).to_csv(shuffled, index=False)
    for words in (("run", release), ("compare", release, release)):
        status, _, err = command(*words, "--truth", shuffled, *FAST)
        assert status == 2
        assert "The true labels reveal nothing about the released ones" in err
    with pytest.raises(InputError, match="reveal nothing about the released ones"):
        ldpaudit.audit(release, shuffled, only=["mechanism", "power"])


def test_the_same_command_gives_the_same_numbers(command: Command, tmp_path: Path) -> None:
    release, truth = written(tmp_path, rows=500)
    texts = []
    for _ in range(2):
        command("run", release, "--truth", truth, "--threads", "1")
        content = json.loads(release.with_name("release.audit.json").read_text())
        content["run"].pop("seconds")
        for audit in content["audits"]:
            audit.pop("seconds")
        texts.append(content)
    assert texts[0] == texts[1]


def test_environment_twins(
    command: Command, honest: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LDPAUDIT_JSON", str(tmp_path / "twin.json"))
    monkeypatch.setenv("LDPAUDIT_SEED", "77")
    monkeypatch.setenv("LDPAUDIT_ONLY", "mechanism power")
    assert command("run", honest[0])[0] in (0, 3)
    assert stored(tmp_path / "twin.json").run.seed == 77


def test_rr_is_short_for_randomized_response(command: Command, tmp_path: Path) -> None:
    rows, made = tmp_path / "rows.csv", tmp_path / "made.parquet"
    rows.write_text("x,label\n" + "1,no\n2,yes\n2,no\n" * 300)
    claim = ("--mechanism", "rr", "--epsilon", "1")
    assert command("privatize", rows, "-o", made, *claim)[0] == 0
    declared = json.loads(pq.read_schema(made).metadata[b"ldpaudit"])
    assert declared["mechanism"]["name"] == "randomized-response"
    assert command("run", made, *claim, *FAST)[0] in (0, 3)
    assert command("mechanism", "describe", "rr", "--epsilon", "1", "--classes", "no,yes")[0] == 0
    classes = ("--classes", "no,yes")
    assert command("mechanism", "compose", "rr:epsilon=1", "rr:epsilon=1", *classes)[0] == 0
    status, _, err = command("privatize", rows, "-o", tmp_path / "b.csv", "--mechanism", "double-r")
    assert status == 2
    assert "did you mean 'double-rr'?" in err


def test_csv_and_ids(command: Command, tmp_path: Path) -> None:
    release, truth = table(rows=1500)
    frame, true = release.to_pandas(), truth.to_pandas()
    frame.insert(0, "person", np.arange(1500) + 10)
    true.insert(0, "person", frame["person"])
    with gzip.open(tmp_path / "release.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    true.sample(frac=1, random_state=1).to_csv(tmp_path / "truth.csv", index=False)
    status, out, _ = command(
        "run", tmp_path / "release.csv.gz", "--truth", tmp_path / "truth.csv", "--id", "person",
        "--epsilon", "1", *FAST,
    )  # fmt: skip
    assert status == 0, out
    lower = stored(tmp_path / "release.audit.json").estimate("mechanism.epsilon_lower")
    assert lower is not None
    assert 0.7 < lower.value < 1.1


def test_truth_column(command: Command, tmp_path: Path) -> None:
    release, truth = table(rows=1500)
    joined = release.append_column("really", truth.column("label"))
    pq.write_table(joined.replace_schema_metadata(release.schema.metadata), tmp_path / "r.parquet")
    status, out, _ = command(
        "run", tmp_path / "r.parquet", "--truth-column", "really", *FAST,
    )  # fmt: skip
    assert status == 0, out
    assert stored(tmp_path / "r.audit.json").release.features == 4


def test_channel_file(command: Command, tmp_path: Path) -> None:
    release, truth = written(tmp_path, rows=2000, claimed=None)
    keep = float(1 / (1 + np.exp(-1)))
    lines = [",no,yes", f"no,{keep!r},{1 - keep!r}", f"yes,{1 - keep!r},{keep!r}"]
    (tmp_path / "channel.csv").write_text("\n".join(lines))
    status, out, _ = command(
        "run", release, "--truth", truth, "--channel", tmp_path / "channel.csv", *FAST
    )
    assert status == 0, out
    result = stored(tmp_path / "release.audit.json")
    assert result.mechanism.name == "channel"
    assert result.mechanism.epsilon == pytest.approx(1.0)


def test_a_stored_result_is_rendered_again(command: Command, honest: Any, tmp_path: Path) -> None:
    release, truth = honest
    json_path, html = tmp_path / "a.json", tmp_path / "a.html"
    command("run", release, "--truth", truth, *FAST, "--json", json_path, "--html", html)
    again = tmp_path / "b.html"
    assert command("report", json_path, "--html", again)[0] == 0
    assert again.read_text() == html.read_text()
    assert command("report", release)[0] == 2
    assert "not overwritten" in one_line(command("report", json_path, "--html", json_path))


def test_policy_commands(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    assert command("policy", "init", path)[0] == 0
    assert path.read_text() == STARTER
    assert command("policy", "init", path)[0] == 2
    assert command("policy", "check", path)[0] == 0
    assert "max_undetected_excess" in command("policy", "explain", "claimed-epsilon")[1]
    assert command("policy", "explain", "claimed")[0] == 2


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['ldpaudit', '--help']\n"
        "from ldpaudit import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'faiss', 'sklearn', 'scipy', 'pandas', 'pyarrow', 'numpy', 'altair'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_every_option_is_documented(command: Command) -> None:
    docs = Path(__file__).parent.parent / "docs"
    pages = "".join(page.read_text() for page in docs.rglob("*.md"))
    mechanism = [
        ("mechanism", name) for name in ("describe", "design", "compose", "channel", "audit")
    ]
    for words in (("run",), ("compare",), ("demo",), ("report",), *mechanism):
        shown = "".join(command(*words, screen)[1] for screen in ("--help", "--help-more"))
        for option in re.findall(r"--[a-z-]+", shown):
            assert option in pages or option in ("--help", "--help-more", "--no-"), option


def test_help_shows_every_option_once_on_screens_of_sixty_lines(command: Command) -> None:
    for group, members in cli._COMMANDS.items():
        for member in members:
            words = (group.info.name, member.__name__)[group is cli.app :]
            screens = [command(*words, screen)[1] for screen in ("--help", "--help-more")]
            assert all(screen.count("\n") <= 60 for screen in screens), words
            both = "--help-more" in screens[0]  # Else all is on the first.
            listed = re.findall(
                r"^  (?:-\w, )?(--[a-z-]+)", "".join(screens[: 1 + both]), re.MULTILINE
            )
            stated = {p.long for p in parameters_of(member) if p.long.startswith("--")}
            assert sorted(listed) == sorted({*stated, "--help"}), words


def one_line(ran: Ran) -> str:
    status, out, err = ran
    lines = [line for line in err.splitlines() if not line.endswith("…")]
    assert status == 2, (out, err)
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    "run bare.parquet --channel channel.csv": "sum to 1",
    "run r.parquet --truth short.parquet": "295",
    "run r.parquet --truth alien.parquet": "declared classes",
    "run r.parquet --truth ids.parquet --id id": "id column",
    "run r.parquet --html r.parquet": "not overwritten",
    "run r.parquet --truth truth.parquet --json truth.parquet": "not overwritten",
    "run bare.parquet --channel good.csv --json good.csv": "not overwritten",
    "audit r.parquet": "No such command 'audit'; did you mean 'run'?",
    "compose": "No such command 'compose'. Did you mean 'compare'?",
    "run r.parquet --epsilon 1,5": "it must be a number; write a decimal point: 1.5.",
    "run r.parquet --epsilon=a": "Invalid value for '--epsilon': it must be a number.",
    "run r.parquet --threads=1.5": "it must be a whole number.",
    "run r.parquet --policy strict": "The preset is called ldpaudit:strict.",
    "report r.parquet": "it is no result (.json); a release is read by ldpaudit run.",
    "run .": "'data.audit.html' would lie in a folder that is read, all its Parquet files as one "
    "table; give one file, or write it elsewhere: --json and --html.",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_written(
    words: str, command: Command, mistaken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mistaken)
    before = {path: path.read_bytes() for path in mistaken.iterdir()}
    line = one_line(command(*words.split()))
    assert MISTAKES[words] in line
    assert "perhaps" not in line
    assert {path: path.read_bytes() for path in mistaken.iterdir()} == before


def test_label_only_releases_still_run(command: Command, tmp_path: Path) -> None:
    release, truth = table(rows=1000)
    pq.write_table(truth, tmp_path / "truth.parquet")
    for name, columns in {"none": ["label"], "constant": ["label", "c"]}.items():
        whole = release.append_column("c", pa.array([1.0] * 1000))
        path = tmp_path / f"{name}.parquet"
        pq.write_table(whole.select(columns).replace_schema_metadata(release.schema.metadata), path)
        status, out, err = command("run", path, "--truth", tmp_path / "truth.parquet")
        assert status == 0, (out, err)


def test_a_second_interruption_leaves_nothing(tmp_path: Path) -> None:
    path, truth = written(tmp_path, rows=20000)
    before = sorted(tmp_path.iterdir())
    command = [sys.executable, "-m", "ldpaudit.cli", "run", str(path), "--truth", str(truth)]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ,
        preexec_fn=heed_interrupts,
    ) as process:
        assert process.stderr is not None
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


def test_an_interruption_of_an_import_exits_2(tmp_path: Path) -> None:
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
    assert done.stderr == "ldpaudit: Interrupted; nothing was written.\n"
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("words", "ends", "status"),
    [
        *(("explain claimed-epsilon", ends, 0) for ends in (">/dev/full", ">&-", "| true")),
        *(("check none.toml", ends, 2) for ends in ("2>/dev/full", "2>&-", ">&- 2>&-")),
    ],
)
def test_the_status_is_that_of_the_work_whatever_becomes_of_the_streams(
    words: str, status: int, ends: str
) -> None:
    command = f"set -o pipefail; {sys.executable} -m ldpaudit.cli policy {words} {ends}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
