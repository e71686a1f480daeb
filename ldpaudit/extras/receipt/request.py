"""The options of ``ldpaudit verify``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ldpaudit.doors import Argument, Option
from ldpaudit.options import FileOptions


@dataclass(frozen=True, kw_only=True)
class VerifyRequest(FileOptions):
    """The options of ``ldpaudit verify``.

    Attributes
    ----------
    release : str
        The released file.
    truth : str
        The file that ``privatize --secret`` wrote.
    id_column : str or None
        The column by which rows are matched.
    public_posterior : str or None
        P̂(label | features) of the public model, in the order of the rows.
    synthetic : str or None
        The synthetic rows, with labels, that replaced features.
    scores : Path or None
        Where the numbers of changed rows are written, the first row being 1.
    """

    release: Annotated[str, Argument("The released file.", file=True)]
    truth: Annotated[str, Option("The true labels with the key (privatize --secret).", file=True)]
    id_column: Annotated[
        str | None,
        Option("The column by which rows are matched (default: that of privatize --id).", "--id"),
    ] = None
    public_posterior: Annotated[
        str | None,
        Option("What model-based-rr was drawn with (privatize --posterior-out).", file=True),
    ] = None
    synthetic: Annotated[
        str | None,
        Option("The synthetic rows, with labels, that replaced features.", file=True),
    ] = None
    scores: Annotated[
        Path | None,
        Option("Write the rows that were changed, mode 0600 (.csv, .parquet …)."),
    ] = None
