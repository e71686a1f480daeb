"""The options of ``ldpaudit declare``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ldpaudit.options import Argument, ClaimOptions, FileOptions, Option

if TYPE_CHECKING:
    from ldpaudit.release import Label


def _split(classes: str) -> "tuple[Label, ...]":
    from ldpaudit.datasets.probabilities import split_labels

    return split_labels(classes)


@dataclass(frozen=True, kw_only=True)
class DeclareRequest(FileOptions):
    """The options of ``ldpaudit declare``; without a claim the present declaration is shown.

    The file may be a folder or a pattern of Parquet files. ``label``: each alone or with its claim;
    none: as declared, as a table of channels names them, or ``label``. ``claim`` is about each
    column that has none of its own. Without ``output`` the declaration goes into the file, or into
    one of its own next to it.
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
    joint: Annotated[
        str | None,
        Option("The mechanism that released all columns together (joint-rr, rs-fd)."),
    ] = None
    classes: Annotated[
        "tuple[Label, ...] | None",
        Option("The labels A,B,… (default: those in the file).", type=str, read=_split),
    ] = None
    output: Annotated[
        Path | None, Option("Write a copy with the declaration here.", short="-o")
    ] = None
    overwrite: Annotated[bool, Option("Replace another declaration, or the file at -o.")] = False
