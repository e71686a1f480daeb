"""Do the features alone reveal the labels, whatever noise is on them?"""

from collections.abc import Iterator, Mapping

from ldpaudit.judging.checks.interface import Answer, Case, Draft
from ldpaudit.reports.text.numbers import percent
from ldpaudit.result import Estimate

_OUTSIDER = "attack.classifier.accuracy"
"""Learnt from the released labels; it stands for the attack on features where no truth is known."""
_POSITION = "columns.position"
_SHARES = {
    "attack.features-only.balanced_accuracy": "the features alone reveal {} of the labels",
    _OUTSIDER: "the features alone reveal, by estimate, {} of the labels",
    "attack.features-only.auc": "the features alone rank people by label (AUC {})",
    "columns.told": "one column reveals {} of the labels by itself",
    _POSITION: "the order of the rows reveals {} of the labels",
}
"""Shares of labels, and what it means if one is above the limit."""
_TRUTH = "columns.truth"
_DECIDED = "columns.decided"
_ORDERED, _EXCESS = "columns.ordered", "columns.row_order"
_MOST = 0.5
_COUNTS: dict[str, tuple[str, ...]] = {
    "columns.deciding": ("one column decides", "{} columns decide, each by itself,"),
    "columns.lagged": (
        "one column of a row near by decides",
        "{} columns of a row near by decide, each by itself,",
    ),
    _ORDERED: (),
}


_ALL_TOGETHER = {"attack.features-only.balanced_accuracy", "attack.features-only.auc", _OUTSIDER}
_LEFT_OPEN = "the features alone leave labels open"
_NOT_ONE = {
    True: "no column by itself reveals the labels, nor does the order of the rows; what all "
    "columns reveal together was not measured",
    False: "no column by itself reveals the labels; what all columns together and the order of "
    "the rows reveal was not measured",
}


def _says_enough(estimates: Mapping[str, Estimate]) -> bool:
    """Return whether the classifier stands for the features, and beats the commonest label."""
    ours, prior = estimates[_OUTSIDER], estimates.get("attack.prior.accuracy")
    if "attack.features-only.auc" in estimates or prior is None or ours.low is None:
        return False
    return ours.low > prior.value + 0.5 * (1 - prior.value)


def draft(case: Case) -> Draft | None:
    """Return the check, None where it is not asked for."""
    section, estimates = case.policy.checks.features_reveal_label, case.evidence.estimates
    if section is None:
        return None
    known = (name for name in (_TRUTH, *_SHARES, *_COUNTS, _DECIDED) if name in estimates)
    ids = tuple(name for name in known if name != _OUTSIDER or _says_enough(estimates))
    shares = {name: estimates[name].value for name in ids if name in _SHARES}
    counts = {name: round(estimates[name].value) for name in ids if name in _COUNTS}
    most, some = section.max, estimates[_DECIDED].value if _DECIDED in ids else 0.0

    excess = abs(estimates[_EXCESS].value) if _EXCESS in estimates else 0.0
    order = "the order of the rows reveals " + ("most labels" if excess >= _MOST else "labels")

    def reasons() -> Iterator[str]:
        beyond = {name: share for name, share in shares.items() if share > most}
        if counts.get("columns.deciding"):
            beyond.pop("columns.told", None)
        if _TRUTH in ids:
            yield "the release holds the true labels themselves (--truth-column)"
        if beyond:
            name = next(iter(beyond))
            yield _SHARES[name].format(percent(beyond[name]))
        for name, count in counts.items():
            if count and name == _ORDERED and _POSITION not in beyond:
                yield order
            elif count and name != _ORDERED:
                yield f"{_COUNTS[name][count > 1].format(count)} at least 98 % of the labels"

        if some > section.max_decided and not counts.get("columns.deciding"):
            yield f"the value of one column decides the label of {100 * some:.2g} % of the people"

    def test(_: float) -> Answer:
        if not ids:
            return Answer("inconclusive", None, "no label is known that features could tell")
        observed = max(shares.values(), default=0.0)
        found = ", and ".join(reasons())
        if found:
            little = "" if found == order else ": noise on the label protects little"
            return Answer("fail", observed, f"{found}{little}")
        together, one = _ALL_TOGETHER & shares.keys(), _NOT_ONE[_POSITION in shares]
        return Answer("pass", observed, _LEFT_OPEN if together else one)

    question = "Do the features alone reveal the labels, whatever the noise?"
    return Draft("features-reveal-label", section.level, question, most, ids, test, counted=True)
