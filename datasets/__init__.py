"""Readers of released files, and the embedded sample."""

# In: paths, URLs or tables. Out: a release in memory, and files written whole. The names below are
# imported when they are first used: pyarrow takes its time.

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit.datasets.declaration import declare, parse_declaration
    from ldpaudit.datasets.probabilities import read_channel
    from ldpaudit.datasets.reading import ReadReport, read_release
    from ldpaudit.datasets.sample import affairs
    from ldpaudit.datasets.writing import write_release

__all__ = [
    "ReadReport",
    "affairs",
    "declare",
    "parse_declaration",
    "read_channel",
    "read_release",
    "write_release",
]

__getattr__, __dir__ = exported(
    __name__,
    {
        "declaration": ("declare", "parse_declaration"),
        "probabilities": ("read_channel",),
        "reading": ("ReadReport", "read_release"),
        "sample": ("affairs",),
        "writing": ("write_release",),
    },
)
