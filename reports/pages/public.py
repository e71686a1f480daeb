"""The page for the public: verdict, policy, claim, power and limits, and nothing else.

No number of it was measured on true labels but the power: no bound, no attack, no loss, no group,
and not which check failed, which could tell an attacker where to look.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ldpaudit.reports.pages.common import Pair
from ldpaudit.reports.pages.front import policy
from ldpaudit.reports.pages.subject import declared, digest
from ldpaudit.reports.parts.part import Section
from ldpaudit.reports.summary.claim import promise
from ldpaudit.reports.summary.power import power_told
from ldpaudit.reports.summary.told import Told
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.harmless import name, shown
from ldpaudit.reports.text.numbers import number
from ldpaudit.reports.text.pieces import Piece, pieces
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult, Verdict

_MEANINGS: Final[dict[Verdict, str]] = {
    "pass": "An audit tried to refute what the release claims, and to find what its policy "
    "forbids. It found neither. That is no proof: the limits are below.",
    "fail": "An audit found that the release breaks its claim or a limit of its policy.",
    "inconclusive": "The audit cannot tell: it was too weak, or nothing was claimed.",
}
_WAIVED: Final = "A violation was found. The publisher knows it and answers for it."
_WARNED: Final = "A check that decides nothing but warns has failed."
_SEEN: Final = {
    True: "The auditor held the true labels.",
    False: "The auditor saw the released file alone, as anybody can.",
}


@dataclass(frozen=True)
class PublicView:
    """The page."""

    release: str
    date: str
    kind: Verdict
    verdict: str
    meaning: tuple[str, ...]
    digest: str
    claim: str
    declared: tuple[Pair, ...]
    policy: str
    questions: tuple[tuple[str, str, bool], ...]
    """Each question of the policy, its limit, and whether it decides."""
    corrections: tuple[str, ...]
    power: Told
    rests_on: tuple[str, ...]
    version: str


def public_view(result: AuditResult) -> PublicView:
    """Return the page of a result for the public."""
    printer = Printer(result)
    waived = wording.headline(result) == wording.WAIVED
    every = pieces(result)
    return PublicView(
        release=name(result.release.name),
        date=result.date or "",
        kind="inconclusive" if waived else result.verdict,
        verdict=wording.headline(result),
        meaning=tuple(_meaning(result, waived=waived)),
        digest=digest(result),
        claim=promise(result, printer.claim),
        declared=(*declared(result), *((piece.title, piece.claimed) for piece in every[1:])),
        policy=_policy(result),
        questions=tuple(dict.fromkeys(q for piece in every for q in _questions(piece.result))),
        corrections=wording.correction_lines(result),
        power=_power(every),
        rests_on=wording.assumed_by_bounds(result),
        version=name(result.ldpaudit_version),
    )


def _meaning(result: AuditResult, *, waived: bool) -> Iterator[str]:
    every = wording.every_check(result)
    warned = any(c.level == "warn" and c.verdict == "fail" and not c.waived for c in every)
    yield _WAIVED if waived else _MEANINGS[result.verdict]
    if warned:
        yield _WARNED
    yield _SEEN[wording.truth_used(result)]


def _power(every: Sequence[Piece]) -> Told:
    """Return the power of the audit, of each part where there are some."""
    whole, *parts = (
        power_told(Section("power", piece.result, piece.printer), groups=False) for piece in every
    )
    named = zip(every[1:], parts, strict=True)
    texts = [f"{piece.title}: {text}" for piece, told in named for text in told.sentences]
    sentences = (*whole.sentences, *texts)
    return replace(whole, sentences=sentences, missing="" if sentences else whole.missing, more="")


def _policy(result: AuditResult) -> str:
    text = policy(result)
    return text[:1].upper() + text[1:]


def _questions(result: AuditResult) -> Iterator[tuple[str, str, bool]]:
    for check in result.checks:
        limit = "" if check.limit is None else number(check.limit)
        yield shown(check.question), limit, check.level == "error"
