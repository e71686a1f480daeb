"""Apply a mechanism to a table and write the release, with its declaration inside."""

from ldpaudit.privatizing.command import PrivatizeSummary, privatize
from ldpaudit.privatizing.request import PrivatizeRequest

__all__ = ["PrivatizeRequest", "PrivatizeSummary", "privatize"]
