"""The options of an audit, declared once: for the command line and for the Python call."""

# A field that is annotated with an :class:`Option` is an option of every command that takes its
# dataclass, with the environment twin ``LDPAUDIT_…``. In: words of the command line, or keywords.
# Out: one value of each option, checked. Nothing heavy is imported here.

from ldpaudit.options.audit import AuditOptions, PlanOptions
from ldpaudit.options.declaring import (
    Argument,
    Option,
    declared,
    group,
    input_files,
    option_name,
)
from ldpaudit.options.labels import LabelOptions, check_distinct, label_options, parse_label
from ldpaudit.options.release import (
    AS_FOUND,
    ClaimOptions,
    FileOptions,
    ReleaseOptions,
    check_ordered,
    named_columns,
    texts_of,
)

__all__ = [
    "AS_FOUND",
    "Argument",
    "AuditOptions",
    "ClaimOptions",
    "FileOptions",
    "LabelOptions",
    "Option",
    "PlanOptions",
    "ReleaseOptions",
    "check_distinct",
    "check_ordered",
    "declared",
    "group",
    "input_files",
    "label_options",
    "named_columns",
    "option_name",
    "parse_label",
    "texts_of",
]
