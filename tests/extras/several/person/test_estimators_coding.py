"""Codes of several answers: each stands for the answers that say the same of all labels."""

from itertools import product

import numpy as np
import pytest
from estimators.worlds import WIDE
from worlds import ASYMMETRIC

from ldpaudit.extras.several.person.estimators import coded_fresh, coded_remembered

CHANNEL = ASYMMETRIC.label_channel.matrix


def test_the_code_of_fresh_answers_has_the_likelihoods_of_all_of_them() -> None:
    channels = (WIDE, CHANNEL, CHANNEL)
    every = np.array(list(product(range(4), range(3), range(3))), dtype=np.int32)
    codes, size, channel = coded_fresh(channels, every)
    assert channel is not None
    assert channel.shape == (3, size)
    assert sorted(set(codes.tolist())) == list(range(size))
    likelihoods = np.ones((len(every), 3))
    for one, answers in zip(channels, every.T, strict=True):
        likelihoods *= one[:, answers].T
    posterior = likelihoods / likelihoods.sum(axis=1, keepdims=True)
    expected = (channel / channel.sum(axis=0)).T
    assert posterior == pytest.approx(expected[codes])
    summed = [np.bincount(codes, likelihoods[:, label], size) for label in range(3)]
    assert channel == pytest.approx(np.array(summed))
    # The same answers in another order of two equal releases have one code.
    assert size == len({tuple(np.round(row, 9)) for row in posterior})


def test_answers_that_differ_were_not_remembered() -> None:
    released = np.array([[0, 0], [2, 2], [1, 2], [1, 1]], dtype=np.int32)
    codes, size, channel = coded_remembered(CHANNEL, released)
    assert codes.tolist() == [0, 2, 3, 1]
    assert channel is not None
    assert (size, channel[:, :3]) == (4, pytest.approx(CHANNEL))
