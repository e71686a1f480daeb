"""How noise of several releases goes together: honest files are refuted as seldom as stated."""

import numpy as np
import pytest
from estimators.person.drawing import drawn

from ldpaudit.audits.interface import AuditContext, OverReleases, Plan
from ldpaudit.audits.person.answers import Answers
from ldpaudit.audits.person.counting import detectable_excess, evidence_of
from ldpaudit.audits.person.noise import found_noise
from ldpaudit.estimators.person.evidence import Noise
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import (
    ColumnReleases,
    Declaration,
    FeatureTable,
    Release,
    ReleasedLabels,
    TrueLabels,
)

CLAIM = Declaration("randomized-response", {"classes": ["no", "yes"], "epsilon": 1.0})


def _seen(
    truth: np.ndarray, released: np.ndarray, rows: np.ndarray, noise: Noise = "remembered"
) -> Answers:
    """Return releases of codes (n, t); ``rows``: where each person is in each file, (n, t)."""
    n, releases = len(truth), []
    features = FeatureTable(np.zeros((n, 1), np.float32), np.zeros((n, 0), np.int32), (), 1)
    for t in range(truth.shape[1]):
        order = np.argsort(rows[:, t])
        releases.append(
            Release(
                features=features,
                released=ReleasedLabels(released[order, t]),
                outputs=("no", "yes"),
                classes=("no", "yes"),
                truth=TrueLabels(truth[order, t]),
                declaration=CLAIM,
            )
        )
    asked = OverReleases(ColumnReleases(tuple(releases), rows), noise)
    claim = from_declaration(CLAIM, ("no", "yes"))
    return Answers.of(AuditContext(releases[-1], claim, Plan(seed=0), over=asked))


@pytest.mark.validate
def test_a_file_in_reverse_order_is_no_sign_of_used_random_numbers() -> None:
    n, refuted = 1_000, 0
    place = np.arange(n)
    rows = np.stack([place, place[::-1]], axis=1)
    for seed in range(300):
        made = drawn(np.random.default_rng(seed), n=n, remembered=1.0, changing=0.1)
        found = found_noise(_seen(made.truth, made.released, rows))
        assert found.remembered == 1
        refuted += found.reused is not None and found.reused <= 0.01
    assert refuted <= 8


def test_an_excess_that_would_be_found_is() -> None:
    """A power of 70 % or more passes; of the right 90 % fewer than 14 of 20 are once in 400."""
    n, rng = 3_000, np.random.default_rng(0)
    rows = np.tile(np.arange(n)[:, None], (1, 3))

    def seen(seed: int, epsilon: float) -> Answers:
        made = drawn(np.random.default_rng(seed), n=n, releases=3, epsilon=epsilon)
        return _seen(made.truth, made.released, rows, "fresh")

    excess = detectable_excess(seen(99, 1.0), 3.0, rng)
    assert excess is not None
    more = excess(0.05)
    assert 0 < more < 1
    leaks = [evidence_of(seen(seed, 1 + more / 3), rng) for seed in range(20)]
    assert sum(one is not None and one.bound(0.05).epsilon > 3 for one in leaks) >= 14
