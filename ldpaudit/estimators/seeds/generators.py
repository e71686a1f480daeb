"""The generators that are tried, by the call that a programmer writes."""

from collections.abc import Callable, Mapping
from typing import Final

from ldpaudit.arrays import FloatArray, SeedArray
from ldpaudit.estimators.seeds import congruential, mersenne, pcg64

Generator = Callable[[SeedArray, int], FloatArray]
"""From seeds, uint32 (s,), and a number of draws to uniform numbers, float64 (draws, s)."""

GENERATORS: Final[Mapping[str, Generator]] = {
    "numpy.random.default_rng": pcg64.uniforms,
    "numpy.random.seed": mersenne.numpy_legacy,
    "Python's random.seed": mersenne.python,
    "torch.manual_seed": mersenne.torch,
    "R's set.seed": mersenne.r,
    "Java's Random.nextDouble": congruential.java,
    "Java's Random.nextFloat": congruential.java_single,
    "C's rand() / RAND_MAX (glibc)": congruential.glibc,
    "C's rand() % 100 (glibc)": congruential.glibc_percent,
    "C's rand() (ANSI example)": congruential.ansi,
    "C's rand() (Microsoft)": congruential.microsoft,
}
IN_A_ROW: Final = frozenset(
    ("numpy.random.default_rng", "numpy.random.seed", "Python's random.seed", "torch.manual_seed")
)
"""Those whose first numbers for seeds that count up look random. A congruence's are a slow wave,
which would agree with the order of a sorted table."""
