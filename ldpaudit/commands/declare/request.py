"""The options of ``ldpaudit declare``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ldpaudit.options import Argument, ClaimOptions, FileOptions, Option

if TYPE_CHECKING:
    from ldpaudit.release import Label


def _split(classes: str) -> "tuple[Label, ...]":
    from ldpaudit.datasets.beside.priors import split_labels

    return split_labels(classes)


@dataclass(frozen=True, kw_only=True)
class DeclareRequest(FileOptions):
    """The options of ``ldpaudit declare``; without a claim the present declaration is shown.

    Attributes
    ----------
    file : str
        A released file; of Parquet also a folder or a pattern.
    label : str or None
        The released label's column; None: as declared, or ``label``.
    claim : ClaimOptions
    classes : tuple or None
        The labels; None: those that occur in the file, or that the claim names.
    output : Path or None
        Where a copy with the declaration goes; None: into the file, or beside it.
    overwrite : bool
        Whether another declaration, or a file at ``output``, is replaced.
    show_class_names : bool
    """

    file: Annotated[str, Argument("The released file: Parquet, CSV, Excel …", file=True)]
    label: Annotated[
        str | None, Option("The released label's column (default: as declared, or 'label').")
    ] = None
    claim: Annotated[ClaimOptions, ClaimOptions] = ClaimOptions()  # noqa: RUF009 - frozen
    classes: Annotated[
        "tuple[Label, ...] | None",
        Option("The labels A,B,… (default: those in the file).", type=str, read=_split),
    ] = None
    output: Annotated[
        Path | None, Option("Write a copy with the declaration here.", short="-o")
    ] = None
    overwrite: Annotated[bool, Option("Replace another declaration, or the file at -o.")] = False
    show_class_names: Annotated[bool, Option("Show the label's column and the classes.")] = False
