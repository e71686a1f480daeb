"""Noise that anybody can compute: from a seed that people write, or a checksum of a column."""

# For a wrong guess the numbers are fixed before the noise is drawn. Many seeds are screened on the
# first rows; the best, and every checksum, get a p-value that is valid for any fixed numbers.

import ctypes
import datetime
import hashlib
import heapq
import math
import random
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray

COUNTED: Final = 10_000  # by default every seed below this is tried
_TESTED: Final = 4096
# The first row's seed is below this, where each row has its own.
_EACH_ROW: Final = 1 << 20
# A seed becomes the 624 words with which R sets MT19937 by powers of 69069 and their sums: 50 steps
# scramble the seed, and the word after them is a position that R sets itself.
_POWERS = np.cumprod(np.r_[1, np.full(675, 69069)].astype(np.uint32), dtype=np.uint32)
_R_FACTORS, _R_TERMS = _POWERS[52:], np.cumsum(_POWERS, dtype=np.uint32)[51:-1]
# Numbers that are remembered are rounded to so many steps.
_STEPS: Final = 65536.0
# Seeds that are screened at once.
_AT_ONCE: Final = 1024
# Those that are tried with a seed for each row; R's first numbers are a slow wave of the seed.
_FOR_EACH_ROW = ("numpy.random.default_rng", "numpy.random.seed", "Python's random.seed")

# Whole numbers that every generator takes as a seed.
_WHOLE: Final = re.compile(r"[0-9]{1,10}(\.0)?")
_FRACTION: Final = re.compile(r"[-+0-9.e]+|nan")
_BEYOND: Final = 1 << 32
# Columns of different values that are tried as seeds of the rows. All rows are drawn for where so
# many say something of the outcomes, by so many standard errors.
_PROMISING_ROWS: Final = 1024
_PROMISING: Final = 3.0
MOST_SEEDING: Final = 16

# From a seed and a number of draws to numbers in [0, 1).
Generator = Callable[[int, int], FloatArray]


def generators() -> dict[str, Generator]:
    """Return the generators that are tried, by the call that a programmer writes."""
    legacy, twister = np.random.RandomState(0), np.random.MT19937(0)
    # Its 624 words and its position, in place: its setter takes half a minute for a million seeds.
    address = ctypes.c_uint32 * 625
    state = np.ctypeslib.as_array(address.from_address(twister.ctypes.state_address))
    drawn: dict[int, npt.NDArray[np.uint64]] = {}

    def numpy_legacy(seed: int, draws: int) -> FloatArray:
        legacy.seed(seed)
        return legacy.random_sample(draws)

    def python_random(seed: int, draws: int) -> FloatArray:
        # Python seeds the same generator with the seed's words as a key, as NumPy does with a list.
        legacy.seed([seed])
        return legacy.random_sample(draws)

    def r_drawn(seed: int, draws: int, more: int) -> npt.NDArray[np.uint64]:
        # Both streams are made of the same draws, of which the second needs ``more``.
        if len(drawn.get(seed, ())) < draws:
            state[:-1] = _R_FACTORS * np.uint32(seed) + _R_TERMS
            state[-1] = 624
            if len(drawn) == _AT_ONCE:
                drawn.clear()
            drawn[seed] = twister.random_raw(more)
        return drawn[seed][:draws]

    def r_uniform(seed: int, draws: int) -> FloatArray:
        return np.asarray(r_drawn(seed, draws, 2 * draws + 64) * 2.0**-32)

    def r_sample(seed: int, draws: int) -> FloatArray:
        # Since R 3.6 a number below 100 is seven bits of a draw, drawn again from 100 on.
        words = r_drawn(seed, 2 * draws + 64, 2 * draws + 64)
        bits = (words >> 16).astype(np.uint8) & 127
        return bits[bits < 100][:draws] / 100

    return {
        "numpy.random.default_rng": lambda seed, draws: np.random.default_rng(seed).random(draws),
        "numpy.random.seed": numpy_legacy,
        "Python's random.seed": python_random,
        "R's set.seed": r_uniform,
        "R's set.seed and sample(100)": r_sample,
    }


def _digest(made: Callable[..., Any], text: bytes) -> int:
    return int.from_bytes(made(text, usedforsecurity=False).digest())


