"""`ldpaudit selftest`: plant releases, audit each as ``run`` does, and count what was right."""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from pydantic import ConfigDict, Field, ValidationError

import ldpaudit
from ldpaudit.doors import (
    AuditOptions,
    AuditResult,
    FloatArray,
    Frozen,
    LdpAuditError,
    OutputError,
    Progress,
    Said,
    Scratch,
    Stop,
    Stored,
    audit_with,
    available_threads,
    child_generator,
    clopper_pearson,
    percent,
    processes,
)
from ldpaudit.extras.selftest.planting import (
    HONEST,
    LEAKS,
    MEASURED,
    OF_CLASSES,
    OF_NUMBERS,
    WAYS,
    Planted,
    Setting,
    centres,
    people,
    plant,
    shares,
)
from ldpaudit.extras.selftest.request import SelftestRequest
from ldpaudit.randomness import seed_from

# The audits that decide under the default policy, with true labels; columns are always read.
DECIDING: Final = ("assumptions", "mechanism", "seeds", "power")
# The most rows of releases that are attacked: attacks take longer than all else.
ATTACKED_ROWS: Final = 1500
# How often a good installation is said not to work, by all figures together.
CHANCE: Final = 1e-4
# The confidence of each interval, and of certified bounds and policies by default.
LEVEL: Final = 0.95
# Certified lower bounds of the channel's ε, and all whose id continues one of these.
_BOUNDS: Final = ("mechanism.epsilon_lower", "release_only.epsilon_lower")
_BEST: Final = "attack.best.accuracy"
# 0 to 2,047, besides the usual ones: all that are planted; more would take most of the time.
_SEEDS_TRIED: Final = 1 << 11
_DRAWN: Final = 20_000
_SIZES: Final = (500, 1000, 2500, 10_000, 50_001)
# Rows of honest and of leaking releases, and the excess of noise that is too small.
_QUICK: Final = ((500, 3000), (2500, 3500), (1.5, 3.0))
_THOROUGH: Final = ((500, 50_000), (500, 50_000), (0.25, 3.0))
Side = Literal["at least", "at most"]
Finding = Literal["as documented", "refuted", "too few"]


