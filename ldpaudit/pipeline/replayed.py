"""What drawing the noise again found, as numbers and notes of a result."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.receipt.found import OPEN, Replay, upper_tail
from ldpaudit.receipt.words import CHANGED, LEFT_OUT, REPLAYED, decided, reason
from ldpaudit.result import Estimate, Finding, Note

_SECTION = "replay"


def beyond_features(context: AuditContext) -> Replay | None:
    """Return the replay of a column; labels that features explain are not put down to true ones."""
    # A rule on features may write labels that are often true, and reveals nothing by that. Its
    # labels are true no more often than those that the features make likeliest.
    found, release = context.replay, context.release
    apart = release.numeric is not None or release.bags is not None or release.reports is not None
    if found is None or found.status != "changed" or apart or release.truth is None:
        return found
    column = found.columns[0]
    rows, hits = column.places, column.hits
    if release.places is not None:
        seen = np.isin(rows, release.places)
        rows, hits = np.searchsorted(release.places, rows[seen]), hits[seen]
    if not len(rows) or column.p_value > OPEN:
        return found
    with suppress(InputError, InsufficientDataError):
        likely = cross_fitted_posterior(context, "truth")[rows].max(axis=1)
        p_value = upper_tail(int(hits.sum()), len(rows), float(likely.mean()))
        own = replace(column, p_value=max(column.p_value, p_value))
        return replace(found, columns=(own,))
    return found


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
    return tuple(found)
