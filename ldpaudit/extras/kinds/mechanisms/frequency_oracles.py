"""Frequency oracles: protocols by which each person reports a label under ε-LDP."""

# A report supports some labels: its true one with probability p, another with q. Reports of two
# labels differ only in whether the one, the other, both or neither is supported, whose law is a
# channel with two rows; ε, δ(ε) and the Rényi curve are those of that channel.

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from ldpaudit.doors import (
    Channel,
    Family,
    FloatArray,
    InputError,
    IntArray,
    LocalReports,
    Parameter,
    Traits,
    check_classes,
    check_epsilon,
)
from ldpaudit.mechanisms.channel import step_rows, two_rows
from ldpaudit.mechanisms.exact_sampling import (
    BitSource,
    Randomness,
    bit_source,
    randomized_response,
)
from ldpaudit.mechanisms.finite import Made, check_codes
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import FINE_STEPS, DiscreteLaplace
from ldpaudit.mechanisms.parameters import check_finite, check_whole, fields_of, required
from ldpaudit.mechanisms.response import RandomizedResponse, lambda_of_epsilon
from ldpaudit.release import BoolArray, Label

# Reports of n people, shape (n, d); the protocol defines the d entries.
Reports = npt.NDArray[Any]
# How a released column holds a report: a label, a list of labels, or a list of numbers.
ReportKind = Literal["label", "labels", "numbers"]
# XXH32 of the label's position, written in decimal, modulo g; the seed modulo 2³².
HASH: Final = "xxhash32"
# The longest text that is hashed, in bytes.
LONGEST: Final = 15
# Hash values are int32.
_MOST_BUCKETS: Final = (1 << 31) - 1
_PRIMES: Final = tuple(
    np.uint32(prime) for prime in (2654435761, 2246822519, 3266489917, 668265263, 374761393)
)
_BATCH: Final = 1 << 16
_ROWS: Final = 1 << 14


@dataclass(frozen=True, kw_only=True, eq=False)
class Protocol:
    """How a protocol makes and reads reports on k labels at ε: a row of the table."""

    words: str
    """What it reports, for a description."""
    width: int
    """The number of entries of a report."""
    compared: Callable[[], Channel]
    """Callable: returns the channel of two labels' reports."""
    draw: Callable[[IntArray, BitSource], Reports]
    """Callable: draws a report for each label code, shape (n, d)."""
    read: Callable[[Reports], tuple[Reports, BoolArray]]
    """Callable: returns reports of the right width in their own type, and which are possible, (n,).
    """
    support: Callable[[Reports, IntArray], npt.NDArray[Any]]
    """Callable: returns how far each report supports the label of each code, in ``unit``, shape
    (n,)."""
    unit: float
    """The log likelihood ratio, in nats, of two labels whose support differs by 1."""
    keep: Callable[[], float | None]
    """Callable: returns P(the most likely label is the true one), ties broken uniformly; None: not
    known."""
    kind: ReportKind = "numbers"
    """{"label", "labels", "numbers"}: how a released column holds a report."""
    stated: Mapping[str, Any] = field(default_factory=dict)
    """Mapping: what its declaration states besides labels and ε."""
    own_epsilon: float | None = None
    """The report's ε in nats where the stated one is only that of its noise."""
    likely: Callable[[Reports], BoolArray] | None = None
    """Callable or None: returns which labels are the most likely, where not all those of the
    largest support count."""


