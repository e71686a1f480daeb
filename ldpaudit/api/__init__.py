"""An audit from Python, and what commands share with it: reading, planning, one result."""

# In: a release and options. Out: its result; what was read, the plan, the policy.

from ldpaudit.api.auditing import (
    audit,
    audit_with,
    available_threads,
    cluster_of,
    plan_of,
    policy_of,
    seed_of,
    with_before,
)
from ldpaudit.api.reading import check_keys, notes_of, read_with, replays_of

__all__ = [
    "audit",
    "audit_with",
    "available_threads",
    "check_keys",
    "cluster_of",
    "notes_of",
    "plan_of",
    "policy_of",
    "read_with",
    "replays_of",
    "seed_of",
    "with_before",
]