class Outcome(Frozen):
    """How the audit of one planted release ended."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    setting: Setting = Field(description="What was planted.")
    verdict: str = Field(description='Of the result; "error" where the audit could not run.')
    failed: tuple[str, ...] = Field((), description="Checks of level error that failed.")
    warned: tuple[str, ...] = Field((), description="Checks of level warn that failed.")
    held: Mapping[str, bool] = Field(
        default_factory=dict, description="Whether each certified bound with a known truth held."
    )
    power: float | None = Field(
        None,
        description="The smallest excess that the audit says it would find with 90 % probability, "
        "in nats.",
    )
    true_epsilon: float = Field(
        math.inf, description="What the release truly reveals about a label, in nats."
    )
    seconds: float = Field(0.0, description="How long it took.")
    reason: str = Field(
        "", description="Of the first check that failed, or why the audit could not run."
    )

    @property
    def leaking(self) -> bool:
        """Whether the release leaks."""
        return self.setting.kind in LEAKS

    @property
    def found(self) -> bool:
        """Whether a check that names the leak failed."""
        return not WAYS[self.setting.kind].found_by.isdisjoint((*self.failed, *self.warned))


def planned(thorough: bool, seed: int) -> list[Setting]:
    """Return what every planted release is to be, honest and leaking ones mixed."""
    sizes = _THOROUGH if thorough else _QUICK
    honest = [_honest(number, seed, sizes[0]) for number in range(1000 if thorough else 30)]
    for place, one in enumerate(() if thorough else honest[:5]):  # These are attacked.
        k, epsilon = min(one.classes, 3), min(one.epsilon, 2.0)
        made = ("as declared", "randomized-response", k, ATTACKED_ROWS, epsilon)
        honest[place] = Setting(one.number, *made)
    leaking = [_leaking(number, seed, *sizes[1:]) for number in range(300 if thorough else 21)]
    at = [(place + 0.5) / len(part) for part in (honest, leaking) for place in range(len(part))]
    return [[*honest, *leaking][place] for place in np.argsort(at, kind="stable")]


def _honest(number: int, seed: int, rows: tuple[int, int]) -> Setting:
    rng = child_generator(seed, "selftest", "honest", str(number), "setting")
    kind = str(rng.choice(list(HONEST), p=(0.6, 0.1, 0.1, 0.1, 0.1)))
    n, truth = _between(rows, rng), bool(rng.random() >= 0.2)
    # Randomized response is four times as frequent as each of the other mechanisms.
    every, only = [*["randomized-response"] * 3, *OF_CLASSES, *OF_NUMBERS], HONEST[kind].mechanisms
    name = str(rng.choice([name for name in every if not only or name in only]))
    return Setting(number, kind, name, int(rng.integers(2, 11)), n, _epsilon(rng), truth=truth)


def _leaking(number: int, seed: int, rows: tuple[int, int], excess: tuple[float, float]) -> Setting:
    rng = child_generator(seed, "selftest", "leaking", str(number), "setting")
    kind, way = list(LEAKS.items())[number % len(LEAKS)]
    n, more = _between(rows, rng), float(rng.uniform(*excess))
    name = str(rng.choice(list(way.mechanisms)))
    return Setting(number, kind, name, int(rng.integers(2, 11)), n, _epsilon(rng), more)


def _epsilon(rng: np.random.Generator) -> float:
    return float(rng.choice((0.5, 1.0, 2.0, 3.0)))


def _between(bounds: tuple[int, int], rng: np.random.Generator) -> int:
    """Draw a number of rows: most releases are small, since large ones take long."""
    low, high = (math.log(bound) for bound in bounds)
    return round(math.exp(low + (high - low) * rng.random() ** 2))


def attacked(setting: Setting) -> bool:
    """Return whether label inference is audited, too: where the best attack is known."""
    plain = setting.kind == "as declared" and setting.mechanism == "randomized-response"
    return plain and setting.truth and setting.rows <= ATTACKED_ROWS


def _generator(setting: Setting, seed: int, part: str) -> np.random.Generator:
    name = "leaking" if setting.kind in LEAKS else "honest"
    return child_generator(seed, "selftest", name, str(setting.number), part)


def planted(setting: Setting, seed: int) -> Planted:
    """Make a release: its setting and the seed decide every draw."""
    return plant(setting, _generator(setting, seed, "release"))


def outcome(setting: Setting, seed: int) -> Outcome:
    """Make a release, audit it as ``ldpaudit run`` does, and compare with what is known."""
    start = time.perf_counter()
    alone = () if setting.truth else ("observational",)
    try:
        release = planted(setting, seed)
        options = AuditOptions(
            truth=release.truth if setting.truth else None,
            rng=seed_from(_generator(setting, seed, "audit")),
            only=(*DECIDING, *alone, *("label-inference",) * attacked(setting)),
            seeds_tried=_SEEDS_TRIED,
            threads=1,
            **release.options,
        )
        result = audit_with(release.table, options)
    except Exception as error:  # Whatever a broken library raises.
        reason = str(error) if isinstance(error, LdpAuditError) else type(error).__name__
        return Outcome(setting=setting, verdict="error", reason=reason)
    violated = [check for check in result.checks if check.verdict == "fail"]
    power = result.estimate("power.min_detectable_excess")
    return Outcome(
        setting=setting,
        verdict=result.verdict,
        failed=tuple(check.id for check in violated if check.level == "error"),
        warned=tuple(check.id for check in violated if check.level == "warn"),
        held=dict(_held(result, setting, release.epsilon)),
        power=None if power is None else power.value,
        true_epsilon=release.epsilon,
        seconds=time.perf_counter() - start,
        reason=next((check.reason for check in violated), ""),
    )


def _held(result: AuditResult, setting: Setting, epsilon: float) -> Iterator[tuple[str, bool]]:
    """Yield whether each certified bound lies on the right side of the truth."""
    for one in result.estimates:
        if one.kind == "certified" and one.id.startswith(_BOUNDS) and math.isfinite(epsilon):
            yield one.id, one.value <= epsilon + 1e-9
        if one.id == _BEST and one.low is not None and attacked(setting):
            yield _BEST, one.low <= best_accuracy(setting.classes, setting.epsilon)


@cache
def best_accuracy(k: int, epsilon: float) -> float:
    """Return an accuracy that no attack on randomized response exceeds, up to five in 10⁷."""
    # The attacker knows how people are drawn, and sees features and released label: E[Σ_z max_y P(y
    # | x) P(z | y)] over drawn people x, with five standard deviations of its mean.
    setting = Setting(0, "as declared", "randomized-response", k, 0, epsilon)
    channel = setting.made_with().label_channel
    assert channel is not None
    right = np.max(posterior(k)[:, :, None] * channel.matrix[None], axis=1).sum(axis=1)
    return float(right.mean() + 5 * 0.5 / math.sqrt(_DRAWN))


@cache
def posterior(k: int) -> FloatArray:
    """Return P(y | x) of drawn people, float64 of shape (20000, k)."""
    from scipy.special import softmax
    from scipy.stats import norm

    drawn = people(_DRAWN, k, np.random.default_rng(k)).frame
    measured = drawn[list(MEASURED)].to_numpy(np.float64)
    years = drawn["education"].to_numpy(np.float64)[:, None]
    logs = np.log(shares(k)) - ((measured[:, None] - centres(k)) ** 2).sum(axis=2) / 2
    # Years of school are rounded, and clipped to 5 and 20.
    below, mean = np.where(years == 5, -np.inf, years - 0.5), 12 + np.arange(k) / 2
    above = np.where(years == 20, np.inf, years + 0.5)
    logs += np.log(norm.cdf((above - mean) / 3) - norm.cdf((below - mean) / 3))
    return np.asarray(softmax(logs, axis=1))


class Figure(Frozen):
    """How often something happened, against what is documented."""

    id: str = Field(description="A stable name, such as false_alarms.")
    title: str = Field(description="What is counted.")
    count: int = Field(description="How often it happened.")
    n: int = Field(description="Of how many releases.")
    value: float | None = Field(description="The observed share; null where there was no release.")
    low: float = Field(description="The lower end of its Clopper–Pearson interval.")
    high: float = Field(description="The upper end.")
    level: float = Field(LEVEL, description="The interval's confidence.")
    stated: float = Field(description="The share that is documented.")
    side: Side = Field(description="What the documented share is of the true one.")
    p_value: float = Field(
        description="How likely a count this bad is where the documented share is true."
    )
    finding: Finding = Field(
        description="Whether the count fits what is documented; too few if none could refute it."
    )


def figure(
    name: str, title: str, events: Sequence[bool], stated: float, side: Side, share: float = 1.0
) -> Figure:
    """Compare how often something happened with what is documented.

    ``events``: whether it happened in each release; ``share``: of the chance of a false alarm.
    """
    from scipy.stats import binom

    count, n = sum(events), len(events)

    def p_value(count: int) -> float:
        at_most = side == "at most"
        return float(binom.sf(count - 1, n, stated) if at_most else binom.cdf(count, n, stated))

    worst = p_value(n if side == "at most" else 0)
    finding: Finding = "too few" if worst > CHANCE * share else "as documented"
    low, high = map(float, clopper_pearson(count, n, 1 - LEVEL) if n else (0.0, 1.0))
    return Figure(
        **{"id": name, "title": title, "count": count, "n": n, "value": count / n if n else None},
        **{"low": low, "high": high, "stated": stated, "side": side, "p_value": p_value(count)},
        finding="refuted" if p_value(count) <= CHANCE * share else finding,
    )


def figures(outcomes: Collection[Outcome]) -> tuple[Figure, ...]:
    """Return every figure; each has an equal share of the chance of refuting by bad luck."""
    counted = list(_counted(outcomes))
    share = 1 / sum(stated > 0 for *_, stated, _ in counted)
    return tuple(figure(*one, share) for one in counted)


def _counted(
    outcomes: Collection[Outcome],
) -> Iterator[tuple[str, str, Sequence[bool], float, Side]]:
    broken = [one.verdict == "error" for one in outcomes]
    yield "faults", "audits that could not run", broken, 0.0, "at most"
    for name in sorted({name for one in outcomes for name in one.held}):
        missed = [not one.held[name] for one in outcomes if name in one.held]
        yield f"missed.{name}", f"certified bound {name} above the truth", missed, 0.05, "at most"
    honest = [one for one in outcomes if not one.leaking and one.verdict != "error"]
    title = "honest releases in which a violation is claimed"
    yield "false_alarms", title, [one.verdict == "fail" for one in honest], 0.05, "at most"
    title = "honest releases in which a check warns without cause"
    yield "false_warnings", title, [bool(one.warned) for one in honest], 0.05, "at most"
    revealing = {kind for kind, way in LEAKS.items() if "features-reveal-label" in way.found_by}
    noise = {kind for kind, way in LEAKS.items() if way.noise}
    for name, of, kinds in (
        ("noise", "too little noise", noise),
        ("draws", "draws that are not as declared", LEAKS.keys() - revealing - noise),
        ("columns", "the label in columns or rows", revealing),
    ):
        # So strong, in so many rows, that hardly any audit misses it.
        strong = [
            one.found
            for one in outcomes
            if one.setting.kind in kinds
            and one.setting.rows >= 2500
            and (one.setting.excess >= 1.5 or one.setting.kind not in noise)
        ]
        yield f"found.{name}", f"strong leaks of {of} that are found", strong, 0.95, "at least"
    promised = [
        one.found
        for one in outcomes
        if one.leaking
        and WAYS[one.setting.kind].shared
        and one.true_epsilon - one.setting.epsilon >= (one.power or math.inf)
    ]
    title = "leaks found that the audit says it would find"
    yield "found.promised", title, promised, 0.9, "at least"


class Row(Frozen):
    """How the audits of one group of releases ended."""

    group: str = Field(
        description="What they have in common: mechanism, rows, labels, made or truth."
    )
    name: str = Field(description="Its value.")
    leaking: bool = Field(description="Whether they leak.")
    n: int = Field(description="How many there are.")
    ended: dict[str, int] = Field(description="How many audits ended with each verdict.")
    found: int = Field(description="Of leaks: in how many a check that names the leak failed.")
    warned: int = Field(description="In how many a check of level warn failed.")


_GROUPS: Final[Mapping[str, Callable[[Setting], Any]]] = {
    "mechanism": lambda one: one.mechanism,
    "rows": lambda one: max(size for size in _SIZES if size <= one.rows),
    "labels": lambda one: one.classes,
    "made": lambda one: one.kind,
    "truth": lambda one: one.truth,
}


def _rows(outcomes: Collection[Outcome]) -> Iterator[Row]:
    for group, value in _GROUPS.items():
        for leaking, key in sorted({(one.leaking, value(one.setting)) for one in outcomes}):
            both = (leaking, key)
            members = [one for one in outcomes if (one.leaking, value(one.setting)) == both]
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


class Selftest(Stored):
    """What a self-test found."""

    schema_version: str = Field("1.0", description="The version of this form.")
    verdict: Literal["pass", "fail", "inconclusive"] = Field(
        description="Whether this installation works as documented."
    )
    sentence: str = Field(description="The same for people.")
    chance: float = Field(CHANCE, description="How often a good installation is said not to work.")
    figures: tuple[Figure, ...] = Field(description="Coverage, false alarms and power.")
    rows: tuple[Row, ...] = Field(description="How audits ended, group by group.")
    releases: tuple[Outcome, ...] = Field(
        description="Each planted release: what it was, and how its audit ended."
    )
    planned: int = Field(
        description="Releases of the plan; fewer were audited where it ended early."
    )
    seed: int = Field(description="The seed of all releases and audits.")
    thorough: bool = Field(description="Whether it is the long plan.")
    seconds: float = Field(description="How long it took.")

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield whether the installation works, and each figure; quiet: the sentence only."""
        yield self.sentence
        if quiet:
            return
        for one in self.figures:
            counted = f"{one.count:,} of {one.n:,} ({100 * one.low:.1f} to {100 * one.high:.1f} %"
            documented = f"documented: {one.side} {percent(one.stated)})"
            yield f"  {one.finding:<14} {one.title}: {counted}; {documented}"
        if len(self.releases) < self.planned:
            yield f"  {'ended early':<14} {len(self.releases):,} of {self.planned:,} releases"
        yield (
            f"Intervals are at {percent(LEVEL)} (Clopper–Pearson). A good installation is said "
            f"not to work in at most one self-test of {1 / CHANCE:,.0f}. Seed {self.seed}."
        )


