"""The options of ``run`` and ``declare``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ldpaudit.options import Argument, AuditOptions, ClaimOptions, FileOptions, Option

if TYPE_CHECKING:
    from ldpaudit.release import Label


def split_text(classes: str) -> "tuple[Label, ...]":
    """Return the labels of ``A,B,…``."""
    from ldpaudit.datasets.labels import split_labels

    return split_labels(classes)


@dataclass(frozen=True, kw_only=True)
class RunRequest(AuditOptions):
    """The options of ``ldpaudit run``: those of an audit, of one released file or several."""

    release: Annotated[
        tuple[str, ...],
        Argument(
            "The released file: Parquet, CSV, Excel …; or several releases of the same people.",
            file=True,
        ),
    ]
    command: str = "ldpaudit run …"


@dataclass(frozen=True, kw_only=True)
class DeclareRequest(FileOptions):
    """The options of ``ldpaudit declare``; without a claim the present declaration is shown.

    The file may be a folder or a pattern of Parquet files. ``label``: each alone or with its
    claim; none: as declared, as a table of channels names them, or ``label``. ``claim`` is about
    each column that has none of its own. Without ``output`` the declaration goes into the file,
    or into one of its own next to it.
    """

    file: Annotated[str, Argument("The released file: Parquet, CSV, Excel …", file=True)]
    label: Annotated[
        tuple[str, ...],
        Option(
            "A released private column, alone or with its claim, NAME:rr:epsilon=1 (repeatable; "
            "default: as declared, or 'label').",
            lines=True,
        ),
    ] = ()
    claim: Annotated[ClaimOptions, ClaimOptions] = ClaimOptions()  # noqa: RUF009 - frozen
    by: Annotated[
        str | None,
        Option("A public column: --channel has a channel for each of its values."),
    ] = None
    before: Annotated[
        tuple[str, ...],
        Option(
            "A column that was there before the noise and is released as it was (repeatable; "
            "'*': all but the private ones).",
            lines=True,
        ),
    ] = ()
    joint: Annotated[
        str | None,
        Option("The mechanism that released all columns together (joint-rr, rs-fd)."),
    ] = None
    classes: Annotated[
        "tuple[Label, ...] | None",
        Option("The labels A,B,… (default: those in the file).", type=str, read=split_text),
    ] = None
    output: Annotated[
        Path | None, Option("Write a copy with the declaration here.", short="-o")
    ] = None
    overwrite: Annotated[bool, Option("Replace another declaration, or the file at -o.")] = False
