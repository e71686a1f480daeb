"""How much is read of what others made: each limit once, for every reader and parser."""

# Whatever is larger is refused with one line, before memory or minutes are spent on it.

from typing import Final

HEADER_BYTES: Final = 16 << 20
"""Bytes of the first line of a text table, unpacked."""
ROW_BYTES: Final = 4 << 20
"""Bytes of a row of a CSV file; of a table of more than 4,096 columns, 1 KiB for each of them."""
LINE_BYTES: Final = 64 << 20
"""Bytes of a line of a JSON lines or svmlight file, unpacked."""
COLUMNS: Final = 200_000
"""Columns of a table; a sparse one may have more."""
UNPACKED_BYTES: Final = 64 << 30
"""Bytes of a compressed file, unpacked."""
UNPACKED_TIMES: Final = 200
"""How many times its own size a compressed file, a workbook or an .npz file may unpack to …"""
UNPACKED_FREE: Final = 64 << 20
"""… where that is more than so many bytes."""
LOADED_BYTES: Final = 4 << 30
"""Bytes of a workbook or an .npz file, unpacked: these are read into memory."""
SHEET_ROWS: Final = 1_048_576
"""Rows of a sheet, as many as Excel has."""
SHEET_CELLS: Final = 1 << 26
"""Cells of a sheet, empty ones between others among them."""
RUN_ROWS: Final = 1 << 22
"""Rows of a Feather file with columns of runs: a few bytes stand for any number of them."""
FILES: Final = 10_000
"""Files of a folder or a pattern."""
CLASSES: Final = 10_000
"""Classes of a label."""
LABEL_CHARACTERS: Final = 1000
"""Characters of the name of a class."""
CHANNEL_CELLS: Final = 1_000_000
"""Probabilities of a channel matrix."""
DOCUMENT_BYTES: Final = 32 << 20
"""Bytes of a JSON document: a declaration with a channel of the largest size, a stored result."""
DOCUMENT_VALUES: Final = 1_500_000
"""Numbers, texts, lists and objects in such a document."""
POLICY_BYTES: Final = 128 << 10
"""Bytes of a TOML document, a policy or a plan: 400 waivers or 4,000 strata."""
NESTING: Final = 64
"""Lists and objects inside each other in such a document, or in a column's type."""
DIGITS: Final = 300
"""Digits of a number in such a document: whatever has more is beyond all floating-point numbers."""
EPSILON: Final = (1e-6, 50.0)
"""The smallest and the largest ε that a mechanism may have."""
LABEL_VALUES: Final = (1e-100, 1e15)
"""The shortest range, or step, of numeric labels, and the largest absolute value of one."""
RELEASES: Final = 100_000
"""Simulated releases of a sweep: settings times draws."""
INPUTS: Final = 1000
"""Inputs of a randomizer that is audited by its outputs."""
SAMPLES: Final = 1_000_000_000
"""Outputs that are drawn of each of these inputs."""
SECONDS: Final = 1_000_000
"""Seconds that a time limit may have."""
