"""One planted release: made, audited as ``ldpaudit run`` does, and held against what is known."""

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from ldpaudit.api import audit_with
from ldpaudit.commands.selftest.attacks import attacked, best_accuracy
from ldpaudit.commands.selftest.honest import HONEST
from ldpaudit.commands.selftest.leaks import LEAKS
from ldpaudit.commands.selftest.plan import generator
from ldpaudit.commands.selftest.planted import Planted, Setting
from ldpaudit.errors import LdpAuditError
from ldpaudit.options import AuditOptions
from ldpaudit.randomness import seed_from
from ldpaudit.result import AuditResult

BESIDE: Final = ("assumptions", "mechanism", "seeds", "power")
"""The audits that decide under the default policy, with true labels; columns are always read."""
ALONE: Final = (*BESIDE, "observational")
BOUNDS: Final = ("mechanism.epsilon_lower", "release_only.epsilon_lower")
"""Certified lower bounds of the channel's ε, and all whose id goes on from one of these."""
POWER: Final = "power.min_detectable_excess"
_ATTACKS: Final = ("label-inference",)
_BEST: Final = "attack.best.accuracy"
ROUNDING: Final = 1e-9
STRONG_ROWS: Final = 2500
STRONG_EXCESS: Final = 1.5
SEEDS_TRIED: Final = 1 << 11
"""0 to 2,047, besides the usual ones: all that are planted; more would take most of the time."""


@dataclass(frozen=True)
class Outcome:
    """How the audit of one planted release ended.

    Attributes
    ----------
    setting : Setting
    verdict : str
        Of the result; "error" where the audit could not run.
    failed, warned : tuple of str
        Checks that failed, of level error and of level warn.
    held : mapping from str to bool
        Whether each certified bound with a known truth held.
    power : float or None
        The smallest excess that the audit says it would find with 90 % probability, in nats.
    true_epsilon : float
        What the release truly gives away about a label, in nats.
    seconds : float
    reason : str
        Of the first check that failed, or why the audit could not run.
    """

    setting: Setting
    verdict: str
    failed: tuple[str, ...]
    warned: tuple[str, ...]
    held: dict[str, bool]
    power: float | None
    true_epsilon: float
    seconds: float
    reason: str = ""

    @property
    def leaking(self) -> bool:
        """Whether the release leaks."""
        return self.setting.kind in LEAKS

    @property
    def found(self) -> bool:
        """Whether a check that names the leak failed."""
        return not LEAKS[self.setting.kind].found_by.isdisjoint((*self.failed, *self.warned))

    @property
    def strong(self) -> bool:
        """Whether a leak is so strong, in so many rows, that hardly any audit misses it."""
        enough = self.setting.excess >= STRONG_EXCESS or not LEAKS[self.setting.kind].noise
        return self.setting.rows >= STRONG_ROWS and enough

    @property
    def promised(self) -> bool:
        """Whether the audit says that it would find this much more than claimed, or less."""
        leak, claimed = LEAKS[self.setting.kind], self.setting.epsilon
        known = leak.shared and self.power is not None
        return known and self.true_epsilon - claimed >= (self.power or 0.0)

    def stored(self) -> dict[str, Any]:
        """Return it for a JSON file."""
        return asdict(self)

    @classmethod
    def again(cls, stored: dict[str, Any]) -> "Outcome":
        """Return an outcome that was stored."""
        checks = {name: tuple(stored[name]) for name in ("failed", "warned")}
        return cls(**stored | checks | {"setting": Setting(**stored["setting"])})


def planted(setting: Setting, seed: int) -> Planted:
    """Make a release."""
    leak = LEAKS.get(setting.kind)
    make = HONEST[setting.kind] if leak is None else leak.make
    return make(setting, generator(setting, seed, "release"))


def outcome(setting: Setting, seed: int) -> Outcome:
    """Make a release, audit it and say what came of it."""
    start = time.perf_counter()
    try:
        release = planted(setting, seed)
        result = audit_with(release.table, _options(setting, seed, release))
    except Exception as error:  # Whatever a library that is broken raises.
        told = str(error) if isinstance(error, LdpAuditError) else type(error).__name__
        return failed(setting, told)
    violated = [check for check in result.checks if check.verdict == "fail"]
    return Outcome(
        setting,
        result.verdict,
        tuple(check.id for check in violated if check.level == "error"),
        tuple(check.id for check in violated if check.level == "warn"),
        {**dict(_held(result, release.epsilon)), **dict(_attack(result, setting))},
        next((e.value for e in result.estimates if e.id == POWER), None),
        release.epsilon,
        time.perf_counter() - start,
        next((check.reason for check in violated), ""),
    )


def failed(setting: Setting, reason: str) -> Outcome:
    """Return the outcome of an audit that could not run."""
    return Outcome(setting, "error", (), (), {}, None, math.inf, 0.0, reason)


def _options(setting: Setting, seed: int, release: Planted) -> AuditOptions:
    return AuditOptions(
        truth=release.truth if setting.truth else None,
        rng=seed_from(generator(setting, seed, "audit")),
        only=(*(BESIDE if setting.truth else ALONE), *_ATTACKS * attacked(setting)),
        seeds_tried=SEEDS_TRIED,
        threads=1,
        **release.options,
    )


def _held(result: AuditResult, epsilon: float) -> Iterator[tuple[str, bool]]:
    """Yield whether each certified bound lies on the right side of the truth."""
    if math.isinf(epsilon):
        return
    for estimate in result.estimates:
        if estimate.kind == "certified" and estimate.id.startswith(BOUNDS):
            yield estimate.id, estimate.value <= epsilon + ROUNDING


def _attack(result: AuditResult, setting: Setting) -> Iterator[tuple[str, bool]]:
    """Yield whether what the best attack is certified to reach can be reached."""
    for estimate in result.estimates if attacked(setting) else ():
        # Of fewer than ten wrong guesses the bound is not shown.
        if estimate.id == _BEST and estimate.low is not None:
            yield _BEST, estimate.low <= best_accuracy(setting.classes, setting.epsilon)
