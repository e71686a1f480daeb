"""Report formats: each renders a result, and nothing but a result."""

from pathlib import Path

from ldpaudit.errors import InputError
from ldpaudit.result import AuditResult


def render(result: AuditResult, format_name: str) -> str:
    """Return the report of a result in one of the formats."""
    raise InputError(f"There is no report format {format_name!r}.")


def embed(result: AuditResult) -> str:
    """Return the report as an HTML fragment for a notebook."""
    return render(result, "html")


def write_whole(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    path.write_text(text)