def checksums(texts: Sequence[str]) -> Iterator[tuple[str, FloatArray]]:
    """Yield numbers in [0, 1) that are made of the checksums of texts, and what they are."""
    # Each with its number of bits; 0 where, of short texts, it is no fraction of all numbers.
    kinds: dict[str, tuple[Callable[[bytes], int], int]] = {
        "CRC32": (zlib.crc32, 32),
        "Adler32": (zlib.adler32, 0),
    }
    made = {"MD5": hashlib.md5, "SHA-1": hashlib.sha1, "SHA-256": hashlib.sha256}
    for name, bits in (("MD5", 128), ("SHA-1", 160), ("SHA-256", 256)):
        kinds[name] = partial(_digest, made[name]), bits
    for name, (checksum, bits) in kinds.items():
        sums = [checksum(text.encode()) for text in texts]
        rest = np.array([number % 10_000 for number in sums])
        for modulus in (100, 1000, 10_000):
            yield f"{name} of column {{}} modulo {modulus:,}", rest % modulus / modulus
        if bits:
            yield f"{name} of column {{}}", np.array([number / 2**bits for number in sums])


def _first(draw: Generator, text: str) -> float:
    """Return the first number that a generator draws with a whole number as its seed."""
    return float(draw(int(text.removesuffix(".0")), 1)[0])


def seeding(
    texts: Sequence[str], sources: Mapping[str, Generator]
) -> Iterator[tuple[str, Callable[[str], float]]]:
    """Yield how each row may have been drawn with its text as a seed, and its first number."""
    # Texts that are whole numbers seed as such; others only Python takes, and nobody seeds with
    # fractions. A column of numbers with gaps writes 12 as 12.0.
    if all(_WHOLE.fullmatch(text) and int(text.removesuffix(".0")) < _BEYOND for text in texts):
        for name in _FOR_EACH_ROW:
            yield f"{name} seeded in each row with column {{}}", partial(_first, sources[name])
    elif all(map(_FRACTION.fullmatch, texts)):
        return
    yield (
        "Python's random.seed seeded in each row with the text of column {}",
        lambda text: random.Random(text).random(),  # nosec B311
    )


def written_seeds(consecutive: int, made_on: datetime.date | None = None) -> list[int]:
    """Return the seeds from ``consecutive`` on that people write; with a day, the seconds of it."""
    runs = [digits[:length] for digits in ("123456789", "987654321") for length in range(1, 10)]
    runs += [digit * length for digit in "123456789" for length in range(1, 10)]
    famous = ("3141592653", "2718281828", "1618033988", "31337", "8675309", "424242", "54321")
    runs += [digits[:length] for digits in famous for length in range(5, 10)]
    seeds = {int(run) for run in runs} | {10**power for power in range(10)}
    seeds |= {20_000, 50_000, 123_123, 0xBAD5EED, 0xC0FFEE, 0xCAFE, 0xBEEF, 0xDEADBEEF, 0xCAFEBABE}
    seeds |= {2**power - less for power in range(32) for less in (0, 1)} | {2**32 - 1}
    first, last = (datetime.date(*day).toordinal() for day in ((2000, 1, 1), (2030, 12, 31)))
    days = map(datetime.date.fromordinal, range(first, last + 1))
    seeds |= {int(f"{day:%Y%m%d}") for day in days}
    if made_on is not None:
        midnight = (made_on - datetime.date(1970, 1, 1)).days * 24
        # In every time zone.
        seeds |= set(range((midnight - 12) * 3600, (midnight + 38) * 3600))
    return sorted(seed for seed in seeds if consecutive <= seed < 2**32)


