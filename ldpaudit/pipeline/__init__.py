"""An audit from start to end: of one release, of several private columns, of several releases.

In: what was read, a plan and a policy. Out: one result, in which that of each part is held.
"""

from ldpaudit.audits.listing import AUDITS
from ldpaudit.pipeline.about import run_info
from ldpaudit.pipeline.choosing import available_audits, chosen_audits
from ldpaudit.pipeline.one_release import run_audit
from ldpaudit.pipeline.repeats import run_repeats
from ldpaudit.pipeline.vector import Running, run_vector

__all__ = [
    "AUDITS",
    "Running",
    "available_audits",
    "chosen_audits",
    "run_audit",
    "run_info",
    "run_repeats",
    "run_vector",
]
