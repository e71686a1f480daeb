"""The program, also as ``python -m ldpaudit``: signals are heeded before anything else."""

import os
import sys
import traceback
from contextlib import suppress


def main() -> None:
    """Run the command line; a fault before it can answer is one line and exit status 2."""
    # Python ends with 1 after an exception that nobody caught, and 1 means "do not publish". So
    # everything that can fail is inside this block, imports and set-up too.
    try:
        from ldpaudit.work.interruption import heeded

        with heeded():
            from ldpaudit.cli import main as command

            command()
    except Exception as error:
        _could_not_start(error)


def _could_not_start(error: Exception) -> None:
    with suppress(Exception):
        if "--debug" in sys.argv:
            traceback.print_exc()
        # Not by the stream, which may be what failed. No text of the error: it may name paths.
        why = getattr(error, "strerror", None) or type(error).__name__
        os.write(2, f"ldpaudit: It could not start: {why}.\n".encode())
    sys.exit(2)


if __name__ == "__main__":
    main()
