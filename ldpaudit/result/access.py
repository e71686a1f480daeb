"""Who may see a result: its first line, wherever it is shown."""

from typing import Final

KEPT_CLOSE: Final = "As confidential as the true labels: for people who may see them."
CONFIDENTIAL: Final = f"{KEPT_CLOSE} To share the answer, make a public page (--profile public)."
WITHOUT_TRUTH: Final = (
    "Made without true labels: as confidential as the release and the files given with it."
)

PUBLIC: Final = "For everybody: apart from the decision nothing here depends on a true label."


def access_of(confidential: bool) -> str:
    """Return who may see what was made with true labels, or without."""
    return CONFIDENTIAL if confidential else WITHOUT_TRUTH
