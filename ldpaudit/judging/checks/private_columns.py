"""Was every private column that the files declare audited?"""

from typing import Final

from ldpaudit.judging.checks.interface import Answer, Case, Draft
from ldpaudit.release import DeclaredColumns

ID: Final = "private-columns"
_QUESTION: Final = "Was every private column that is declared audited?"


def draft(case: Case) -> Draft | None:
    """Return the check of one column, None where it is the only one that is declared."""
    return draft_of(case.declared, 1)


def draft_of(declared: DeclaredColumns | None, audited: int) -> Draft | None:
    """Return the check, None where all declared columns were audited; no policy switches it off."""
    if declared is None:
        return None
    was = "was" if audited == 1 else "were"
    reason = f"{audited} of {declared.count} private columns {was} audited"
    answer = Answer("fail", None, reason)
    return Draft(ID, "warn", _QUESTION, None, (), lambda _: answer, counted=True)
