"""How often the audits of planted releases were right, and whether that is as documented."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, Literal

from ldpaudit.commands.selftest.planting import LEAKS
from ldpaudit.commands.selftest.trial import Outcome
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.result import Frozen
from ldpaudit.result.numbers import percent
from ldpaudit.terminal import say

# How often a good installation is said not to work, by all figures together.
CHANCE: Final = 1e-4
# The confidence of each interval, and of certified bounds and policies by default.
LEVEL: Final = 0.95
_SIZES: Final = (500, 1000, 2500, 10_000, 50_001)


class Figure(Frozen):
    """How often something happened, against what is documented.

    Attributes
    ----------
    id
        A stable name, such as ``false_alarms``.
    title
        What is counted.
    count
        How often it happened.
    n
        Of how many releases.
    value
        The observed share; null where there was no release.
    low
        The lower end of its Clopper–Pearson interval.
    high
        The upper end.
    level
        The interval's confidence.
    stated
        The share that is documented.
    side
        What the documented share is of the true one.
    p_value
        How likely a count this bad is where the documented share is true.
    finding
        Whether the count fits what is documented; "too few" if no count could refute it.
    """

    id: str
    title: str
    count: int
    n: int
    value: float | None
    low: float
    high: float
    level: float = LEVEL
    stated: float
    side: Literal["at least", "at most"]
    p_value: float
    finding: Literal["as documented", "refuted", "too few"]


def figure(
    name: str,
    title: str,
    count: int,
    n: int,
    stated: float,
    side: Literal["at least", "at most"] = "at most",
    share: float = 1.0,
) -> Figure:
    """Compare a count with what is documented; ``share`` is of the chance of a false alarm."""
    from scipy.stats import binom

    def p_value(count: int) -> float:
        at_most = side == "at most"
        return float(binom.sf(count - 1, n, stated) if at_most else binom.cdf(count, n, stated))

    finding: Literal["as documented", "refuted", "too few"] = "as documented"
    if p_value(count) <= CHANCE * share:
        finding = "refuted"
    elif p_value(n if side == "at most" else 0) > CHANCE * share:
        finding = "too few"
    low, high = clopper_pearson(count, n, 1 - LEVEL) if n else (0.0, 1.0)
    return Figure(
        id=name,
        title=title,
        count=count,
        n=n,
        value=count / n if n else None,
        low=float(low),
        high=float(high),
        stated=stated,
        side=side,
        p_value=p_value(count),
        finding=finding,
    )


def figures(outcomes: Collection[Outcome]) -> tuple[Figure, ...]:
    """Return every figure; each has an equal share of the chance of refuting by bad luck."""
    counted = list(_counted(outcomes))
    share = 1 / sum(stated > 0 for *_, stated, _ in counted)
    return tuple(figure(*one, share=share) for one in counted)


def _counted(
    outcomes: Collection[Outcome],
) -> Iterator[tuple[str, str, int, int, float, Literal["at least", "at most"]]]:
    broken = sum(one.verdict == "error" for one in outcomes)
    yield "faults", "audits that could not run", broken, len(outcomes), 0.0, "at most"
    for name in sorted({name for one in outcomes for name in one.held}):
        held = [one.held[name] for one in outcomes if name in one.held]
        title, missed = f"certified bound {name} above the truth", held.count(False)
        yield f"missed.{name}", title, missed, len(held), 1 - LEVEL, "at most"
    honest = [one for one in outcomes if not one.leaking and one.verdict != "error"]
    accused, warned = (
        sum(one.verdict == "fail" for one in honest),
        sum(bool(one.warned) for one in honest),
    )
    title = "honest releases in which a violation is claimed"
    yield "false_alarms", title, accused, len(honest), 1 - LEVEL, "at most"
    title = "honest releases in which a check warns without cause"
    yield "false_warnings", title, warned, len(honest), 1 - LEVEL, "at most"
    revealing = {kind for kind, way in LEAKS.items() if "features-reveal-label" in way.found_by}
    noise = {kind for kind, way in LEAKS.items() if way.noise}
    groups = {
        "noise": ("too little noise", noise),
        "draws": ("draws that are not as declared", LEAKS.keys() - revealing - noise),
        "columns": ("the label in columns or rows", revealing),
    }
    strong = [one for one in outcomes if one.leaking and one.strong]
    for name, (of, kinds) in groups.items():
        planted = [one for one in strong if one.setting.kind in kinds]
        found = sum(one.found for one in planted)
        yield (
            f"found.{name}",
            f"strong leaks of {of} that are found",
            found,
            len(planted),
            0.95,
            "at least",
        )
    promised = [one for one in outcomes if one.leaking and one.promised]
    title, found = (
        "leaks found that the audit says it would find",
        sum(one.found for one in promised),
    )
    yield "found.promised", title, found, len(promised), 0.9, "at least"


class Row(Frozen):
    """How the audits of one group of releases ended.

    Attributes
    ----------
    group
        What they have in common: mechanism, rows, labels, made or truth.
    name
        Its value.
    leaking
        Whether they leak.
    n
        How many there are.
    ended
        How many audits ended with each verdict.
    found
        Of leaks: in how many a check that names the leak failed.
    warned
        In how many a check of level warn failed.
    """

    group: str
    name: str
    leaking: bool
    n: int
    ended: dict[str, int]
    found: int
    warned: int


class Selftest(Frozen):
    """What a self-test found.

    Attributes
    ----------
    schema_version
        The version of this form.
    verdict
        Whether this installation works as documented.
    sentence
        The same for people.
    chance
        How often a good installation is said not to work.
    figures
        Coverage, false alarms and power.
    rows
        How audits ended, group by group.
    releases
        Each planted release: what it was, and how its audit ended.
    planned
        Releases of the plan; fewer were audited where it ended early.
    seed
        The seed of all releases and audits.
    thorough
        Whether it is the long plan.
    seconds
        How long it took.
    """

    schema_version: str = "1.0"
    verdict: Literal["pass", "fail", "inconclusive"]
    sentence: str
    chance: float = CHANCE
    figures: tuple[Figure, ...]
    rows: tuple[Row, ...]
    releases: tuple[Outcome, ...]
    planned: int
    seed: int
    thorough: bool
    seconds: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], planned: int, seed: int, **about: Any) -> "Selftest":
        """Judge outcomes: fail if a figure refutes what is documented, pass if each could have."""
        every = figures(outcomes)
        findings = {figure.finding for figure in every}
        honest = [one for one in outcomes if not one.leaking]
        leaking = [one for one in outcomes if one.leaking]
        accused = sum(one.verdict == "fail" for one in honest)
        found = sum(one.found for one in leaking)
        counts = (
            f"{len(honest):,} honest releases, {accused or 'no'} violation{'s' * (accused != 1)} "
            f"claimed; {len(leaking):,} leaking releases, {found:,} found"
        )
        wrong = "; ".join(figure.title for figure in every if figure.finding == "refuted")
        verdict: Literal["pass", "fail", "inconclusive"] = "pass"
        sentence = f"This installation works as documented: {counts}."
        if "refuted" in findings:
            verdict, sentence = (
                "fail",
                f"This installation does not work as documented ({wrong}): {counts}.",
            )
        elif "too few" in findings or not outcomes:
            verdict = "inconclusive"
            sentence = f"Too few releases to say whether this installation works: {counts}."
        return cls(
            verdict=verdict,
            sentence=sentence,
            figures=every,
            rows=tuple(_rows(outcomes)),
            releases=tuple(outcomes),
            planned=planned,
            seed=seed,
            **about,
        )


def _rows(outcomes: Collection[Outcome]) -> Iterator[Row]:
    groups: dict[str, Any] = {
        "mechanism": lambda one: one.setting.mechanism,
        "rows": lambda one: max(size for size in _SIZES if size <= one.setting.rows),
        "labels": lambda one: one.setting.classes,
        "made": lambda one: one.setting.kind,
        "truth": lambda one: one.setting.truth,
    }
    for group, value in groups.items():
        for leaking, key in sorted({(one.leaking, value(one)) for one in outcomes}):
            members = [one for one in outcomes if (one.leaking, value(one)) == (leaking, key)]
            ended = Counter(one.verdict for one in members)
            last = _SIZES[_SIZES.index(key) + 1] - 1 if group == "rows" else 0
            yield Row(
                group=group,
                name=f"{key:,} to {last:,}" if group == "rows" else str(key),
                leaking=leaking,
                n=len(members),
                ended={name: ended[name] for name in ("pass", "fail", "inconclusive", "error")},
                found=sum(one.leaking and one.found for one in members),
                warned=sum(bool(one.warned) for one in members),
            )


def print_summary(tested: Selftest, *, quiet: bool) -> None:
    """Print whether the installation works, and each figure; quiet: the sentence only."""
    say(tested.sentence)
    if quiet:
        return
    for one in tested.figures:
        counted = f"{one.count:,} of {one.n:,} ({100 * one.low:.1f} to {100 * one.high:.1f} %"
        documented = f"documented: {one.side} {percent(one.stated)})"
        say(f"  {one.finding:<14} {one.title}: {counted}; {documented}")
    if len(tested.releases) < tested.planned:
        say(f"  {'ended early':<14} {len(tested.releases):,} of {tested.planned:,} releases")
    say(
        f"Intervals are at {percent(LEVEL)} (Clopper–Pearson). A good installation is said not to "
        f"work in at most one self-test of {1 / CHANCE:,.0f}. Seed {tested.seed}."
    )
