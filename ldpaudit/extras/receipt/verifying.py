"""The work of ``verify``, and what is said of it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.commands.shell import Confidential
from ldpaudit.doors import Frozen, InputError, LdpAuditError, OutputError, Progress, Said
from ldpaudit.extras.kinds.files.written import TableFile, check_format
from ldpaudit.extras.receipt.replay import replay
from ldpaudit.extras.receipt.request import VerifyRequest
from ldpaudit.receipt.found import FeatureReplay, Replay, Status
from ldpaudit.receipt.words import Outcome, outcome, sentence
from ldpaudit.work.files import WholeFiles

_CHANGED_ROWS: Final = pa.schema([("column", pa.string()), ("row", pa.int64())])
_NO_RECEIPT: Final = (
    "The release carries no receipt: privatize --secret makes one, and no experiment has one."
)


class VerifiedColumn(Frozen):
    """What was found of one private column.

    Attributes
    ----------
    label
        The column.
    rows, equal, changed
        How many labels were compared, are as drawn, and are not.
    true, drawn_true
        How many of the changed labels are true, and how many of those drawn for them had been.
    p_value
        The chance of so many true ones, had nobody looked at the true labels.
    classes
        The changed rows by their released label, the most frequent first; of numbers nothing.
    """

    label: str
    rows: int
    equal: int
    changed: int
    true: int
    drawn_true: int
    p_value: float
    classes: tuple[tuple[str, int], ...]


class Verified(Confidential):
    """Whether a release is what its committed key draws.

    Attributes
    ----------
    verdict
        Pass: every label is as drawn. Fail: what was changed reveals true labels, or more noise is
        declared than was drawn. Inconclusive: anything else.
    status
        What was found: proven, changed, partly, unmatched, edited, foreign or impossible.
    sentence
        The answer in words.
    commitment
        The commitment of the release.
    committed, rows, kept
        Rows that were drawn, that the release has, and that were matched.
    left_out, added, doubled, repeated
        Rows left out of the release, added to it, there more than once, and those that repeat
        remembered answers.
    reordered
        Whether the matched rows are in another order.
    sealed
        Whether the true labels are those that the key was committed with.
    columns
        What was found of each private column.
    synthetic_rows, synthetic_changed
        Rows whose features were drawn again, and how many of them differ.
    not_compared
        What the mechanism drew and was not drawn again, in words; nothing where all was.
    """

    verdict: Outcome
    status: Status
    sentence: str
    commitment: str
    committed: int
    rows: int
    kept: int
    left_out: int
    added: int
    doubled: int
    repeated: int
    reordered: bool
    sealed: bool
    columns: tuple[VerifiedColumn, ...]
    synthetic_rows: int = 0
    synthetic_changed: int = 0
    not_compared: str = ""

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield the answer."""
        yield self.sentence
        if quiet:
            return
        if self.commitment:
            yield "commitment", self.commitment
        for one in self.columns:
            are = "is" if one.equal == 1 else "are"
            labels = "label" if one.rows == 1 else "labels"
            yield "column", f"{one.label}: {one.equal:,} of {one.rows:,} {labels} {are} as drawn"
        if self.reordered:
            yield "note", "rows are in another order than when they were drawn"


def verify(request: VerifyRequest, progress: Progress) -> Verified:
    """Draw the noise of a release again and compare every row.

    InputError where the release has no receipt, or a file cannot be read.
    """
    if request.scores is not None:
        check_format(request.scores)
        _check_replaced(request.scores)
    progress.step("drawing the noise again")
    found = replay(
        request.release,
        request.truth,
        id_column=request.id_column,
        files=request.files,
        posterior=_posterior(request),
        synthetic=request.synthetic,
    )
    if found is None:
        raise InputError(_NO_RECEIPT)
    if request.scores is not None and found.columns:
        _write_rows(found, request.scores)
    return verified(found)


def verified(found: Replay) -> Verified:
    """Return the form of a replay that is stored."""
    columns = tuple(
        VerifiedColumn(
            label=one.label,
            rows=one.rows,
            equal=one.equal,
            changed=one.changed,
            true=one.true,
            drawn_true=one.drawn_true,
            p_value=one.p_value,
            classes=one.classes,
        )
        for one in found.columns
    )
    names = "status commitment committed rows kept left_out added doubled repeated reordered sealed"
    known: Mapping[str, Any] = {name: getattr(found, name) for name in names.split()}
    features = found.features or FeatureReplay()
    return Verified(
        verdict=outcome(found),
        sentence=sentence(found),
        columns=columns,
        synthetic_rows=0 if features.withheld else features.rows,
        synthetic_changed=features.changed,
        not_compared=found.not_compared,
        **known,
    )


def _posterior(request: VerifyRequest) -> Any:
    if request.public_posterior is None:
        return None
    from ldpaudit.datasets.formats import open_table

    table = open_table(request.public_posterior, request.files)
    columns = [column.to_numpy() for _, column in table.columns(table.names)]
    try:
        return np.stack(columns, axis=1).astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("The table of --public-posterior must hold numbers.") from None


def _check_replaced(place: Path) -> None:
    """Refuse to replace a table that holds no rows of this kind (OutputError)."""
    if not place.is_file():
        return
    names: tuple[str, ...] = ()
    with suppress(LdpAuditError):
        from ldpaudit.datasets.formats import open_table

        names = open_table(place).names
    if names != tuple(_CHANGED_ROWS.names):
        raise OutputError(
            f"{place.name!r} exists, and ldpaudit did not write it, so it is left as it is."
        )


def _write_rows(found: Replay, place: Path) -> None:
    schema = _CHANGED_ROWS
    with WholeFiles(last=True) as files:
        file = TableFile(files.add(place, private=True), schema)
        for one in found.columns:
            names = pa.array([one.label] * len(one.places), pa.string())
            rows = pa.array(one.places + 1)
            file.write(pa.RecordBatch.from_arrays([names, rows], schema=schema))
