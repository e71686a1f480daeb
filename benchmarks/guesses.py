"""Audits by guesses: a claimed curve in one run, a test that may stop, training, black boxes."""

import math
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binom

import ldpaudit
from benchmarks.runner import Rng, Rows, case, heads
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.extras.kinds.mechanisms.gaussian import gaussian_sigma
from ldpaudit.extras.kinds.noisy_features.guesses import pair_guesses
from ldpaudit.extras.kinds.noisy_features.one_run import one_run_epsilon
from ldpaudit.extras.kinds.noisy_features.tradeoff import (
    epsilon_of_mu,
    fixed_share,
    gaussian_mu,
    one_run_mu,
    one_run_refutes,
)
from ldpaudit.extras.kinds.synthetic.counts import PairedSuccesses
from ldpaudit.extras.kinds.synthetic.paired_ratio import Pairs, ratio_p_value
from ldpaudit.extras.probe.sequential import log_wealth

ALPHA = 0.05


def gaussian_guesses(mu: float, m: int, guesses: int, rng: Rng) -> int:
    """Release m coins with Gaussian noise of curve μ; return how many of the surest are right."""
    coin = rng.random(m) < 0.5
    said = rng.normal(mu * (coin - 0.5))
    surest = np.argsort(-np.abs(said))[:guesses]
    return int(((said[surest] > 0) == coin[surest]).sum())


@case(draws=20, sizes=(200,))
def one_run_curves(
    draws: int = 3_000,
    sizes: tuple[int, ...] = (200, 1_000, 10_000),
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0),
    delta: float = 1e-5,
) -> Rows:
    """How much more is certified in one run where the curve of Gaussian noise is claimed?

    Coins are released with Gaussian noise that is (ε, δ)-DP and no more. The share of coins to
    guess was fixed beforehand from the claim; both bounds see the same guesses, at 95 %.
    """
    columns = ("guessed|.0%", "(ε, δ)|.3f", "curve|.3f", "curve above ε")
    yield heads("coins", "ε|g", *columns)
    for m in sizes:
        for epsilon in epsilons:
            mu = gaussian_mu(epsilon, delta)
            share = fixed_share(mu, m, ALPHA)
            guesses, rng = math.ceil(share * m), np.random.default_rng([m, int(epsilon)])

            @cache
            def bounds(right: int, most: int = guesses, of: int = m) -> tuple[float, float]:
                counts = GuessCounts(of, right, most - right)
                under = epsilon_of_mu(one_run_mu(counts, ALPHA), delta)
                return one_run_epsilon(counts, ALPHA, delta), under

            right = [gaussian_guesses(mu, m, guesses, rng) for _ in range(draws)]
            old, new = np.mean([bounds(v) for v in right], axis=0)
            missed = sum(
                one_run_refutes(GuessCounts(m, v, guesses - v), mu, ALPHA) * right.count(v)
                for v in set(right)
            )
            yield m, epsilon, share, float(old), float(new), f"{missed} of {draws:,}"


def feature_bounds(
    true: Any, sigma: float, scale: float, delta: float, rng: Rng
) -> tuple[float, float, float]:
    """Return the bounds of ε of features in the unit ball with noise of σ times ``scale``."""
    noise = scale * sigma * rng.normal(size=true.shape)
    made = pair_guesses(true, true + noise, sigma, ALPHA, rng)
    assert made is not None
    run, curve = made.one_run_epsilon(ALPHA, 1.0, delta), made.curve_epsilon(ALPHA, 1.0, delta)
    return made.point_epsilon(ALPHA, delta), run, curve


@case(draws=20, sizes=(200,), found=2)
def feature_noise(
    draws: int = 3_000,
    sizes: tuple[int, ...] = (1_000, 4_000),
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0),
    delta: float = 1e-5,
    found: int = 40,
) -> Rows:
    """How much of ε of Gaussian noise on features is certified, and is half of the noise found?

    Two clusters of people in the unit ball, four columns; bounds at 95 % from the same release: at
    one point (ε, δ), under the curve of Gaussian noise in one run, and with independent rows.
    ``above ε`` counts the releases in which any of the three is too large, where all people stand
    at the ends of a diameter.
    """
    bounds = ("(ε, δ)|.3f", "curve, one run|.3f", "curve, independent rows|.3f")
    yield heads("rows", "ε|g", *bounds, "half the noise found|.0%", "above ε (each)")
    for n in sizes:
        for epsilon in epsilons:
            rng, sigma = np.random.default_rng([n, int(epsilon)]), gaussian_sigma(epsilon, delta, 2)
            x = 0.3 * rng.normal(size=(n, 4))
            x[:, 0] += np.where(rng.random(n) < 0.4, 0.5, -0.5)
            x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
            ends = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[:, None] * np.eye(4)[0]

            means = np.mean([feature_bounds(x, sigma, 1, delta, rng) for _ in range(found)], axis=0)
            half = [feature_bounds(x, sigma, 0.5, delta, rng)[2] > epsilon for _ in range(found)]
            above = np.zeros(3, dtype=int)
            for _ in range(draws):
                made = np.array(feature_bounds(ends, sigma, 1, delta, rng))
                above += made > epsilon * (1 + 1e-6)
            missed = ", ".join(map(str, above.tolist()))
            yield n, epsilon, *means.tolist(), float(np.mean(half)), f"{missed} of {draws:,}"


