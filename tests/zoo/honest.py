"""Honest releases that look suspicious, and one of every mechanism: nobody may be accused."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldpaudit.extras.selftest.planting import People, classes, people, repeated
from ldpaudit.release import IntArray
from zoo.channels import with_rare_class
from zoo.left_behind import incomes, place_means
from zoo.numbers import HARMLESS_NUMBERS, HIGH
from zoo.shared import REMEMBERED
from zoo.specimen import (
    CLAIM,
    Fault,
    Specimen,
    honest_labels,
    keep,
    of_people,
    release,
    replaced,
)

Derived = Callable[[IntArray, np.random.Generator], np.ndarray]
_SETTINGS: dict[str, tuple[str, ...]] = {
    "double-rr": ("--generator", "mixture"),
    "dummy-features-rr": ("--generator", "mixture"),
    "rr-top-k": ("--prior",),
    "model-based-rr": ("--public",),
    "rr-on-bins": ("--labels", f"0:{HIGH}:1"),
    "optimal-unbiased": ("--labels", f"0:{HIGH}:1"),
    "debiased-rr": ("--labels", f"0:{HIGH}:1"),
    "discrete-laplace": ("--labels", f"0:{HIGH}:1", "--clip"),
    "discrete-staircase": ("--labels", f"0:{HIGH}:1"),
    "exponential": ("--labels", f"0:{HIGH}:1"),
}
"""The mechanisms that `privatize` can draw from the operating system, with their options."""
_NUMERIC = {name for name, options in _SETTINGS.items() if "--labels" in options}


def _plain(k: int) -> Fault:
    def work(persons: People, rng: np.random.Generator) -> Specimen:
        return release(persons, honest_labels(persons, rng))

    name = "honest" if k == 2 else f"honest-{k}-classes"
    return _harmless(name, f"Randomized response as declared, {k} classes.", of_people(k, work))


def _harmless(name: str, what: str, make: Callable[[int, np.random.Generator], Specimen]) -> Fault:
    return Fault(name, what, make, CLAIM, honest=True)


def _derived(name: str, what: str, column: Derived) -> Fault:
    def work(persons: People, rng: np.random.Generator) -> Specimen:
        released = honest_labels(persons, rng)
        return release(persons, released, {"derived": column(released, rng)})

    words = f"A column is {what}, computed from the released label."
    return _harmless(f"derived-{name}", words, of_people(2, work))


def _rare(persons: People, rng: np.random.Generator) -> Specimen:
    persons = with_rare_class(persons, rng)
    return release(persons, honest_labels(persons, rng))


def _duplicates(n: int, rng: np.random.Generator) -> Specimen:
    """Rows with equal features are other people, with labels and noise of their own."""
    persons = repeated(n, 4, rng)
    labels = rng.binomial(1, np.where(persons.codes == 1, 0.7, 0.2)).astype(np.int32)
    others = People(persons.frame, labels, persons.classes)
    return release(others, honest_labels(others, rng))


def _households(persons: People, rng: np.random.Generator) -> Specimen:
    n = len(persons)
    home = np.arange(n) // 20
    columns = {"zip": persons.frame["zip"].to_numpy()[home * 20], "household": home}
    return release(persons, honest_labels(persons, rng), columns, group="household")


def _in_sample(persons: People, rng: np.random.Generator) -> Specimen:
    """A model's score of the rows that it learnt from."""
    return _scored(persons, honest_labels(persons, rng), rng)


def _scored(persons: People, released: IntArray, rng: np.random.Generator) -> Specimen:
    from sklearn.ensemble import RandomForestClassifier

    points = persons.frame.drop(columns="zip").to_numpy()
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=int(rng.integers(2**31)))
    score = forest.fit(points, released).predict_proba(points)[:, 1]
    return release(persons, released, {"derived": score})


def _near_mean(own: bool) -> Callable[[People, np.random.Generator], Specimen]:
    def work(persons: People, rng: np.random.Generator) -> Specimen:
        from sklearn.neighbors import NearestNeighbors

        released = honest_labels(persons, rng)
        points = persons.frame[["x0", "x1", "x2", "x3"]].to_numpy()
        search = NearestNeighbors(n_neighbors=4).fit(points)
        near = search.kneighbors(points if own else None, return_distance=False)
        return release(persons, released, {"derived": released[near].mean(axis=1)})

    return work


