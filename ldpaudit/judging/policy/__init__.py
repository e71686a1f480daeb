"""Policies: what a release may leak, as TOML; their presets, their words, their mistakes."""

# In: a file, a text or a preset's name. Out: a :class:`Policy`, or one line that says what is
# wrong.

from ldpaudit.judging.policy.explaining import explain
from ldpaudit.judging.policy.presets import (
    DEFAULT,
    PRESETS,
    STARTER,
    preset,
    preset_text,
)
from ldpaudit.judging.policy.reading import (
    check_lines,
    default_policy,
    line_of,
    load_policy,
    parse_policy,
)
from ldpaudit.judging.policy.sections import Policy, Waiver, check_names

__all__ = [
    "DEFAULT",
    "PRESETS",
    "STARTER",
    "Policy",
    "Waiver",
    "check_lines",
    "check_names",
    "default_policy",
    "explain",
    "line_of",
    "load_policy",
    "parse_policy",
    "preset",
    "preset_text",
]
