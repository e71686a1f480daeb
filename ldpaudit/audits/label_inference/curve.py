"""The strongest attack's accuracy among its most confident guesses."""

import numpy as np

from ldpaudit.attacks.scoring.fold import SHARES
from ldpaudit.audits.label_inference.runs import AttackRun
from ldpaudit.estimators.intervals.ranking import auc_lower as chernoff_lower
from ldpaudit.estimators.intervals.ranking import auc_upper as chernoff_upper
from ldpaudit.result import Curve


def confidence_curve(run: AttackRun, confidence: float, attacks: int = 1) -> Curve | None:
    """Return accuracy among the most confident guesses against the share of rows guessed.

    Points that add no row are left out; None where nothing is left. The confidence is that of the
    whole curve at once; the run is chosen among ``attacks``, and the error probability is divided
    by their number.

    Notes
    -----
    Given features and released labels the guesses are right independently of one another, but not
    equally often: Clopper–Pearson does not apply once the cut depends on the confidences, but
    Chernoff's bound in its relative-entropy form holds for independent trials that are not alike
    (Hoeffding 1963, Theorem 1), so wherever the cut falls it bounds the mean chance of being right.
    """
    counts = [np.cumsum(fold.steps, axis=0) for fold in run.folds]
    added = np.sum([fold.steps[:, 0] for fold in run.folds], axis=0)
    ends = np.flatnonzero(added).tolist()
    if not ends:
        return None
    tail = (1 - confidence) / 2 / (len(counts) * len(SHARES) * attacks)
    points = [_point([fold[end].tolist() for fold in counts], tail) for end in ends]
    last = points[-1][0]
    return Curve(
        id="attack.best.accuracy_by_confidence",
        title="Accuracy among the most confident guesses",
        kind="certified",
        x=tuple(rows / last for rows, *_ in points),
        value=tuple(value for _, value, _, _ in points),
        low=tuple(low for *_, low, _ in points),
        high=tuple(high for *_, high in points),
        side="two-sided",
        level=confidence,
        simultaneous=True,
        x_label="share of people guessed, the most confident guesses first",
        unit="proportion",
        n=int(last),
        method=(
            f"held-out guesses of {run.name}, the strongest of {attacks} attacks; relative-entropy "
            f"form of Chernoff's bound on each of two folds, error probability divided by "
            f"{len(SHARES)} points and {attacks} attacks; bounds the mean chance of being right "
            "given what is released"
        ),
        reference="Hoeffding (1963), Theorem 1",
    )


def _point(folds: list[list[int]], tail: float) -> tuple[float, float, float, float]:
    """Return rows, the share right, and its bounds averaged over folds by their rows."""
    rows, correct = (sum(counts) for counts in zip(*folds, strict=True))
    low = high = 0.0
    for n, right in folds:
        if n:
            low += n / rows * chernoff_lower(right / n, n, tail)
            high += n / rows * chernoff_upper(right / n, n, tail)
    return float(rows), correct / rows, low, high
