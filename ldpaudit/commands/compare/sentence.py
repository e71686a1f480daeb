"""The comparison in one sentence: what the strongest attack loses, and what the model costs.

A change is named only where its interval leaves its sign in no doubt. Each difference that is named
stands with its interval, at one level at which all of them hold together. Where an attack's
accuracy and its advantage over the features alone do not go the same way, both are named: replaced
features tell less by themselves, so an attack can be right less often although the release adds
more.
"""

from collections.abc import Sequence

from ldpaudit.commands.compare.differences.outside import ADVANTAGE, BEST, NUMBERS
from ldpaudit.commands.compare.titles import setting, titles
from ldpaudit.commands.compare.wording import Intervals, apart, points
from ldpaudit.commands.utility.scores import ACCURACY, SQUARED_ERROR
from ldpaudit.comparison import Difference
from ldpaudit.result import AuditResult

Own = dict[str, Difference]
"""By id the differences of one release."""


def sentence(
    releases: Sequence[AuditResult], differences: Sequence[Difference], confidence: float
) -> str:
    """Return what the comparison comes to, in one sentence.

    Parameters
    ----------
    releases : sequence of AuditResult
        In the order of their letters.
    differences : sequence of Difference
    confidence : float
        At which the simultaneous ones hold together.
    """
    letters = [chr(ord("B") + i) for i in range(len(releases) - 1)]
    first, called = releases[0], titles(releases)
    found = [_named(first, {d.id: d for d in differences if d.b == letter}) for letter in letters]
    intervals = Intervals.of([d for own in found for d in own.values()], confidence)
    clauses = [
        f"{title} {_clause(first, other, own, intervals)}"
        for title, other, own in zip(called[1:], releases[1:], found, strict=True)
    ]
    text = f"{setting(releases)}{'; '.join(clauses)}, against {called[0]}{intervals.remark()}."
    return text[:1].upper() + text[1:]


def _named(first: AuditResult, own: Own) -> Own:
    """Return the differences that the sentence names."""
    ids = [NUMBERS] if first.estimate(NUMBERS) is not None else [BEST]
    if ids == [BEST] and _apart(own):
        ids.append(ADVANTAGE)
    ids.append(ACCURACY if ACCURACY in own else SQUARED_ERROR)
    return {identifier: own[identifier] for identifier in ids if identifier in own}


def _apart(own: Own) -> bool:
    """Return whether the advantage does what the accuracy does not, or does not show."""
    if BEST not in own or ADVANTAGE not in own:
        return False
    accuracy, advantage = own[BEST], own[ADVANTAGE]
    opposite = accuracy.value * advantage.value < 0
    return opposite or (advantage.decided and not accuracy.decided)


def _clause(first: AuditResult, other: AuditResult, own: Own, intervals: Intervals) -> str:
    attack, test = _attack(first, other, own, intervals), _test(first, other, own, intervals)
    beside = _advantage(first, other, own, intervals)
    return f"{attack}{beside}{',' if beside and test else ''}{' and ' + test if test else ''}"


def _attack(first: AuditResult, other: AuditResult, own: Own, intervals: Intervals) -> str:
    if first.estimate(NUMBERS) is not None:
        return _numeric_attack(first, other, own, intervals)
    ours, theirs = first.estimate(BEST), other.estimate(BEST)
    if ours is None or theirs is None:
        return "was not attacked in the same way"
    shares = [f"{share} %" for share in apart(ours.value, theirs.value)]
    found = own.get(BEST)
    if found is None:
        return f"has its best attack at {shares[1]} (no interval for the change from {shares[0]})"
    interval = intervals.points(found)
    if not found.decided:
        return f"leaves the best attack at {shares[1]}, no change shown from {shares[0]} {interval}"
    verb = "lowers" if found.high < 0 else "raises"
    return f"{verb}{_claim(found)} the best attack from {shares[0]} to {shares[1]} {interval}"


def _advantage(first: AuditResult, other: AuditResult, own: Own, intervals: Intervals) -> str:
    """Return what the advantage does where the accuracy alone would hide it."""
    found, ours, theirs = own.get(ADVANTAGE), first.estimate(ADVANTAGE), other.estimate(ADVANTAGE)
    if found is None or ours is None or theirs is None:
        return ""
    subject = "its advantage over the features alone"
    values = apart(ours.value, theirs.value)
    change = f"from {values[0]} to {values[1]} points {intervals.points(found)}"
    if not found.decided:
        return f", though {subject} went {change}, no change shown"
    verb = "falls" if found.high < 0 else "rises"
    return f", though {subject} {verb}{_claim(found)} {change}"


def _claim(found: Difference) -> str:
    return "" if found.kind == "certified" else ", by estimate,"


def _numeric_attack(first: AuditResult, other: AuditResult, own: Own, intervals: Intervals) -> str:
    """Return the clause for labels that are numbers: how far the best guess is off."""
    ours, theirs, found = first.estimate(NUMBERS), other.estimate(NUMBERS), own.get(NUMBERS)
    if ours is None or theirs is None or found is None:
        return "was not attacked in the same way"
    interval = intervals.plain(found)
    if not found.decided:
        return f"shows no change of the best attack's squared error {interval}"
    verb = "raises" if found.low > 0 else "lowers"
    values = f"from {ours.value:.4g} to {theirs.value:.4g}"
    return f"{verb} the best attack's squared error {values} {interval}"


def _test(first: AuditResult, other: AuditResult, own: Own, intervals: Intervals) -> str:
    found = own.get(ACCURACY)
    if found is not None:
        interval = intervals.points(found)
        if not found.decided:
            return f"shows no change of test accuracy {interval}"
        verb = "costs" if found.high < 0 else "gains"
        return f"{verb} {points(abs(found.value))} points of test accuracy {interval}"
    error = own.get(SQUARED_ERROR)
    if error is None:
        return ""
    interval = intervals.plain(error)
    if not error.decided:
        return f"shows no change of the squared error on test rows {interval}"
    verb = "raises" if error.low > 0 else "lowers"
    scores = [r.estimate(SQUARED_ERROR) for r in (first, other)]
    values = " to ".join(f"{e.value:.4g}" for e in scores if e is not None)
    return f"{verb} the squared error on test rows from {values} {interval}"
