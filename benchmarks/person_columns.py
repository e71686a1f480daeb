"""Lower bounds of ε of several private columns together, and the test of their draws.

Run: ``python benchmarks/person_columns.py [draws] [rows] [setting …]``. True labels are drawn each
time, and released by mechanisms whose exact ε is known. No features: what is bounded is the noise
on the labels.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.person.answers import Answers
from ldpaudit.audits.person.audit import REFUTED_COLUMNS, evidence_of
from ldpaudit.audits.person.noise import columns_noise
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.joint import (
    IndependentColumns,
    JointMechanism,
    JointRR,
    RandomSampling,
)
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

ALPHA = 0.05
ACCUSED = 0.05


@dataclass(frozen=True)
class Setting:
    """What is claimed, what happens, and how true vectors look."""

    claim: JointMechanism
    correlated: bool = False
    release: Callable | None = None
    true_epsilon: float | None = None

    @property
    def epsilon(self) -> float:
        """The true ε of what happens."""
        return self.claim.epsilon if self.true_epsilon is None else self.true_epsilon


def apart(sizes, epsilons):
    return IndependentColumns(
        tuple(
            RandomizedResponse.from_epsilon(tuple(range(k)), e)
            for k, e in zip(sizes, epsilons, strict=True)
        )
    )


def by_one_uniform(claim):
    """Both columns' labels are drawn by inversion from the same uniform numbers."""

    def release(labels, rng):
        u = rng.random(len(labels))[:, None]
        columns = [np.cumsum(one.channel.matrix, axis=1) for one in claim.columns]
        drawn = [(u > c[labels[:, a]][:, :-1]).sum(axis=1) for a, c in enumerate(columns)]
        return np.stack(drawn, axis=1).astype(np.int32)

    return release


def by_one_seed(claim):
    """Each column is released by a generator of the same seed: a coin to keep, then a label."""

    def release(labels, rng):
        seed, drawn = int(rng.integers(2**31)), []
        for a, one in enumerate(claim.columns):
            k = len(one.classes)
            own = np.random.default_rng(seed)
            keep = own.random(len(labels)) >= one.noise
            drawn.append(np.where(keep, labels[:, a], own.integers(0, k, len(labels))))
        return np.stack(drawn, axis=1).astype(np.int32)

    return release


def channel_of_one_coin(claim):
    """Return P(z | y) where one coin keeps all columns, and else each is drawn on its own."""
    noise = claim.columns[0].noise
    vectors = math.prod(len(one.classes) for one in claim.columns)
    return (1 - noise) * np.eye(vectors) + noise / vectors


def channel_of_one_seed(claim):
    """Return P(z | y) of two columns released by generators of one seed.

    One number decides which labels are kept, another one, u, which are drawn: ⌊k·u⌋.
    """
    (one, two), cuts = claim.columns, np.unique([i / j for j in (2, 5) for i in range(j + 1)])
    k, m = len(one.classes), len(two.classes)
    anew = np.zeros((k, m))
    for low, high in pairwise(cuts):
        anew[int(k * (low + high) / 2), int(m * (low + high) / 2)] += high - low
    first = np.kron(np.eye(k), np.full((m, m), 1 / m))
    both = np.tile(anew.ravel(), (k * m, 1))
    least, most = sorted((one.noise, two.noise))
    assert least == one.noise
    return (1 - most) * np.eye(k * m) + (most - least) * first + least * both


def epsilon_of(channel):
    with np.errstate(divide="ignore"):
        return float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())


def by_one_coin(claim):
    def release(labels, rng):
        keep = rng.random((len(labels), 1)) >= claim.columns[0].noise
        anew = [rng.integers(0, len(one.classes), len(labels)) for one in claim.columns]
        return np.where(keep, labels, np.stack(anew, axis=1)).astype(np.int32)

    return release


