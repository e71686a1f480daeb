"""Checks of the columns: do they reveal labels, or lead back to persons?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ldpaudit.errors import quoted
from ldpaudit.judging.checks.interface import Answer, Case, Draft, drafted
from ldpaudit.result import Estimate
from ldpaudit.result.numbers import at_least, percent
from ldpaudit.result.stated import (
    CLEAR_ROWS,
    DATES,
    DECIDED,
    DECIDING,
    IDENTIFIERS,
    INDICES,
    LAGGED,
    ONE_LABEL,
    ORDERED,
    POSITION,
    READ_OFF,
    ROW_ORDER,
    TEXTS,
    TOLD,
    TRUTH_INSIDE,
)

# What one column does, and several.
_KINDS = {
    INDICES: ("numbers the rows", "number the rows"),
    IDENTIFIERS: ("differs in nearly every row", "differ in nearly every row"),
    TEXTS: ("holds free text", "hold free text"),
    DATES: ("holds exact dates", "hold exact dates"),
}


_MOST_NAMED: Final = 3


def identifiers(case: Case, section: Any) -> Draft:
    """Return the check of whether columns may lead back to a person."""
    estimates = case.evidence.estimates
    counts = {name: round(estimates[name].value) for name in _KINDS if name in estimates}
    total = float(sum(counts.values()))
    if not counts:
        answer = Answer("inconclusive", None, "the columns were not looked at when they were read")
    elif total <= section.max:
        answer = Answer("pass", total, "no column looks like an identifier")
    else:
        answer = Answer("fail", total, leads_back(counts, case.circumstances.concerns))
    return drafted(answer, tuple(counts), float(section.max))


def leads_back(counts: Mapping[str, int], concerns: Mapping[str, Sequence[str]]) -> str:
    """Return which columns may lead back to a person, and why."""
    total = sum(counts.values())
    if total == 1:
        (kind,) = (name for name, count in counts.items() if count)
        which = f"column {named(concerns[kind])}" if concerns.get(kind) else "1 column"
        return f"{which} may lead back to a person: it {_KINDS[kind][0]}"
    kinds = []
    for name, count in counts.items():
        which = named(concerns[name]) if concerns.get(name) else str(count)
        kinds += [f"{which} {_KINDS[name][count > 1]}"] if count else []
    return f"{total} columns may lead back to a person: {', '.join(kinds)}"


def named(columns: Sequence[str]) -> str:
    """Return the names of columns for a sentence, at most a few of them."""
    first, more = [*map(quoted, columns[:_MOST_NAMED])], len(columns) - _MOST_NAMED
    last = f"{more} more" if more > 0 else first.pop()
    return f"{', '.join(first)} and {last}" if first else last


# Learnt from the released labels; it stands for the attack on features where no truth is known.
_CLASSIFIER = "attack.classifier.accuracy"
_BALANCED, _AUC = "attack.features-only.balanced_accuracy", "attack.features-only.auc"
# Shares of labels, and what it means if one is above the limit.
_SHARES = {
    _BALANCED: "the features alone reveal {} of the labels",
    _CLASSIFIER: "the features alone reveal, by estimate, {} of the labels",
    _AUC: "the features alone rank people by label (AUC {})",
    TOLD: "one column reveals {} of the labels by itself",
    POSITION: "the order of the rows reveals {} of the labels",
}


_COLUMNS = {
    DECIDING: ("one column decides", "{} columns decide, each by itself,"),
    LAGGED: (
        "one column of a row near by decides",
        "{} columns of a row near by decide, each by itself,",
    ),
}


_MOST = 0.5
# Without true labels nothing is known of what features reveal about them.
_SEEN = "by the released labels, "
_ALIKE: Final = "rows with equal values of one column"
_CLEAR: Final = "the released label"
_NOT_ALONE: Final = (_ALIKE, _CLEAR)
_MADE = (
    ", unless columns were computed from the released labels: otherwise noise on the label "
    "protects little"
)
_UNSEEN = "; what they reveal about the true labels was not measured"
_NOT_ONE = {
    True: "no column by itself reveals the labels, nor does the order of the rows; what all "
    "columns reveal together was not measured",
    False: "no column by itself reveals the labels; what all columns together and the order of "
    "the rows reveal was not measured",
}


def features_reveal(case: Case, section: Any) -> Draft:
    """Return the check of whether the features alone reveal the labels."""
    estimates = case.evidence.estimates
    every = (TRUTH_INSIDE, *_SHARES, *_COLUMNS, ORDERED, DECIDED, READ_OFF, CLEAR_ROWS, ONE_LABEL)
    known = [name for name in every if name in estimates]
    ids = tuple(name for name in known if name != _CLASSIFIER or _says_enough(estimates))
    shares = {name: estimates[name].value for name in ids if name in _SHARES}
    observed = max(shares.values(), default=0.0)
    reasons, order = list(_revealing(estimates, ids, shares, section)), _order(estimates)
    found = ", and ".join(reasons)
    seen, unseen = ("", "") if case.circumstances.truth else (_SEEN, _UNSEEN)
    # Neither an order nor a person's rows reveal a label to somebody who knows none, nor do columns
    # that tell where the released label is true.
    alone = found not in ("", order) and not all(one.startswith(_NOT_ALONE) for one in reasons)
    made = _MADE if alone and not case.circumstances.truth else ""
    by = seen if made else ""
    if not ids:
        answer = Answer("inconclusive", None, "no label is known that features could reveal")
    elif found:
        little = "" if not alone else ": noise on the label protects little"
        answer = Answer("fail", observed, f"{by}{found}{made or little}")
    elif {_BALANCED, _AUC, _CLASSIFIER} & shares.keys():
        answer = Answer("pass", observed, f"{seen}the features alone leave labels open{unseen}")
    else:
        answer = Answer("pass", observed, f"{seen}{_NOT_ONE[POSITION in shares]}")
    return drafted(answer, ids, section.max)


def _says_enough(estimates: Mapping[str, Estimate]) -> bool:
    """Return whether the classifier stands for the features, and beats the commonest label."""
    ours, prior = estimates[_CLASSIFIER], estimates.get("attack.prior.accuracy")
    if _AUC in estimates or prior is None or ours.low is None:
        return False
    return ours.low > prior.value + 0.5 * (1 - prior.value)


def _order(estimates: Mapping[str, Estimate]) -> str:
    excess = abs(estimates[ROW_ORDER].value) if ROW_ORDER in estimates else 0.0
    return "the order of the rows reveals " + ("most labels" if excess >= _MOST else "labels")


def _revealing(
    estimates: Mapping[str, Estimate],
    ids: tuple[str, ...],
    shares: Mapping[str, float],
    section: Any,
) -> Iterator[str]:
    """Yield what reveals labels, in words."""
    counts = {i: round(estimates[i].value) for i in ids if i in _COLUMNS or i == ORDERED}
    beyond = {name: share for name, share in shares.items() if share > section.max}
    if counts.get(DECIDING):
        beyond.pop(TOLD, None)
    if TRUTH_INSIDE in ids:
        yield "the release holds the true labels themselves (--truth-column)"
    if beyond:
        name = next(iter(beyond))
        yield _SHARES[name].format(percent(beyond[name]))
    for name, (one, several) in _COLUMNS.items():
        if counts.get(name):
            which = several.format(counts[name]) if counts[name] > 1 else one
            yield f"{which} at least 98 % of the labels"
    if counts.get(ORDERED) and POSITION not in beyond:
        yield _order(estimates)
    some = estimates[DECIDED].value if DECIDED in ids else 0.0
    if some > section.max_decided and not counts.get(DECIDING):
        people = f"{at_least(some)} of the people"
        yield f"the value of one column decides the label of {people}"
    read = estimates[READ_OFF].value if READ_OFF in ids else 0.0
    if read > section.max_decided and not counts.get(DECIDING):
        yield f"features reveal the label of {at_least(read)} of the people"
    clear = estimates[CLEAR_ROWS].value if CLEAR_ROWS in ids else 0.0
    if clear > section.max_decided:
        yield f"{_CLEAR} of {at_least(clear)} of the people shows the true one"
    alike = estimates[ONE_LABEL].value if ONE_LABEL in ids else 0.0
    if alike > section.max_decided:
        yield f"{_ALIKE}, {at_least(alike)} of the rows, have one label, as one person's rows do"
