"""What the core registers of this folder: how trees of answers are read, and made of strata."""

from collections.abc import Sequence
from typing import Any, Final

from ldpaudit.api.reading import notes_of
from ldpaudit.doors import AuditOptions, Note, Progress, Release
from ldpaudit.extras.several.nodes import node_of, nodes_of
from ldpaudit.extras.several.reading import ColumnsReport, read_columns, read_repeated
from ldpaudit.extras.several.walk import AnswersTree
from ldpaudit.pipeline.trees import Trees
from ldpaudit.receipt.found import Replay


def _read(
    releases: Sequence[Any], options: AuditOptions, progress: Progress
) -> tuple[AnswersTree, tuple[Note, ...]]:
    if len(releases) > 1:
        files, notes = read_repeated(releases, options, progress)
        return AnswersTree(nodes_of(files, options.answers)), notes
    reading = read_columns(releases[0], options)
    for remark in reading.remarks:
        progress.remark(remark)
    assert isinstance(reading, ColumnsReport)
    return AnswersTree(node_of(reading.file)), notes_of(reading)


def _of_strata(release: Release, replay: Replay | None) -> AnswersTree:
    return AnswersTree(node_of(release)).with_replays([replay])


TREES: Final = Trees(_read, _of_strata)
