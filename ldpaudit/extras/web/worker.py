"""The process that does one task: a command of ldpaudit, the sample, or a look at files."""

import json
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ldpaudit.surfaces import speaking

_AMOUNTS: Final = {"epsilon": "ε", "lambda": "λ"}


def main() -> None:
    """Do the task that standard input names; end with the process that asked for it."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    perform(json.loads(sys.stdin.buffer.read()))


def perform(given: list[str]) -> None:
    """Do a task: one of our own, or a command in the words of the page."""
    task, *words = given
    if task in _TASKS:
        from ldpaudit.doors import LdpAuditError

        try:
            _TASKS[task](*words)
        except LdpAuditError as error:
            sys.exit(f"ldpaudit: {error}")
        return
    sys.argv = ["ldpaudit", task, *words]
    with speaking("page"):
        runpy.run_module("ldpaudit", run_name="__main__", alter_sys=True)


def look(out: str, *files: str) -> None:
    """Write the columns of each file, and what it declares, as JSON; no cell is among them."""
    from ldpaudit.datasets.reading import open_source
    from ldpaudit.doors import Declaration, parse_declaration
    from ldpaudit.extras.receipt.secrets import read_secret
    from ldpaudit.judging.policy import load_policy

    found: dict[str, dict[str, object]] = {}
    for name in files:
        if name.lower().endswith(".toml"):
            load_policy(name)
            continue
        table, declared = open_source(name), []
        # Beside the main file there may be one of true labels with a key, which declares nothing.
        secret = bool(found) and read_secret(table.declaration) is not None
        content = None if secret else table.declaration
        stated = parse_declaration(content).labels if content else ()
        for one in stated:
            claim = one.mechanism or Declaration("jointly")
            given = {sign: claim.parameters.get(key) for key, sign in _AMOUNTS.items()}
            words = [f"{k} = {v:g}" for k, v in given.items() if isinstance(v, int | float)]
            declared.append((one.label, ", ".join([claim.name, *words])))
        columns = [(field.name, str(field.type)) for field in table.schema]
        found[name] = {"columns": columns, "declared": declared, "rows": table.row_count}
    Path(out).write_text(json.dumps(found), encoding="utf-8")


def sample(folder: str) -> None:
    """Write the demonstration's files."""
    from ldpaudit.commands.run.work import write_demo

    write_demo(Path(folder), 20260101)


_TASKS: Final[dict[str, Callable[..., None]]] = {"look": look, "sample": sample}


def _end_with(parent: int) -> None:
    """End this process with its parent, even if that is killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main()
