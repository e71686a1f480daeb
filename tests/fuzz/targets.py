"""Every parser of what others write, by name: bytes in; done, or an ``LdpAuditError``."""

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from ldpaudit.claim import stated_claim
from ldpaudit.datasets import parse_declaration
from ldpaudit.datasets.declaration import remarks_on
from ldpaudit.datasets.labels import split_labels
from ldpaudit.datasets.probabilities import channel_table
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.choose.mechanism.analysis import build, read_domain, settings
from ldpaudit.extras.choose.sweep.request import parse_grid
from ldpaudit.extras.compare.comparison import Comparison
from ldpaudit.extras.probe.black_box.request import parse_inputs
from ldpaudit.extras.release.priors import read_prior
from ldpaudit.extras.release.privatize.plan import read_plan
from ldpaudit.judging.policy import parse_policy
from ldpaudit.mechanisms import full_name
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.registry import from_declaration
from ldpaudit.options.labels import parse_label
from ldpaudit.result import AuditResult
from ldpaudit.work.documents import parse_toml

CORPUS: Final = Path(__file__).parent / "corpus"
_SHARED: Final = Path("/dev", "shm")
_MEMORY: Final = _SHARED if _SHARED.is_dir() else Path(tempfile.gettempdir())
_FILES: Final = ("channel", "prior")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _declaration(content: bytes) -> None:
    declared = parse_declaration(content)
    remarks_on(declared.provenance)
    for claim in (*(one.mechanism for one in declared.labels), declared.joint):
        if claim is not None:
            from_declaration(claim, ("a", "b"))


def _plan(content: bytes) -> None:
    try:
        stated = parse_toml(_text(content), "A plan")
    except ValueError:
        return  # No TOML; what is wrong is said with its file's name.
    read_plan(stated)


def _column(content: bytes) -> None:
    column = parse_label(_text(content))
    if not column.stated().keys() & set(_FILES):  # No other file is to be opened here.
        stated_claim(column)


def _mechanism(content: bytes) -> None:
    """A name, ``KEY=VALUE`` words and the labels, line by line."""
    name, *words = _text(content).split("\n")
    labels = words.pop() if words else "a,b"
    domain = read_domain(*((None, labels) if ":" in labels else (labels, None)), None)
    more = settings(words)
    amounts = [more.pop(key, None) for key in ("epsilon", "lambda")]
    numbers = [one if isinstance(one, float) else None for one in amounts]
    wanted = replace(domain, epsilon=numbers[0], noise=numbers[1], settings=more)
    build(full_name(name), wanted)


def _words(content: bytes) -> None:
    """A word for each small parser."""
    text = _text(content)
    parsers: tuple[Callable[[str], object], ...] = (
        LabelRange.parse,
        split_labels,
        parse_inputs,
        lambda word: parse_grid("epsilon", word),
        lambda word: parse_grid("lambda", word),
    )
    for parse in parsers:
        try:
            parse(text)
        except InputError:
            continue


def _file(suffix: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """Return what reads the bytes as a file, in memory."""
    place = _MEMORY / f"ldpaudit-fuzz-{os.getpid()}{suffix}"

    def parse(content: bytes) -> None:
        place.write_bytes(content)
        try:
            read(place)
        finally:
            place.unlink(missing_ok=True)

    return parse


def _channel(place: Path) -> None:
    table = channel_table(place)
    Channel(table.matrix, tuple(table.classes), tuple(table.outputs)).delta(0.5)


TARGETS: Final[Mapping[str, Callable[[bytes], object]]] = {
    "declaration": _declaration,
    "policy": lambda content: parse_policy(_text(content)),
    "plan": _plan,
    "result": lambda content: AuditResult.from_json(_text(content)),
    "comparison": lambda content: Comparison.from_json(_text(content)),
    "column": _column,
    "mechanism": _mechanism,
    "words": _words,
    "channel": _file(".csv", _channel),
    "prior": _file(".csv", read_prior),
    "csv": _file(".csv", read_release),
    "jsonl": _file(".jsonl", read_release),
    "svmlight": _file(".svm", read_release),
    "npz": _file(".npz", read_release),
    "parquet": _file(".parquet", read_release),
    "feather": _file(".feather", read_release),
}
"""What parses, by the name of its folder in the corpus."""
