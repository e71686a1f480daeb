"""Apply a mechanism to a table and write the release, with its declaration inside."""

from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.summary import PrivatizeSummary
from ldpaudit.commands.privatize.work import privatize

__all__ = ["PrivatizeRequest", "PrivatizeSummary", "privatize"]
