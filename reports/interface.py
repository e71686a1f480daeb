"""What every report format may know besides the result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ldpaudit.result import AuditResult, Profile

STATUSES: Final = {"pass": 0, "fail": 1, "inconclusive": 3}
"""The exit status that follows from a verdict alone."""


@dataclass(frozen=True)
class Place:
    """A line of a file, which is named as seen from the working directory."""

    file: str
    line: int = 1


@dataclass(frozen=True)
class Surroundings:
    """What a result does not know of its audit, and programs in a pipeline ask for.

    Attributes
    ----------
    places : mapping from check id to Place
        The lines of the policy that ask for the checks; others are placed at the release.
    explanations : mapping from check id to str
        What each check compares, and when it fails.
    status : int or None
        The exit status of the command; None: that which follows from the verdict.
    profile : {"internal", "public"}
        Whom the report is for.
    """

    places: Mapping[str, Place] = field(default_factory=dict)
    explanations: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    profile: Profile = "internal"

    def exit_status(self, result: AuditResult) -> int:
        """Return the exit status of the command that ends with this ``result``."""
        return STATUSES[result.verdict] if self.status is None else self.status

    def place(self, check: str, release: str) -> Place:
        """Return where the check with the id ``check`` is asked for, else the file ``release``."""
        return self.places.get(check) or Place(release)


NOWHERE: Final = Surroundings()
"""Nothing is known besides the result."""
