"""How noise of several releases goes together: honest files are refuted as seldom as stated."""

import numpy as np
import pytest
from extras.several.person.worlds import drawn

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.extras.several.files import ColumnReleases, Noise
from ldpaudit.extras.several.person.answers import Answers
from ldpaudit.extras.several.person.noise import releases_noise
from ldpaudit.extras.several.related import OverReleases
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import Declaration, FeatureTable, Release, ReleasedLabels, TrueLabels

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
    return Answers.of(AuditContext(releases[-1], claim, Plan(seed=0), related=asked))


@pytest.mark.validate
def test_a_file_in_reverse_order_is_no_sign_of_used_random_numbers() -> None:
    n, refuted = 1_000, 0
    place = np.arange(n)
    rows = np.stack([place, place[::-1]], axis=1)
    for seed in range(300):
        made = drawn(np.random.default_rng(seed), n=n, remembered=1.0, changing=0.1)
        found = releases_noise(_seen(made.truth, made.released, rows))
        assert found.p_values["remembered"] == 1
        reused = found.p_values["reused"]
        refuted += reused is not None and reused <= 0.01
    assert refuted <= 8
