"""Bad words on the command line, and bad documents: one clear line, never an internal fault."""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpaudit.cli.streams import quiet_libraries

Command = Callable[..., tuple[int, str, str]]
CLASSES = "--classes=a,b"
DESIGN = ("mechanism", "design", "--labels=0:10:1")
RELEASE = "label,x\n" + "a,1\nb,2\n" * 20


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rr", "--epsilon=1", "--classes=a\nb,c"), "on one line"),
        (("discrete-laplace", "--epsilon=1e-308", "--labels=0:10:1"), "from 1e-06 to 50"),
        (("discrete-staircase", "--epsilon=5e-324", "--labels=0:10:1"), "from 1e-06 to 50"),
        (("staircase", "--epsilon=710", "--labels=0:1"), "from 1e-06 to 50 nats"),
        (("rr", "--epsilon=700", CLASSES), "from 1e-06 to 50 nats"),
        (("laplace", "--epsilon=1", "--labels=0:1e308:1e307"), "-1e.15 to 1e.15"),
        (("rr", "--epsilon=1", "--labels=0:1e308:1e307"), "-1e.15 to 1e.15"),
        (("laplace", "--epsilon=1", "--labels=0:1e-200"), "at least 1e-100"),
        (("laplace", "--epsilon=1", "--labels=0:1:1e-300"), "at least 1e-100"),
        (("laplace", "--epsilon=1", f"--classes=1,2,{'9' * 400}"), "labels on a range"),
        (("rr", "--epsilon=1", "--classes=" + ",".join(map(str, range(10_001)))), "most 10,000"),
    ],
)
def test_a_mechanism_of_odd_words(words: tuple[str, ...], message: str, command: Command) -> None:
    one_line(command("mechanism", "describe", *words), message)


@pytest.mark.parametrize(
    "words", [("--epsilon=1e308",), ("--epsilon=1e-308",), ("--epsilon=1", "--private-prior=1e-17")]
)
def test_a_design_of_an_odd_epsilon(
    words: tuple[str, ...], command: Command, tmp_path: Path
) -> None:
    data = tmp_path / "d.csv"
    data.write_text("label\n" + "1\n2\n" * 75)
    if len(words) == 1:
        words = (*words, "--private-prior=0.5")
    answer = command(*DESIGN, *words, "--data", data, "--label=label")
    one_line(answer, "from 1e-06 to 50 nats")


