"""A release of one private column or several, read to learn one of them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ldpaudit.api import read_with
from ldpaudit.api.reading import opened, read_columns
from ldpaudit.commands.utility.companions import OtherColumns, other_columns
from ldpaudit.datasets.companions import LabelledRows
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.datasets.several import ColumnsReport
from ldpaudit.errors import InputError
from ldpaudit.options import ReleaseOptions, named_columns
from ldpaudit.release import Release


@dataclass(frozen=True)
class ColumnToLearn:
    """A private column, and what a learner of it may use.

    Attributes
    ----------
    release : Release
        Without the other private columns among its features.
    test : LabelledRows
        Test rows with the same features.
    beside : OtherColumns or None
        The other private columns; None where there are none.
    reading : ReadReport or ColumnsReport
        What was read.
    position : int
        Which column of several it is.
    """

    release: Release
    test: LabelledRows
    beside: OtherColumns | None
    reading: ReadReport | ColumnsReport
    position: int = 0

    @cached_property
    def beside_in_truth(self) -> OtherColumns | None:
        """The other columns' true values in the place of released ones; None where unknown."""
        reading = self.reading
        if isinstance(reading, ReadReport) or any(
            one.truth is None for one in reading.file.columns
        ):
            return None
        return other_columns(reading.file, self.position, reading.tests, true=True)


def column_to_learn(release: Any, options: ReleaseOptions) -> ColumnToLearn:
    """Read the column that is named first, or the only one, with all others that are declared."""
    named = [one.label for one in named_columns(options)]
    source, declaration = opened(release, options)
    declared = () if declaration is None else declaration.names
    if len(named) == 1 and named[0] in declared:
        options = replace(options, label=())  # The other declared columns are read, too.
    if len(named) < 2 and (len(declared) < 2 or not {*named} <= {*declared}):
        alone = read_with(source, options)
        assert alone.test is not None
        return ColumnToLearn(alone.release, alone.test, None, alone)
    if not named:
        raise InputError(
            f"The release declares {len(declared)} private columns; name the one to learn: --label."
        )
    reading = read_columns(source, options)
    assert isinstance(reading, ColumnsReport)
    file, tests = reading.file, reading.tests
    at = [one.label for one in file.columns].index(named[0])
    test = tests[at]
    assert test is not None
    public = replace(test, features=test.features.without(file.others[at]))
    return ColumnToLearn(file.alone(at), public, other_columns(file, at, tests), reading, at)
