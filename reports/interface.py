"""What every report format implements."""

from typing import Protocol

from ldpaudit.result import AuditResult


class ReportFormat(Protocol):
    """One way to show a result: a file in this folder, listed in ``FORMATS``."""

    @property
    def name(self) -> str:
        """The name in the contract and of the option, for instance ``"html"``."""

    @property
    def suffix(self) -> str:
        """How the names of its files end, for instance ``".html"``."""

    def render(self, result: AuditResult) -> str:
        """Return the report: a pure function of the result, the same text every time."""
