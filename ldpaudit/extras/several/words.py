"""The verdict of a node with parts in one sentence, and what to do next."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ldpaudit.doors import AuditResult, number
from ldpaudit.judging import sentence
from ldpaudit.judging.advice import (
    ADVISE,
    DECLARE,
    MOST,
    PUBLISH,
    TABLE,
    TEXTS,
    holds,
    with_advice,
)
from ldpaudit.judging.checks.listing import PRIVATE_COLUMNS
from ldpaudit.judging.policy.sections import ClaimSection
from ldpaudit.judging.waivers import waived_words
from ldpaudit.receipt.found import Replay
from ldpaudit.receipt.words import reason
from ldpaudit.result import Check, Decision, Verdict
from ldpaudit.result.answers import VERDICTS, warnings_of
from ldpaudit.result.numbers import against
from ldpaudit.result.sentence import WAIVED, Sentence

UNNAMED: Final = "release"
_GIVE: Final = "Give the true labels (--truth)"
_KINDS: Final[Mapping[str, Mapping[str, str]]] = TABLE["kinds"]


@dataclass(frozen=True)
class Words:
    """What the parts of a node are called."""

    part: str
    """One of them, such as "column"."""
    all: str
    """All of them, such as "the 3 columns together"."""
    names: tuple[str, ...] = ()
    """The columns, or the files of the releases."""
    extent: str = ""
    """What ε is added up over, such as "over 3 columns"."""
    parts: tuple[str, ...] = ()
    """What each part is called, where columns and releases both are parts."""
    jointly: bool = False
    """Whether one mechanism is declared to have drawn all columns together."""

    def one(self, place: int) -> str:
        """Return what one part is called, such as ``column vote`` or ``release 2 (b.csv)``."""
        if self.parts:
            return self.parts[place]
        if self.part != "release":
            return f"{self.part} {self.names[place]}"
        return called_release(place + 1, self.names[place])

    def some(self, places: Sequence[int]) -> str:
        """Return what several parts are called, such as ``releases 1 and 3``."""
        if len(places) == 1:
            return self.one(places[0])
        several = "strata" if self.part == "stratum" else f"{self.part}s"
        if len(places) == len(self.names) > 2:
            return f"all {several}"
        if self.parts and len(places) == len(self.parts):
            return "all columns and releases"
        if self.parts:
            *first, last = [self.parts[place] for place in places]
            return f"{', '.join(first)} and {last}"
        numbered = self.part == "release"
        *first, last = [str(place + 1) if numbered else self.names[place] for place in places]
        return f"{several} {', '.join(first)} and {last}"


def called_release(number: int, name: str) -> str:
    """Return what one of several releases is called: a table in memory has no name of its own."""
    return f"release {number}" if name == UNNAMED else f"release {number} ({name})"


def sentence_of(
    verdict: Verdict,
    checks: Sequence[Check],
    parts: Sequence[AuditResult],
    words: Words,
    missed: Callable[[float], float | None],
    claim: ClaimSection | None = None,
    replays: Sequence[Replay] = (),
    costs: tuple[float | None, float] = (None, 0.0),
) -> str:
    """Return the verdict in one sentence; ``missed``: the excess found, by error probability.

    ``replays``: those of the releases, where they prove all noise. ``costs``: the claimed ε of all
    labels, and what private histograms cost besides, in nats.
    """
    own = _own(verdict, checks, words)
    text = _of_parts(verdict, parts, words) if own is None else own + _too(verdict, parts, words)
    said = Sentence(f"{VERDICTS[verdict]}{text}")
    if verdict == "pass":
        waived = _waived(checks, parts, words)
        if waived:
            said = Sentence(f"{VERDICTS['fail']}{waived}")
        elif replays:
            said = Sentence(f"Proven: {_proven(replays, words)}")
        else:
            said = _reassurance(checks, words, missed, claim)
        said = sentence.with_prior(said, *costs)
    warning, where = _warned(verdict, checks, parts, words)
    waived = _waived_besides(verdict, checks, parts, words)
    return str(replace(said, warning=warning, where=where, waived=waived))


def _proven(replays: Sequence[Replay], words: Words) -> str:
    if len(replays) == 1:
        return reason(replays[0])
    rows = sum(one.kept for one in replays)
    return (
        f"the labels of all {rows:,} rows of {words.all.removeprefix('the ')} are what the "
        "declared mechanisms draw with the committed keys"
    )


def _waived(checks: Sequence[Check], parts: Sequence[AuditResult], words: Words) -> str:
    """Return which violation is waived that would decide the verdict; empty where none is."""
    places = [("", checks)]
    places += [(f" in {words.one(place)}", part.checks) for place, part in enumerate(parts)]
    found = [(c, at) for at, some in places for c in some if c.waived and c.level == "error"]
    if not found:
        return ""
    (check, at), more = found[0], len(found) - 1
    others = f"; {more} more {'is' if more == 1 else 'are'} waived, too" if more else ""
    return f", {waived_words(check)}{at}: {check.reason}{others}"


def _waived_besides(
    verdict: Verdict, checks: Sequence[Check], parts: Sequence[AuditResult], words: Words
) -> str:
    """Return which violation is waived that the verdict says nothing of; empty where none is."""
    found = dict[tuple[str, str, str], list[int]]()
    for place, some in enumerate((checks, *(part.checks for part in parts)), -1):
        for check in some:
            if check.waived and (check.level == "warn" or verdict != "pass"):
                said = check.id, waived_words(check), check.reason
                found.setdefault(said, []).append(place)
    if not found:
        return ""
    (_, waived, why), places = next(iter(found.items()))
    at = "" if places[0] < 0 else f" in {words.some(places)}"
    more = len(found) - 1
    others = f", and {more} more {'are' if more > 1 else 'is'} waived, too" if more else ""
    return f"{waived}{at}: {why}{others}"


def _own(verdict: Verdict, checks: Sequence[Check], words: Words) -> str | None:
    """Return what a check of the node says that decides the verdict, None where none does."""
    for check in checks:
        if check.level == "error" and not check.waived and check.verdict == verdict:
            if verdict != "fail":
                return f": {check.reason}"
            what = "what is released can shift the odds between two people's true values"
            return f": {sentence.violation(check, f'{words.all} claim', what)}"
    return None


def _too(verdict: Verdict, parts: Sequence[AuditResult], words: Words) -> str:
    """Return whose own audits fail where the node does, too."""
    # To the audit of a column the other released ones are features, so noise that goes along with
    # another column's can fail there although the column alone keeps its claim.
    places = [place for place, part in enumerate(parts) if part.verdict == verdict == "fail"]
    if not places:
        return ""
    audits = "audit" if len(places) == 1 else "audits"
    fail = "fails" if len(places) == 1 else "fail"
    return f"; the {audits} of {words.some(places)} {fail}, too"


def _of_parts(verdict: Verdict, parts: Sequence[AuditResult], words: Words) -> str:
    """Return what the first part with that verdict says, and how many others have it."""
    places = [place for place, part in enumerate(parts) if part.verdict == verdict]
    if not places:
        return ""
    # The node says the warnings, and what is waived.
    stated = Sentence.bare(parts[places[0]].sentence)
    said = stated.removeprefix(VERDICTS[verdict]).removeprefix(" in ").removeprefix(": ")
    others = f"; and in {words.some(places[1:])}" if places[1:] else ""
    inner = ", " if stated.startswith(f"{VERDICTS[verdict]} in ") else ": "
    return f" in {words.one(places[0])}{inner}{said.rstrip('.')}{others}"


def _reassurance(
    checks: Sequence[Check],
    words: Words,
    missed: Callable[[float], float | None],
    claim: ClaimSection | None,
) -> Sentence:
    start = VERDICTS["pass"]
    claimed = next((c for c in checks if c.id == "claimed-epsilon" and c.verdict == "pass"), None)
    if claimed is None or claimed.observed is None or claimed.limit is None:
        met = f"every check of the policy is met, in each {words.part}"
        return Sentence(f"{start}: {met}")
    observed, limit = against(claimed.observed, claimed.limit, "down")
    excess = missed(1 - (claimed.confidence or 0.0))
    power = (
        ""
        if excess is None
        else "this audit would have noticed, with 90 % probability, a true ε above "
        f"{number(claimed.limit + excess, 'up')}"
    )
    return Sentence(
        f"{start}: nothing contradicts the claimed ε = {limit} of {words.all}{_allowed(claim)}, "
        f"nor the claim of any {words.part}",
        bound=f"certified: at least ε = {observed} together",
        power=power,
    )


def _allowed(claim: ClaimSection | None) -> str:
    """Return which limit of the policy the claim was judged by; empty where it states none."""
    most = None if claim is None else claim.limit
    if most is None or most.epsilon is None:
        return ""
    return f" (the policy allows {number(most.epsilon)}{most.words})"


def _warned(
    verdict: Verdict, checks: Sequence[Check], parts: Sequence[AuditResult], words: Words
) -> tuple[str, str]:
    """Return the warning, and where it holds; a violation says enough."""
    if verdict == "fail":
        return "", ""
    own = [check.reason for check in warnings_of(checks)]
    places = [place for place, part in enumerate(parts) if warnings_of(part.checks)]
    if own:
        return own[0], ""
    if not places:
        return "", ""
    first = warnings_of(parts[places[0]].checks)[0]
    return first.reason, f"in {words.some(places)}"


def steps_of(
    checks: Sequence[Check],
    parts: Sequence[AuditResult],
    words: Words,
    advice: str | None,
    *,
    ran: bool = True,
) -> tuple[str, ...]:
    """Return what to do now, at most three steps: the node's own first, then the worst part's.

    A step that all parts share is said once; one of some parts names them. ``advice``: the last
    step, where there is one. ``ran``: whether the audits of the node, or of its parts, did.
    """
    own = list(_own_steps(checks, parts, words, ran))
    found = [*own, *_steps_of_parts(checks, parts, words, own)]
    return with_advice(_given_once(found, words), advice, MOST)


def of_strata(
    said: str,
    steps: Sequence[str],
    verdict: Verdict,
    decision: Decision,
    checks: Sequence[Check],
    strata: Sequence[AuditResult],
) -> tuple[str, tuple[str, ...]]:
    """Return the sentence and the steps of a column whose strata have claims of their own.

    ``said`` and ``steps`` are those of the column itself, where its own checks decide.
    """
    words = Words("stratum", "all strata", tuple(part.release.label or "" for part in strata))
    if said and verdict != "pass":
        too = _too(verdict, strata, words).removeprefix("; ")
        said += f" {_capital(too)}." if too else ""
        waived = _waived_besides(verdict, (), strata, words)
        said += f" {WAIVED}{waived}." if waived and WAIVED not in said else ""
    else:
        said = sentence_of(verdict, checks, strata, words, lambda _: None)
    if decision == "publish":
        return said, tuple(steps)
    found = list(steps)
    if any(part.decision == decision for part in strata):
        found += _steps_of_parts(checks, strata, words, found[:])
    advice = next((s for part in strata for s in part.next_steps if s.startswith(ADVISE)), None)
    return said, with_advice(_given_once(found, words), advice, MOST)


def _given_once(steps: list[str], words: Words) -> list[str]:
    """Return steps of which one alone asks for the true labels, where the first does."""
    asked = [place for place, step in enumerate(steps) if _GIVE in step]
    return [
        _KINDS[words.part]["give_truth"] if place in asked[:1] else step
        for place, step in enumerate(steps)
        if place not in asked[1:]
    ]


def _own_steps(
    checks: Sequence[Check], parts: Sequence[AuditResult], words: Words, ran: bool
) -> Iterator[str]:
    """Yield the rows of the table that hold for the checks of the node."""
    failed = [c for c in checks if c.verdict == "fail" and not c.waived]
    asked = next((c for c in checks if c.verdict == "inconclusive"), None)
    parts_fail = any(part.verdict == "fail" for part in parts)
    stopped = any(record.status == "stopped" for part in parts for record in part.audits)
    # The audit ran, and a part that is not as claimed is why nothing bounds the node.
    excused = asked is not None and ran and ":" not in asked.reason and parts_fail
    facts: dict[str, Any] = {
        "shared_draws": any(
            c.id == "claimed-channel" or (c.confidence and c.observed is None) for c in failed
        ),
        "exceeded": any(c.confidence for c in failed),
        "parts_fail": parts_fail,
        "violated": parts_fail or any(c.level == "error" for c in failed),
        "jointly": words.jointly,
        "declared_too_much": any(
            c.confidence is None and c.id == "claimed-epsilon" for c in failed
        ),
        "open": asked is not None and not stopped,
        "no_claim": asked is not None and asked.limit is None,
        "weak": asked is not None and asked.limit is not None and asked.observed is not None,
        "nothing_bounded": asked is not None
        and asked.limit is not None
        and asked.observed is None
        and not excused,
        "truth": all(part.release.truth for part in parts),
        "ran": ran,
        "columns_left_out": any(c.id == PRIVATE_COLUMNS for c in failed),
    }
    for row in TABLE["node"]:
        if holds(row, facts):
            yield row["say"].format_map({**TEXTS, **_KINDS[words.part]})


def _steps_of_parts(
    checks: Sequence[Check], parts: Sequence[AuditResult], words: Words, own: Sequence[str]
) -> Iterator[str]:
    """Yield the steps of the parts whose decision is the worst, first steps first, none of ``own``.

    Nothing where they could be published and the node could not.
    """
    order = ("publish", "not yet", "do not publish")
    worst = max((part.decision for part in parts), key=order.index, default="publish")
    if worst == "publish" and any(check.verdict != "pass" for check in checks):
        return
    places = [place for place, part in enumerate(parts) if part.decision == worst]
    for rank in range(MOST):
        told: dict[str, list[int]] = {}
        for place in places:
            for step in parts[place].next_steps[rank : rank + 1]:
                if not step.startswith(ADVISE) and step not in own:
                    told.setdefault(_of_files(step, words.part), []).append(place)
        for step, of in told.items():
            everywhere = len(of) == len(parts)
            yield step if everywhere else f"{_capital(words.some(of))}: {step}"


def _of_files(step: str, part: str) -> str:
    """Return a step about one file as one about all files, where the parts are releases."""
    if part != "release":
        return step
    words = _KINDS[part]
    return (
        words["publish"]
        if step == PUBLISH
        else words["declare"]
        if step.startswith(DECLARE)
        else step
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
