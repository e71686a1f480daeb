"""Frequency oracles: protocols by which each person reports a label under ε-LDP.

A report supports some labels: its true one with probability p, another with q. Reports of two
labels differ only in whether the one, the other, both or neither is supported, whose law is a
channel with two rows; ε, δ(ε) and the Rényi curve are those of that channel.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel, two_rows
from ldpaudit.mechanisms.exact_sampling import Randomness, bit_source
from ldpaudit.mechanisms.finite import Family, Made, check_codes
from ldpaudit.mechanisms.interface import AnalysedMechanism, Traits
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import FINE_STEPS, DiscreteLaplace
from ldpaudit.mechanisms.parameters import (
    Parameter,
    check_classes,
    check_epsilon,
    check_finite,
    check_whole,
    fields_of,
    plain,
    required,
)
from ldpaudit.mechanisms.response import RandomizedResponse, Response
from ldpaudit.release import BoolArray, FloatArray, IntArray, Label

Reports = npt.NDArray[Any]
"""Reports of n people, shape (n, d); the protocol defines the d entries."""
ReportKind = Literal["label", "labels", "numbers"]
"""How a released column holds a report: a label, a list of labels, or a list of numbers."""
# XXH32 of the label's position, written in decimal, modulo g; the seed modulo 2³².
HASH: Final = "xxhash32"
# The longest text that is hashed, in bytes.
LONGEST: Final = 15
_PRIMES: Final = tuple(
    np.uint32(prime) for prime in (2654435761, 2246822519, 3266489917, 668265263, 374761393)
)
_BATCH: Final = 1 << 16
_ROWS: Final = 1 << 14
_HASHED: Final[tuple[Parameter, ...]] = (Parameter("hash", field="hash_name", default=HASH),)
_COMMON: Final = (
    Parameter("classes", check_classes),
    Parameter("epsilon", check_epsilon, "stated_epsilon"),
)


class FrequencyOracle(Made, AnalysedMechanism):
    """A protocol by which each person reports a label under ε-LDP.

    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency
    estimation, USENIX Security.
    """

    # What a declaration states besides labels and ε.
    more: ClassVar[tuple[Parameter, ...]] = ()
    # How a released column holds a report.
    report_kind: ClassVar[ReportKind] = "numbers"
    # None: a report is not a label.
    channel = None

    @property
    def keep_probability(self) -> float | None:
        """P(the most likely label is the true one), ties broken uniformly; None: not known."""
        return None

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.classes)

    @property
    def epsilon(self) -> float:
        return float(self.stated_epsilon)

    @property
    def unit(self) -> float:
        """The log likelihood ratio, in nats, of two labels whose support differs by 1."""
        return float(self.stated_epsilon)

    @property
    def width(self) -> int:
        """The number of entries of a report."""
        return self.k

    @abstractmethod
    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        """Return reports of the right width in their own type, and which are possible, (n,)."""

    @abstractmethod
    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw a report for each label code, shape (n, d)."""

    @abstractmethod
    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        """Return how far each report supports a label, in :attr:`unit`, float64 of shape (n,)."""

    @classmethod
    def checked(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, checked together."""
        return values

    def check(self, reports: Reports) -> Reports:
        """Return reports of shape (n, d) in their own type."""
        table = np.asarray(reports)
        if table.ndim != 2 or table.shape[1] != self.width:
            raise InputError(f"Every report must have {self.width} entries; got {table.shape[-1]}.")
        typed, possible = self.read(table)
        bad = int(np.count_nonzero(~possible))
        if bad:
            raise InputError(f"Every report must be possible in its protocol; {bad} are not.")
        return typed

    def log_ratio(self, reports: Reports, first: IntArray, second: IntArray) -> FloatArray:
        """Return log P(report | first)/P(report | second) of each row, in nats, shape (n,).

        ``first`` and ``second`` are label codes of shape (n,).
        """
        return self.unit * (self.support(reports, first) - self.support(reports, second))

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return which labels are the most likely, bool of shape (n, k), at least one a row."""
        codes = (np.full(len(reports), code, dtype=np.int32) for code in range(self.k))
        support = np.column_stack([self.support(reports, code) for code in codes])
        return np.asarray(support == support.max(axis=1, keepdims=True))

    def declaration(self) -> Mapping[str, Any]:
        stated = {p.name: plain(self.parameters[p.field or p.name]) for p in _COMMON + self.more}
        return {"protocol": self.protocol, **stated}

    @cached_property
    def label_channel(self) -> Channel | None:
        """The channel from the true to the most likely label, exact; None where not known.

        Every protocol treats labels alike, so all wrong labels are equally likely.
        """
        keep = self.keep_probability
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


class GeneralizedRR(FrequencyOracle):
    """The label with probability p = e^ε/(e^ε + k − 1), else one of the others.

    Kairouz, Bonawitz & Ramage (2016); Wang et al. (2017), section 4.1.
    """

    report_kind = "label"
    width = 1

    @cached_property
    def _response(self) -> Response:
        return RandomizedResponse.from_epsilon(self.classes, self.epsilon)

    @property
    def keep_probability(self) -> float:
        return self._response.keep_probability

    @property
    def compared(self) -> Channel:
        return self._response.compared

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        return table.astype(np.int32), np.all((table >= 0) & (table < self.k), axis=1)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        return self._response.sample(labels, rng)[:, None]

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        return np.asarray(reports[:, 0] == codes, dtype=np.float64)


def _best_size(fields: Mapping[str, Any]) -> int:
    """Return k/(e^ε + 1), rounded, between 1 and k − 1."""
    k, epsilon = len(fields["classes"]), fields["stated_epsilon"]
    return min(max(1, round(k / (math.exp(epsilon) + 1))), k - 1)


class SubsetSelection(FrequencyOracle):
    """A uniform set of ω labels that holds the true one with probability ωe^ε/(ωe^ε + k − ω).

    ω is ``size``, from 1 to k − 1.

    Ye & Barg (2018); Wang et al. (2016), Mutual information optimally local private discrete
    distribution estimation.
    """

    report_kind = "labels"
    more = (Parameter("size", default=_best_size),)

    @classmethod
    def checked(cls, values: dict[str, Any]) -> dict[str, Any]:
        return values | {"size": check_whole("size", values["size"], 1, len(values["classes"]) - 1)}

    @property
    def p(self) -> float:
        odds = self.size / (self.k - self.size)
        return float(1 / (1 + math.exp(-self.epsilon) / odds))

    @property
    def width(self) -> int:
        return int(self.size)

    @cached_property
    def compared(self) -> Channel:
        p, w, rest = self.p, self.size, self.k - 1
        one, other = p * (rest - w + 1) / rest, (1 - p) * w / rest
        return two_rows(one, other, p * (w - 1) / rest, (1 - p) * (rest - w) / rest)

    @property
    def keep_probability(self) -> float:
        return self.p / self.width

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        ordered = np.sort(table, axis=1)
        labels = (ordered[:, 0] >= 0) & (ordered[:, -1] < self.k)
        return ordered.astype(np.int32), labels & (np.diff(ordered, axis=1) > 0).all(axis=1)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        codes, source = check_codes(labels, self.k), bit_source(rng)
        reports = np.empty((len(codes), self.size), dtype=np.int32)
        threshold = np.uint64(math.floor(math.ldexp(self.p, 64)))
        for start in range(0, len(codes), _ROWS):
            block = codes[start : start + _ROWS]
            # Half-words leave room for a first and a last place; ties have probability 2⁻⁶³.
            keys = source.words(len(block) * self.k).reshape(len(block), self.k) >> np.uint64(1)
            holds = source.words(len(block)) < threshold
            ends = np.where(holds, np.uint64(0), np.iinfo(np.uint64).max).astype(np.uint64)
            keys[np.arange(len(block)), block] = ends
            chosen = np.argpartition(keys, self.size - 1, axis=1)[:, : self.size]
            reports[start : start + _ROWS] = np.sort(chosen, axis=1)
        return reports

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        return np.asarray((reports == codes[:, None]).any(axis=1), dtype=np.float64)

    def most_likely(self, reports: Reports) -> BoolArray:
        members = np.zeros((len(reports), self.k), dtype=np.bool_)
        np.put_along_axis(members, reports.astype(np.int64), True, axis=1)
        return members


class UnaryEncoding(FrequencyOracle):
    """k independent bits: that of the true label is 1 with probability p, another with q < p.

    SUE: p = e^{ε/2}/(e^{ε/2} + 1), q = 1 − p; OUE: p = 1/2, q = 1/(e^ε + 1).

    Erlingsson, Pihur & Korolova (2014), RAPPOR; Wang et al. (2017), section 4.3.
    """

    @property
    def p(self) -> float:
        return 0.5 if self.protocol == "OUE" else 1 / (1 + math.exp(-self.stated_epsilon / 2))

    @property
    def q(self) -> float:
        share = 1 if self.protocol == "OUE" else 2
        return 1 / (1 + math.exp(self.stated_epsilon / share))

    @cached_property
    def compared(self) -> Channel:
        p, q = self.p, self.q
        return two_rows(p * (1 - q), (1 - p) * q, p * q, (1 - p) * (1 - q))

    @property
    def keep_probability(self) -> float:
        others = np.arange(self.k)
        shares = binom.pmf(others, self.k - 1, self.q) / (1 + others)
        nobody = (1 - self.p) * math.exp((self.k - 1) * math.log1p(-self.q)) / self.k
        return float(self.p * shares.sum() + nobody)

    @property
    def unit(self) -> float:
        (p, q) = self.p, self.q
        return (math.log(p) - math.log1p(-p)) - (math.log(q) - math.log1p(-q))

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        return table.astype(np.bool_), ((table == 0) | (table == 1)).all(axis=1)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        codes, source = check_codes(labels, self.k), bit_source(rng)
        reports = np.empty((len(codes), self.k), dtype=np.bool_)
        true, other = (np.uint64(math.floor(math.ldexp(chance, 64))) for chance in (self.p, self.q))
        for start in range(0, len(codes), _ROWS):
            block = codes[start : start + _ROWS]
            words = source.words(block.size * self.k).reshape(len(block), self.k)
            bits, rows = words < other, np.arange(len(block))
            bits[rows, block] = words[rows, block] < true
            reports[start : start + _ROWS] = bits
        return reports

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        return reports[np.arange(len(reports)), codes].astype(np.float64)


@lru_cache
def best_threshold(epsilon: float) -> float:
    """Return the θ in (1/2, 1] with the least variance q(1 − q)/(p − q)² of a frequency."""

    def variance(threshold: float) -> float:
        p = 1 - math.exp(epsilon * (threshold - 1) / 2) / 2
        q = math.exp(-epsilon * threshold / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    best = minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded")
    return min(max(float(best.x), 0.5 + 1e-9), 1.0)


class ThresholdedHistogram(UnaryEncoding):
    """Laplace noise of scale 2/ε on a one-hot vector; the report says which entries exceed θ.

    ε of the noise is stated; the report's ``epsilon`` is smaller, as thresholding loses some.

    Wang et al. (2017), section 4.2.
    """

    more = (
        Parameter(
            "threshold",
            partial(check_finite, "threshold"),
            default=lambda known: best_threshold(known["stated_epsilon"]),
        ),
    )

    @classmethod
    def checked(cls, values: dict[str, Any]) -> dict[str, Any]:
        if not 0.5 < values["threshold"] <= 1:
            raise InputError(f"The 'threshold' must lie in (1/2, 1]. Got {values['threshold']:g}.")
        return values

    @property
    def p(self) -> float:
        return 1 - math.exp(self.stated_epsilon * (self.threshold - 1) / 2) / 2

    @property
    def q(self) -> float:
        return math.exp(-self.stated_epsilon * self.threshold / 2) / 2

    @property
    def epsilon(self) -> float:
        return self.unit


class SummedHistogram(FrequencyOracle):
    """Laplace noise of scale 2/ε on every entry of a one-hot vector; two entries may differ.

    Dwork et al. (2006); Wang et al. (2017), section 4.2.
    """

    @cached_property
    def _entry(self) -> Any:
        """The noise of one entry, in steps of 1/1,024."""
        return DiscreteLaplace(LabelRange(0, 1, 1 / FINE_STEPS), self.epsilon / 2)

    @cached_property
    def compared(self) -> Channel:
        """The law of the sum of two entries' losses, each a whole number of equal steps."""
        rows = self._entry.compared.matrix
        matrix = np.stack([np.convolve(row, row) for row in rows])
        return Channel(matrix, (0, 1), tuple(range(matrix.shape[1])))

    @property
    def keep_probability(self) -> float:
        b, others = 2 / self.epsilon, self.k - 1

        def density(x: float) -> float:
            below = 0.5 * math.exp(x / b) if x < 0 else 1 - 0.5 * math.exp(-x / b)
            return math.exp(-abs(x - 1) / b) / (2 * b) * below**others

        cuts = (-60 * b, 0.0, 1.0, 1 + 60 * b)
        parts = [quad(density, a, c, epsabs=1e-13, limit=200)[0] for a, c in pairwise(cuts)]
        return float(sum(parts))

    @property
    def unit(self) -> float:
        return self.epsilon / 2

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        numbers = table.astype(np.float64)
        return numbers, np.all(np.isfinite(numbers), axis=1)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw reports, float64 of shape (n, k); the noise is drawn in steps of 1/1,024."""
        values = np.eye(self.k)[check_codes(labels, self.k)]
        noise = self._entry.law.draw(values.size, rng).reshape(values.shape)
        return np.asarray(values + noise / FINE_STEPS)

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        entries = reports[np.arange(len(reports)), codes]
        return np.asarray(np.abs(entries) - np.abs(entries - 1))

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return the largest entry, one of those above 1, which are all equally likely."""
        return np.asarray(reports == reports.max(axis=1, keepdims=True))


def xxh32(text: str, seeds: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return XXH32 of a text of at most 15 bytes in UTF-8 under each seed, uint32 of shape (n,).

    Collet, xxHash fast digest algorithm, specification of XXH32.
    """
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


class LocalHashing(FrequencyOracle):
    """The label hashed into g values under a random seed, the value by randomized response.

    BLH: g = 2; OLH: e^ε + 1 rounded by default.

    Bassily & Smith (2015); Wang et al. (2017), section 4.4.
    """

    more = _HASHED
    # Seed and value.
    width = 2

    @classmethod
    def checked(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values["hash_name"] != HASH:
            raise InputError(f"The 'hash' of local hashing must be {HASH!r}.")
        return values | {"buckets": check_whole("buckets", values.get("buckets", 2), 2)}

    @cached_property
    def _response(self) -> Response:
        return RandomizedResponse.from_epsilon(tuple(range(self.buckets)), self.epsilon)

    @property
    def p(self) -> float:
        return self._response.keep_probability

    @property
    def compared(self) -> Channel:
        """The law of the value given a public seed under which the two labels' hashes differ.

        So ε, δ(ε) and the Rényi curve hold whoever chose the seeds, even the collector; averaged
        over random seeds δ and the curve are smaller.
        """
        return self._response.compared

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        if table.dtype.kind not in "iu":
            raise InputError(f"Seeds and hash values must be whole numbers; got {table.dtype}.")
        possible = (table[:, 1] >= 0) & (table[:, 1] < self.buckets)
        seeds = table[:, 0].astype(np.uint64) & np.uint64(0xFFFFFFFF)
        return np.column_stack([seeds.astype(np.int64), table[:, 1].astype(np.int64)]), possible

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        codes, source = check_codes(labels, self.k), bit_source(rng)
        seeds = (source.words(len(codes)) >> np.uint64(32)).astype(np.int64)
        values = self._response.sample(self._hashes(seeds, codes).astype(np.int32), source)
        return np.column_stack([seeds, values.astype(np.int64)])

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        return np.asarray(self._hashes(reports[:, 0], codes) == reports[:, 1], dtype=np.float64)

    def _hashes(self, seeds: npt.NDArray[np.int64], codes: IntArray) -> npt.NDArray[np.int64]:
        """Return the hash of each row's label under its seed."""
        hashes = np.empty(len(codes), dtype=np.int64)
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            hashes[rows] = xxh32(str(code), seeds[rows].astype(np.uint32)) % np.uint32(self.buckets)
        return hashes


class OptimizedLocalHashing(LocalHashing):
    """Local hashing into a stated number of values, e^ε + 1 rounded by default."""

    more = (
        *_HASHED,
        Parameter(
            "buckets", default=lambda known: round(math.exp(min(known["stated_epsilon"], 20.0))) + 1
        ),
    )


PROTOCOLS: Final[Mapping[str, type[FrequencyOracle]]] = {
    "GRR": GeneralizedRR,
    "SS": SubsetSelection,
    "SUE": UnaryEncoding,
    "OUE": UnaryEncoding,
    "THE": ThresholdedHistogram,
    "SHE": SummedHistogram,
    "BLH": LocalHashing,
    "OLH": OptimizedLocalHashing,
}
"""The protocols by their usual abbreviations."""


_DESCRIBED: Final[Mapping[str, Callable[[Any], str]]] = {
    "GRR": lambda m: (
        f"GRR on {m.k} labels: the true one with probability {m.keep_probability:.6g}; "
        f"ε = {m.epsilon:.6g} nats"
    ),
    "SS": lambda m: (
        f"SS on {m.k} labels: {m.size} of them, the true one among them with probability "
        f"{m.p:.6g}; ε = {m.epsilon:.6g} nats"
    ),
    **dict.fromkeys(
        ("SUE", "OUE"),
        lambda m: (
            f"{m.protocol} on {m.k} labels: a true bit is 1 with probability {m.p:.6g}, another "
            f"with {m.q:.6g}; ε = {m.epsilon:.6g} nats"
        ),
    ),
    "THE": lambda m: (
        f"THE on {m.k} labels: Laplace noise of scale {2 / m.stated_epsilon:.6g}, threshold "
        f"{m.threshold:.6g}; ε = {m.epsilon:.6g} nats, {m.stated_epsilon:.6g} for the noise"
    ),
    "SHE": lambda m: (
        f"SHE on {m.k} labels: Laplace noise of scale {2 / m.epsilon:.6g}; ε = {m.epsilon:.6g} nats"
    ),
    **dict.fromkeys(
        ("BLH", "OLH"),
        lambda m: (
            f"{m.protocol} on {m.k} labels: {HASH} into {m.buckets} values, the true label's with "
            f"probability {m.p:.6g}; ε = {m.epsilon:.6g} nats"
        ),
    ),
}


class _Oracles(Family):
    def from_parameters(
        self, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> FrequencyOracle:
        protocol = required(parameters, "protocol", self.traits.name)
        if protocol not in PROTOCOLS:
            raise InputError(f"The 'protocol' must be one of {', '.join(PROTOCOLS)}.")
        kind: type[FrequencyOracle] = PROTOCOLS[protocol]
        rest = {key: value for key, value in parameters.items() if key != "protocol"}
        values = fields_of(_COMMON + kind.more, rest, classes, self.traits.name)
        return kind(self, {"protocol": protocol, **kind.checked(values)})


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
    describe=lambda m: _DESCRIBED[m.protocol](m),
)
"""The frequency oracles: a declaration states the ``protocol``."""
