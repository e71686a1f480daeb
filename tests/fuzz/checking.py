"""Whether a parser did what it should: ended in time, with an answer or an error for people."""

import time
import traceback
import warnings
from collections.abc import Callable
from typing import Final

from ldpaudit.errors import LdpAuditError

SECONDS: Final = 10.0
"""Of processor time, which one input may take."""


class FaultError(Exception):
    """A parser did something else; the text says where."""


def checked(parse: Callable[[bytes], object], content: bytes) -> None:
    """Parse; raise a :class:`FaultError` for what no user should meet."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The command line does not show them.
            parse(content)
    except LdpAuditError as error:
        if "\n" in str(error) or len(str(error)) > 1000:
            raise FaultError(f"long message: {str(error)[:80]!r}") from None
    except Exception as error:
        ours = [f for f in traceback.extract_tb(error.__traceback__) if "ldpaudit" in f.filename]
        where = f"{ours[-1].filename.rsplit('ldpaudit/')[-1]}:{ours[-1].lineno}" if ours else "?"
        raise FaultError(f"{type(error).__name__} in {where}") from error
    if time.process_time() - start > SECONDS:
        raise FaultError("slow")