class FrequencyOracle(Made, LocalReports):
    """A protocol by which each person reports a label under ε-LDP."""

    # Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency
    # estimation, USENIX Security.

    # None: a report is not a label.
    channel = None

    @cached_property
    def law(self) -> Protocol:
        """What its protocol does with k labels at the stated ε."""
        build, names = PROTOCOLS[self.protocol]
        more = {name: self.parameters[name] for name in names}
        return build(self.k, float(self.stated_epsilon), **more)

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.classes)

    @property
    def epsilon(self) -> float:
        return float(self.law.own_epsilon or self.stated_epsilon)

    @cached_property
    def compared(self) -> Channel:
        return self.law.compared()

    @property
    def description(self) -> str:
        noise = f", {self.stated_epsilon:.6g} for the noise" if self.law.own_epsilon else ""
        return (
            f"{self.protocol} on {self.k} labels: {self.law.words}; ε = {self.epsilon:.6g} nats"
            f"{noise}"
        )

    @property
    def report_kind(self) -> ReportKind:
        """How a released column holds a report."""
        return self.law.kind

    def check(self, reports: Reports) -> Reports:
        """Return reports of shape (n, d) in their own type."""
        table, width = np.asarray(reports), self.law.width
        if table.ndim != 2 or table.shape[1] != width:
            raise InputError(f"Every report must have {width} entries; got {table.shape[-1]}.")
        typed, possible = self.law.read(table)
        bad = int(np.count_nonzero(~possible))
        if bad:
            raise InputError(f"Every report must be possible in its protocol; {bad} are not.")
        return typed

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw a report for each label code, shape (n, d)."""
        return self.law.draw(check_codes(labels, self.k), bit_source(rng))

    def log_ratio(self, reports: Reports, first: IntArray, second: IntArray) -> FloatArray:
        """Return log P(report | first)/P(report | second) of each row, in nats, shape (n,).

        ``first`` and ``second`` are label codes of shape (n,).
        """
        one, other = (self.law.support(reports, c).astype(np.float64) for c in (first, second))
        return np.asarray(self.law.unit * (one - other))

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return which labels are the most likely, bool of shape (n, k), at least one a row."""
        if self.law.likely is not None:
            return self.law.likely(reports)
        codes = (np.full(len(reports), code, dtype=np.int32) for code in range(self.k))
        support = np.column_stack([self.law.support(reports, code) for code in codes])
        return np.asarray(support == support.max(axis=1, keepdims=True))

    def declaration(self) -> Mapping[str, Any]:
        stated = {"classes": list(self.classes), "epsilon": self.stated_epsilon}
        more = {name: self.law.stated[name] for name in PROTOCOLS[self.protocol][1]}
        return {"protocol": self.protocol, **stated, **more}

    @cached_property
    def label_channel(self) -> Channel | None:
        """The channel from the true to the most likely label, exact; None where not known."""
        # Every protocol treats labels alike, so all wrong labels are equally likely.
        keep = self.law.keep()
        if keep is None:
            return None
        matrix = np.full((self.k, self.k), (1 - keep) / (self.k - 1))
        np.fill_diagonal(matrix, keep)
        return Channel(matrix, self.classes, self.classes)

    def labels(self, reports: Reports, rng: np.random.Generator) -> IntArray:
        """Return a most likely label of each report, ties broken uniformly, int32 of shape (n,)."""
        codes = np.empty(len(reports), dtype=np.int32)
        for start in range(0, len(reports), _BATCH):
            block = self.most_likely(reports[start : start + _BATCH])
            keys = np.where(block, rng.random(block.shape), -1.0)
            codes[start : start + _BATCH] = keys.argmax(axis=1)
        return codes


def _entries(reports: Reports, codes: IntArray) -> npt.NDArray[Any]:
    """Return each report's entry for a label."""
    return np.asarray(reports[np.arange(len(reports)), codes])


def _generalized(k: int, epsilon: float) -> Protocol:
    """The label with probability p = e^ε/(e^ε + k − 1), else one of the others."""
    # Kairouz, Bonawitz & Ramage (2016); Wang et al. (2017), section 4.1.
    response = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    keep = response.keep_probability
    return Protocol(
        words=f"the true one with probability {keep:.6g}",
        width=1,
        compared=lambda: response.compared,
        draw=lambda codes, source: response.sample(codes, source)[:, None],
        read=lambda table: (table.astype(np.int32), np.all((table >= 0) & (table < k), axis=1)),
        support=lambda reports, codes: np.asarray(reports[:, 0] == codes),
        unit=epsilon,
        keep=lambda: keep,
        kind="label",
    )


