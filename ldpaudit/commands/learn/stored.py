"""The form of what ``learn`` stores."""

from ldpaudit.result import Estimate, Frozen


class StoredRelease(Frozen):
    """What was learnt from."""

    name: str
    """The file's name."""
    rows: int
    """Its rows."""


class StoredScore(Frozen):
    """The score of a learner on test rows."""

    access: str
    """Who may see it."""
    schema_version: str
    """The version of this form."""
    release: StoredRelease
    """What was learnt from."""
    mechanism: str
    """The name of its mechanism."""
    learner: str
    """The learner."""
    correction: str
    """How its loss is corrected for the noise, in words."""
    test_rows: int
    """Rows that it was tested on."""
    score: Estimate
    """Its accuracy, or its squared error."""
    reference: Estimate | None
    """The same of that learner on the true labels; null where they were not given."""
    constant: float
    """What the best constant answer reaches."""
    warnings: list[str]
    """Sentences for people."""