@case(draws=20)
def sequential(draws: int = 3_000, claim: float = 1.0) -> Rows:
    """How many guesses does a test need that may look after each of them?

    Against the number for which the exact binomial test, which looks once, has a power of 90 %.
    """
    yield heads(
        "true ε|g", "fixed number", "mean|.0f", "median|.0f", "found in three times that|.1%"
    )
    q, rng = expit(claim), np.random.default_rng(7)
    for truth in (1.0, 1.3, 1.5, 2.0):
        p, n = expit(truth), 50
        while truth > claim and binom.sf(binom.isf(ALPHA, n, q), n, p) < 0.9:
            n += 5
        rows = 3 * n if truth > claim else 2_000
        found = np.zeros(draws)
        for draw in range(draws):
            right = np.cumsum(rng.random(rows) < p).astype(np.float64)
            wrong = np.arange(1.0, rows + 1) - right
            hit = log_wealth(right, wrong, claim) >= -math.log(ALPHA)
            found[draw] = hit.argmax() + 1 if hit.any() else np.inf
        ended = np.minimum(found, rows)
        share = float(np.isfinite(found).mean())
        if truth > claim:
            yield truth, n, float(ended.mean()), float(np.median(ended)), share
        else:
            yield truth, None, None, None, f"{share:.1%} falsely, in {rows:,}"


class Remembering:
    """A model that says the label that it was given, with 90 %."""

    def __init__(self, labels: Any, classes: Any) -> None:
        self.labels, self.classes_ = labels, classes

    def predict_proba(self, _features: Any) -> Any:
        """Return the probabilities, float64 (n, k)."""
        said = self.labels[:, None] == self.classes_
        return np.where(said, 0.9, 0.1 / (len(self.classes_) - 1))


@case(draws=2)
def training(draws: int = 200) -> Rows:
    """How much of ε does ``audit_model`` certify of training that remembers randomized labels?

    Against the exact binomial bound of guesses of all coins whose released label is one of the two.
    """
    yield heads("labels", "ε|g", "rows", "certified|.3f", "best known|.3f", "ratio|.2f", "above ε")
    for k, epsilon, n in ((2, 1.0, 400), (3, 1.0, 600), (10, 2.0, 600), (2, 4.0, 2_000)):
        bounds, best = [], []
        for draw in range(draws):
            rng = np.random.default_rng([draw, k, n])
            truth, kept = rng.integers(0, k, n), math.exp(epsilon) / (math.exp(epsilon) + k - 1)

            def fit(_table: Any, labels: Any, made: Any = (k, kept, rng)) -> Remembering:
                k, kept, rng = made
                keep = rng.random(len(labels)) < kept
                other = (labels + rng.integers(1, k, len(labels))) % k
                return Remembering(np.where(keep, labels, other), np.arange(k))

            found = ldpaudit.audit_model(fit, rng.normal(size=(n, 2)), truth, epsilon, seed=draw)
            bounds.append(found["model.epsilon"].value)
            chance = (math.exp(epsilon) + 1) / (math.exp(epsilon) + k - 1)
            guesses = int(rng.binomial(n // 2, min(chance, 1.0)))
            right = int(rng.binomial(guesses, expit(epsilon)))
            best.append(epsilon_lower(GuessCounts(guesses, right, guesses - right), ALPHA).epsilon)
        mean, known = float(np.mean(bounds)), float(np.mean(best))
        above = f"{sum(b > epsilon for b in bounds)} of {draws}"
        yield k, epsilon, n, mean, known, mean / known, above


@case(draws=20, intervals=2)
def synthetic_risk(draws: int = 3_000, intervals: int = 40) -> Rows:
    """How wide are intervals of the risk of synthetic rows, and how often do their ends miss?

    Pairs of an audited and a held-out person; against the delta method, which is not exact.
    """
    yield heads("pairs", "both, audited, held-out", "width|.4f", "delta method|.4f", "ends miss")
    for n, both, audited, held_out in (
        *((100, 0.0, 0.05, 0.01), (500, 0.02, 0.05, 0.01), (300, 0.05, 0.2, 0.1)),
        *((2_000, 0.5, 0.03, 0.02), (3_000, 0.2, 0.2, 0.1)),
    ):
        rng, rest = np.random.default_rng(n), 1 - both - audited - held_out
        made = rng.multinomial(n, [both, audited, held_out, rest], draws).tolist()
        truth = 1 - (held_out + rest) / (audited + rest)

        @cache
        def beyond(b: int, a: int, h: int, of: int = n, risk: float = truth) -> tuple[bool, bool]:
            pairs = Pairs(h, a, of - b - a - h)
            low, high = (ratio_p_value(pairs, 1 - risk, ALPHA, low=low) for low in (True, False))
            return low <= ALPHA / 2, high <= ALPHA / 2

        missed = np.sum([beyond(*row[:3]) for row in made], axis=0)
        widths, delta = [], []
        for b, a, h, _ in made[:intervals]:
            low, high = PairedSuccesses(n, b, a, h).interval(ALPHA)
            widths.append(high - low)
            top, bottom = 1 - (b + a) / n, 1 - (b + h) / n
            share = 1 - (b + a + h) / n
            spread = top / bottom**2 + top**2 / bottom**3 - 2 * top * share / bottom**3
            delta.append(2 * 1.96 * math.sqrt(max(spread, 1e-12) / n))
        shares = f"{both:g}, {audited:g}, {held_out:g}"
        ends = ", ".join(f"{m / draws:.1%}" for m in missed)
        yield n, shares, float(np.mean(widths)), float(np.mean(delta)), ends