def _subset(k: int, epsilon: float, size: Any) -> Protocol:
    """A uniform set of ω labels that holds the true one with probability ωe^ε/(ωe^ε + k − ω).

    ω is ``size``, from 1 to k − 1; by default k/(e^ε + 1), rounded.
    Ye & Barg (2018); Wang et al. (2016), Mutual information optimally local private discrete
    distribution estimation.
    """
    best = min(max(1, round(k / (math.exp(epsilon) + 1))), k - 1)
    w, rest = check_whole("size", best if size is None else size, 1, k - 1), k - 1
    # P(the true one is not among them) by itself: 1 − p has no digits left at large ε.
    absent = 1 / (1 + math.exp(epsilon) * w / (k - w))
    p = 1 - absent
    one, other = p * (rest - w + 1) / rest, absent * w / rest

    def draw(codes: IntArray, source: BitSource) -> Reports:
        reports = np.empty((len(codes), w), dtype=np.int32)
        threshold = _threshold_of_the_rest(absent)
        for start in range(0, len(codes), _ROWS):
            block = codes[start : start + _ROWS]
            # Half-words leave room for a first and a last place; ties have probability 2⁻⁶³.
            keys = source.words(len(block) * k).reshape(len(block), k) >> np.uint64(1)
            holds = source.words(len(block)) < threshold
            ends = np.where(holds, np.uint64(0), np.iinfo(np.uint64).max).astype(np.uint64)
            keys[np.arange(len(block)), block] = ends
            chosen = np.argpartition(keys, w - 1, axis=1)[:, :w]
            reports[start : start + _ROWS] = np.sort(chosen, axis=1)
        return reports

    def read(table: Reports) -> tuple[Reports, BoolArray]:
        ordered = np.sort(table, axis=1)
        labels = (ordered[:, 0] >= 0) & (ordered[:, -1] < k)
        return ordered.astype(np.int32), labels & (np.diff(ordered, axis=1) > 0).all(axis=1)

    return Protocol(
        words=f"{w} of them, the true one among them with probability {p:.6g}",
        width=w,
        compared=lambda: two_rows(one, other, p * (w - 1) / rest, absent * (rest - w) / rest),
        draw=draw,
        read=read,
        support=lambda reports, codes: (reports == codes[:, None]).any(axis=1),
        unit=epsilon,
        keep=lambda: p / w,
        kind="labels",
        stated={"size": w},
    )


def _threshold_of_the_rest(chance: float) -> np.uint64:
    """Return below which word, of probability 1 − ``chance`` rounded towards privacy, it is not."""
    return np.uint64((1 << 64) - math.ceil(math.ldexp(chance, 64)))


def _bits(k: int, absent: float, q: float, **more: Any) -> Protocol:
    """k independent bits: that of the true label is 0 with probability a, another is 1 with q."""
    # SUE: a = q = 1/(e^{ε/2} + 1); OUE: a = 1/2, q = 1/(e^ε + 1).
    # Erlingsson, Pihur & Korolova (2014), RAPPOR; Wang et al. (2017), section 4.3.
    p = 1 - absent

    def keep() -> float:
        others = np.arange(k)
        shares = binom.pmf(others, k - 1, q) / (1 + others)
        return float(p * shares.sum() + absent * math.exp((k - 1) * math.log1p(-q)) / k)

    def draw(codes: IntArray, source: BitSource) -> Reports:
        reports = np.empty((len(codes), k), dtype=np.bool_)
        true, other = _threshold_of_the_rest(absent), np.uint64(math.ceil(math.ldexp(q, 64)))
        for start in range(0, len(codes), _ROWS):
            block = codes[start : start + _ROWS]
            words = source.words(block.size * k).reshape(len(block), k)
            bits, rows = words < other, np.arange(len(block))
            bits[rows, block] = words[rows, block] < true
            reports[start : start + _ROWS] = bits
        return reports

    unit = (math.log(p) - math.log(absent)) - (math.log(q) - math.log1p(-q))
    words = f"a true bit is 1 with probability {p:.6g}, another with {q:.6g}"
    held: dict[str, Any] = {
        "words": words,
        "unit": unit,
        "width": k,
        "support": _entries,
        "draw": draw,
    } | more
    return Protocol(
        compared=lambda: two_rows(p * (1 - q), absent * q, p * q, absent * (1 - q)),
        read=lambda table: (table.astype(np.bool_), ((table == 0) | (table == 1)).all(axis=1)),
        keep=keep,
        **held,
    )


