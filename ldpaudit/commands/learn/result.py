"""How well a learner does on a release."""

from dataclasses import dataclass
from typing import Any

from ldpaudit.result import Estimate
from ldpaudit.result.access import CONFIDENTIAL


@dataclass(frozen=True)
class Learnt:
    """The score of a learner on test rows.

    Attributes
    ----------
    release, mechanism, learner, correction : str
        The release's name, its mechanism's name, the learner, and its loss in words.
    rows, test_rows : int
    score : Estimate
        ``test_accuracy`` or ``test_squared_error`` of the learner on the release.
    reference : Estimate or None
        The same of that learner on the true labels of the same rows, where they are given.
    constant : float
        What the best constant answer reaches on the test rows.
    warnings : tuple of str
    """

    release: str
    mechanism: str
    learner: str
    correction: str
    rows: int
    test_rows: int
    score: Estimate
    reference: Estimate | None
    constant: float
    warnings: tuple[str, ...] = ()

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        return {
            "access": CONFIDENTIAL,
            "schema_version": "1.0",
            "release": {"name": self.release, "rows": self.rows},
            "mechanism": self.mechanism,
            "learner": self.learner,
            "correction": self.correction,
            "test_rows": self.test_rows,
            "score": self.score.model_dump(),
            "reference": None if self.reference is None else self.reference.model_dump(),
            "constant": self.constant,
            "warnings": list(self.warnings),
        }
