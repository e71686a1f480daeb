"""``ldpaudit mechanism audit``: any randomizer, by its outputs alone.

In: a function and inputs for it. Out: a certified lower bound on ε, and the event that gave it. The
names below are imported when they are first used: the processes in which randomizers run need none.
"""

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit.commands.black_box.command import run_and_write
    from ldpaudit.commands.black_box.request import Request, parse_inputs
    from ldpaudit.commands.black_box.result import BlackBoxAudit, Claim
    from ldpaudit.commands.black_box.work import audit_black_box

__all__ = [
    "BlackBoxAudit",
    "Claim",
    "Request",
    "audit_black_box",
    "parse_inputs",
    "run_and_write",
]

__getattr__ = exported(
    __name__,
    {
        "result": ("BlackBoxAudit", "Claim"),
        "request": ("Request", "parse_inputs"),
        "work": ("audit_black_box",),
        "command": ("run_and_write",),
    },
)
