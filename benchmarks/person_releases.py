"""Several releases of the same people: told apart, and bounded, over many draws.

PYTHONPATH=. python benchmarks/person_releases.py [--draws 100] [--people 5000]
"""

import argparse
import time
from dataclasses import dataclass
from itertools import product

import numpy as np

from ldpaudit.audits.interface import AuditContext, OverReleases, Plan, Views
from ldpaudit.audits.person.audit import AUDIT
from ldpaudit.estimators.person import Noise, releases_evidence
from ldpaudit.mechanisms import RandomizedResponse, from_declaration
from ldpaudit.release import (
    ColumnReleases,
    Declaration,
    FeatureTable,
    Release,
    ReleasedLabels,
    TrueLabels,
)
from ldpaudit.result import Finding

CLASSES = ("no", "yes")


@dataclass(frozen=True)
class Setting:
    """How releases are drawn: one row of the table."""

    noise: str
    releases: int
    truth: bool
    epsilon: float = 1.0
    changing: float = 0.05


def drawn(setting: Setting, people: int, rng: np.random.Generator) -> ColumnReleases:
    """Draw releases by binary randomized response; a few labels change from one to the next."""
    mechanism = RandomizedResponse.from_epsilon(CLASSES, setting.epsilon)
    truth = (rng.random(people) < 0.35).astype(np.int32)
    declaration = Declaration(
        "randomized-response", {"classes": list(CLASSES), "epsilon": setting.epsilon}
    )
    empty = np.empty((people, 0))
    nothing = FeatureTable(empty.astype(np.float32), empty.astype(np.int32), (), 0)
    releases: list[Release] = []
    seed = int(rng.integers(1 << 32))
    for place in range(setting.releases):
        before = truth
        if place:
            truth = np.where(rng.random(people) < setting.changing, 1 - truth, truth)
            truth = truth.astype(np.int32)
        again = np.random.default_rng(seed) if setting.noise == "reused" else rng
        answers = mechanism.sample(truth, again)
        if place and setting.noise == "remembered":
            answers = np.where(truth == before, releases[-1].released, answers).astype(np.int32)
        known = TrueLabels(truth) if setting.truth else None
        releases.append(
            Release(nothing, ReleasedLabels(answers), CLASSES, CLASSES, known, declaration)
        )
    rows = np.arange(people)[:, None].repeat(setting.releases, axis=1)
    return ColumnReleases(tuple(releases), rows)


def audited(releases: ColumnReleases, noise: Noise | None, seed: int) -> Finding:
    """Return what the audit finds at 95 % confidence."""
    last = releases.releases[-1]
    claim = from_declaration(last.declaration, last.classes)
    context = AuditContext(last, claim, Plan(seed), views=Views(over=OverReleases(releases, noise)))
    return AUDIT.run(context)


def looks(finding: Finding) -> str:
    """Return what the noise is said to look like."""
    text = " ".join(note.text for note in finding.notes)
    known = {"looks fresh": "fresh", "looks remembered": "remembered", "used again": "reused"}
    return next((name for words, name in known.items() if words in text), "unclear")


def row(setting: Setting, draws: int, people: int) -> str:
    """Return one row of the table."""
    told, shares, above = 0, [], 0
    claimed: Noise = "remembered" if setting.noise == "remembered" else "fresh"
    true = setting.epsilon * (1 if claimed == "remembered" else setting.releases)
    for draw in range(draws):
        rng = np.random.default_rng([draw, setting.releases, len(setting.noise)])
        releases = drawn(setting, people, rng)
        told += looks(audited(releases, None, draw)) == setting.noise
        if setting.truth and setting.noise != "reused":
            found = {e.id: e for e in audited(releases, claimed, draw).estimates}
            if "person.epsilon_lower" in found:
                shares.append(found["person.epsilon_lower"].value / true)
                above += shares[-1] > 1
    bounded = f"{np.mean(shares):.3f} | {above} of {len(shares)}" if shares else "– | –"
    known = "with" if setting.truth else "without"
    start = f"| {setting.noise} | {setting.releases} | {setting.epsilon:g} | {known}"
    return f"{start} | {told / draws:.0%} | {bounded} |"


def validity(setting: Setting, draws: int, people: int) -> str:
    """Return how often the bound alone lies above the true ε: at 95 % confidence, 1 in 20."""
    claimed: Noise = "remembered" if setting.noise == "remembered" else "fresh"
    true = setting.epsilon * (1 if claimed == "remembered" else setting.releases)
    matrix = RandomizedResponse.from_epsilon(CLASSES, setting.epsilon).channel.matrix
    shares = []
    for draw in range(draws):
        rng = np.random.default_rng([draw, 7])
        releases = drawn(setting, people, rng)
        table = releases.table(releases.in_all)
        labels = releases.truth(0, releases.in_all)
        channels = [matrix] * setting.releases
        evidence = releases_evidence(labels, table, channels, claimed, rng)
        assert evidence is not None
        shares.append(evidence.bound(0.05).epsilon / true)
    above = sum(share > 1 for share in shares)
    start = f"| {setting.noise} | {setting.releases} | {setting.epsilon:g}"
    return f"{start} | {np.mean(shares):.3f} | {np.min(shares):.3f} | {above} of {draws} |"


def _print_validity(draws: int, people: int) -> None:
    print("| noise | releases | ε | certified/true | smallest | above the true ε |")
    print("|---|---|---|---|---|---|")
    for noise, releases in product(("fresh", "remembered"), (2, 4, 8)):
        setting = Setting(noise, releases, truth=True, changing=0.0)
        print(validity(setting, draws, people), flush=True)
    for epsilon, releases in product((0.5, 2.0), (2, 8)):
        setting = Setting("fresh", releases, truth=True, epsilon=epsilon, changing=0.0)
        print(validity(setting, draws, people), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--people", type=int, default=5_000)
    parser.add_argument("--validity", type=int, default=0, help="draws of the bound alone")
    options = parser.parse_args()
    if options.validity:
        return _print_validity(options.validity, options.people)
    start = time.process_time()
    print("| noise | releases | ε | truth | told apart | certified/true | bound above truth |")
    print("|---|---|---|---|---|---|---|")
    for noise, releases, truth in product(("fresh", "remembered"), (2, 4, 8), (True, False)):
        print(row(Setting(noise, releases, truth), options.draws, options.people), flush=True)
    for releases in (2, 4):
        print(row(Setting("reused", releases, True), options.draws, options.people), flush=True)
    print(f"{time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main()
