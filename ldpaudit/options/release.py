"""Options about the release: its claim, its true labels, its columns, its companions."""

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ldpaudit.errors import InputError
from ldpaudit.options.declaring import Option
from ldpaudit.options.labels import LabelOptions, check_distinct, parse_label

if TYPE_CHECKING:
    import numpy as np

    from ldpaudit.mechanisms.interface import Mechanism
    from ldpaudit.release import Declaration


@dataclass(frozen=True)
class ClaimOptions:
    """The claim about a release that declares none, as the command line states it."""

    mechanism: Annotated[str | None, Option("The claimed mechanism, or 'unknown'.", shown=True)] = (
        None
    )
    epsilon: Annotated[float | None, Option("The claimed ε, in nats.", shown=True)] = None
    noise: Annotated[
        float | None,
        Option("The claimed λ: chance of a uniformly drawn label.", "--lambda", shown=True),
    ] = None
    channel: Annotated[
        Path | None,
        Option("The claimed channel: a CSV file, one row a label.", file=True),
    ] = None
    labels: Annotated[
        str | None, Option("The claimed range of a numeric label: LO:HI or LO:HI:STEP.")
    ] = None


def truths_of(files: tuple[str, ...]) -> str | tuple[str, ...]:
    """Read ``--truth``: one file, or one for each of several releases."""
    whole = " ".join(files)  # A variable of the environment is split at blanks.
    return whole if len(files) == 1 or Path(whole).is_file() else files


@dataclass(frozen=True)
class ReleaseOptions:
    """What is known about a release: its true labels, its claim, its columns, its companions."""

    truth: Annotated[
        Any,
        Option(
            "True labels: a file in the same row order, or joined on --id; for several releases "
            "one file, or one for each (repeatable).",
            type=tuple[str, ...],
            read=truths_of,
            file=True,
        ),
    ] = None
    mechanism: Annotated[
        "Mechanism | Declaration | Mapping[str, Any] | ClaimOptions | str | None", ClaimOptions
    ] = None
    rng: Annotated[
        "np.random.Generator | int | None",
        Option("The seed (default: derived from the release).", "--seed", type=int, shown=True),
    ] = None
    _: KW_ONLY
    label: Annotated[
        Collection[str],
        Option(
            "A released private column, also with its claim, NAME:rr:epsilon=1 (repeatable; "
            "default: as declared, or 'label').",
            lines=True,
        ),
    ] = ()
    truth_column: Annotated[
        Collection[str],
        Option(
            "The column of true labels, one for each --label in their order (repeatable).",
            lines=True,
        ),
    ] = ()
    original: Annotated[
        Any,
        Option(
            "The features before they were replaced, in the same row order.", type=str, file=True
        ),
    ] = None
    synthetic: Annotated[
        Any,
        Option("The synthetic rows, with labels, that replaced features.", type=str, file=True),
    ] = None
    held_out: Annotated[
        Any,
        Option(
            "Rows like the originals that no generator saw (with --original).", type=str, file=True
        ),
    ] = None
    id_column: Annotated[
        str | None,
        Option("The column on which all these files are joined.", "--id"),
    ] = None
    group: Annotated[str | None, Option("The column of rows that belong together (household).")] = (
        None
    )
    projection: Annotated[
        int | None,
        Option("Columns that sparse features become (svmlight; default: 256).", shown=True),
    ] = None
    drop: Annotated[Collection[str], Option("A column that is no feature (repeatable).")] = ()
    features: Annotated[
        Collection[str] | None,
        Option("A column that is a feature (repeatable; default: the rest)."),
    ] = None


def named_columns(options: ReleaseOptions) -> tuple[LabelOptions, ...]:
    """Return the private columns that the options name, each with what it claims.

    Raises
    ------
    InputError
        If one is named twice, or its claim cannot be read.
    """
    columns = tuple(map(parse_label, texts_of(options.label, "label")))
    check_distinct(one.label for one in columns)
    return columns


def texts_of(given: Any, role: str) -> tuple[str, ...]:
    """Return one name or several as several (InputError where one is no text)."""
    names = (given,) if isinstance(given, str) or not isinstance(given, Collection) else given
    for name in names:
        if not isinstance(name, str):  # From Python; a data frame's column 5 is read as '5'.
            raise InputError(
                f"The {role} column must be named by a text, as '5'. "
                f"Got {type(name).__name__} instead."
            )
    return tuple(names)


def check_ordered(given: Any, role: str) -> None:
    """Refuse a set of several columns: they are numbered, and its order varies from run to run."""
    if isinstance(given, set | frozenset) and len(given) > 1:
        raise InputError(f"Several {role} columns are numbered in their order: give a list.")
