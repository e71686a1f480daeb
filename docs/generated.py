"""Write the pages that repeat the code: commands with their options, and the glossary.

    python docs/generated.py           writes them
    python docs/generated.py --check   exit status 1 if one is not as the code says
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.main import get_command

from ldpaudit.cli import app
from ldpaudit.reports.text.wording import GLOSSARY

DOCS = Path(__file__).resolve().parent
COMMANDS = "reference/commands"


def pages() -> Iterator[tuple[str, str]]:
    """Give each generated page: its place in docs/, and its text."""
    root = get_command(app)
    yield f"{COMMANDS}/README.md", index(root)
    for name, command in root.commands.items():
        yield f"{COMMANDS}/{name}.md", page(name, command)
    yield "explanation/glossary.md", glossary()


def glossary() -> str:
    """Return the page of the words that reports explain."""
    words = "\n\n".join(f"**{term}**: {meaning}" for term, meaning in GLOSSARY)
    return f"# Glossary\n\nThe words that every report explains, too.\n\n{words}\n"


def index(root) -> str:
    """Return the list of commands."""
    rows = "\n".join(
        f"| [`ldpaudit {name}`]({name}.md) | {command.help} |"
        for name, command in root.commands.items()
    )
    return (
        "# Commands\n\n"
        "Made from the code: each page says what `ldpaudit COMMAND --help` says. Every option can also be\n"
        "set in the environment: `--label` by `LDPAUDIT_LABEL`, and so on.\n\n"
        f"| command | does |\n|---|---|\n{rows}\n"
    )


def page(name: str, command) -> str:
    """Return the page of one command, or of a group of commands."""
    members = getattr(command, "commands", None)
    if members is None:
        return f"# `ldpaudit {name}`\n\n{body(name, command)}"
    parts = [f"## `{name} {n}`\n\n{body(f'{name} {n}', member)}" for n, member in members.items()]
    return f"# `ldpaudit {name}`\n\n{command.help}\n\n" + "\n".join(parts)


def body(name: str, command) -> str:
    """Return what a command does, how it is called, and its options."""
    with command.make_context(name, [], resilient_parsing=True) as context:
        usage = " ".join(command.collect_usage_pieces(context))
        rows = [row for parameter in command.params for row in rows_of(parameter, context)]
    table = "| option | does |\n|---|---|\n" + "\n".join(rows)
    return f"{command.help}\n\n```text\nldpaudit {name} {usage}\n```\n\n{table}\n"


def rows_of(parameter, context) -> Iterator[str]:
    """Give the row of an option or an argument."""
    if parameter.name == "help":
        return
    words = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    yield f"| {spelling(parameter, context)} | {words}{remarks(parameter)} |"


def spelling(parameter, context) -> str:
    """Return an option's names and the sort of its value."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.make_metavar(context)}`"
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.is_flag:
        return names
    choices = getattr(parameter.type, "choices", None)
    value = "\\|".join(map(str, choices)) if choices else parameter.make_metavar(context)
    return f"{names} `{value}`"


def remarks(parameter) -> str:
    """Return what a reader has to know besides: whether it is needed, repeatable, its default."""
    default = parameter.default
    said = [
        "needed" * bool(parameter.required and parameter.param_type_name == "option"),
        "repeatable" * bool(parameter.multiple),
        "" if default in (None, False, ()) or callable(default) else f"default: {default}",
    ]
    return f" ({'; '.join(filter(None, said))})" if any(said) else ""


def main() -> int:
    """Write the pages, or say which of them are not as the code says."""
    made = {DOCS / place: text for place, text in pages()}
    left = set((DOCS / COMMANDS).glob("*.md")) - set(made)
    stale = [p for p, text in made.items() if not p.exists() or p.read_text("utf-8") != text]
    if "--check" in sys.argv:
        return bool(stale or left)
    (DOCS / COMMANDS).mkdir(parents=True, exist_ok=True)
    for path in left:
        path.unlink()
    for path in stale:
        path.write_text(made[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
