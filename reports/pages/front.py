"""Page one: whether to publish, why, what to do, what of, by which policy, for whom."""

from collections.abc import Iterator
from dataclasses import dataclass

from ldpaudit.reports.pages.common import Pair
from ldpaudit.reports.pages.subject import claim_in_words, held
from ldpaudit.reports.parts.part import Tile
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.guesses import best_guess
from ldpaudit.reports.text.harmless import PHRASE, name, shown
from ldpaudit.reports.text.numbers import rows
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.result import AuditResult

_LOSS_OF = "by features and released label together"


@dataclass(frozen=True)
class Front:
    """The first screen, and the first page in print."""

    release: str
    publish: str
    verdict: str
    sentence: str
    steps: tuple[str, ...]
    date: str
    facts: tuple[Pair, ...]
    tiles: tuple[Tile, ...] = ()

    @property
    def kind(self) -> str:
        """The look of the decision: "pass", "inconclusive" or "fail"."""
        return {"yes": "pass", "no": "fail"}.get(self.publish, "inconclusive")


def front_of(result: AuditResult, printer: Printer) -> Front:
    """Return the first screen of a result."""
    return Front(
        name(result.release.name),
        wording.publish_answer(result),
        wording.headline(result),
        _sentence(result),
        tuple(shown(step) for step in result.next_steps),
        result.date or "",
        tuple(_facts(result, printer)),
        tuple(_tiles(result, printer)),
    )


def _sentence(result: AuditResult) -> str:
    """Return the verdict's sentence without the words of the banner."""
    text = shown(result.sentence, 3 * PHRASE)
    start = wording.headline(result)
    rest = text.removeprefix(f"{start}: ").removeprefix("Violation found, ")
    rest = rest.removeprefix(f"{start} ")  # "… in column 2: …"
    return rest[:1].upper() + rest[1:]


def _facts(result: AuditResult, printer: Printer) -> Iterator[Pair]:
    yield "Audited", audited(result)
    yield "Claim", claim_in_words(result, printer)
    yield "Policy", policy(result)
    truth = result.release.truth
    yield "Seen by the auditor", "the release and the true labels" if truth else "the release alone"


def audited(result: AuditResult) -> str:
    """Return the size of the release and the beginning of its digest."""
    release = result.release
    what, count = held(result)
    features = f"{rows(release.features)} features"
    parts = [f"{rows(release.rows)} rows, {features}, {count} {what.lower()}"]
    if release.sha256:
        parts.append(f"SHA-256 {name(release.sha256[:12])}…")
    return "; ".join(parts)


def policy(result: AuditResult) -> str:
    """Return which policy judged, and how many of its checks decide."""
    which = wording.policy_words(result.run)
    every = wording.every_check(result)
    deciding = sum(check.level == "error" for check in every)
    decide = "1 check decides" if deciding == 1 else f"{deciding} checks decide"
    return f"{which}; {decide}, {len(every) - deciding} only warn"


def _tiles(result: AuditResult, printer: Printer) -> Iterator[Tile]:
    claim = printer.claim
    unit = {"": "none", "1": " nat", "∞": ""}.get(claim, " nats")
    source, mark = ("exact, as declared", "exact") if claim else ("", "")
    yield Tile("Claimed ε", f"{claim}{unit}", source, mark)
    if printer.measured is not None:
        yield _tile("Measured ε", printer.measured)
    yield from _attack(result, printer)
    loss = result.estimate("instance_loss.mean_lower") or result.estimate("instance_loss.mean")
    if loss is not None:
        yield _tile("Mean loss of a person", printer.quantity(loss), (_LOSS_OF,))


def _attack(result: AuditResult, printer: Printer) -> Iterator[Tile]:
    """Yield the best attack beside what it would reach without the release."""
    guess = best_guess(result, printer)
    if guess is not None:
        found = guess.quantity
        yield Tile(guess.title, guess.text, found.words, found.mark, guess.blind)
    elif not result.release.truth:
        yield Tile("Best attack", "not scored", remarks=("that needs the true labels",))


def _tile(label: str, quantity: Quantity, remarks: tuple[str, ...] = ()) -> Tile:
    text = f"{quantity.text} {quantity.unit}".strip()
    return Tile(label, text, quantity.words, quantity.mark, remarks)
