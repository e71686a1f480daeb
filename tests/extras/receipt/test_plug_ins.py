"""Which mechanisms of other packages are drawn again: those that ask for all words they use."""

from dataclasses import replace

import numpy as np
import pytest

from ldpaudit.extras.receipt.drawing import not_drawn, sealed_as_drawn
from ldpaudit.mechanisms.finite import Family, FiniteMechanism
from ldpaudit.mechanisms.response import RandomizedResponse


class OfWords(FiniteMechanism):
    """Draws by itself, from the words that it is given."""

    def sample(self, labels, rng=None):
        return ((rng.words(len(labels)) >> np.uint64(40)) % np.uint64(3)).astype(np.int32)


class OfItsOwn(FiniteMechanism):
    """Has a generator of its own, with a seed."""

    def sample(self, labels, rng=None):
        return np.random.default_rng(1).integers(0, 3, len(labels), dtype=np.int32)


class OfBoth(FiniteMechanism):
    """Adds to the words that it is given others that are nobody's."""

    def sample(self, labels, rng=None):
        own = np.random.default_rng().integers(0, 3, len(labels), dtype=np.int32)
        return (super().sample(labels, rng) + own) % 3


class OfNumPy(FiniteMechanism):
    """Wants a generator of NumPy."""

    def sample(self, labels, rng=None):
        rng = rng or np.random.default_rng()
        return np.where(rng.random(len(labels)) < 0.5, labels, 0).astype(np.int32)


def made(kind):
    traits = replace(RandomizedResponse.traits, name="of-another-package")
    family = Family(traits, RandomizedResponse.parameters, RandomizedResponse.channel, kind=kind)
    return family(("a", "b", "c"), 0.5)


@pytest.mark.parametrize("kind", [None, OfWords])
def test_draws_from_the_words_alone_are_repeated(kind):
    assert not_drawn(made(kind)) == ""
    assert sealed_as_drawn(made(kind))
    assert not sealed_as_drawn(RandomizedResponse(("a", "b"), 0.5))


@pytest.mark.parametrize("kind", [OfItsOwn, OfBoth, OfNumPy])
def test_draws_from_elsewhere_are_not(kind):
    assert "of-another-package" in not_drawn(made(kind))
