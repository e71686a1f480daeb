"""What was released: declared in the file, warned of and printed, without any label."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.columns import PrivateColumns
from ldpaudit.commands.privatize.features import FittedGenerator, sample_rows
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.datasets.declaration import declared_content, parse_declaration
from ldpaudit.datasets.formats.locations import watching
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.formats.tables import DECLARATION_KEY
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.writing import written_places
from ldpaudit.errors import LdpAuditError
from ldpaudit.terminal import remark, say

_LARGE_EPSILON: Final = 5.0
_FEW_ROWS: Final = 200
"""For each label; with fewer at ε = 1 an excess of 0.5 is hardly ever found."""


def released_schema(
    request: PrivatizeRequest,
    columns: PrivateColumns,
    fields: Iterable[pa.Field],
    fitted: FittedGenerator | None = None,
) -> pa.Schema:
    """Return the release's schema, with the declaration as its only metadata.

    Nothing in its ``provenance`` depends on a single row. With several columns the origin of
    classes and priors is stated by column.
    """
    classes = {one.name: "data" if one.survey.from_data else "declared" for one in columns}
    entries: dict[str, Any] = {
        "randomness": "experimental generator" if request.experimental else "operating system",
        "classes": _stated(classes, len(columns)),
    }
    if request.remember is not None:
        entries["answers"] = "remembered"
    priors = {one.name: one.prior.source for one in columns if one.prior is not None}
    if priors:
        labels, spent = columns.labels_epsilon, columns.spent
        parts = {"prior": spent, "labels": labels, "total": spent + labels}
        entries |= {"prior": _stated(priors, len(columns)), "epsilon": parts}
    if fitted is not None:
        entries["generator"] = fitted.provenance()
    if request.synthetic_out is not None:
        rows = sample_rows(columns.first.request, columns.first.survey)
        entries["synthetic_sample"] = {"rows": rows, "draws": "independent of the release"}
    declared = declared_content(replace(columns.declaration(), provenance=entries))
    return pa.schema(fields, metadata={DECLARATION_KEY: declared})


def _stated(of_columns: Mapping[str, str], columns: int) -> Any:
    """Return what holds for each column; of the only one without its name."""
    return of_columns if columns > 1 else next(iter(of_columns.values()))


def warnings_of(columns: PrivateColumns) -> Iterator[str]:
    """Yield what is to be said of the mechanisms, before any row is released."""
    alone, rows = len(columns) == 1, columns.first.survey.rows
    channels = [one.mechanism.channel for one in columns]
    epsilons = [one.mechanism.epsilon or 0.0 for one in columns]
    for one, channel, epsilon in zip(columns, channels, epsilons, strict=True):
        about = "" if alone else f"Private column {quoted(one.name)}: "
        if epsilon > _LARGE_EPSILON:
            share = ""
            if channel is not None and channel.outputs == channel.classes:
                kept = float(channel.matrix.diagonal().mean())
                part = "nearly all" if kept >= 0.9995 else f"{100 * kept:.1f} % of"
                share = f": {part} labels are released as they are"
            yield (
                f"{about}With ε = {epsilon:.6g} the mechanism hides little{share}. Give a smaller "
                "--epsilon."
            )
        if channel is not None and len(channel.outputs) == 1:
            yield (
                f"{about}At this ε and prior the mechanism gives every row the same label: the "
                "release says nothing of the labels. Give a larger --epsilon, or another mechanism."
            )
        strata = one.strata
        if strata is not None:
            empty = len(strata.classes) - len(np.unique(strata.codes(strata.found)))
            if empty:
                yield (
                    f"{about}{empty} of {len(strata.classes)} strata have no row; their channels "
                    "are declared."
                )
    total = columns.labels_epsilon
    if not alone and total > _LARGE_EPSILON >= max(epsilons):
        yield (
            f"With ε = {total:.6g} for all {len(columns)} private columns together the release "
            "hides little of a person: give some a smaller epsilon, or release fewer of them."
        )
    labels = max(2 if channel is None else len(channel.classes) for channel in channels)
    if rows < _FEW_ROWS * labels:
        yield (
            f"Few people are in this table ({rows} rows, {labels} labels): an audit of so few is "
            "likely to be inconclusive."
        )


def second_draw(request: PrivatizeRequest, columns: PrivateColumns) -> Iterator[str]:
    """Yield a sentence where a release, or true labels, of the same columns are replaced.

    Not where its answers are remembered, and not for an experiment, whose draws protect nobody.
    """
    remembered = request.remember is not None and request.remember.is_file()
    if not request.overwrite or remembered or request.experimental:
        return
    for file, was, declares in (
        (request.output, "was a release of private columns", True),
        (request.secret, "held the true values of columns", False),
    ):
        if file is not None and frozenset(columns.names) & _held(file, declares=declares):
            yield (
                f"{quoted(file.name)}, which is replaced, {was} of the same name. If it was of the "
                "same people, this is a second, independent draw of their labels, and the two "
                "together tell up to the sum of their ε: let nobody have both. --remember repeats "
                "answers instead."
            )
            return


def _held(path: Path, *, declares: bool) -> frozenset[str]:
    """Return the columns that a table holds, or the private ones that it declares."""
    if not path.is_file():
        return frozenset()
    try:
        with watching(noted=False):
            table = open_table(path)
    except (LdpAuditError, OSError, pa.ArrowException):
        return frozenset()
    if not declares:
        return frozenset(table.names)
    if table.declaration is None:
        return frozenset()
    try:
        return frozenset(parse_declaration(table.declaration).names)
    except LdpAuditError:  # Whatever it declares, it is a release.
        return frozenset(table.names)


@dataclass(frozen=True)
class PrivatizeSummary:
    """What was released.

    Attributes
    ----------
    request : PrivatizeRequest
    columns : PrivateColumns
        With their mechanisms, whose ``description`` holds no label.
    warnings : tuple of str
        One sentence each.
    sample_rows : int
        Rows of the synthetic sample, 0 where none was asked for.
    again : tuple of str
        Those of the warnings that say that the same labels were drawn a second time.
    """

    request: PrivatizeRequest
    columns: PrivateColumns
    warnings: tuple[str, ...] = ()
    sample_rows: int = 0
    again: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows were released."""
        return self.columns.first.survey.rows

    @property
    def total_epsilon(self) -> float:
        """ε in nats of the whole release: of all released labels, and what priors spent."""
        return self.columns.labels_epsilon + self.columns.spent


