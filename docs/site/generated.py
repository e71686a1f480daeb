"""Write the pages that repeat the code: commands with their options, policies, the glossary.

python docs/site/generated.py           writes them
python docs/site/generated.py --check   exit status 1 if one is not as the code says
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from generated_limits import page as limits_page
from generated_manual import manual
from generated_policy import policy_page
from generated_result import page as result_page
from typer.models import ArgumentInfo, ParameterInfo

from ldpaudit.cli import app
from ldpaudit.reports.text.wording import GLOSSARY

DOCS = Path(__file__).resolve().parents[1]
COMMANDS = "reference/commands"
Commands = dict[str, Callable[..., Any]]


def pages() -> Iterator[tuple[str, str]]:
    """Give each generated page: its place in docs/, and its text."""
    single, groups = (
        of_group(app()),
        {g.typer_instance.info.name: g for g in app().registered_groups},
    )
    said = {name: command.__doc__ for name, command in single.items()}
    said |= {name: group.typer_instance.info.help for name, group in groups.items()}
    yield f"{COMMANDS}/README.md", index(said)
    for name, command in single.items():
        yield f"{COMMANDS}/{name}.md", f"# Options of `ldpaudit {name}`\n\n{body(name, command)}"
    for name, group in groups.items():
        members = of_group(group.typer_instance)
        parts = [f"## `{name} {n}`\n\n{body(f'{name} {n}', c)}" for n, c in members.items()]
        yield (
            f"{COMMANDS}/{name}.md",
            "\n".join((f"# Options of `ldpaudit {name}`\n\n{said[name]}\n", *parts)),
        )
    grouped = {
        f"{n} {m}": c for n, g in groups.items() for m, c in of_group(g.typer_instance).items()
    }
    yield "ldpaudit.1", manual(app().info.help or "", single | grouped, value_of)
    yield "explanation/glossary.md", glossary()
    yield "policy.md", policy_page()
    yield "reference/limits.md", limits_page()
    yield "result.md", result_page()


def of_group(group: Any) -> Commands:
    """Return the commands of the program, or of one of its groups, by their names."""
    listed = group.registered_commands
    return {c.name or c.callback.__name__.replace("_", "-"): c.callback for c in listed}


def glossary() -> str:
    """Return the page of the words that reports explain."""
    words = "\n\n".join(f"**{term}**: {meaning}" for term, meaning in GLOSSARY)
    return f"# Glossary\n\nThe words that every report explains.\n\n{words}\n"


def index(said: dict[str, str]) -> str:
    """Return the list of commands."""
    rows = "\n".join(f"| [`ldpaudit {n}`]({n}.md) | {summary(text)} |" for n, text in said.items())
    return (
        "# Commands\n\n"
        "As `ldpaudit COMMAND --help` shows them. Every option can also be set in the\n"
        "environment: `--label` by `LDPAUDIT_LABEL`, and so on (several labels: one per line).\n\n"
        f"| command | does |\n|---|---|\n{rows}\n"
    )


def summary(text: str) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def body(name: str, command: Callable[..., Any]) -> str:
    """Return what a command does, its usage and its options; those of `run` by name alone."""
    listed = options_of(command)
    known = () if name == "run" else rows_of(of_group(app())["run"]).values()
    rows, same = [], []
    for option, text in rows_of(command).items():
        if text in known:
            same.append(f"`{option}`")
        else:
            rows.append(text)
    places = [word(n, i) for n, _, _, i in listed if isinstance(i, ArgumentInfo)]
    usage = " ".join(["ldpaudit", name, *places, "[OPTIONS]"])
    about = inspect.cleandoc(command.__doc__ or "")
    table = "\n".join(("| option | does |", "|---|---|", *rows))
    shared = f"\nAs for [`run`](run.md): {', '.join(same)}.\n" if same else ""
    return f"{about}\n\n```text\n{usage}\n```\n\n{table}\n{shared}"


def options_of(command: Callable[..., Any]) -> list[tuple[str, Any, Any, Any]]:
    """Return the arguments of a command, then its options, with default, type and help."""
    taken = inspect.signature(command).parameters.values()
    listed = [(p.name, p.default, *get_args(p.annotation)) for p in taken]
    return sorted(listed, key=lambda one: not isinstance(one[3], ArgumentInfo))


def rows_of(command: Callable[..., Any]) -> dict[str, str]:
    """Return the rows of a command's table, by the name of each option."""
    listed = options_of(command)
    return {
        word(name, info) if isinstance(info, ArgumentInfo) else info.default: row(
            name, default, kind, info
        )
        for name, default, kind, info in listed
    }


def word(name: str, info: ParameterInfo) -> str:
    """Return what stands for an argument."""
    return info.metavar or name.upper()


def row(name: str, default: Any, kind: Any, info: ParameterInfo) -> str:
    """Return the row of an option or an argument: its names and values; what it does."""
    if isinstance(info, ArgumentInfo):
        return f"| `{word(name, info)}` | {info.help} |"
    spelt = ", ".join(f"`{n}`" for n in (info.default, *(info.param_decls or ()))) + value_of(kind)
    needed = " (needed)" if default is inspect.Parameter.empty else ""
    text = re.sub(r"(--[a-z-]+)", r"`\1`", (info.help or "").replace("|", "\\|"))
    said = isinstance(default, bool | NoneType) or default is inspect.Parameter.empty
    known = "" if said or "default" in text else f" (default: {getattr(default, 'value', default)})"
    return f"| {spelt} | {text}{needed}{known} |"


def value_of(kind: Any) -> str:
    """Return the sort of value that an option takes, as it is written in a table."""
    kinds = [part for part in get_args(kind) if part is not NoneType] or [kind]
    kind = get_args(kinds[0])[0] if get_args(kinds[0]) else kinds[0]
    if kind is bool:
        return ""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " `" + "\\|".join(choice.value for choice in kind) + "`"
    return {int: " N", float: " X", Path: " FILE"}.get(kind, " TEXT")


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