def judged(outcomes: Sequence[Outcome], **about: Any) -> Selftest:
    """Judge outcomes: fail if a figure refutes what is documented, pass if each could have."""
    every = figures(outcomes)
    # Methods of a bound that seldom apply are counted; what they cannot refute decides nothing.
    methods = {figure.id for figure in every if figure.id.startswith("missed.")}
    methods -= {f"missed.{name}" for name in (*_BOUNDS, _BEST)}
    wrong = "; ".join(figure.title for figure in every if figure.finding == "refuted")
    verdict, said = "pass", "This installation works as documented"
    if wrong:
        verdict, said = "fail", f"This installation does not work as documented ({wrong})"
    elif not outcomes or any(
        figure.finding == "too few" and figure.id not in methods for figure in every
    ):
        verdict, said = "inconclusive", "Too few releases to say whether this installation works"
    leaking = [one.found for one in outcomes if one.leaking]
    accused = sum(one.verdict == "fail" for one in outcomes if not one.leaking)
    sentence = (
        f"{said}: {len(outcomes) - len(leaking):,} honest releases, {accused or 'no'} "
        f"violation{'s' * (accused != 1)} claimed; {len(leaking):,} leaking releases, "
        f"{sum(leaking):,} found."
    )
    about |= {"verdict": verdict, "rows": tuple(_rows(outcomes)), "releases": tuple(outcomes)}
    return Selftest(sentence=sentence, figures=every, **about)