def _family_score(n: int, rng: np.random.Generator) -> Specimen:
    """Families of 4 share all features but one, their label and its noise; a score beside them."""
    persons = repeated(n, 4, rng)
    persons.frame["hours"] = rng.integers(5, 80, n)
    kept = np.repeat(rng.random(-(-n // 4)), 4)[:n] < keep(CLAIM, 2)
    released = replaced(persons.codes, 2, kept, rng)
    return _scored(persons, released, rng)


def _coarse(n: int, rng: np.random.Generator) -> Specimen:
    """Four rows of each person: four coarse columns are the person's, all others are not."""
    persons = repeated(n, 4, rng)
    frame = people(n, 2, rng).frame
    own = persons.frame[["x0", "x1", "x2", "x3"]].round(0)
    frame[own.columns] = own
    return _remembered(People(frame, persons.codes, persons.classes), rng)


def _visits(n: int, rng: np.random.Generator) -> Specimen:
    """Four visits of each person: four columns are the person's, measurements are each visit's."""
    persons = repeated(n, 4, rng)
    persons.frame[["x0", "x1"]] += rng.standard_normal((n, 2)).astype(np.float32)
    persons.frame[["x2", "x3"]] = rng.standard_normal((n, 2)).astype(np.float32)
    return _remembered(persons, rng)


def _remembered(persons: People, rng: np.random.Generator) -> Specimen:
    n = len(persons)
    kept = np.repeat(rng.random(-(-n // 4)), 4)[:n] < keep(CLAIM, 2)
    return release(persons, replaced(persons.codes, 2, kept, rng), rows=rng.permutation(n))


def _shuffled(persons: People, rng: np.random.Generator) -> Specimen:
    return release(persons, honest_labels(persons, rng), rows=rng.permutation(len(persons)))


def _sorted(persons: People, rng: np.random.Generator) -> Specimen:
    return release(persons, honest_labels(persons, rng), rows=np.argsort(persons.age))


def _sorted_by_release(persons: People, rng: np.random.Generator) -> Specimen:
    released = honest_labels(persons, rng)
    return release(persons, released, rows=np.argsort(released, kind="stable"))


def _privatized(name: str) -> Fault:
    """Return releases that ``ldpaudit privatize`` makes."""

    def make(n: int, rng: np.random.Generator) -> Specimen:
        persons = people(n, 2, rng)
        frame = persons.frame.assign(label=_labels(name, persons, rng))
        with tempfile.TemporaryDirectory() as folder:
            return _written(Path(folder), name, pa.Table.from_pandas(frame, preserve_index=False))

    return _harmless(f"honest-{name}", f"`privatize --mechanism {name}`, unchanged.", make)


def _labels(name: str, persons: People, rng: np.random.Generator) -> np.ndarray:
    if name not in _NUMERIC:
        return np.array(classes(2))[persons.codes]
    signal = persons.frame["x0"].to_numpy() - persons.frame["x1"].to_numpy()
    return np.clip(np.rint(6 + 4 * signal + rng.standard_normal(len(persons))), 0, HIGH).astype(int)


def _written(folder: Path, name: str, table: pa.Table) -> Specimen:
    from ldpaudit.cli import app

    data, out, public = (folder / f"{part}.parquet" for part in ("data", "out", "public"))
    pq.write_table(table, data)
    extra = list(_SETTINGS[name])
    if "--public" in extra:
        pq.write_table(table.slice(0, table.num_rows // 5), public)
        pq.write_table(table.slice(table.num_rows // 5), data)
        table = table.slice(table.num_rows // 5)
        extra.append(str(public))
    if "--prior" in extra:
        prior = folder / "prior.csv"
        prior.write_text("label,probability\nno,0.6\nyes,0.4\n")
        extra.append(str(prior))
    arguments = ["privatize", str(data), "-o", str(out), "--mechanism", name, "--quiet"]
    status = app()([*arguments, "--epsilon", str(CLAIM), *extra], standalone_mode=False)
    if status:
        raise RuntimeError(f"privatize --mechanism {name} ended with {status}")
    return Specimen(pq.read_table(out), table.select(["label"]))


HONEST = (
    _plain(2),
    _plain(5),
    _harmless("rare-class", "12 people have a rare label.", of_people(3, _rare)),
    _derived("code", "its code", lambda y, _: y + 1),
    _derived("text", "a text for it", lambda y, _: np.array(["N", "Y"])[y]),
    _derived("score", "a noisy score", lambda y, rng: 2 * y + rng.standard_normal(len(y))),
    _derived("weight", "one over its share", lambda y, _: (len(y) / np.bincount(y))[y]),
    _derived("place-mean", "the mean of about two people", place_means),
    _derived("filled-in", "a number, missing ones filled in by its mean,", incomes),
    _harmless(
        "derived-in-sample",
        "A column is a model's score of the rows that it learnt from.",
        of_people(2, _in_sample),
    ),
    _harmless(
        "derived-near-mean",
        "A column is the mean of the released labels of the four nearest rows, itself among them.",
        of_people(2, _near_mean(own=True)),
    ),
    _harmless(
        "derived-others-mean",
        "A column is the mean of the released labels of the four nearest other rows.",
        of_people(2, _near_mean(own=False)),
    ),
    _harmless(
        "remembered-and-scored",
        "Four rows of a person and one remembered answer, and a score of a model that learnt it.",
        _family_score,
    ),
    _harmless(
        "remembered-coarse",
        "Four rows of a person, alike in four coarse columns alone, and one remembered answer.",
        _coarse,
    ),
    _harmless(
        "remembered-visits",
        "Four visits of a person with one remembered answer; measurements differ.",
        _visits,
    ),
    _harmless("duplicates", "Four people have equal features, all else is theirs.", _duplicates),
    _harmless("households", "Households of 20, noise of their own.", of_people(2, _households)),
    _harmless("shuffled", "The rows are in random order.", of_people(2, _shuffled)),
    _harmless("sorted-by-age", "The rows are sorted by age.", of_people(2, _sorted)),
    _harmless(
        "sorted-by-release",
        "The rows are sorted by the released label.",
        of_people(2, _sorted_by_release),
    ),
    REMEMBERED,
    *HARMLESS_NUMBERS,
    *(_privatized(name) for name in _SETTINGS),
)
