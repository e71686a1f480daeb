"""What a file and a caller state about a private column, and its labels as codes."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.declaration import (
    Marginals,
    agreed,
    claim_about,
    epsilon_of_priors,
    faults_of_making,
    parse_declaration,
    remarks_on,
)
from ldpaudit.datasets.domains import (
    Coding,
    EncodedLabels,
    LabelCoding,
    ReadReports,
    encode_labels,
    encode_numeric_labels,
    encode_reported,
    read_numbers,
    read_reports,
)
from ldpaudit.datasets.formats.besides import provenance_besides
from ldpaudit.datasets.formats.tables import TableSource
from ldpaudit.datasets.groups import read_bags
from ldpaudit.datasets.labels import LabelColumn, read_labels
from ldpaudit.datasets.names import missing_column
from ldpaudit.datasets.truth import Truth
from ldpaudit.numeric_labels import NumericView
from ldpaudit.release import Bags, ColumnsDeclaration, Declaration, DeclaredColumns
from ldpaudit.release.declaration import FaultOfMaking


@dataclass(frozen=True)
class Claimed:
    """What a file and a caller state together about one private column."""

    mechanism: Declaration | None
    """What released the labels; None where nothing is claimed."""
    coding: LabelCoding
    """How the labels of the mechanism are coded."""
    declared: ColumnsDeclaration | None
    """All that the file declares."""
    label: str | None
    """The private column that the file declares; None where it declares none."""
    by: str | None
    """The public column of the claim's strata."""

    @property
    def bag(self) -> str | None:
        """The column that tells the bags apart; None where labels are of rows."""
        return None if self.coding.bags is None else self.coding.bags.bag

    @property
    def others(self) -> tuple[str, ...]:
        """All private columns that the file declares."""
        return () if self.declared is None else self.declared.names

    @property
    def before(self) -> tuple[str, ...]:
        """The columns that the file declares to be from before the noise."""
        return () if self.declared is None else tuple(self.declared.before)

    def beside(self, audited: Collection[str]) -> DeclaredColumns | None:
        """Return the private columns that the file declares, if not all of them are audited."""
        if not {*self.others} - {*audited}:
            return None
        return DeclaredColumns(dict.fromkeys((name,) for name in self.others))

    @property
    def besides(self) -> int:
        """How many bytes of the declaration are more than it takes to say how it was made."""
        if self.declared is None:
            return 0
        return provenance_besides(self.declared.provenance, len(self.declared.names))

    @property
    def prior_epsilon(self) -> float:
        """What private histograms of the labels cost besides, in nats, as the file declares."""
        return 0.0 if self.declared is None else epsilon_of_priors(self.declared.provenance)

    @property
    def faults_of_making(self) -> tuple[FaultOfMaking, ...]:
        """How the release was made, as the file declares, where that breaks its promise."""
        return () if self.declared is None else faults_of_making(self.declared.provenance)

    def warnings(self) -> list[str]:
        """Return what is remarkable about where the declaration comes from."""
        return [] if self.declared is None else [*remarks_on(self.declared.provenance)]


def claimed_of(
    table: TableSource,
    label: str | None,
    declaration: Declaration | None,
    by: str | None,
    coding: Coding,
    marginals: Marginals | None,
) -> Claimed:
    """Return what is claimed of one column; refuse what contradicts the file (InputError)."""
    declared = None if table.declaration is None else parse_declaration(table.declaration)
    of_file = None if declared is None else claim_about(declared, label, marginals)
    mechanism = agreed(None if of_file is None else of_file.mechanism, declaration)
    claimed = Claimed(
        mechanism,
        coding(mechanism),
        declared,
        None if of_file is None else of_file.label,
        by or (None if of_file is None else of_file.by),
    )
    if table.sparse and (label or claimed.label):
        called = label or claimed.label or table.names[0]
        table.names = (called, *table.names[1:])
    if claimed.bag is not None and claimed.bag not in table.names:
        raise missing_column(claimed.bag, "bag", table.names, typed=False)
    return claimed


def labels_of(
    table: TableSource,
    claimed: Claimed,
    view: NumericView | None,
    column: pa.ChunkedArray,
    truth: Truth | None,
) -> tuple[EncodedLabels, ReadReports | None, Bags | None]:
    """Return the labels as codes, and the recorded reports or the bags' sums, if any."""
    coding = claimed.coding
    known = None if truth is None else truth.labels
    classes = known if isinstance(known, LabelColumn) else None
    if coding.bags is not None:
        bag = coding.bags.bag
        members = next(table.columns((bag,), as_text=(bag,)))[1]
        labels, bags = read_bags(coding.bags, column, members, classes)
        return labels, None, bags
    if coding.reports is not None:
        reports = read_reports(column, coding.reports, from_text=table.text)
        return encode_reported(coding.reports, reports.checked, classes), reports, None
    if view is not None:
        numbers = known if isinstance(known, np.ndarray) else None
        labels = encode_numeric_labels(view, read_numbers(column, "released"), numbers)
        return labels, None, None
    released = read_labels(column, "released", from_text=table.text)
    return encode_labels(claimed.mechanism, released, classes, coding), None, None
