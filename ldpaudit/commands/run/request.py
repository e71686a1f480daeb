"""What ``ldpaudit run`` is asked for."""

from dataclasses import dataclass
from typing import Annotated

from ldpaudit.options import Argument, AuditOptions


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
