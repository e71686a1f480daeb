"""An audit from start to end: of a tree of private columns and releases.

In: what was read, a plan and a policy. Out: one result, in which that of each part is held.
"""

from ldpaudit.audits.listing import AUDITS
from ldpaudit.pipeline.about import run_info
from ldpaudit.pipeline.choosing import available_audits, chosen_audits
from ldpaudit.pipeline.nodes import node_of, nodes_of
from ldpaudit.pipeline.one_release import run_audit
from ldpaudit.pipeline.tree import Running, audit

__all__ = [
    "AUDITS",
    "Running",
    "audit",
    "available_audits",
    "chosen_audits",
    "node_of",
    "nodes_of",
    "run_audit",
    "run_info",
]
