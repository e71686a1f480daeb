"""Parts of a result as pandas data frames."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

    from ldpaudit.result.estimate import Estimate, Frozen

# Left out of a frame: they are no single value.
_WORDS: Final = {"score", "axis", "assumptions", "evidence"}
_LAST: Final = ("method", "reference")


def frame_of(parts: "Iterable[Frozen]", kind: "type[Frozen]") -> "pd.DataFrame":
    """Return one row for each part, indexed by its id, one column for each field of its kind."""
    import pandas as pd

    columns = [name for name in kind.model_fields if name not in {*_WORDS, *_LAST}]
    columns += [name for name in _LAST if name in kind.model_fields]
    rows = [[getattr(part, name) for name in columns] for part in parts]
    return pd.DataFrame(rows, columns=columns).set_index("id")


def scores_frame(estimates: "Iterable[Estimate]") -> "pd.DataFrame":
    """Return one row for each attack, in the order of the result."""
    # For each measure there are three columns: the value, and the ends of its interval as ``…_low``
    # and ``…_high``.
    import pandas as pd

    rows: dict[str, dict[str, Any]] = {}
    for estimate in estimates:
        score = estimate.score
        if score is not None and not score.group:
            row = rows.setdefault(score.subject, {"title": score.row})
            ends = {"": estimate.value, "_low": estimate.low, "_high": estimate.high}
            row |= {f"{score.measure}{end}": value for end, value in ends.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("attack")


def stacked(frames: "Mapping[str, pd.DataFrame]") -> "pd.DataFrame":
    """Return frames below each other; the first column, ``of``, holds their keys."""
    import pandas as pd

    named = []
    for key, frame in frames.items():
        frame.insert(0, "of", key)
        named.append(frame)
    return pd.concat([frame for frame in named if len(frame)] or named[:1])