@lru_cache
def best_threshold(epsilon: float) -> float:
    """Return the θ in (1/2, 1] with the least variance q(1 − q)/(p − q)² of a frequency."""

    def variance(threshold: float) -> float:
        p = 1 - math.exp(epsilon * (threshold - 1) / 2) / 2
        q = math.exp(-epsilon * threshold / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    best = minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded")
    return min(max(float(best.x), 0.5 + 1e-9), 1.0)


def _thresholded(k: int, epsilon: float, threshold: Any) -> Protocol:
    """Laplace noise of scale 2/ε on a one-hot vector; the report says which entries exceed θ.

    ε of the noise is stated; the report's ``epsilon`` is smaller, as thresholding loses some.
    Wang et al. (2017), section 4.2.
    """
    at = best_threshold(epsilon) if threshold is None else check_finite("threshold", threshold)
    if not 0.5 < at <= 1:
        raise InputError(f"The 'threshold' must lie in (1/2, 1]. Got {at:g}.")
    absent, q = math.exp(epsilon * (at - 1) / 2) / 2, math.exp(-epsilon * at / 2) / 2
    words = f"Laplace noise of scale {2 / epsilon:.6g}, threshold {at:.6g}"
    unit = _bits(k, absent, q).unit
    return _bits(k, absent, q, words=words, stated={"threshold": at}, own_epsilon=unit)


def _summed(k: int, epsilon: float) -> Protocol:
    """Laplace noise of scale 2/ε on every entry of a one-hot vector; two entries may differ."""
    # The noise is drawn in steps of 1/1,024.
    # Dwork et al. (2006); Wang et al. (2017), section 4.2.
    entry, b = DiscreteLaplace(LabelRange(0, 1, 1 / FINE_STEPS), epsilon / 2), 2 / epsilon

    def compared() -> Channel:
        """Return the law of the sum of two entries' losses, each a whole number of equal steps."""
        matrix = np.stack([np.convolve(row, row) for row in entry.compared.matrix])
        return Channel(matrix, (0, 1), tuple(range(matrix.shape[1])))

    def keep() -> float:
        def density(x: float) -> float:
            below = 0.5 * math.exp(x / b) if x < 0 else 1 - 0.5 * math.exp(-x / b)
            return math.exp(-abs(x - 1) / b) / (2 * b) * below ** (k - 1)

        cuts = (-60 * b, 0.0, 1.0, 1 + 60 * b)
        return float(sum(quad(density, *ab, epsabs=1e-13, limit=200)[0] for ab in pairwise(cuts)))

    def draw(codes: IntArray, source: BitSource) -> Reports:
        noise = entry.law.draw(len(codes) * k, source).reshape(len(codes), k)
        return np.asarray(np.eye(k)[codes] + noise / FINE_STEPS)

    def support(reports: Reports, codes: IntArray) -> FloatArray:
        entries = _entries(reports, codes)
        return np.asarray(np.abs(entries) - np.abs(entries - 1))

    return Protocol(
        words=f"Laplace noise of scale {2 / epsilon:.6g}",
        width=k,
        compared=compared,
        draw=draw,
        read=lambda table: (
            table.astype(np.float64),
            np.all(np.isfinite(table.astype(np.float64)), axis=1),
        ),
        support=support,
        unit=epsilon / 2,
        keep=keep,
        # One of those above 1, which are all equally likely.
        likely=lambda reports: np.asarray(reports == reports.max(axis=1, keepdims=True)),
    )


def xxh32(text: str, seeds: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return XXH32 of a text of at most 15 bytes in UTF-8 under each seed, uint32 of shape (n,)."""
    # Collet, xxHash fast digest algorithm, specification of XXH32.
    data = text.encode()
    if len(data) > LONGEST:
        raise InputError(f"A hashed label must have at most {LONGEST} bytes; got {len(data)}.")
    one, two, three, four, five = _PRIMES
    whole = len(data) // 4 * 4
    with np.errstate(over="ignore"):
        state = seeds + five + np.uint32(len(data))
        for start in range(0, whole, 4):
            lane = np.uint32(int.from_bytes(data[start : start + 4], "little"))
            state = _rotated(state + lane * three, 17) * four
        for byte in data[whole:]:
            state = _rotated(state + np.uint32(byte) * five, 11) * one
        state = (state ^ (state >> np.uint32(15))) * two
        state = (state ^ (state >> np.uint32(13))) * three
    return np.asarray(state ^ (state >> np.uint32(16)))


def _rotated(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _hashing(k: int, epsilon: float, buckets: Any = 2, **held: Any) -> Protocol:  # noqa: ARG001
    """The label hashed into g values under a random seed, the value by randomized response."""
    # BLH: g = 2; OLH: e^ε + 1 rounded by default. ``compared`` is the law of the value given a
    # public seed under which the two labels' hashes differ: ε, δ(ε) and the Rényi curve hold
    # whoever chose the seeds, even the collector; averaged over random seeds δ and the curve are
    # smaller.
    # Bassily & Smith (2015); Wang et al. (2017), section 4.4.
    if (held["hash"] or HASH) != HASH:
        raise InputError(f"The 'hash' of local hashing must be {HASH!r}.")
    best = round(math.exp(min(epsilon, 20.0))) + 1
    g = check_whole("buckets", best if buckets is None else buckets, 2, _MOST_BUCKETS)
    noise = lambda_of_epsilon(epsilon, g)
    p = 1 - noise + noise / g

    def hashes(seeds: npt.NDArray[np.int64], codes: IntArray) -> npt.NDArray[np.int64]:
        """Return the hash of each row's label under its seed."""
        found = np.empty(len(codes), dtype=np.int64)
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            found[rows] = xxh32(str(code), seeds[rows].astype(np.uint32)) % np.uint32(g)
        return found

    def read(table: Reports) -> tuple[Reports, BoolArray]:
        if table.dtype.kind not in "iu":
            raise InputError(f"Seeds and hash values must be whole numbers; got {table.dtype}.")
        possible = (table[:, 1] >= 0) & (table[:, 1] < g)
        seeds = table[:, 0].astype(np.uint64) & np.uint64(0xFFFFFFFF)
        return np.column_stack([seeds.astype(np.int64), table[:, 1].astype(np.int64)]), possible

    def draw(codes: IntArray, source: BitSource) -> Reports:
        seeds = (source.words(len(codes)) >> np.uint64(32)).astype(np.int64)
        values = randomized_response(hashes(seeds, codes).astype(np.int32), noise, g, source)
        return np.column_stack([seeds, values.astype(np.int64)])

    return Protocol(
        words=f"{HASH} into {g} values, the true label's with probability {p:.6g}",
        width=2,
        compared=lambda: step_rows(epsilon, 1 - noise),
        draw=draw,
        read=read,
        support=lambda reports, codes: np.asarray(hashes(reports[:, 0], codes) == reports[:, 1]),
        unit=epsilon,
        keep=lambda: None,
        stated={"hash": HASH, "buckets": g},
    )


# The protocols by their usual abbreviations, and what else their declarations state.
PROTOCOLS: Final[Mapping[str, tuple[Callable[..., Protocol], tuple[str, ...]]]] = {
    "GRR": (_generalized, ()),
    "SS": (_subset, ("size",)),
    "SUE": (lambda k, e: _bits(k, *(1 / (1 + math.exp(e / 2)),) * 2), ()),
    "OUE": (lambda k, e: _bits(k, 0.5, 1 / (1 + math.exp(e))), ()),
    "THE": (_thresholded, ("threshold",)),
    "SHE": (_summed, ()),
    "BLH": (_hashing, ("hash",)),
    "OLH": (_hashing, ("hash", "buckets")),
}


class _Oracles(Family):
    def from_parameters(
        self, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> FrequencyOracle:
        protocol = required(parameters, "protocol", self.traits.name)
        if not isinstance(protocol, str) or protocol not in PROTOCOLS:
            raise InputError(f"The 'protocol' must be one of {', '.join(PROTOCOLS)}.")
        stated = (
            Parameter("classes", check_classes),
            Parameter("epsilon", check_epsilon, "stated_epsilon"),
            *(Parameter(name, default=None) for name in PROTOCOLS[protocol][1]),
        )
        rest = {key: value for key, value in parameters.items() if key != "protocol"}
        values = fields_of(stated, rest, classes, self.traits.name)
        made = FrequencyOracle(self, {"protocol": protocol, **values})
        _ = made.law  # Checks the parameters together.
        return made


ORACLES: Final = _Oracles(
    Traits(
        name="frequency-oracle",
        title="a frequency oracle",
        labels="classes",
        outputs="reports",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=(),
        stated_by=("epsilon",),
        whole=False,
        needs=frozenset({"protocol"}),
    ),
)
"""The frequency oracles: a declaration states the ``protocol``."""
