"""What a replay found, as a verdict and in words."""

import math
from collections.abc import Sequence
from typing import Final, Literal

from ldpaudit.receipt.found import OTHER_TRUTH, ColumnReplay, Replay
from ldpaudit.result.numbers import number

Outcome = Literal["pass", "fail", "inconclusive"]
REPLAYED: Final = "release.replayed"
CHANGED: Final = "release.changed_labels"
LEFT_OUT: Final = "release.rows_left_out"
# Of an audit without a policy: 1 − confidence.
ALPHA: Final = 0.05
_CLASSES_NAMED: Final = 3
_FIELDS_NAMED: Final = 3
# ε of two declarations that differ by less, relatively, is the same.
_SAME: Final = 1e-9
_DRAWS: Final = "the declared mechanism draws with the committed key"


def outcome(replay: Replay, alpha: float = ALPHA) -> Outcome:
    """Return the verdict on the noise, at an error probability."""
    # What was changed fails where it reveals true labels: more of the changed labels are true than
    # would be by chance. A declaration that was edited fails where it promises more than was drawn.
    if replay.proven:
        return "pass"
    if replay.status == "changed" and not replay.other_order:
        return "fail" if replay.p_value <= alpha else "inconclusive"
    if replay.status == "edited" and replay.epsilon is not None:
        drawn, declared = replay.epsilon
        if drawn is not None and declared is not None and drawn > declared * (1 + 1e-9):
            return "fail"
    return "inconclusive"


def decided(replay: Replay) -> bool:
    """Return whether it says something of the noise; else the tests of an audit say what there is.

    Kept rows of a release from which rows were left out are proven; which rows were left out is
    not, and rows without ids are not matched.
    """
    return replay.status in ("proven", "changed", "edited", "foreign")


def reason(replay: Replay) -> str:
    """Return what was found, as a clause: no period, no capital."""
    if replay.status == "edited":
        return _of_declaration(replay)
    if replay.status == "proven":
        return f"{_all(replay)} {_DRAWS}{_given(replay)}{_unseen(replay)}"
    if replay.status == "partly":
        return _of_part(replay)
    if replay.status == "changed":
        return _of_changes(replay)
    return _lowered(replay.reason)


def sentence(replay: Replay, alpha: float = ALPHA) -> str:
    """Return the answer in one sentence."""
    if replay.proven:
        return f"Proven: {reason(replay)}."
    start = "Violation found" if outcome(replay, alpha) == "fail" else "Not proven"
    return f"{start}: {reason(replay)}."


def _of_declaration(replay: Replay) -> str:
    """Return how the declaration differs from the one that was committed to."""
    words, known = _lowered(replay.reason), False
    drawn, declared = replay.epsilon or (None, None)
    if drawn is not None and declared is not None:
        known = math.isclose(drawn, declared, rel_tol=_SAME)
        if not known:
            return (
                f"{words}: it was drawn at ε = {number(drawn)}, and ε = {number(declared)} is "
                "declared"
            )
    if not replay.fields:
        return words
    some = [f"'{name}'" for name in replay.fields[:_FIELDS_NAMED]]
    rest = len(replay.fields) - _FIELDS_NAMED
    some += [f"{rest} more"] if rest > 0 else []
    differ = "is not as it was" if len(replay.fields) == 1 else "are not as they were"
    return f"{words}: {_in_turn(some)} {differ}" + ("; ε is the same" if known else "")


def _in_turn(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _given(replay: Replay) -> str:
    return f" and {replay.given}" if replay.given else ""


def _unseen(replay: Replay) -> str:
    """Return what was drawn and is not proven, as the end of a sentence."""
    return f"; not compared: {replay.not_compared}" if replay.not_compared else ""


def _all(replay: Replay) -> str:
    rows, features = f"{replay.kept:,}", replay.features
    if features is not None and features.withheld:
        return f"all {rows} released labels, and no features, are what"
    if features is not None and features.rows:
        return f"all {rows} released labels and {features.rows:,} synthetic rows are what"
    if len(replay.columns) == 1 and replay.kept == 1:
        return "the one released label is what"
    if len(replay.columns) == 1:
        return f"all {rows} released labels are what"
    return f"all {rows} rows of {len(replay.columns)} private columns are what"


def _of_part(replay: Replay) -> str:
    """Return what is said of a release whose kept rows are all as drawn."""
    kept = replay.kept - replay.repeated
    changes = [f"{change} after the noise" for change in _rows_changed(replay)]
    if replay.repeated:
        repeat = "row repeats its answer" if replay.repeated == 1 else "rows repeat answers"
        changes.append(f"{replay.repeated:,} {repeat} of an earlier release")
    return f"{kept:,} of {replay.rows:,} rows are what {_DRAWS}; {' and '.join(changes)}"


def _rows_changed(replay: Replay) -> list[str]:
    """Return how many rows were left out, added and doubled, each in a few words."""
    changes = (
        (replay.left_out, "row was left out", "rows were left out"),
        (replay.added, "row was added", "rows were added"),
        (replay.doubled, "row was doubled", "rows were doubled"),
    )
    return [f"{n:,} {one if n == 1 else many}" for n, one, many in changes if n]


def _of_changes(replay: Replay) -> str:
    if replay.other_order:
        return (
            "the released labels are those that were drawn, but in another order; with an id in "
            "both files (privatize --id) rows are matched"
        )
    # Where the true labels are others, what differs need not be the release.
    found = [] if replay.sealed else [_lowered(OTHER_TRUTH)]
    for one in replay.columns:
        found += _labels_changed(one, f" of {one.label}" if len(replay.columns) > 1 else "")
    if replay.features is not None and replay.features.changed:
        changed, rows = replay.features.changed, replay.features.rows
        found.append(
            f"the features of {changed:,} of {rows:,} synthetic rows are not those that were drawn"
        )
    return "; ".join([*found, *_rows_changed(replay)])


def _labels_changed(one: ColumnReplay, where: str) -> list[str]:
    """Return how many labels of a column are missing and how many were changed, and to what."""
    found, changed = [], one.changed - one.missing
    if one.missing:
        are = "is" if one.missing == 1 else "are"
        found.append(f"{one.missing:,} of {one.rows:,} released labels{where} {are} missing")
    if not changed:
        return found
    were = "was" if changed == 1 else "were"
    text = f"{changed:,} of {one.rows:,} released labels {were} changed after the noise{where}"
    if one.decimals is not None:
        text += f" and look{'s' * (changed == 1)} rounded to {_decimals(one.decimals)}"
    some = [f"{name} ({count:,})" for name, count in one.classes[:_CLASSES_NAMED]]
    rest = len(one.classes) - _CLASSES_NAMED
    some += [f"{rest} more"] if rest > 0 else []
    text += f", now {', '.join(some)}" if some else ""
    # Numbers with noise hardly ever are the true ones, so that none is says nothing.
    if some or one.true:
        text += f": {one.true:,} of them {'is' if one.true == 1 else 'are'} true"
        if not one.missing:
            text += f", where {one.drawn_true:,} of those that were drawn had been"
    return [*found, text]


def _decimals(decimals: int) -> str:
    """Return what numbers are rounded to."""
    if decimals > 0:
        return f"{decimals} decimal{'s' * (decimals > 1)}"
    return "whole numbers" if decimals == 0 else f"multiples of {10**-decimals}"
