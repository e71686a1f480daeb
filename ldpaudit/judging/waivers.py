"""Waivers: violations that somebody answers for, in one file and until a day."""

import datetime
from collections.abc import Sequence

from ldpaudit.judging.policy import Waiver
from ldpaudit.result import AuditResult, Check, Note, Waived

_WAIVER = "The waiver of "
"""How a note on an unused waiver begins."""
_ALONE = (
    "a table in memory, or a file with true labels in it, has no SHA-256 that a waiver could name"
)


def apply_waivers(
    checks: Sequence[Check], waivers: Sequence[Waiver], sha256: str | None, today: datetime.date
) -> tuple[list[Check], list[Note]]:
    """Return the checks, those marked that are waived, and a warning of each unused waiver.

    Of two waivers of one violation the one that lasts longer is shown.
    ``sha256``: the released file's; ``today``: by UTC.
    """
    by_id, notes = {check.id: check for check in checks}, []
    used: dict[str, Waived] = {}
    for waiver in waivers:
        why = _unused(waiver, by_id.get(waiver.check), sha256, today)
        day, before = waiver.expires.isoformat(), used.get(waiver.check)
        if why is not None:
            notes.append(Note.warning("policy", f"{_WAIVER}{waiver.check} {why}."))
        elif before is None or before.expires <= day:
            used[waiver.check] = Waived(
                approved_by=waiver.approved_by, reason=waiver.reason, expires=day
            )
    shown = {name: {"waived": True, "waiver": waived} for name, waived in used.items()}
    return [check.model_copy(update=shown.get(check.id, {})) for check in checks], notes


def _unused(
    waiver: Waiver, check: Check | None, sha256: str | None, today: datetime.date
) -> str | None:
    """Return why a waiver does not count, None if it does."""
    file = _ALONE if sha256 is None else "it names another file than this one, by its SHA-256"
    verdict = None if check is None else check.verdict
    reasons = (
        (waiver.expires < today, f"expired on {waiver.expires.isoformat()} and counts no more"),
        (waiver.release_sha256 != sha256, f"was not used: {file}"),
        (check is None, "was not used: this audit had nothing to answer that check with"),
        (verdict == "pass", "was not needed: the check passes; take the waiver out"),
        (
            verdict == "inconclusive",
            "was not used: the check is inconclusive, and only violations can be waived",
        ),
    )
    return next((words for holds, words in reasons if holds), None)


def waived_words(check: Check) -> str:
    """Return until when and by whom a violation is waived."""
    if check.waiver is None:
        return "waived"
    return f"waived until {check.waiver.expires} by {check.waiver.approved_by}"


def unused_waivers(
    parts: tuple[AuditResult, ...], own: tuple[Note, ...]
) -> tuple[tuple[Note, ...], tuple[AuditResult, ...]]:
    """Return the notes on a node's judging, and the parts without theirs on unused waivers."""
    # A waiver that one part or the node itself used is used.
    told = [[n for n in part.notes if _of_waiver(n)] for part in parts]
    unused = [n for n in own if _of_waiver(n)]
    kept = [n for n in unused if all(_waiver(n) in map(_waiver, notes) for notes in told)]
    bare = tuple(
        part.model_copy(update={"notes": tuple(n for n in part.notes if not _of_waiver(n))})
        for part in parts
    )
    return tuple(n for n in own if not _of_waiver(n) or n in kept), bare


def _of_waiver(note: Note) -> bool:
    return note.audit == "policy" and note.text.startswith(_WAIVER)


def _waiver(note: Note) -> str:
    return note.text.removeprefix(_WAIVER).partition(" ")[0]