def print_summary(summary: PrivatizeSummary, *, quiet: bool) -> None:
    """Print what was released and where; ``quiet``: only that labels were drawn a second time."""
    if quiet:
        for line in summary.again:
            remark(line)
        return
    request = summary.request
    _say_mechanisms(summary)
    if request.remember is not None:
        say(
            "Over all releases that share the remembered answers that is all they reveal about a "
            "person whose labels stay the same; a changed answer shows that a label changed."
        )
    if request.experimental:
        say("An experiment: its draws can be repeated, so it protects nobody.")
    lines = [("warning", warning) for warning in summary.warnings]
    lines += [("written", str(place)) for place in written_places(request.output)]
    sample = f"({summary.sample_rows} synthetic rows, none of them in the release)"
    for word, path, what in (
        ("synthetic", request.synthetic_out, sample),
        ("remembered", request.remember, "(people's answers, readable by you only)"),
        ("secret", request.secret, "(true labels, readable by you only)"),
    ):
        lines += [(word, f"{path} {what}")] if path is not None else []
    for word, line in lines:
        say(f"  {word:<12} {line}")


def _say_mechanisms(summary: PrivatizeSummary) -> None:
    """Say what released each private column, and what the release tells of a person."""
    columns, rows, spent = summary.columns, f"{summary.rows} rows", summary.columns.spent
    total = f"ε = {summary.total_epsilon:.6g} nats"
    if len(columns) == 1:
        say(f"Released {rows} by {columns.first.mechanism.description}.")
        if spent > 0:
            say(f"With the private prior's ε = {spent:.6g} the whole release comes to {total}.")
        return
    how = "" if columns.joint is None else f" together, by {columns.joint.description}"
    say(f"Released {rows} with {len(columns)} private columns{how}.")
    width = max(12, *(len(quoted(name)) for name in columns.names))
    for column in columns:
        alone = "" if columns.joint is None else "seen alone: "
        say(f"  {quoted(column.name):<{width}} {alone}{column.mechanism.description}")
    which = "both" if len(columns) == 2 else f"all {len(columns)}"
    prior = f"; ε = {spent:.6g} of it went into private priors" if spent > 0 else ""
    say(f"Releasing {which} tells up to {total} about a person{prior}.")