def test_the_smallest_probability_of_a_channel_is_one(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "channel.csv"
    file.write_text("label,a,b\nx,5e-324,1\ny,1,5e-324\n")
    status, out, err = command("mechanism", "channel", file)
    assert (status, err) == (0, "")
    assert "ε = 744.44 nats (exact)" in out


@pytest.mark.parametrize(
    ("probabilities", "message"), [("1e308,1e308", "sum to 1"), ("nan,1", "finite")]
)
def test_an_odd_prior_is_one_line_without_a_warning(
    probabilities: str, message: str, command: Command, tmp_path: Path
) -> None:
    first, second = probabilities.split(",")
    file = tmp_path / "prior.csv"
    file.write_text(f"label,probability\na,{first}\nb,{second}\n")
    one_line(command("mechanism", "describe", "rr", "--epsilon=1", "--prior", file), message)


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (None, "state epsilon as prior"),
        ({"prior": 10**400, "labels": 1, "total": 2}, "valid JSON"),
        ({"prior": 10**299, "labels": 10**299, "total": 2}, "add up to total"),
    ],
)
def test_an_odd_provenance(epsilon: Any, message: str, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text(RELEASE)
    mechanism = {"name": "randomized-response", "classes": ["a", "b"], "epsilon": 1.0}
    content = {"version": 1, "label": "label", "mechanism": mechanism}
    beside = file.with_name("r.csv.ldpaudit.json")
    beside.write_text(json.dumps(content | {"provenance": {"epsilon": epsilon}}))
    one_line(command("run", file, "--only", "mechanism"), message)


def damaged(content: dict[str, Any], *path: Any, value: Any) -> str:
    place: Any = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("estimates", 0, "count"), [[1]]),
        (("estimates", 0, "n"), {}),
        (("estimates",), [0] * 10_000),
        (("histograms",), [{}]),
        (("run",), None),
    ],
)
def test_a_stored_result_that_somebody_changed(
    path: tuple[Any, ...], value: Any, command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "r.json"
    stored = Path(__file__).parent.parent / "result" / "stored" / "1.4.json"
    file.write_text(damaged(json.loads(stored.read_text()), *path, value=value))
    one_line(command("report", file, "--markdown", tmp_path / "r.md"), "must be an ldpaudit result")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 200_000, "at most 64 lists"),
        ('{"a": ' * 65 + "1" + "}" * 65, "at most 64 lists"),
        ("[" + "0," * 1_600_000 + "0]", "at most 1,500,000 values"),
        (f'{{"a": {"1" * 301}}}', "must be an ldpaudit result"),
        ('{"a": 1e999}', "must be an ldpaudit result"),
    ],
)
def test_a_document_beyond_a_limit(
    text: str, message: str, command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "r.json"
    file.write_text(text)
    one_line(command("report", file), message)
    assert list(tmp_path.iterdir()) == [file]


def test_a_document_that_is_too_long_is_not_read_to_its_end(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "r.json"
    with file.open("wb") as long:
        long.truncate(1 << 40)
    one_line(command("report", file), "at most 32 MiB")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("[" * 9000, "at most 64 lists"),
        (f"[1, {'9' * 5000}]", "must be a JSON list"),
        ("[1, NaN]", "must be a JSON list"),
        (",".join(map(str, range(1001))), "at most 1,000 inputs"),
        (f"1,{'9' * 5000}", "given as MODULE:FUNCTION"),
    ],
)
def test_odd_inputs_of_a_randomizer(inputs: str, message: str, command: Command) -> None:
    one_line(black_box(command, f"--inputs={inputs}"), message)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--epsilon=1e300", "at most 50"),
        (f"--samples={2**63}", "at most 1,000,000,000 samples"),
        ("--timeout=1e308", "1,000,000 seconds"),
        ("--timeout=nan", "1,000,000 seconds"),
    ],
)
def test_odd_amounts_of_a_black_box_audit(word: str, message: str, command: Command) -> None:
    one_line(black_box(command, "--inputs=0,1", word), message)


def black_box(command: Command, *words: str) -> tuple[int, str, str]:
    """Audit a randomizer that there is not; what it says without its progress."""
    status, out, err = command("mechanism", "audit", "nonsense:", *words)
    return status, out, "".join(line for line in err.splitlines(True) if "…" not in line)


def test_a_sweep_without_end(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text(RELEASE)
    words = ("sweep", file, "--mechanism=rr", "--epsilon=1", f"--repeats={10**19}")
    one_line(command(*words), "at most 100,000 simulated releases")


def test_a_policy_says_whether_any_check_can_fail(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    weak = "[checks.label-inference-advantage]\nmax = 1\n[checks.identifiers]\nlevel = 'warn'\n"
    for text, fails in ((weak, False), (f"{weak}[checks.claimed-epsilon]\n", True)):
        file.write_text(f"schema = 1\n{text}")
        status, out, _ = command("policy", "check", file)
        assert status == 0
        assert ("None of its checks can fail." in out) is not fails


def test_warnings_of_libraries_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with quiet_libraries(debug=False):
            warnings.warn("numpy has something to say", RuntimeWarning, stacklevel=1)
        assert capsys.readouterr().err == ""
        warnings.simplefilter("error")
        with quiet_libraries(debug=False), pytest.raises(RuntimeWarning):
            warnings.warn("a test is to see it", RuntimeWarning, stacklevel=1)


def one_line(answer: tuple[int, str, str], message: str) -> None:
    """Check that a command was refused in one line of at most a few sentences."""
    status, out, err = answer
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert "Internal fault" not in err
    assert len(err) < 1000
    assert re.search(message, err), err


@pytest.mark.parametrize("place", [6, 8, 10])  # Version of zip, encryption, compression.
def test_an_archive_of_another_kind(place: int, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "r.npz"
    np.savez(file, label=np.arange(4), x=np.arange(4))
    content = bytearray(file.read_bytes())
    content[content.index(b"PK\x01\x02") + place] = 99
    file.write_bytes(content)
    one_line(command("declare", file), "damaged")


@pytest.mark.parametrize("text", ["null\n", 'null\n{"label": "a"}\n', '{"\x83": 1}\n'])
def test_json_lines_that_end_the_reader(text: str, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(text.encode("latin-1"))
    one_line(command("declare", file), "one JSON object a line")
