"""What drawing the noise again found, as numbers and notes of a result."""

from ldpaudit.receipt.replay import Replay
from ldpaudit.receipt.words import CHANGED, LEFT_OUT, REPLAYED, decided, reason
from ldpaudit.result import Estimate, Finding, Note

_SECTION = "replay"


def replay_finding(replay: Replay | None) -> Finding:
    """Return the share of rows that are as drawn, and how many were changed: exact counts."""
    if replay is None or not replay.columns:
        return Finding()
    column = replay.columns[0]
    drawn = "the key was drawn at random, once, for this release"
    numbers = [
        Estimate.exact(
            REPLAYED,
            "Released labels that are what the committed key draws",
            column.equal / max(column.rows, 1),
            unit="proportion",
            n=column.rows,
            count=column.equal,
            section=_SECTION,
            method="every label was drawn again from the key and compared",
            assumptions=(drawn,),
        )
    ]
    if column.changed:
        numbers.append(
            Estimate.exact(
                CHANGED,
                "Labels changed after the noise",
                float(column.changed),
                unit="rows",
                n=column.rows,
                count=column.changed,
                section=_SECTION,
            )
        )
    if replay.left_out:
        title = "Rows left out after the noise"
        lost = float(replay.left_out)
        numbers.append(Estimate.exact(LEFT_OUT, title, lost, unit="rows", section=_SECTION))
    return Finding(estimates=tuple(numbers))


def replay_notes(replay: Replay | None) -> tuple[Note, ...]:
    """Return what a replay says that no check says."""
    if replay is None:
        return ()
    found = []
    if not decided(replay):
        words = reason(replay)
        found.append(Note.info(_SECTION, f"Replay: {words}. The noise is tested as ever."))
    if replay.proven and replay.reordered:
        text = "Rows are in another order than when they were drawn; they were matched by their id."
        found.append(Note.info(_SECTION, text))
    if replay.proven and not replay.sealed:
        found.append(
            Note.warning(
                _SECTION,
                "The true labels in the file are not those that the key was committed with, in "
                "rows whose released label does not depend on them.",
            )
        )
    return tuple(found)
