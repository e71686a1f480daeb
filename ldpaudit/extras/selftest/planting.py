"""Planted releases: people with known labels, what a release declares, and ways to make one."""

# The self-test, the zoo of faults and their benchmarks plant their releases with this module.

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import Field

from ldpaudit.doors import (
    Declaration,
    FloatArray,
    IndexArray,
    IntArray,
    Mechanism,
    NoisyFeatures,
    SyntheticFeatures,
    declare,
    from_declaration,
)

LABEL: Final = "label"
MEASURED: Final = ("x0", "x1", "x2", "x3")
_SHARES: Final = {2: (0.62, 0.38), 5: (0.3, 0.25, 0.2, 0.15, 0.1)}
# The largest norm of a feature vector where features are released with noise.
_RADIUS: Final = 4.0


@dataclass(frozen=True)
class People:
    """n people: features of everyday kinds, and true labels as codes."""

    # Two classes can be told apart by the features with an AUC of about .85.

    frame: pd.DataFrame
    codes: IntArray
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def age(self) -> IndexArray:
        """Whole years, shape (n,)."""
        return np.asarray(self.frame["age"], dtype=np.int64)

    @property
    def labels(self) -> Any:
        """The true labels by name, shape (n,)."""
        return np.array(self.classes)[self.codes]

    def take(self, rows: IndexArray) -> "People":
        """Return the people of some rows."""
        frame = self.frame.iloc[rows].reset_index(drop=True)
        return People(frame, self.codes[rows], self.classes)


def classes(k: int) -> tuple[str, ...]:
    """Return the names of k classes, 2 to 26."""
    return ("no", "yes") if k == 2 else tuple("abcdefghijklmnopqrstuvwxyz"[:k])


def shares(k: int) -> FloatArray:
    """Return how frequent each of k classes is, float64 of shape (k,): the first the most."""
    falling = np.arange(k + 1, 1, -1)
    return np.asarray(_SHARES.get(k, falling / falling.sum()))


@cache
def centres(k: int) -> FloatArray:
    """Return the mean of the measurements of each class, float64 of shape (k, 4)."""
    if k == 2:
        return 1.05 * np.eye(4)[:2]
    axes = np.linalg.svd(np.eye(k) - 1 / k)[0][:, : k - 1]
    points = 1.6 * (np.eye(k) - 1 / k) @ axes
    return np.asarray(1.05 * np.pad(points, ((0, 0), (0, max(0, 5 - k))))[:, :4])


def people(n: int, k: int, rng: np.random.Generator) -> People:
    """Draw n people with k classes; 7 % are older than 80 and 15 % older than 75."""
    codes = rng.choice(k, n, p=shares(k)).astype(np.int32)
    values = rng.standard_normal((n, len(MEASURED))) + centres(k)[codes]
    frame = pd.DataFrame(values.astype(np.float32), columns=list(MEASURED))
    young, old, oldest = (rng.integers(a, b + 1, n) for a, b in ((18, 75), (76, 80), (81, 95)))
    which = rng.random(n)
    frame["age"] = np.where(which < 0.85, young, np.where(which < 0.93, old, oldest))
    frame["education"] = np.clip(np.rint(rng.normal(12 + codes / 2, 3)), 5, 20).astype(np.int64)
    frame["zip"] = [f"{place:03d}" for place in rng.integers(0, 200, n)]
    frame["hours"] = np.clip(np.rint(rng.normal(38, 9, n)), 5, 80).astype(np.int64)
    return People(frame, codes, classes(k))