@dataclass(frozen=True)
class Outcomes:
    """What the noise did to rows in their order.

    ``hits``, bool array of shape (n,): rows of one stratum are hits independently and alike,
    unless the noise can be computed; ``strata``, int64 array of shape (n,).
    """

    hits: BoolArray
    strata: IndexArray

    def take(self, rows: slice | IndexArray) -> "Outcomes":
        """Return the outcomes of some rows."""
        return Outcomes(self.hits[rows], self.strata[rows])

    @property
    def weights(self) -> FloatArray:
        """Hits less their share in the stratum, so that a wrong seed's score has variance 1/12."""
        codes = np.unique(self.strata, return_inverse=True)[1]
        centred = self.hits - (np.bincount(codes, self.hits) / np.bincount(codes))[codes]
        return np.asarray(centred / max(float(np.linalg.norm(centred)), 1e-12))

    def log_p_values(self, numbers: FloatArray) -> FloatArray:
        """Return logarithms of valid p-values of "these numbers say nothing about the hits".

        ``numbers`` are fixed ones in [0, 1], float64 (s, n); the p-values have shape (s,).
        Chernoff's bound: sums of draws without replacement have no larger exponential moments than
        those with replacement (Hoeffding 1963, Theorem 4).
        """
        parts = []
        for stratum in np.unique(self.strata):
            rows = np.flatnonzero(self.strata == stratum)
            hits, values = self.hits[rows], numbers[:, rows]
            values = values - values.mean(axis=1, keepdims=True)
            if hits.mean() > 0.5:
                hits, values = ~hits, -values
            parts.append((hits.sum(), values, values[:, hits].sum(axis=1)))
        tilts = np.geomspace(0.5, 64, 14)
        # The exponent is convex in the tilt and 0 at 0, where the excess is its slope downwards.
        sign = np.sign(np.sum([excess for *_, excess in parts], axis=0))

        def exponents(places: IndexArray) -> FloatArray:
            tilt, total = sign * tilts[places], np.zeros(len(numbers))
            for hits, values, excess in parts:
                moment = np.log(np.exp(tilt[:, None] * values).mean(axis=1))
                total += hits * moment - tilt * excess
            return total

        low, high = np.zeros((2, len(numbers)), dtype=np.int64)
        high += len(tilts) - 1
        while (low < high).any():
            middle = (low + high) // 2
            falls = exponents(np.minimum(middle + 1, high)) < exponents(middle)
            low, high = np.where(falls, middle + 1, low), np.where(falls, high, middle)
        return np.asarray(np.minimum(math.log(2) + exponents(low), 0.0))


@dataclass(frozen=True)
class Evidence:
    """What explains the outcomes best."""

    log_p_value: float
    """Of "nothing that was tried explains them", corrected for all of it."""
    source: str
    """In words, with ``{}`` for the name of the column."""
    column: str | None
    """The column whose checksum it is."""
    seeds: int
    columns: int
    """``seeds`` and ``columns``: how many seeds of each generator were tried, and checksums of how
    many columns."""

    @property
    def p_value(self) -> float:
        """The p-value."""
        return math.exp(self.log_p_value)


def try_all(
    outcomes: Sequence[Outcomes],
    consecutive: int,
    others: Sequence[int] = (),
    columns: Mapping[str, npt.NDArray[Any]] | None = None,
    progress: Callable[[int], None] = lambda _: None,
    remembered: dict[Any, Any] | None = None,
) -> Evidence:
    """Try seeds of all generators, and checksums of columns.

    The seeds 0 … ``consecutive`` − 1 are tried, and ``others``. ``outcomes``: at least one, on the
    same n rows; ``columns``: by name the values of a column in the first rows; ``progress`` is
    called with the number of seeds done; ``remembered``: the numbers that seeds were screened with,
    in 16 bits each, for calls with the same seeds.
    """
    shares = [min(one.hits.mean(), 1 - one.hits.mean()) for one in outcomes]
    # So many rows that 400 are hits, and as many are none.
    enough = int(np.clip(400 / max(*shares, 1e-9), _TESTED, 1 << 16))
    first, tested = ([one.take(slice(most)) for one in outcomes] for most in (320, enough))
    rows, seeds, tries, looked_at = len(tested[0].hits), consecutive + len(others), 0, 0
    sources = generators()
    found: list[tuple[float, str, str | None]] = [(0.0, "nothing", None)]

    def least(of: Sequence[Outcomes], numbers: FloatArray) -> float:
        return min(float(one.log_p_values(numbers).min()) for one in of)

    screened, firsts = _screened(sources, first, consecutive, others, progress, remembered)
    for (name, each_row), kept in screened.items():
        if each_row:
            known, end = firsts[name], max(kept) + rows
            later = [sources[name](seed, 1)[0] for seed in range(len(known), end)]
            known = np.append(known, later)
            which = "a seed for each row that counts up"
            numbers = np.array([known[seed : seed + rows] for seed in kept])
        else:
            which, numbers = "a common seed", np.array([sources[name](s, rows) for s in kept])
        found.append((least(tested, numbers), f"{name} with {which}", None))
        tries += min(consecutive, _EACH_ROW) if each_row else seeds
    for column, values in (columns or {}).items():
        # A row for each value: rows that share it may share their noise for another reason.
        texts, places = np.unique([str(one) for one in values[:_TESTED]], return_index=True)
        # Of a column with fewer different values a checksum is no source of noise.
        if len(texts) < max(300, len(values[:_TESTED]) / 20):
            continue
        chosen, looked_at = [one.take(places) for one in outcomes], looked_at + 1
        made = list(checksums(texts.tolist()))
        tries += len(made)
        if looked_at <= MOST_SEEDING:
            ways = list(seeding(texts.tolist(), sources))
            tries += len(ways)
            drawn = ((source, _if_promising(chosen, draw, texts)) for source, draw in ways)
            made += [(source, numbers) for source, numbers in drawn if numbers is not None]
        found += [(least(chosen, number[None]), source, column) for source, number in made]
    log_p_value, source, of_column = min(found, key=lambda one: one[0])
    log_p_value = min(log_p_value + math.log(max(tries, 1) * len(outcomes)), 0.0)
    return Evidence(log_p_value, source, of_column, seeds, looked_at)


