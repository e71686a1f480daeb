import json
from functools import partial

import pytest
from processes import called

mechanism = partial(called, "mechanism")


@pytest.fixture
def result(tmp_path):
    """Run a command that must succeed; return its JSON result."""

    def call(*words):
        path = tmp_path / "result.json"
        status, printed = mechanism(*words, "--json", path)
        assert status == 0, printed
        found = json.loads(path.read_text())
        return found

    return call


@pytest.fixture
def prior(tmp_path):
    """Write a prior file from labels and probabilities."""

    def write(labels, probabilities, name="prior.csv"):
        path = tmp_path / name
        rows = "".join(f"{y},{p!r}\n" for y, p in zip(labels, probabilities, strict=True))
        path.write_text(f"label,probability\n{rows}")
        return path

    return write
