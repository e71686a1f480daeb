"""What the order of the rows shows of their labels."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.views import ordered_by_reports
from ldpaudit.audits.columns.labels import Labels
from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.audits.models import aligned_channel, copies, cross_fitted_posterior
from ldpaudit.estimators.readable import LEAST_SHARE
from ldpaudit.estimators.row_order import (
    Agreement,
    agreement_in_cells,
    strongest_agreement,
    written_in_ties,
)
from ldpaudit.mechanisms.capabilities import LocalReports
from ldpaudit.mechanisms.foreign import checked_reports
from ldpaudit.release import IndexArray
from ldpaudit.result import Estimate, Note
from ldpaudit.result.numbers import share_of
from ldpaudit.result.stated import ORDERED, ROW_ORDER

_LEAST_Z: Final = 6.0
_SURELY: Final = 1e-9
_LEAST_EXCESS: Final = {True: 0.05, False: 0.02}
"""The smallest excess of a word, of true labels and of released ones, which noise makes smaller."""
_LEAST_KNOWN, _ALL = 10.0, 1.1
# Of logarithms of likelihood ratios that are held for equal.
_DIGITS: Final = 6
_WITHIN: Final = {True: "within each released label", False: "of the rows"}


def order_of_rows(context: AuditContext, labels: Labels) -> Iterator[Part]:
    """Yield whether the order of the rows reveals true labels."""
    known = labels.most_equal is None
    released = context.release.released if known else None
    order = strongest_agreement(labels.codes, released)
    if order is None:
        return
    # Noise makes the excess of equal released labels smaller than that of true ones. Rows sorted by
    # the released label, or with noise in common, agree more than true labels could.
    beyond = _is_beyond(order, known)
    impossible = beyond and abs(order.excess) > _ALL * (labels.most_equal or 1.0)
    reveals = beyond and not impossible
    within, more = _WITHIN[known], ""
    by_reports = _cells_by_reports(context) if reveals and known else None
    if by_reports is not None:
        # In a file that is sorted by its reports, rows near each other agree as far as these say.
        order = agreement_in_cells(labels.codes, by_reports, context.rng("columns", "reports"))
        reveals, more = _is_beyond(order, known), ", and more than the reports say"
        within = "of rows whose reports say the same"
    if reveals and not context.release.features.is_constant():
        # In a file that is sorted by a feature, rows near each other agree as far as it says.
        cells = _cells_by_features(context, known)
        order = agreement_in_cells(labels.codes, cells, context.rng("columns", "order"))
        reveals, more = _is_beyond(order, known), ", and more than the features say"
        within = f"of rows whose features {'and released label ' * known}say the same"
    excess = order.excess / (labels.most_equal or 1.0)
    tied, chance = _in_ties(context) if known else (0.0, 1.0)
    in_ties = tied >= LEAST_SHARE and chance <= _SURELY
    yield Estimate.estimated(
        ORDERED,
        "Whether the order of the rows reveals labels (1: yes)",
        float(reveals or in_ties),
        method="rows near each other agree more or less often than by chance, by six standard "
        f"deviations and {100 * _LEAST_EXCESS[known]:.0f} % or more{more}; or true labels put rows "
        "with equal values of a column, and equal released labels, in order (sign test)",
    )
    if (labels.most_equal or np.inf) * order.pairs**0.5 >= _LEAST_KNOWN:
        yield Estimate.estimated(
            ROW_ORDER,
            "Rows near each other with the same label, beyond chance",
            excess,
            unit="proportion",
            n=order.pairs,
            method=f"pairs of rows up to three apart, against all orders {within}; 0 is "
            "chance, 1 always the same true label",
            assumptions=("each row has noise of its own",),
        )
    which, cause = ("true", "") if known else ("released", " (or rows share their noise)")
    if reveals:
        yield Note.warning(
            "columns",
            "The order of the rows reveals labels: rows near each other have the same "
            f"{which} label far {'more' if order.excess > 0 else 'less'} often than by "
            f"chance{cause}. Shuffle the rows before a release.",
        )
    if in_ties and not reveals:
        yield Note.warning(
            "columns",
            "The order of the rows reveals labels: rows next to each other with equal values of a "
            f"column stand in the order of their true labels ({share_of(tied)} of the rows). "
            "Shuffle the rows before a release.",
        )
    if impossible:
        yield Note.warning(
            "columns",
            "Rows near each other agree in their released labels more often than any true labels "
            "could explain: the rows are sorted by the released label, or share noise.",
        )


def _cells_by_reports(context: AuditContext) -> IndexArray | None:
    """Return codes of rows whose reports say the same of every label, int64 (n,).

    None where the file is in no order of its reports, or hardly any two reports say the same.
    """
    release, claim = context.release, context.claim.offers(LocalReports)
    if release.reports is None or claim is None or not ordered_by_reports(context):
        return None
    protocol, n = checked_reports(claim), len(release)
    first = np.zeros(n, dtype=np.int32)
    cells = np.zeros(n, dtype=np.int64)
    for code in range(1, len(claim.classes)):
        ratio = protocol.log_ratio(release.reports, np.full(n, code, dtype=np.int32), first)
        said = np.unique(np.round(ratio, _DIGITS), return_inverse=True)[1]
        cells = np.unique(cells * n + said, return_inverse=True)[1].astype(np.int64)
    alone = np.count_nonzero(np.bincount(cells) == 1)
    return None if 2 * alone > n else cells


def _in_ties(context: AuditContext) -> tuple[float, float]:
    release = context.release
    columns = (*release.features.numeric.T, *release.features.categorical.T, *release.keys)
    return written_in_ties(columns, context.truth, release.released)


def _is_beyond(order: Agreement, known: bool) -> bool:
    return abs(order.z) >= _LEAST_Z and abs(order.excess) >= _LEAST_EXCESS[known]


def _cells_by_features(context: AuditContext, known: bool) -> IndexArray:
    """Return codes of rows whose features, and released label, say the same of the label, int64."""
    # By the likeliest label and how likely it is, in three parts. Equal rows are a cell of their
    # own: anybody sees which belong together.
    release = context.release
    chances = cross_fitted_posterior(context, "truth" if known else "released")
    if known and (channel := aligned_channel(context)) is not None:
        # What the claim calls impossible may have been released all the same.
        chances = chances * np.maximum(channel.matrix[:, release.released].T, 1e-9)
    likeliest, share = chances.argmax(axis=1), chances.max(axis=1) / chances.sum(axis=1)
    cells = likeliest * 3 + np.searchsorted(np.quantile(share, [1 / 3, 2 / 3]), share)
    equal = copies(context)
    repeated = np.bincount(equal)[equal] > 1
    return np.asarray(np.where(repeated, cells.max() + 1 + equal, cells))
