"""Checks of what was read: cells, rows, true labels that belong to them, and the replay."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ldpaudit.judging.checks.interface import Answer, Case, Draft, drafted
from ldpaudit.judging.checks.noise import HARDLY_CHANCE
from ldpaudit.receipt.words import REPLAYED, decided, outcome, reason
from ldpaudit.release.declaration import FaultOfMaking
from ldpaudit.result import Estimate, Verdict
from ldpaudit.result.numbers import number, rows
from ldpaudit.result.stated import COPIED, GENERATOR_BLIND, OTHERWISE_WRITTEN, UNREAD, WHOLE_REPORTS


def cells_read(case: Case, _: Any) -> Draft | None:
    """Return the check, None where all cells were read; no policy switches it off."""
    unread = case.evidence.estimates.get(UNREAD)
    if unread is None:
        return None
    columns = "one column holds" if unread.value == 1 else f"{number(unread.value)} columns hold"
    reason = (
        f"{columns} numbers or dates but for cells of another kind, which hide what they reveal"
    )
    return drafted(Answer("fail", unread.value, reason), (UNREAD,))


def labels_written(case: Case, _: Any) -> Draft | None:
    """Return the check, None where each label is written in one way; no policy switches it off."""
    estimates = case.evidence.estimates
    if (whole := estimates.get(WHOLE_REPORTS)) is not None:
        reason = (
            f"{rows(whole.value)} reports are of whole numbers alone, as if no noise had been "
            "added to them"
        )
        return drafted(Answer("inconclusive", whole.value, reason), (WHOLE_REPORTS,), no_test=True)
    if (found := estimates.get(OTHERWISE_WRITTEN)) is None:
        return None
    write = "row writes its" if found.value == 1 else "rows write their"
    reason = (
        f"{rows(found.value)} {write} label otherwise than most rows that have it (in the last "
        "digits, or in quotes), which may tell true labels and is looked at by no audit"
    )
    return drafted(Answer("inconclusive", found.value, reason), (OTHERWISE_WRITTEN,), no_test=True)


_FAULTS_OF_MAKING: Final[Mapping[FaultOfMaking, str]] = {
    "experiment": "it was made as an experiment, whose noise anybody who knows the seed can undo",
    "generator": (
        "a generator of its features was trained on private rows, which its promise does not cover"
    ),
}


_SEEN: Final = (
    "synthetic rows are nearer to audited rows than to held-out ones: their generator has seen "
    "audited rows, if both are of one population"
)
_COPIES: Final = "{} synthetic rows equal the row of one audited person, far more than by chance"
# A generator that favours common rows meets the row of one person less often than people do.
_MOST_COPIED: Final = 0.25
_FEW_COPIES: Final = 20


def made_as_assumed(case: Case, _: Any) -> Draft | None:
    """Return the check, None where nothing is declared or found against the promise."""
    estimates = case.evidence.estimates
    reasons = [_FAULTS_OF_MAKING[fault] for fault in case.circumstances.faults_of_making]
    found = list[Estimate]()
    seen, copied = estimates.get(GENERATOR_BLIND), estimates.get(COPIED)
    if copied is not None and copied.value > _MOST_COPIED and (copied.count or 0) >= _FEW_COPIES:
        reasons.append(_COPIES.format(rows(copied.count or 0)))
        found.append(copied)
    elif seen is not None and seen.kind == "certified" and seen.value <= HARDLY_CHANCE:
        reasons.append(_SEEN)
        found.append(seen)
    if not reasons:
        return None
    observed = found[0].value if found else None
    ids = tuple(estimate.id for estimate in found)
    return drafted(Answer("fail", observed, ", and ".join(reasons)), ids, no_test=True)


def whole_file(case: Case, _: Any) -> Draft | None:
    """Return the check, None where the audit looked at all that is in the file."""
    changes = case.circumstances.changes
    if not changes:
        return None
    return drafted(Answer("fail", None, ", and ".join(changes)), no_test=True)


def by_number(columns: Sequence[int]) -> str:
    """Return what columns of a file are called without their names."""
    return " and ".join(f"column {column}" for column in columns)


def truth_taken_out(case: Case, _: Any) -> Draft | None:
    """Return the check, None where no feature has the private column's name."""
    columns = case.circumstances.named_as_truth
    if not columns:
        return None
    have = "is a feature and has" if len(columns) == 1 else "are features and have"
    reason = (
        f"{by_number(columns)} {have} a name of the private column, so true labels, or other "
        "answers to them, may have been left in the release"
    )
    return drafted(Answer("fail", float(len(columns)), reason), no_test=True)


def truth_fits(case: Case, _: Any) -> Draft | None:
    """Return the check, None where the true labels say something; no policy switches it off."""
    if not case.circumstances.unrelated:
        return None
    reason = "the true labels reveal nothing about the released ones, so they may be of other rows"
    return drafted(Answer("inconclusive", None, reason), no_test=True)


def replay(case: Case, section: Any) -> Draft | None:
    """Return the check of whether every label is what the committed key draws."""
    found = case.circumstances.replay
    if found is None or not (decided(found) or section.required):
        if not section.required:
            return None
        why = "the release has no receipt, or its key was not given with the true labels"
        return drafted(Answer("inconclusive", None, why), no_test=True)
    share = found.columns[0].equal / max(found.columns[0].rows, 1) if found.columns else None
    ids, words = (REPLAYED,) if found.columns else (), reason(found)
    if found.status != "changed":
        return drafted(Answer(outcome(found), share, words), ids, no_test=True)
    return drafted(lambda alpha: Answer(outcome(found, alpha), share, words), ids)


def min_rows(case: Case, _: Any) -> Draft | None:
    """Return the check of whether there are as many rows as the policy asks for."""
    least = case.policy.audit.min_rows
    if least is None:
        return None
    enough: Verdict = "pass" if case.rows >= least else "inconclusive"
    reason = f"{rows(case.rows)} rows, {rows(least)} needed"
    return drafted(Answer(enough, float(case.rows), reason), limit=float(least))