def selftest(request: SelftestRequest, progress: Progress) -> Selftest:
    """Plant releases, audit them, and say whether this installation works as documented."""
    # Ctrl-C ends it early: what is done by then is counted.
    request.check()
    usual = None if request.thorough else 600.0
    stop = Stop.after(usual if request.minutes is None else 60 * request.minutes)
    start, every, kept = time.perf_counter(), planned(request.thorough, request.seed), None
    if request.resume is not None:
        try:
            request.resume.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"The folder cannot be made ({type(error).__name__}).") from None
        plan = "thorough" if request.thorough else "quick"
        kept = request.resume / f"{plan}-{request.seed}-{ldpaudit.__version__}.jsonl"
    done = {one.setting: one for one in _read(kept) if one.setting in set(every)}
    left = [setting for setting in every if setting not in done]
    workers = min(request.threads or available_threads(), max(1, len(left)))
    progress.step(f"auditing {len(every):,} planted releases")
    with stop.on_signals(), Scratch() as scratch, processes(workers, 1, scratch.folder) as pool:
        stop.running = True
        for number, answer in pool.answers(outcome, left, request.seed):
            broken = Outcome(setting=left[number], verdict="error", reason=answer.reason)
            one = done[left[number]] = answer.content or broken
            if kept is not None:
                with kept.open("a", encoding="utf-8") as lines:
                    lines.write(f"\n{one.model_dump_json()}")
            progress.advance(len(done), len(every))
            if stop.due():
                break
    outcomes = [done[setting] for setting in every if setting in done]
    about = {"thorough": request.thorough, "seconds": time.perf_counter() - start}
    return judged(outcomes, planned=len(every), seed=request.seed, **about)


def _read(kept: Path | None) -> Iterator[Outcome]:
    """Read finished releases; one whose line a kill cut short is audited again."""
    if kept is not None and kept.exists():
        for line in kept.read_text(encoding="utf-8", errors="replace").split("\n"):
            with suppress(ValidationError):
                yield Outcome.model_validate_json(line)
