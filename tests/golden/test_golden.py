"""The command line gives what was recorded: the same keys and texts, numbers to 1e-5."""

from pathlib import Path
from typing import Any

import pytest
from golden.inputs import write_inputs, write_real
from golden.invocations import INVOCATIONS, LONG, Invocation
from golden.recording import HERE, differences, load, outcome


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return folder


@pytest.fixture(scope="module")
def real_inputs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    write_real(shared_data, folder)
    return folder


def _case(invocation: Invocation) -> Any:
    marks = [pytest.mark.real_data] if invocation.real else []
    marks += [pytest.mark.validate] if invocation.name in LONG else []
    return pytest.param(invocation, id=invocation.name, marks=marks)


@pytest.mark.parametrize("invocation", [_case(one) for one in INVOCATIONS])
def test_as_recorded(
    invocation: Invocation, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    inputs = request.getfixturevalue("real_inputs" if invocation.real else "inputs")
    found = outcome(invocation, inputs, tmp_path / "run")
    differing = list(differences(load(invocation.name), found))
    more = f"\n… and {len(differing) - 10} more" if len(differing) > 10 else ""
    assert not differing, "\n" + "\n".join(differing[:10]) + more


def test_every_recording_has_its_invocation() -> None:
    names = [one.name for one in INVOCATIONS]
    assert set(names) >= LONG
    assert sorted(names) == sorted({*names})
    assert {*names} == {path.stem for path in HERE.glob("[!_]*.json")}
