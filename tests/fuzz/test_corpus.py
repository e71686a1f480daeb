"""The first inputs of the fuzzers, and every input that once went wrong, one after the other."""

import random

import pytest
from fuzz.checking import checked
from fuzz.command_lines import KINDS
from fuzz.mutations import broken
from fuzz.targets import CORPUS, TARGETS

INPUTS = sorted(path for path in CORPUS.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_is_read_or_refused(path) -> None:
    checked(TARGETS[path.parent.name], path.read_bytes())


@pytest.mark.parametrize("name", sorted({path.parent.name for path in INPUTS}))
def test_broken_inputs_are_read_or_refused(name: str) -> None:
    rng = random.Random(name)
    for path in (CORPUS / name).iterdir():
        for _ in range(4 if name in ("csv", "jsonl", "svmlight") else 25):
            checked(TARGETS[name], broken(path.read_bytes(), rng))


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in INPUTS) < 100_000
    assert {path.parent.name for path in INPUTS} <= set(TARGETS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_generated_command_line_is_the_same_again(kind: str) -> None:
    """A fault of the campaign is found again by its number."""
    first, second = (KINDS[kind](random.Random("1 2")) for _ in range(2))
    assert first == second
