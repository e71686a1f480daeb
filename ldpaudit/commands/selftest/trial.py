"""One planted release: what it is to be, its audit, and whether that was right."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
from pydantic import ConfigDict, Field

from ldpaudit.api import audit_with
from ldpaudit.commands.selftest.planting import (
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
from ldpaudit.errors import LdpAuditError
from ldpaudit.options import AuditOptions
from ldpaudit.randomness import child_generator, seed_from
from ldpaudit.release import FloatArray
from ldpaudit.result import AuditResult, Frozen

# The audits that decide under the default policy, with true labels; columns are always read.
DECIDING: Final = ("assumptions", "mechanism", "seeds", "power")
# The most rows of releases that are attacked: attacks take longer than all else.
ATTACKED_ROWS: Final = 1500
# Certified lower bounds of the channel's ε, and all whose id continues one of these.
_BOUNDS: Final = ("mechanism.epsilon_lower", "release_only.epsilon_lower")
_BEST: Final = "attack.best.accuracy"
# 0 to 2,047, besides the usual ones: all that are planted; more would take most of the time.
_SEEDS_TRIED: Final = 1 << 11
_DRAWN: Final = 20_000


class Outcome(Frozen):
    """How the audit of one planted release ended.

    Attributes
    ----------
    setting
        What was planted.
    verdict
        Of the result; "error" where the audit could not run.
    failed
        Checks of level error that failed.
    warned
        Checks of level warn that failed.
    held
        Whether each certified bound with a known truth held.
    power
        The smallest excess that the audit says it would find with 90 % probability, in nats.
    true_epsilon
        What the release truly reveals about a label, in nats.
    seconds
        How long it took.
    reason
        Of the first check that failed, or why the audit could not run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    setting: Setting
    verdict: str
    failed: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    held: Mapping[str, bool] = Field(default_factory=dict)
    power: float | None = None
    true_epsilon: float = math.inf
    seconds: float = 0.0
    reason: str = ""

    @property
    def leaking(self) -> bool:
        """Whether the release leaks."""
        return self.setting.kind in LEAKS

    @property
    def found(self) -> bool:
        """Whether a check that names the leak failed."""
        return not WAYS[self.setting.kind].found_by.isdisjoint((*self.failed, *self.warned))

    @property
    def strong(self) -> bool:
        """Whether a leak is so strong, in so many rows, that hardly any audit misses it."""
        return self.setting.rows >= 2500 and (
            self.setting.excess >= 1.5 or not WAYS[self.setting.kind].noise
        )

    @property
    def promised(self) -> bool:
        """Whether the audit says that it would find this much more than claimed, or less."""
        excess = self.true_epsilon - self.setting.epsilon
        return WAYS[self.setting.kind].shared and excess >= (self.power or math.inf)


def planned(thorough: bool, seed: int) -> list[Setting]:
    """Return what every planted release is to be, honest and leaking ones mixed."""
    sizes = ((500, 50_000), (500, 50_000), (0.25, 3.0)) if thorough else _QUICK
    honest = [_honest(number, seed, sizes[0]) for number in range(1000 if thorough else 30)]
    if not thorough:
        honest[:5] = map(_attackable, honest[:5])
    leaking = [_leaking(number, seed, *sizes[1:]) for number in range(300 if thorough else 21)]
    at = [(place + 0.5) / len(part) for part in (honest, leaking) for place in range(len(part))]
    every = [*honest, *leaking]
    return [every[place] for place in np.argsort(at, kind="stable")]


# Rows of honest and of leaking releases, and the excess of noise that is too small.
_QUICK: Final = ((500, 3000), (2500, 3500), (1.5, 3.0))


def _honest(number: int, seed: int, rows: tuple[int, int]) -> Setting:
    rng = child_generator(seed, "selftest", "honest", str(number), "setting")
    kind = str(rng.choice(list(HONEST), p=(0.6, 0.1, 0.1, 0.1, 0.1)))
    n, truth = _between(rows, rng), bool(rng.random() >= 0.2)
    # Randomized response is four times as frequent as each of the other mechanisms.
    name = str(rng.choice([*["randomized-response"] * 3, *OF_CLASSES, *OF_NUMBERS]))
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


def _attackable(setting: Setting) -> Setting:
    k, epsilon = min(setting.classes, 3), min(setting.epsilon, 2.0)
    name, n = "randomized-response", ATTACKED_ROWS
    return replace(
        setting, kind="as declared", mechanism=name, classes=k, rows=n, epsilon=epsilon, truth=True
    )


def attacked(setting: Setting) -> bool:
    """Return whether label inference is audited, too: where the best attack is known."""
    plain = setting.kind == "as declared" and setting.mechanism == "randomized-response"
    return plain and setting.truth and setting.rows <= ATTACKED_ROWS


def generator(setting: Setting, seed: int, part: str) -> np.random.Generator:
    """Return the generator of a part of one planted release."""
    name = "leaking" if setting.kind in LEAKS else "honest"
    return child_generator(seed, "selftest", name, str(setting.number), part)


def planted(setting: Setting, seed: int) -> Planted:
    """Make a release: its setting and the seed decide every draw."""
    return plant(setting, generator(setting, seed, "release"))


def outcome(setting: Setting, seed: int) -> Outcome:
    """Make a release, audit it as ``ldpaudit run`` does, and compare with what is known."""
    start = time.perf_counter()
    alone = () if setting.truth else ("observational",)
    try:
        release = planted(setting, seed)
        options = AuditOptions(
            truth=release.truth if setting.truth else None,
            rng=seed_from(generator(setting, seed, "audit")),
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
    values = {estimate.id: estimate.value for estimate in result.estimates}
    return Outcome(
        setting=setting,
        verdict=result.verdict,
        failed=tuple(check.id for check in violated if check.level == "error"),
        warned=tuple(check.id for check in violated if check.level == "warn"),
        held=dict(_held(result, setting, release.epsilon)),
        power=values.get("power.min_detectable_excess"),
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
    """Return an accuracy that no attack on randomized response exceeds, up to five in 10⁷.

    The attacker knows how people are drawn, and sees features and released label:
    E[Σ_z max_y P(y | x) P(z | y)] over drawn people x, with five standard deviations of its mean.
    """
    setting = Setting(0, "as declared", "randomized-response", k, 0, epsilon)
    channel = setting.made_with().label_channel
    assert channel is not None
    right = np.max(posterior(k)[:, :, None] * channel.matrix[None], axis=1).sum(axis=1)
    return float(right.mean() + 5 * 0.5 / math.sqrt(_DRAWN))


@cache
def posterior(k: int) -> FloatArray:
    """Return P(y | x) of drawn people, float64 of shape (20000, k)."""
    from scipy.stats import norm

    drawn = people(_DRAWN, k, np.random.default_rng(k)).frame
    measured = drawn[list(MEASURED)].to_numpy(np.float64)
    years = drawn["education"].to_numpy(np.float64)[:, None]
    logs = np.log(shares(k)) - ((measured[:, None] - centres(k)) ** 2).sum(axis=2) / 2
    # Years of school are rounded, and clipped to 5 and 20.
    mean = 12 + np.arange(k) / 2
    below, above = (
        np.where(years == 5, -np.inf, years - 0.5),
        np.where(years == 20, np.inf, years + 0.5),
    )
    logs += np.log(norm.cdf((above - mean) / 3) - norm.cdf((below - mean) / 3))
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
