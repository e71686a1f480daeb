"""What ``ldpaudit declare`` prints."""

from pathlib import Path

from ldpaudit.commands.declare.work import Declared
from ldpaudit.datasets.names import quoted
from ldpaudit.terminal import say


def print_declared(declared: Declared, *, quiet: bool) -> None:
    """Print what the file declares, and what was written; nothing when ``quiet``."""
    if quiet:
        return
    name, mechanism = quoted(declared.name), declared.mechanism
    if mechanism is None:
        say(f"{name} declares nothing. Say what made its labels:")
        say("  ldpaudit declare FILE --label COLUMN --mechanism rr --epsilon 1")
        return
    say(f"{name} declares {mechanism.description}.")
    if declared.request.show_class_names:
        say(f"  {'label':<12} {quoted(declared.label or '')}")
        for label in mechanism.declaration().get("classes", ()):
            say(f"  {'class':<12} {quoted(str(label))}")
    for place in declared.written:
        here = place.is_relative_to(Path.cwd())
        say(f"  {'written':<12} {place.relative_to(Path.cwd()) if here else place}")
    asked = declared.request.claim != type(declared.request.claim)()
    if asked and not declared.written:
        say("Nothing was written: it is declared so already.")
