"""What is wrong with a number or a note of a result that cannot be built, without its values."""

import traceback
from typing import Any, Final

from pydantic import ValidationError

from ldpaudit.result.estimate import Curve, Estimate, Frozen, Histogram, Note, Score

_PARTS: Final[tuple[Any, ...]] = (Curve, Estimate, Histogram, Note, Score)
_OURS: Final = "ldpaudit."


def misstated(error: BaseException) -> str:
    """Return what is wrong with a part of what an audit found; empty where the error is another."""
    if not isinstance(error, ValidationError):
        return ""
    known = {part.__name__: part for part in _PARTS}.get(error.title)
    if known is None:
        return ""
    return next(filter(None, (_in_words(known, one) for one in error.errors())), "")


def _in_words(part: type[Frozen], one: Any) -> str:
    name, cause = one["loc"][:1], one.get("ctx", {}).get("error")
    # What our own validators say holds no data; what those of others say may.
    frames = [] if cause is None else list(traceback.walk_tb(cause.__traceback__))
    own = bool(frames) and str(frames[-1][0].f_globals.get("__name__")).startswith(_OURS)
    if (cause is not None and not own) or (name and name[0] not in part.model_fields):
        return ""
    why = one["msg"].removeprefix("Value error, ").rstrip(".")
    place = f"the {name[0]!r} of its {part.__name__}: " if name else ""
    return f"{place}{why[:1].lower()}{why[1:]}"
