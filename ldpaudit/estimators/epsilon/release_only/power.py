"""What a bound from the release alone could have found, for any channel.

Each group of rows is taken for a mixture of true labels, the one that explains its released labels
best under the claimed channel. What the same rows would look like at a larger ε follows.
"""

import numpy as np

from ldpaudit.estimators.epsilon.power import SumOfBinomials, accuracy_power, two_sided_power
from ldpaudit.estimators.epsilon.release_only.bound import GroupTest
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray

_MOST_STEPS = 1000
_FEWEST_STEPS = 20
_WORK = 1e9


def label_mixtures(test: GroupTest, channel: Channel) -> FloatArray:
    """Return the shares of true labels in each group, float64 of shape (g, k).

    The likeliest shares given the groups' released labels, if the channel made them: expectation
    maximisation from equal shares. Stopped early, or with few rows, it takes a group for more
    mixed than it is, and power for smaller.
    """
    matrix, table = channel.matrix, test.table
    shares = np.full((len(table), len(matrix)), 1 / len(matrix))
    rows = np.maximum(table.sum(axis=1, keepdims=True), 1)
    work = shares.size * matrix.shape[1]
    for _ in range(int(np.clip(_WORK / work, _FEWEST_STEPS, _MOST_STEPS))):
        expected = np.maximum(shares @ matrix, 1e-300)
        shares = shares * ((table / rows / expected) @ matrix.T)
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return shares


def group_power(
    test: GroupTest,
    mixtures: FloatArray,
    channel: Channel,
    limit: float,
    alpha: float,
    factor: float = 1.0,
) -> float:
    """Return the probability that a release-only test bounds ε above a limit.

    Parameters
    ----------
    test : GroupTest
    mixtures : float64 array of shape (g, k)
        The shares of true labels in each group, of :func:`label_mixtures`.
    channel : Channel
        The one that made the release in question.
    limit : float
        The claimed ε in nats.
    alpha : float
        The whole error probability; the test has its share.
    factor : float
        How many times as many rows each group has.

    Returns
    -------
    float
        Assuming that the same rows were grouped.
    """
    sizes = np.floor(test.sizes * factor).astype(np.int64)
    if sizes.sum() == 0:
        return 0.0
    outputs = mixtures @ channel.matrix
    if test.method == "two-sided":
        hits = np.clip(outputs[:, test.means == 1].sum(axis=1), 0.0, 1.0)
        negative, positive = (SumOfBinomials(sizes[[g]], hits[[g]]) for g in (0, 1))
        return two_sided_power(negative, positive, limit, alpha * test.share)
    right = np.where(test.means == np.arange(len(sizes))[:, None], outputs, 0.0).sum(axis=1)
    agreeing = SumOfBinomials(sizes, np.clip(right, 0.0, 1.0))
    return accuracy_power(agreeing, sizes, limit, alpha * test.share)