TWO, MIXED = apart((2, 2), (1, 1)), apart((2, 5), (1, 1))
SETTINGS = {
    "2 columns of 2, ε = 1 each": Setting(TWO),
    "the same, skewed and correlated": Setting(TWO, True),
    "2 columns of 4 and 8, ε = 1 and 0.5, correlated": Setting(apart((4, 8), (1, 0.5)), True),
    "3 columns of 2, 3, 5, ε = 2, 1, 0.5, correlated": Setting(apart((2, 3, 5), (2, 1, 0.5)), True),
    "5 columns of 2, ε = 1 each": Setting(apart((2,) * 5, (1,) * 5)),
    "the same, skewed and correlated ": Setting(apart((2,) * 5, (1,) * 5), True),
    "5 columns of 4, ε = 1 each": Setting(apart((4,) * 5, (1,) * 5)),
    "5 columns of 2 … 6, ε = 0.5 … 1.5, correlated": Setting(
        apart((2, 3, 4, 5, 6), (0.5, 1, 1, 1.5, 0.5)), True
    ),
    "joint RR on 2 · 3 · 2, ε = 2, correlated": Setting(
        JointRR((("a", "b"), ("a", "b", "c"), ("a", "b")), 2.0), True
    ),
    "RS+FD on 3 columns of 4, published ε = 1": Setting(RandomSampling((tuple("abcd"),) * 3, 1.0)),
    "one uniform number for 2 columns of 2": Setting(TWO, False, by_one_uniform(TWO), math.inf),
    "one uniform number for columns of 2 and 5": Setting(
        MIXED, True, by_one_uniform(MIXED), math.inf
    ),
    "one seed for columns of 2 and 5": Setting(
        MIXED, True, by_one_seed(MIXED), epsilon_of(channel_of_one_seed(MIXED))
    ),
    "one coin for 2 columns of 2": Setting(
        TWO, True, by_one_coin(TWO), epsilon_of(channel_of_one_coin(TWO))
    ),
}


def true_labels(sizes, n, correlated, rng):
    common = rng.random(n)
    own = rng.random((n, len(sizes)))
    place = (0.6 * common[:, None] + 0.4 * own) ** 1.7 if correlated else own
    return np.floor(np.array(sizes) * place).astype(np.int32)


def seen_vector(setting, labels, released):
    """Return the vector without features, as its audit sees it."""
    n, contexts = len(labels), []
    nothing = FeatureTable(np.zeros((n, 0), np.float32), np.zeros((n, 0), np.int32), (), 0)
    for a, claim in enumerate(setting.claim.columns):
        codes = ReleasedLabels(released[:, a])
        names = claim.classes
        release = Release(nothing, codes, names, names, TrueLabels(labels[:, a]))
        contexts.append(AuditContext(release, claim, Plan(seed=0)))
    return Answers(tuple(contexts), setting.claim)


def one_draw(setting, n, seed):
    """Return the strongest bound, of the first draws each method's, and p-values of the draws.

    Of the draws with true vectors, and without.
    """
    rng = np.random.default_rng(seed)
    labels = true_labels(
        [len(c.classes) for c in setting.claim.columns], n, setting.correlated, rng
    )
    release = setting.release or setting.claim.sample
    seen = seen_vector(setting, labels, release(labels, rng))
    p_value, _ = columns_noise(seen, rng)
    assert p_value is not None
    alone = tuple(replace(c, release=replace(c.release, truth=None)) for c in seen.contexts)
    blind, _ = columns_noise(Answers(alone, seen.joint), rng)
    assert blind is not None
    evidence = evidence_of(seen, rng)
    if evidence is not None and p_value <= REFUTED_COLUMNS:
        evidence = evidence.without_sums()
    assert evidence is not None
    values = {"added": evidence.added_up(ALPHA).epsilon} if evidence.added else {}
    values |= {"joint": evidence.as_one(ALPHA).epsilon} if evidence.codes else {}
    return evidence.bound(ALPHA).epsilon, values, (p_value, blind)


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    chosen = sys.argv[3:] or list(SETTINGS)
    print(f"{n:,} rows, {draws} draws, 95 % bounds\n")
    print(
        "| what | ε claimed | ε true | certified | of the true ε | added up | as one label | "
        "above the true ε | above the claim | draws refuted | without true vectors | seconds |"
    )
    print("|---" * 12 + "|")
    for name in chosen:
        setting, start = SETTINGS[name], time.process_time()
        found = [one_draw(setting, n, seed) for seed in range(draws)]
        seconds = (time.process_time() - start) / draws
        best, true = np.array([bound for bound, _, _ in found]), setting.epsilon
        claim, own = setting.claim.epsilon, []
        for method in ("added", "joint"):
            values = [by_method[method] for _, by_method, _ in found if method in by_method]
            own.append(f"{np.mean(values):.2f}" if values else "—")
        share = "—" if math.isinf(true) else f"{best.mean() / true:.3f}"
        cells = [
            *(name.strip(), f"{claim:.3g}", f"{true:.3g}", f"{best.mean():.2f}", share, *own),
            *(sum(best > true + 1e-9), sum(best > claim + 1e-9)),
            *(sum(p_values[i] <= ACCUSED for _, _, p_values in found) for i in (0, 1)),
            f"{seconds:.2f}",
        ]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