def repeated(n: int, times: int, rng: np.random.Generator, k: int = 2) -> People:
    """Draw people of k classes with ``times`` equal rows each, in sequence."""
    persons = people(-(-n // times), k, rng)
    return persons.take(np.repeat(np.arange(len(persons)), times)[:n])


def keep_chance(epsilon: float, k: int) -> float:
    """Return the chance that randomized response keeps one of k labels."""
    return math.exp(epsilon) / (math.exp(epsilon) + k - 1)


def replaced(codes: IntArray, k: int, kept: Any, rng: np.random.Generator) -> IntArray:
    """Return the codes where ``kept``, and one of the other k - 1 elsewhere."""
    others = (codes + rng.integers(1, k, len(codes))) % k
    return np.where(kept, codes, others).astype(np.int32)


@dataclass(frozen=True)
class Planted:
    """A release as an audit gets it, its true labels, and what is known of it."""

    table: pa.Table
    truth: pa.Table
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the audit."""
    epsilon: float = math.inf
    """What it truly reveals about a label, in nats; ∞ where labels can be read off."""


def declared(
    frame: pd.DataFrame,
    truth: Any,
    claim: Declaration,
    rows: IndexArray | None = None,
    *,
    epsilon: float = math.inf,
    label: str = LABEL,
    **options: Any,
) -> Planted:
    """Put a release together: ``frame`` holds the released label, ``rows`` is the final order."""
    known = pd.DataFrame({label: truth})
    if rows is not None:
        frame, known = frame.iloc[rows], known.iloc[rows]
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    true_labels = pa.Table.from_pandas(known, preserve_index=False)
    return Planted(declare(table, claim, label), true_labels, options, epsilon)


def _channel(k: int, epsilon: float) -> dict[str, Any]:
    """A channel with one output more than there are classes, the same in every release."""
    gaps = np.random.default_rng(k).uniform(0, epsilon, (k, k + 1))
    gaps[:, 0], gaps[0, 0] = 0.0, epsilon
    rows = np.exp(gaps) / np.exp(gaps).sum(axis=1, keepdims=True)
    return {"outputs": [f"z{place}" for place in range(k + 1)], "matrix": rows.tolist()}


_NOISY: Final = {"radius": _RADIUS, "sigma": 20.0, "feature_epsilon": 2.0, "feature_delta": 1e-3}
# What each mechanism of classes declares besides the classes.
OF_CLASSES: Final[Mapping[str, Callable[[int, float], dict[str, Any]]]] = {
    "randomized-response": lambda _, epsilon: {"epsilon": epsilon},
    "rr-top-k": lambda k, epsilon: {"epsilon": epsilon, "kept": list(classes(k)[: max(2, k - 1)])},
    "channel": _channel,
    "double-rr": lambda _, epsilon: {"epsilon": epsilon},
    "gaussian-rr": lambda _, epsilon: {"epsilon": epsilon} | _NOISY,
}
# What each mechanism of the numbers 0 to k - 1 declares besides ε.
OF_NUMBERS: Final[Mapping[str, Callable[[int], dict[str, Any]]]] = {
    "rr-on-bins": lambda k: {
        "classes": list(range(k)),
        "starts": [0, k // 2],
        "outputs": [k // 2 / 2, (k // 2 + k) / 2],
    },
    "debiased-rr": lambda k: {"classes": list(range(k))},
    "discrete-laplace": lambda k: {"low": 0, "high": k - 1, "step": 1, "clipped": True},
    "laplace": lambda k: {"low": 0, "high": k - 1},
    "discrete-staircase": lambda k: {"low": 0, "high": k - 1, "step": 1},
    "exponential": lambda k: {"low": 0, "high": k - 1, "step": 1},
}


@dataclass(frozen=True)
class Setting:
    """What a planted release is to be."""

    number: Annotated[int, Field(description="With the seed it decides every draw.")]
    kind: Annotated[str, Field(description="The way in which it is made.")]
    mechanism: Annotated[str, Field(description="What it declares.")]
    classes: Annotated[int, Field(description="The number of its labels.")]
    rows: Annotated[int, Field(description="The number of its rows.")]
    epsilon: Annotated[float, Field(description="The ε that it declares, in nats.")]
    excess: Annotated[float, Field(description="What too little noise reveals more, in nats.")] = (
        0.0
    )
    truth: Annotated[bool, Field(description="Whether the audit gets the true labels.")] = True

    @property
    def numeric(self) -> bool:
        """Whether its labels are numbers."""
        return self.mechanism in OF_NUMBERS

    def declaration(self, epsilon: float | None = None) -> Declaration:
        """Return what is declared, or the same with another ε."""
        k, epsilon = self.classes, epsilon or self.epsilon
        if self.numeric:
            return Declaration(self.mechanism, OF_NUMBERS[self.mechanism](k) | {"epsilon": epsilon})
        named = {"classes": list(classes(k))}
        return Declaration(self.mechanism, named | OF_CLASSES[self.mechanism](k, epsilon))

    def made_with(self, epsilon: float | None = None) -> Mechanism:
        """Return the declared mechanism, or the same with another ε."""
        return from_declaration(self.declaration(epsilon), ())

    def keep(self, excess: float = 0.0) -> float:
        """Return the chance with which randomized response keeps a label."""
        return keep_chance(self.epsilon + excess, self.classes)


def true_labels(
    setting: Setting, persons: People, rng: np.random.Generator, rows_each: int = 1
) -> Any:
    """Return the true labels as they would be written: names of classes, or whole numbers.

    ``rows_each``: how many rows in sequence are one person's, who has one label.
    """
    if not setting.numeric:
        return persons.labels
    # Features alone must not tell a number.
    own = np.repeat(rng.normal(0, 1.5, -(-len(persons) // rows_each)), rows_each)[: len(persons)]
    signal = persons.frame["x0"].to_numpy() - persons.frame["x1"].to_numpy() + own
    top = setting.classes - 1
    return np.clip(np.rint(top * (0.3 + 0.15 * signal)), 0, top).astype(np.int64)


def released_labels(mechanism: Mechanism, labels: Any, rng: np.random.Generator) -> Any:
    """Return the labels that a mechanism releases."""
    releasing: Any = mechanism
    if (double := mechanism.offers(SyntheticFeatures)) is not None:
        codes = np.searchsorted(np.array(double.classes), labels).astype(np.int32)
        every = np.arange(len(double.classes), dtype=np.int32)
        return np.array(double.classes)[double.sample(codes, every, rng).labels]
    return releasing.release(labels, rng)


def released_features(mechanism: Mechanism, persons: People, rng: np.random.Generator) -> Any:
    """Return the features as the mechanism releases them, as a data frame."""
    if (noisy := mechanism.offers(NoisyFeatures)) is not None:
        measured = persons.frame.select_dtypes("float32").astype(np.float64)
        values = noisy.project(measured.to_numpy())
        measured[:] = noisy.release_features(values, rng, simulation=True)
        return measured
    if (double := mechanism.offers(SyntheticFeatures)) is not None:
        n, synthetic = len(persons), rng.random(len(persons)) < double.noise
        both = pd.concat([persons.frame, people(n, len(persons.classes), rng).frame])
        return both.iloc[np.arange(n) + n * synthetic].reset_index(drop=True)
    return persons.frame.copy()


Labels = Callable[[Setting, People, Any, np.random.Generator], Any]
Columns = Callable[[Any, Any, np.random.Generator], dict[str, Any]]
Order = Callable[[pd.DataFrame, Any], IndexArray]


@dataclass(frozen=True)
class Way:
    """A way to make a release."""

    found_by: frozenset[str] = frozenset()
    """The checks that name the leak, also by a warning; empty for an honest way."""
    labels: Labels = lambda s, _, truth, rng: released_labels(s.made_with(), truth, rng)
    """From setting, people, true labels and generator to released labels."""
    columns: Columns | None = None
    """From the places of released and of true labels, and a generator, to further columns."""
    order: Order | None = None
    """From features with released labels, and true labels, to the order of the rows."""
    epsilon: Callable[[Setting], float] | None = None
    """From the setting to what is truly revealed; None: as declared if honest, else ∞."""
    equal_rows: int = 1
    """How many rows in sequence have equal features; with ``own_labels`` each has its own label."""
    own_labels: bool = False
    mechanisms: Collection[str] = ()
    """Those that it is planted in; empty: all."""
    noise: bool = False
    shared: bool = False
    """``noise`` and ``shared``: whether it is too little noise, and in all rows alike, so that the
    power is known."""


def plant(setting: Setting, rng: np.random.Generator) -> Planted:
    """Make a release in the way that the setting names."""
    way, k = WAYS[setting.kind], 2 if setting.numeric else setting.classes
    persons = repeated(setting.rows, way.equal_rows, rng, k)
    truth = true_labels(setting, persons, rng, way.equal_rows)
    if way.own_labels:
        others = people(setting.rows, k, rng)
        own = rng.random(setting.rows) < 0.5
        codes = np.where(own, persons.codes, others.codes).astype(np.int32)
        truth = np.where(own, truth, true_labels(setting, others, rng))
        persons = People(persons.frame, codes, persons.classes)
    frame = released_features(setting.made_with(), persons, rng)
    frame[LABEL] = way.labels(setting, persons, truth, rng)
    if way.columns is not None:
        released, true = (np.unique(y, return_inverse=True)[1] for y in (frame[LABEL], truth))
        frame = frame.assign(**way.columns(released, true, rng))
    rows = way.order(frame, truth) if way.order else None
    epsilon = math.inf if way.found_by else float(setting.made_with().epsilon or 0.0)
    epsilon = way.epsilon(setting) if way.epsilon else epsilon
    return declared(frame, truth, setting.declaration(), rows, epsilon=epsilon)


def _flips(
    chance: Callable[[Setting, People], Any],
    *found_by: str,
    draws: Callable[[int, np.random.Generator], FloatArray] = lambda n, rng: rng.random(n),
    **more: Any,
) -> Way:
    """Keep each label where its draw lies below the chance of its row, else release another one."""

    def labels(setting: Setting, persons: People, _: Any, rng: np.random.Generator) -> Any:
        kept = draws(len(persons), rng) < chance(setting, persons)
        return np.array(persons.classes)[replaced(persons.codes, setting.classes, kept, rng)]

    return Way(frozenset(found_by), labels, mechanisms=_RR, **more)


def _by_class(chance: Callable[[Setting], FloatArray], **more: Any) -> Way:
    """Keep each label with the chance of its class."""

    def epsilon(setting: Setting) -> float:
        keep = chance(setting)
        matrix = np.tile((1 - keep)[:, None] / (len(keep) - 1), (1, len(keep)))
        np.fill_diagonal(matrix, keep)
        return float(np.ptp(np.log(matrix), axis=0).max())

    more |= {"epsilon": epsilon, "noise": True}
    return _flips(lambda setting, persons: chance(setting)[persons.codes], *_CLAIM, **more)


def _flip_as_lambda(setting: Setting) -> FloatArray:
    k, e = setting.classes, math.exp(setting.epsilon)
    return np.full(k, (e + (k - 1) / k) / (e + k - 1))


def _older(setting: Setting, persons: People) -> FloatArray:
    clear = persons.age > 75
    return np.where(clear, 1.0, (setting.keep() - clear.mean()) / (1 - clear.mean()))


def _guessable(n: int, rng: np.random.Generator) -> FloatArray:
    seed = int(rng.choice((0, 1, 42, 123, 2024, 12345)))
    made: Any = np.random.default_rng if seed % 2 else np.random.RandomState
    return np.asarray(made(seed).random(n))


_CLAIM: Final = frozenset({"claimed-epsilon"})
_REVEALED: Final = frozenset({"features-reveal-label"})
_RR: Final = ("randomized-response",)
_NOISY_MECHANISMS: Final = (
    *("randomized-response", "rr-top-k", "gaussian-rr", "discrete-laplace", "laplace"),
    *("double-rr", "exponential", "rr-on-bins"),
)
HONEST: Final[Mapping[str, Way]] = {
    "as declared": Way(),
    "sorted by the released label": Way(
        order=lambda frame, _: np.argsort(frame[LABEL].to_numpy(), kind="stable")
    ),
    "sorted by a feature": Way(order=lambda frame, _: np.argsort(frame.iloc[:, 0].to_numpy())),
    "a column computed from the released label": Way(
        columns=lambda released, _, rng: {
            "score": 2 * released + rng.standard_normal(len(released))
        }
    ),
    # Where features are noisy or synthetic only the order says which rows are one person's.
    "people with equal features": Way(
        equal_rows=4,
        own_labels=True,
        mechanisms={*OF_CLASSES, *OF_NUMBERS} - {"double-rr", "gaussian-rr"},
    ),
}
# Each kind of leak, in the order in which they are planted.
LEAKS: Final[Mapping[str, Way]] = {
    "noise of a larger ε": Way(
        _CLAIM,
        lambda s, _, truth, rng: released_labels(s.made_with(s.epsilon + s.excess), truth, rng),
        epsilon=lambda s: float(s.made_with(s.epsilon + s.excess).epsilon or math.inf),
        mechanisms=_NOISY_MECHANISMS,
        noise=True,
        shared=True,
    ),
    "some rows without noise": _by_class(
        lambda s: np.full(s.classes, s.keep(s.excess)), shared=True
    ),
    "one class with less noise": _by_class(
        lambda s: np.append(np.full(s.classes - 1, s.keep()), s.keep(2 * s.excess))
    ),
    "λ in place of the chance of another label": _by_class(_flip_as_lambda, shared=True),
    "one group without noise": _flips(_older, *_CLAIM),
    "a seed that can be guessed": _flips(lambda s, _: s.keep(), "guessable-seed", draws=_guessable),
    "noise that is used again": _flips(
        lambda s, _: s.keep(),
        *("claimed-epsilon", "shared-noise"),
        draws=lambda n, rng: np.resize(rng.random(250), n),
    ),
    "a copy of the label": Way(
        _REVEALED,
        columns=lambda _, truth, __: {"code": truth + 1},
        mechanisms=_NOISY_MECHANISMS[:2],
    ),
    "a column that decides the label": Way(
        _REVEALED,
        columns=lambda _, truth, rng: {
            "claims": np.where(rng.random(len(truth)) < 0.01, rng.permutation(truth), truth) * 3
        },
        mechanisms=_RR,
    ),
    "rows sorted by the label": Way(
        _REVEALED,
        order=lambda _, truth: np.argsort(truth, kind="stable"),
        mechanisms=("randomized-response", "rr-top-k", "discrete-laplace"),
    ),
    "several rows of each person": Way(
        frozenset({"composition"}),
        order=lambda frame, _: np.random.default_rng(len(frame)).permutation(len(frame)),
        equal_rows=3,
        mechanisms=_RR,
    ),
}
WAYS: Final[Mapping[str, Way]] = {**HONEST, **LEAKS}
