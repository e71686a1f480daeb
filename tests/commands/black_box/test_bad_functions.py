"""A randomizer that cannot be audited: one clear line, and nothing left running."""

import os
from pathlib import Path
from typing import Any

import pytest

from ldpaudit.commands.black_box.work import audit_black_box
from ldpaudit.commands.requests import BlackBoxRequest, parse_inputs
from ldpaudit.errors import InputError

CODE = """
import os, sys, time
import numpy as np

def raises(value, n, rng):
    raise ValueError("a secret")

def raises_inside(value, n, rng):
    return rng.choice(n, p=[2.0])

def exits(value, n, rng):
    sys.exit(0)

def dies(value, n, rng):
    os._exit(7)

def hangs(value, n, rng):
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.getpid()} ")
    while True:
        time.sleep(1)

def nothing(value, n, rng):
    return None

def one(value, n, rng):
    return 1.0

def too_few(value, n, rng):
    return np.zeros(n - 1)

def uneven(value, n, rng):
    return np.zeros((n, 2 + value))

def reuses(value, n, rng):
    return np.random.default_rng(7).random(n)

def fine(value, n, rng):
    return rng.random(n)

def broken_features(outputs, value):
    return outputs[1:]

constant = 3
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    (folder / "bad_client.py").write_text(CODE)
    (folder / "broken_module.py").write_text("import does_not_exist_at_all\n")
    (folder / "slow_module.py").write_text("import time\ntime.sleep(60)\n")
    return folder


def refused(client: Path, name: str, **settings: Any) -> str:
    request = BlackBoxRequest(name, (0, 1), 400, path=(str(client),), processes=1, **settings)
    with pytest.raises(InputError) as caught:
        audit_black_box(request)
    text = str(caught.value)
    assert "\n" not in text
    assert "secret" not in text
    return text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bad_client:raises", "raised ValueError at line 6 of bad_client.py"),
        ("bad_client:raises_inside", "raised ValueError at line 9"),
        ("bad_client:exits", "raised SystemExit"),
        ("bad_client:dies", "ended its process (status 7)"),
        ("bad_client:nothing", "got NoneType"),
        ("bad_client:one", "got float"),
        ("bad_client:too_few", "outputs, as requested"),
        ("bad_client:uneven", "the same number of entries"),
        ("bad_client:reuses", "its noise is used again"),
        ("bad_client:missing", "has no 'missing'"),
        ("bad_client:constant", "must be a function; it is of type int"),
        ("no_such_module:f", "cannot be imported: ModuleNotFoundError"),
        ("broken_module:f", "cannot be imported: ModuleNotFoundError at line 1 of broken_module"),
        ("no_such_file.py:f", "no file 'no_such_file.py'"),
        ("bad_client", "MODULE:FUNCTION"),
    ],
)
def test_one_line_says_what_is_wrong(client: Path, name: str, words: str) -> None:
    assert words in refused(client, name)


def test_a_broken_feature_function_is_named(client: Path) -> None:
    assert "as requested" in refused(
        client, "bad_client:fine", features="bad_client:broken_features"
    )


def test_what_hangs_is_ended(client: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv("PIDS", str(pids))
    for seconds in (2, 20):  # A busy machine may need the longer time to get that far.
        if not pids.exists():
            words = refused(client, "bad_client:hangs", timeout=float(seconds))
            assert f"return within {seconds} s" in words
    assert all(_is_gone(int(pid)) for pid in pids.read_text().split())


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().split(")")[-1].split()[0] == "Z"


def test_a_module_that_hangs_is_ended(client: Path) -> None:
    assert "return within 1.5 s" in refused(client, "slow_module:f", timeout=1.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": (1,)}, "at least two inputs"),
        ({"inputs": (1, 2, 1)}, "given twice"),
        ({"samples": 10}, "at least 200 samples"),
        ({"confidence": 1.0}, "confidence"),
        ({"timeout": 0.0}, "time limit"),
    ],
)
def test_bad_requests(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        BlackBoxRequest(**({"function": "a:b", "inputs": (0, 1)} | change))


def test_inputs_are_numbers_where_they_look_like_them() -> None:
    assert parse_inputs("1, 2.5,true,a b,0x1") == (1, 2.5, True, "a b", "0x1")
    assert parse_inputs('["1", 2, [3, 4]]') == ("1", 2, [3, 4])
    with pytest.raises(InputError, match="JSON list"):
        parse_inputs("[1, 2")
