"""What ``ldpaudit declare`` prints."""

from collections.abc import Iterator
from pathlib import Path

from ldpaudit.commands.declare.work import Declared
from ldpaudit.datasets.names import quoted
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.release import LabelDeclaration
from ldpaudit.terminal import say


def print_declared(declared: Declared, *, quiet: bool) -> None:
    """Print what the file declares, and what was written; nothing when ``quiet``."""
    if quiet:
        return
    name, claim = quoted(declared.name), declared.claim
    if claim is None:
        say(f"{name} declares nothing. Say what made its labels:")
        say("  ldpaudit declare FILE --label COLUMN --mechanism rr --epsilon 1")
        return
    columns = list(zip(claim.labels, declared.columns, strict=True))
    if declared.whole is None:
        say(f"{name} declares {declared.columns[0].description}.")
    else:
        say(f"{name} declares {len(columns)} private columns:")
    for label, mechanism in columns:
        seen = "" if claim.joint is None else "seen alone: "
        more = "" if declared.whole is None else f": {seen}{mechanism.description}"
        say(f"  {'column':<12} {quoted(label.label)}{more}")
        for what, value in _names(label, mechanism):
            say(f"  {what:<12} {value}")
    if declared.whole is not None:
        say(f"  {'together':<12} {declared.whole.description}")
    _print_written(declared)


def _names(label: LabelDeclaration, mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    if label.by is not None:
        yield "strata by", quoted(label.by)
    stated = mechanism.declaration()
    for one in stated.get("strata", ()):
        yield "stratum", quoted(str(one["value"]))
    for one in stated.get("classes", ()):
        yield "class", quoted(str(one))


def _print_written(declared: Declared) -> None:
    for text in declared.remarks:
        say(f"  {'note':<12} {text}")
    for place in declared.written:
        here = place.is_relative_to(Path.cwd())
        say(f"  {'written':<12} {place.relative_to(Path.cwd()) if here else place}")
    asked = declared.request.claim != type(declared.request.claim)() or declared.request.label
    if asked and not declared.written:
        say("Nothing was written: it is declared so already.")
