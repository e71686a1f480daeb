"""Black-box audits of seven protocols and of a faulty client, beside LDP-Auditor's events.

Run: ``python benchmarks/black_box.py [seeds]`` (5 seeds by default, about five minutes).

LDP-Auditor's bound: the attacker guesses one label from a report, uniformly among those that the
report supports; ε ≥ log(TPR_low/FPR_high) for the first and the last label, Clopper–Pearson with
α/4 per tail as in its code.
"""

import platform
import sys
import time
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))

import randomizers as r  # noqa: E402

from ldpaudit.commands.black_box.work import audit_black_box  # noqa: E402
from ldpaudit.commands.requests import BlackBoxRequest, Claim  # noqa: E402
from ldpaudit.estimators.intervals.binomial import (  # noqa: E402
    clopper_pearson_lower,
    clopper_pearson_upper,
)

K, ALPHA = r.K, 0.01
CHUNK = 50_000
PROTOCOLS = [
    ("GRR", "grr", "", 10**6, 0.977),
    ("SS", "subset", "", 10**6, 0.990),
    ("SUE", "sue", "", 10**6, 0.990),
    ("OUE", "oue", "", 10**6, 0.989),
    ("SHE", "she", "", 10**6, 0.986),
    ("BLH", "blh", "blh_support", 10**5, 0.966),
    ("OLH", "olh", "olh_support", 10**6, 0.989),
]


def uniform_among(supported, rng):
    """Return a uniform choice among the supported labels of each row, of all where none is."""
    supported = np.where(supported.any(axis=1, keepdims=True), supported, True)
    return np.where(supported, rng.random(supported.shape), -1).argmax(axis=1)


def guesses(protocol, reports, rng):
    if protocol == "GRR":
        return reports
    if protocol == "SS":
        return reports[np.arange(len(reports)), rng.integers(0, reports.shape[1], len(reports))]
    if protocol in ("SUE", "OUE"):
        return uniform_among(reports, rng)
    if protocol == "SHE":
        return reports.argmax(axis=1)
    g = 2 if protocol == "BLH" else 4
    labels = np.arange(K)
    supported = r.hashed(reports[:, :1], labels[None, :], g) == reports[:, 1:]
    return uniform_among(supported, rng)


def their_bound(protocol, function, n, seed, **settings):
    rng = np.random.default_rng(seed)
    hits = []
    for value in (0, K - 1):
        found = 0
        for start in range(0, n, CHUNK):
            reports = function(value, min(CHUNK, n - start), rng, **settings)
            found += int((guesses(protocol, reports, rng) == 0).sum())
        hits.append(found)
    low = clopper_pearson_lower(hits[0], n, ALPHA / 4)
    return max(float(np.log(low / clopper_pearson_upper(hits[1], n, ALPHA / 4))), 0.0)


def our_bound(name, features, n, seed, claim=1.0):
    file = TESTS / "randomizers.py"
    request = BlackBoxRequest(
        f"{file}:{name}",
        (0, K - 1),
        n,
        Claim(claim),
        f"{file}:{features}" if features else "",
        1 - ALPHA,
        seed=seed,
        path=(str(TESTS),),
    )
    start = time.perf_counter()
    found = audit_black_box(request)
    return found.epsilon_lower.value, time.perf_counter() - start, found.verdict


def timed(call):
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def protocols(seeds):
    print("\n### Seven protocols at ε = 1, 25 labels, level 0.99\n")
    print(f"Mean over {seeds} seeds; in brackets the smallest. Seconds of one audit, all told.\n")
    print("| protocol | samples | ε ≥ | wanted | LDP-Auditor | ratio | seconds | its seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for protocol, name, features, n, wanted in PROTOCOLS:
        ours, seconds, theirs, slow = [], [], [], []
        for seed in range(seeds):
            bound, took, _ = our_bound(name, features, n, seed)
            other, waited = timed(
                lambda s=seed: their_bound(protocol, getattr(r, name), n, s)  # noqa: B023
            )
            ours.append(bound), seconds.append(took), theirs.append(other), slow.append(waited)
        print(
            f"| {protocol} | {n:,} | {np.mean(ours):.4f} ({min(ours):.4f}) | {wanted} "
            f"| {np.mean(theirs):.4f} | {np.mean(ours) / np.mean(theirs):.2f} "
            f"| {np.mean(seconds):.1f} | {np.mean(slow):.1f} |",
            flush=True,
        )


def second_chance():
    print("\n### A unary-encoding client that gives the true bit a second chance, 10⁵ samples\n")
    print("| encoding | claimed ε | ε ≥ | verdict | LDP-Auditor |")
    print("|---|---|---|---|---|")
    for protocol in ("SUE", "OUE"):
        for epsilon in (0.5, 1.0, 2.0):
            name = f"extra_chance_{protocol.lower()}_{epsilon:g}".replace(".", "_")
            ours, _, verdict = our_bound(name, "", 10**5, 1, epsilon)
            theirs = their_bound(
                protocol,
                r.extra_chance,
                10**5,
                1,
                epsilon=epsilon,
                optimized=protocol == "OUE",
            )
            seen = "refuted" if theirs > epsilon else "not refuted"
            print(f"| {protocol} | {epsilon:g} | {ours:.3f} | {verdict} | {theirs:.3f}, {seen} |")


def other_faults():
    print("\n### Other faulty clients that claim ε = 1, 10⁵ samples\n")
    print("| fault | ε ≥ | verdict |\n|---|---|---|")
    for name, features in (
        ("scale_of_half_the_sensitivity", ""),
        ("lambda_as_epsilon", ""),
        ("forgets_the_rest", ""),
        ("off_by_one", ""),
        ("one_noise_for_all_bits", ""),
        ("one_noise_for_all_entries", ""),
        ("one_sided_noise", ""),
        ("subset_in_order", ""),
        ("forgets_some", "olh_support"),
    ):
        bound, _, verdict = our_bound(name, features, 10**5, 1)
        words = getattr(r, name).__doc__.rstrip(".")
        print(f"| {words} | {bound:.3f} | {verdict} |")


if __name__ == "__main__":
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    protocols(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    second_chance()
    other_faults()
