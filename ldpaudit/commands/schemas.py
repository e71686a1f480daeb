"""The JSON schemas of what the commands store."""

from importlib import import_module
from typing import Final

from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.result import SCHEMA_VERSION

# Commands and where the form of their results is stated; ``channel`` and ``compose`` store what
# ``describe`` does.
STORED: Final = {
    "run": ("ldpaudit.result", "AuditResult", SCHEMA_VERSION),
    "compare": ("ldpaudit.result.comparison", "Comparison", SCHEMA_VERSION),
    "public": ("ldpaudit.result.public", "PublicResult", "1.0"),
    "sweep": ("ldpaudit.commands.sweep.page", "Sweep", "1.0"),
    "advise": ("ldpaudit.commands.advise.page", "Advice", "1.0"),
    "learn": ("ldpaudit.commands.learn.work", "Learnt", "1.0"),
    "selftest": ("ldpaudit.commands.selftest.work", "Selftest", "1.0"),
    "verify": ("ldpaudit.commands.verify.work", "Verified", "1.0"),
    "describe": ("ldpaudit.commands.mechanism.result", "Analysis", "1.0"),
    "design": ("ldpaudit.commands.mechanism.designing", "Design", "1.0"),
    "audit": ("ldpaudit.commands.black_box.result", "BlackBoxAudit", "1.0"),
}


def schema_of(command: str) -> str:
    """Return the JSON schema of the result of a command, as JSON text."""
    # InputError if the command stores no result.
    from ldpaudit.reports.schema import json_schema

    if command not in STORED:
        rest = f"; choose from {', '.join(STORED)}."
        raise InputError(f"There is no schema {command!r}{did_you_mean(command, STORED, rest)}")
    module, name, version = STORED[command]
    group = "mechanism " if command in ("describe", "design", "audit") else ""
    group = "run --profile " if command == "public" else group
    title = f"Result of ldpaudit {group}{command}, schema {version}"
    return json_schema(getattr(import_module(module), name), title, f"{command}:{version}")
