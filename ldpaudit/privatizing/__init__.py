"""Apply a mechanism to a table and write the release, with its declaration inside."""

from ldpaudit.privatizing.command import privatize
from ldpaudit.privatizing.request import PrivatizeRequest
from ldpaudit.privatizing.summary import PrivatizeSummary

__all__ = ["PrivatizeRequest", "PrivatizeSummary", "privatize"]
