"""The audit of numeric labels; what guesses them is imported where labels are numbers."""

from collections.abc import Iterable
from typing import Final

from ldpaudit.audits.interface import AuditContext, BuiltIn, Part


def _unavailable(context: AuditContext) -> str | None:
    apart = context.release.numeric is None
    return "the declared mechanism is not one on numbers" if apart else None


def _parts(context: AuditContext) -> Iterable[Part]:
    from ldpaudit.audits.numeric_guesses import numeric_parts

    return numeric_parts(context)


AUDIT: Final = BuiltIn("numeric-inference", _parts, _unavailable, needs=("truth", "labels", "rows"))
