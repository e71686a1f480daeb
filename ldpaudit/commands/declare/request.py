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

    Attributes
    ----------
    file : str
        A released file; of Parquet also a folder or a pattern.
    label : tuple of str
        The private columns, each alone or with its claim, ``NAME:rr:epsilon=1``; none: as declared,
        as a table of channels names them, or ``label``.
    claim : ClaimOptions
        The claim about each column that has none of its own.
    by : str or None
        A public column that tells which of the channels of a table a row has.
    joint : str or None
        The mechanism that released all columns together.
    classes : tuple or None
        The labels; None: those that occur in the file, or that the claim names.
    output : Path or None
        Where a copy with the declaration goes; None: into the file, or beside it.
    overwrite : bool
        Whether another declaration, or a file at ``output``, is replaced.
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

    @property
    def states(self) -> bool:
        """Whether it says something of a mechanism or of labels, of no column in particular."""
        others = (self.by, self.joint, self.classes)
        return self.claim != ClaimOptions() or any(one is not None for one in others)

    @property
    def channel(self) -> Path | None:
        """The table of channels, if any."""
        return self.claim.channel
