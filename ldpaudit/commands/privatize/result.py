"""What was released: numbers and places, without any label."""

from dataclasses import dataclass

from ldpaudit.commands.privatize.private_columns import PrivateColumns
from ldpaudit.commands.privatize.request import PrivatizeRequest


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
        return self.columns.rows

    @property
    def prior_epsilon(self) -> float:
        """The part of :attr:`total_epsilon` that private priors spent."""
        return self.columns.spent

    @property
    def total_epsilon(self) -> float:
        """ε in nats of the whole release: of all released labels, and what priors spent."""
        return self.columns.labels_epsilon + self.columns.spent
