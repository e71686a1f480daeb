"""The exact advantage on public data with finite feature cells, and the optimal attack on it."""

import numpy as np
import pytest

from ldpaudit.attacks.interface import Knowledge, SharedModel, without_truth
from ldpaudit.attacks.model_attack import BayesAttack
from ldpaudit.attacks.scoring import ACCURACY, lower_bound, score_fold, upper_bound
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.counts import Frequencies, hash_rows
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

pytestmark = pytest.mark.real_data

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
TABLE = {
    ("military", "gender"): (
        933,
        0.85670,
        (0.000042, 0.002321, 0.041850, 0.096134, 0.125328, 0.140827, 0.142963),
    ),
}


@pytest.fixture(
    scope="module",
    params=[("military", "gender")],
    ids=lambda task: "-".join(task),
)
def task(request, shared_data):
    import pandas as pd

    file, label = request.param
    frame = pd.read_parquet(shared_data / f"{file}.parquet").drop(
        columns="rownames", errors="ignore"
    )
    truth, values = pd.factorize(frame[label], sort=True)
    coded = [pd.factorize(frame[name])[0] for name in frame.columns.drop(label)]
    codes = np.stack(coded, axis=1).astype(np.int32)
    sizes = tuple(int(column.max()) + 1 for column in codes.T)
    features = FeatureTable(np.zeros((len(codes), 0), np.float32), codes, sizes, len(sizes))
    cells = np.unique(hash_rows(features), return_inverse=True)[1]
    counts = np.zeros((cells.max() + 1, len(values)))
    np.add.at(counts, (cells, truth), 1)
    weights = counts.sum(axis=1)
    return features, cells, counts / weights[:, None], weights, TABLE[request.param]


def test_exact_advantage(task):
    _, _, eta, weights, (size, before, gains) = task
    assert len(eta) == size
    assert np.average(eta.max(axis=1), weights=weights) == pytest.approx(before, abs=5e-6)
    for epsilon, gain in zip(EPSILONS, gains, strict=True):
        channel = RandomizedResponse.from_epsilon(tuple(range(eta.shape[1])), epsilon).channel
        gains_of_rows = channel.informed_accuracy(eta) - eta.max(axis=1)
        found = np.average(gains_of_rows, weights=weights)
        assert found == pytest.approx(gain, abs=5e-7)


def drawn(task, epsilon, seed):
    """Draw true labels from the exact P(label | features), and release them."""
    features, cells, eta, _, _ = task
    rng = np.random.default_rng(seed)
    above = rng.random((len(features), 1)) > np.cumsum(eta, axis=1)[cells, :-1]
    truth = above.sum(axis=1).astype(np.int32)
    mechanism = RandomizedResponse.from_epsilon(tuple(range(eta.shape[1])), epsilon)
    released = ReleasedLabels(mechanism.sample(truth, rng))
    names = mechanism.classes
    return Release(features, released, names, names, TrueLabels(truth)), mechanism


@pytest.mark.parametrize("epsilon", [3.0])
def test_bayes_with_the_exact_posterior_is_optimal(task, epsilon):
    # At 99.9999 % an honest interval misses with probability 1e-6; seeds are fixed besides.
    _, cells, eta, weights, _ = task
    release, mechanism = drawn(task, epsilon, 1)
    knowledge = Knowledge(mechanism.channel)
    exact = SharedModel(Frequencies(eta[0]))
    exact.remember(release.features, eta[cells])
    knowledge.share("noise-aware", exact)
    attack = BayesAttack(knowledge).fit(release, np.random.default_rng(0))
    posterior = attack.posterior(without_truth(release))
    fold = score_fold(release.truth, posterior, None, rate_alpha=0.05, rng=np.random.default_rng(0))
    optimum = np.average(mechanism.channel.informed_accuracy(eta), weights=weights)
    assert lower_bound([fold], ACCURACY, 5e-7) <= optimum <= upper_bound([fold], ACCURACY, 5e-7)
    assert upper_bound([fold], ACCURACY, 0.025) - lower_bound([fold], ACCURACY, 0.025) < 0.005