def _if_promising(
    outcomes: Sequence[Outcomes], draw: Callable[[str], float], texts: npt.NDArray[np.str_]
) -> FloatArray | None:
    """Return the number of each text; None where the first of them say little of the outcomes."""
    numbers = np.array([draw(text) for text in texts[:_PROMISING_ROWS]])
    some = [one.take(slice(len(numbers))) for one in outcomes]
    scores = [abs(float((numbers - numbers.mean()) @ one.weights)) for one in some]
    # A wrong seed's score has variance 1/12.
    if max(scores) < _PROMISING / math.sqrt(12):
        return None
    return np.append(numbers, [draw(text) for text in texts[_PROMISING_ROWS:]])


def _screened(
    sources: Mapping[str, Generator],
    outcomes: Sequence[Outcomes],
    consecutive: int,
    others: Iterable[int],
    progress: Callable[[int], None],
    remembered: dict[Any, Any] | None = None,
) -> tuple[dict[tuple[str, bool], list[int]], dict[str, FloatArray]]:
    """Return the seeds that seem to know most of the outcomes, by generator and kind.

    And by generator the first numbers of the seeds from 0 on.
    """
    # Eight of each generator for the table, and two for each row.
    weights = np.stack([one.weights for one in outcomes])
    rows, done, left = weights.shape[1], 0, chain(range(consecutive), others)
    best: dict[str, list[tuple[float, int]]] = {name: [] for name in sources}
    firsts: dict[str, list[FloatArray]] = {name: [] for name in _FOR_EACH_ROW}
    while seeds := list(islice(left, _AT_ONCE)):
        for name, source in sources.items():
            numbers, column = _drawn(name, source, seeds, rows, remembered)
            scores = np.abs(numbers @ weights.T).max(axis=1)
            best[name] = heapq.nlargest(8, [*best[name], *zip(scores, seeds, strict=True)])
            if name in firsts and done < _EACH_ROW:
                firsts[name].append(column[: max(consecutive - done, 0)])
        done += len(seeds)
        progress(done)
    result = {(name, False): [seed for _, seed in pairs] for name, pairs in best.items()}
    known = {name: np.concatenate(parts) for name, parts in firsts.items()}
    for name, draws in known.items():
        if len(draws) >= rows:
            scores = np.max([np.abs(np.correlate(draws, row)) for row in weights], axis=0)
            result[name, True] = np.argsort(scores)[-2:].tolist()
    return result, known


def _drawn(
    name: str, source: Generator, seeds: list[int], rows: int, remembered: dict[Any, Any] | None
) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of seeds, float64 (s, rows), and the first of each, float64 (s,)."""
    if remembered is None:
        numbers = np.array([source(seed, rows) for seed in seeds])
        return numbers, numbers[:, 0]
    key = name, rows, tuple(seeds)
    if key not in remembered:
        numbers = np.array([source(seed, rows) for seed in seeds])
        remembered[key] = (numbers * _STEPS).astype(np.uint16), numbers[:, 0].copy()
    steps, first = remembered[key]
    return steps / _STEPS, first
