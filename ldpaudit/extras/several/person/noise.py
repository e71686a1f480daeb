"""How the noise of several answers goes together, as numbers and in words."""

# Of columns: drawn as declared or not. Of releases: fresh, remembered, or random numbers used
# again.

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np

from ldpaudit.doors import Estimate, Finding, FloatArray, IndexArray, Note, Release
from ldpaudit.error_budget import Split
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE, binomial_p_value
from ldpaudit.extras.several.files import ReleasedFiles
from ldpaudit.extras.several.person.answers import Answers
from ldpaudit.extras.several.person.estimators import MOST_PAIRS
from ldpaudit.extras.several.person.noise_tests import (
    LARGEST,
    MOST_PEOPLE_PAIRED,
    Line,
    agreement_share,
    fresh_p_value,
    least_changed,
    mixture_p_value,
    noise_of_other_rows,
    remembered_mixture,
    remembered_share_lower,
    shared_noise,
)
from ldpaudit.release import label_table
from ldpaudit.result import Kind
from ldpaudit.result.numbers import p_words
from ldpaudit.result.stated import INDEPENDENT, PERSON_NOISE

NOISE_ROWS: Final = Split({"same row": 0.9, "other rows": 1 - 0.9})
"""Noise of two columns that goes together in one row, and in rows at any distance."""
Looks = Literal["fresh", "remembered", "partly", "reused", "dependent", "unclear"]
# Noise is called by what refutes the other kinds at this level; verdicts have their own.
_CLEAR, _ODD_LEVEL, _FEWEST, _MOST_REMEMBERED = 0.005, 0.01, 30, 0.25
_CLEARLY_MORE: Final = 0.25  # Remembered noise that needs so many more changes is not believed.
AS_DECLARED: Final = "released labels follow the declared mechanism in each release"
_SAME_CHANNEL: Final = "each column's channel is the same for all rows of a stratum"
_BIRCH: Final = "Birch (1964): the exact conditional test of several tables"
_PAIRED: Final = (
    "of people with the same true labels of two answers any pairing of the answers is equally "
    "likely (hypergeometric, over all groups of such people and of each larger one); "
)
_ALONE: Final = "the answers of a person, against every joint distribution of true labels; "
_TOO_LARGE: Final = "the product of the columns' domains is too large, or nothing is declared"
_SHARED: Final = (
    "The noise of one column goes along with another's, unlike independent draws ({p}). A seed or "
    "a draw may have been used for both; somebody who knows one true label then reads the noise of "
    "the other."
)
_NOT_JOINT: Final = "The released columns do not follow the declared joint mechanism ({p})."
_ODD: Final = {
    "reused": "random numbers of one release were used again in another, so that a comparison of "
    "the two undoes the noise of people whose label changed",
    "fresh": "answers are declared to be drawn again in each release, and they are not",
    "remembered": "answers are declared to be remembered, and labels that did not change have "
    "different ones",
}
_TWICE: Final = (
    "agreement with the latest earlier release of the same person beyond that of fresh noise, mean "
    "over people, Clopper–Pearson"
)
_LEAST: Final = (
    "the least share over all joint distributions of true labels that agree with the answers in "
    "the first two releases (linear program)"
)
_TITLES: Final = {
    "fresh": "Noise of its own in each release (p-value)",
    "remembered": "The same answer for a label that did not change (p-value)",
    "reused": "No random numbers used again (p-value)",
}
_LOOKS: Final[dict[Looks, str]] = {
    "fresh": "The noise looks fresh: each release draws its own",
    "remembered": "The noise looks remembered: a label that does not change keeps its answer",
    "partly": "Some answers are remembered, and others drawn again",
    "reused": (
        "Random numbers were used again: noise goes together although true labels, or people, "
        "differ. Was the same seed used twice? A comparison of the releases undoes the noise of "
        "people whose label changed"
    ),
    "dependent": "The noise of one release goes along with that of another, in neither usual way",
    "unclear": "These rows do not show whether noise is fresh or remembered",
}


@dataclass(frozen=True)
class _Compared:
    """P-values of one hypothesis, and how they came about; none: why it was not tested."""

    p_values: Sequence[float]
    method: str
    reference: str = "Clopper & Pearson (1934)"
    assumed: tuple[str, ...] = ()


def columns_noise(answers: Answers, rng: np.random.Generator) -> tuple[float | None, Finding]:
    """Test whether the columns of a row were drawn as declared; return the p-value, if any, too."""
    # Independent draws with true labels: rows with the same true labels of two columns, any
    # channel. A joint mechanism: how often which columns show the true label. Without true labels:
    # whether any true ones explain the released ones.
    truth = answers.knows_truth
    found = _with_labels(answers, rng) if truth else _by_mixtures(answers)
    if not found.p_values:
        text = f"How the columns' noise goes together was not tested: {found.method}."
        return None, Finding(notes=(Note.info("person", text),))
    p_value = _smallest(found.p_values) or 0.0
    kind, assumptions = answers.standing(INDEPENDENT)
    estimate = _p_value(
        (PERSON_NOISE, "Noise of the columns as declared (p-value)", p_value),
        answers.context.plan.confidence,
        n=len(answers.released),
        kind=kind,
        method=found.method,
        assumptions=(*assumptions, *found.assumed),
        reference=found.reference,
    )
    words = _NOT_JOINT if truth and not answers.independent else _SHARED
    note = Note.warning("person", words.format(p=p_words(p_value)))
    return p_value, Finding((estimate,), notes=(note,) * (p_value <= answers.alpha))


def _with_labels(answers: Answers, rng: np.random.Generator) -> _Compared:
    if answers.independent:
        people = answers.counted
        if len(people) > MOST_PEOPLE_PAIRED:
            people = np.sort(rng.choice(people, MOST_PEOPLE_PAIRED, replace=False))
        some = answers.truth[people], answers.released[people], answers.strata[people]
        found = shared_noise(*some, same_labels=answers.same_labels)
        if found.p_value is None:
            return _Compared((), "hardly any two rows have the same true labels of two columns")
        method = (
            f"{_PAIRED}{found.tests} exact tests of pairs of columns, and of rows at all distances "
            "of each other, in the same order and backwards; Bonferroni"
        )
        elsewhere = _of_other_rows(answers)
        p_value = found.p_value / NOISE_ROWS["same row"]
        if elsewhere is not None:
            p_value = min(p_value, elsewhere / NOISE_ROWS["other rows"])
        return _Compared([min(p_value, 1.0)], method, _BIRCH, (_SAME_CHANNEL,))
    channel = None if answers.joint is None else answers.joint.channel()
    if channel is None:
        return _Compared((), _TOO_LARGE)
    p_values = _pattern_p_values(answers, channel.matrix)
    method = (
        f"how often which columns show the true label, {len(p_values)} patterns, against the "
        "joint mechanism; binomial tails, Bonferroni"
    )
    return _Compared(p_values, method, "Hoeffding (1956), Theorem 4; Clopper & Pearson (1934)")


def _of_other_rows(answers: Answers) -> float | None:
    """Return the p-value of "no column's noise is that of another in other rows"."""
    people, strata = answers.counted, answers.strata
    lines = [
        Line(answers.truth[people, place], answers.released[people, place], strata[people], people)
        for place in range(answers.released.shape[1])
    ]
    pairs = list(combinations(range(len(lines)), 2))[:MOST_PAIRS]
    same = answers.same_labels
    found = [noise_of_other_rows(lines[a], lines[b], (same[a], same[b])) for a, b in pairs]
    return _smallest(found)


def _by_mixtures(answers: Answers) -> _Compared:
    """Compare the released labels of columns with every distribution of true ones."""
    if answers.strata.any():
        return _Compared((), "channels by stratum are compared with true labels only")
    released, domains, found = answers.released[answers.counted], answers.domains, list[float]()
    if answers.independent:
        for a, b in list(combinations(range(released.shape[1]), 2))[:MOST_PAIRS]:
            one, two = answers.channels_of(a), answers.channels_of(b)
            if one is None or two is None or one.size * two.size > LARGEST:
                continue
            counts = label_table(released[:, a], released[:, b], one.shape[2], two.shape[2])
            p_value = fresh_p_value(counts, one[0], two[0], same_label=False)
            found += [] if p_value is None else [p_value]
    elif domains is not None and (channel := domains.channel()) is not None:
        _, outputs = answers.in_domains(answers.released[:0], answers.released)
        codes = np.ravel_multi_index(tuple(outputs.T), domains.sizes)
        p_value = mixture_p_value(np.bincount(codes, minlength=domains.size), channel.matrix)
        found += [] if p_value is None else [p_value]
    method = f"{_ALONE}{len(found)} comparisons, Bonferroni"
    return _Compared(found, method if found else _TOO_LARGE)


def _pattern_p_values(answers: Answers, channel: FloatArray) -> list[float]:
    """Compare how often which columns show the true label with a joint mechanism's channel."""
    joint, people = answers.domains, answers.counted
    assert joint is not None
    labels, outputs = answers.in_domains(answers.truth[people], answers.released[people])
    bits, chances = 2 ** np.arange(len(joint.sizes)), np.zeros(2 ** len(joint.sizes))
    codes = np.ravel_multi_index(tuple(labels.T), joint.sizes)
    every = np.stack(np.unravel_index(np.arange(joint.size), joint.sizes), axis=1)
    for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
        agreeing = (every == every[code]) @ bits
        chances += count * np.bincount(agreeing, channel[code], minlength=len(chances))
    patterns = np.bincount((labels == outputs) @ bits, minlength=len(chances))
    n = len(labels)
    return [float(p) for p in binomial_p_value(patterns, np.asarray(n), chances / n)]


def noise_between_files(
    files: ReleasedFiles, rng: np.random.Generator, confidence: float
) -> Estimate | None:
    """Test the noise of one column in one file against that of another column in another file."""
    # Of people with their true labels; None without these. Within a file, and within a column, the
    # nodes below test.
    people = np.flatnonzero((files.rows >= 0).sum(axis=1) > 1)
    people = (
        people
        if len(people) <= MOST_PEOPLE_PAIRED
        else rng.permutation(people)[:MOST_PEOPLE_PAIRED]
    )
    answers = [
        (place, column)
        for place, file in enumerate(files.files)
        for column in ((file,) if isinstance(file, Release) else file.columns)
    ]
    pairs = [
        (i, j)
        for (i, (a, one)), (j, (b, other)) in combinations(enumerate(answers), 2)
        if a != b and one.label != other.label
    ]
    if not pairs or any(column.truth is None for _, column in answers):
        return None
    tables, strata = np.full((2, len(people), len(answers)), -1), np.zeros(len(people), np.int64)
    for number, (place, column) in enumerate(answers):
        rows = files.rows[people, place]
        here = rows >= 0
        tables[0, here, number] = np.asarray(column.truth)[rows[here]]
        tables[1, here, number] = column.released[rows[here]]
        if column.strata is not None:
            strata = strata * (column.strata.count + 1)
            strata[here] += column.strata.codes[rows[here]] + 1
    same = [one.numeric is None and one.outputs == one.classes for _, one in answers]
    found = shared_noise(tables[0], tables[1], strata, same_labels=same, pairs=pairs)
    if found.p_value is None:
        return None
    return _p_value(
        (PERSON_NOISE, "Noise of each column and file of its own (p-value)", found.p_value),
        confidence,
        n=found.rows,
        kind="certified",
        method=f"{_PAIRED}{found.tests} exact tests, Bonferroni",
        assumptions=(INDEPENDENT,),
        reference=_BIRCH,
    )


def _p_value(
    known: tuple[str, str, float],
    confidence: float,
    *,
    n: int,
    kind: Kind,
    method: str,
    assumptions: tuple[str, ...],
    reference: str,
) -> Estimate:
    name, title, p_value = known
    return Estimate.upper_bound(
        name,
        title,
        max(p_value, SMALLEST_P_VALUE),
        confidence,
        kind=kind,
        n=n,
        unit="p-value",
        method=f"p-value: {method}",
        assumptions=assumptions,
        reference=reference,
    )


@dataclass(frozen=True)
class FoundNoise:
    """How the noise of several releases goes together."""

    looks: Looks = "unclear"
    p_values: Mapping[str, float | None] = field(default_factory=dict)
    """By what they refute; None where not tested."""
    share: tuple[float, float, float] | None = None
    """Of answers given twice, with its lower and its upper bound."""
    least: tuple[float, float] | None = None
    """The least share of people whose label changed, were noise fresh, and were it remembered."""


def releases_noise(answers: Answers) -> FoundNoise:
    """Return how the noise of the releases goes together."""
    return _with_truth(answers) if answers.knows_truth else _without_truth(answers)


def _with_truth(answers: Answers) -> FoundNoise:
    truth, released, kept = answers.truth, answers.released, True
    test = partial(shared_noise, truth, released, same_labels=answers.same_labels)
    for a, b, both in answers.successive:  # A label that changed in between may have a new answer.
        people = both[truth[both, a] == truth[both, b]]
        kept &= bool((released[people, a] == released[people, b]).all())
    fresh = test(pairs=answers.pairs, unchanged=True).p_value
    again = [test(pairs=answers.pairs, unchanged=False).p_value]
    again += [test for pair in answers.pairs for test in _by_place(answers, pair)]
    again += [_elsewhere(answers, pair) for pair in answers.pairs]
    reused, share, alpha = _smallest(again), _share(answers), min(answers.alpha, _CLEAR)
    looks: Looks = "unclear"
    if reused is not None and reused <= alpha:
        looks = "reused"
    elif fresh is not None and fresh <= alpha:
        looks = "dependent" if share is None or share[0] <= 0 else "partly"
        looks = "remembered" if kept else looks
    elif fresh is not None and (share is None or share[2] <= _MOST_REMEMBERED):
        looks = "fresh"
    remembered = SMALLEST_P_VALUE if not kept else None if fresh is None else 1.0
    p_values = {"fresh": fresh, "remembered": remembered, "reused": reused}
    return FoundNoise(looks, p_values, share)


def _by_place(answers: Answers, pair: tuple[int, int]) -> Iterator[float | None]:
    """Yield tests of rows at the same place of two files that are of different people."""
    owners = []
    for place in pair:
        whose = np.full(len(answers.contexts[place].release), -1, dtype=np.int64)
        here = answers.people((place,))
        whose[answers.rows[here, place]] = here
        owners.append(whose)
    n = min(map(len, owners))
    one, two = (whose[:n] for whose in owners)
    rows = np.flatnonzero((one != two) & (one >= 0) & (two >= 0))
    # Of two people who changed places one row counts: remembered noise is the same in both.
    low, high = np.minimum(one, two)[rows], np.maximum(one, two)[rows]
    rows = rows[np.unique(low * len(answers.rows) + high, return_index=True)[1]]
    truth, released = (
        np.stack([codes[own[rows], at] for own, at in zip(owners, pair, strict=True)], axis=1)
        for codes in (answers.truth, answers.released)
    )
    same = [answers.same_labels[place] for place in pair]
    for unchanged in (True, False) if len(rows) else ():
        yield shared_noise(truth, released, same_labels=same, unchanged=unchanged).p_value


def _elsewhere(answers: Answers, pair: tuple[int, int]) -> float | None:
    """Test the rows of two files at all distances, and backwards, that are of different people."""
    lines = []
    for place in pair:
        people = answers.people((place,))
        people = people[np.argsort(answers.rows[people, place], kind="stable")]
        labels, outputs = answers.truth[people, place], answers.released[people, place]
        lines.append(Line(labels, outputs, np.zeros(len(people), np.int64), people))
    same = answers.same_labels
    return noise_of_other_rows(lines[0], lines[1], (same[pair[0]], same[pair[1]]))


def _share(answers: Answers) -> tuple[float, float, float] | None:
    """Return the mean share of answers given twice, over all given before, with bounds."""
    matrices, found, sizes = answers.matrices, [], []
    for a, b, both in answers.successive if matrices is not None else ():
        assert matrices is not None
        people = both[answers.truth[both, a] == answers.truth[both, b]]
        labels = answers.truth[people, a]
        agreement = (matrices[a] * matrices[b]).sum(axis=1)[labels]
        if not len(people):
            continue
        expected = float(agreement.mean())
        if expected > 1 - 1e-9:
            return None
        same = int(np.sum(answers.released[people, a] == answers.released[people, b]))
        level = answers.alpha / len(answers.successive)
        found.append(agreement_share(same, len(people), expected, level))
        sizes.append(len(people))
    if not found:
        return None
    value, low, high = np.average(found, axis=0, weights=sizes)
    return float(value), float(low), float(high)


def _without_truth(answers: Answers) -> FoundNoise:
    matrices = answers.matrices
    fresh, remembered, least = list[float | None](), list[float | None](), []
    lows, sizes = list[float](), list[int]()
    for a, b in answers.pairs if matrices is not None else ():
        assert matrices is not None
        people, channels = answers.people((a, b)), (matrices[a], matrices[b])
        if len(people) < _FEWEST:
            continue
        counts = _pairs_of_answers(answers, (a, b), people)
        fresh.append(fresh_p_value(counts, *channels))
        if (a, b) not in answers.neighbours:
            continue
        level, again = answers.alpha / len(answers.neighbours), remembered_mixture(*channels)
        mixtures = np.asarray(np.kron(*channels), np.float64), again
        least.append([least_changed(counts, mixture, level) for mixture in mixtures])
    for a, b, people in answers.successive if matrices is not None else ():
        assert matrices is not None
        if len(people) < _FEWEST:
            continue
        counts, channels = _pairs_of_answers(answers, (a, b), people), (matrices[a], matrices[b])
        if answers.alike:
            remembered.append(mixture_p_value(counts, remembered_mixture(*channels)))
        level, n = answers.alpha / len(answers.successive), len(people)
        lows.append(remembered_share_lower(int(np.trace(counts)), n, *channels, level))
        sizes.append(n)
    smallest = _smallest(fresh)
    p_values = {"fresh": smallest, "remembered": _smallest(remembered)}
    if not least:
        return FoundNoise(p_values=p_values)
    low = float(np.average(lows, weights=sizes))
    looks: Looks = "unclear"
    if all(f is not None and r is not None and r - f >= _CLEARLY_MORE for f, r in least):
        looks = "fresh"
    if smallest is not None and smallest <= min(answers.alpha, _CLEAR):
        looks = "remembered" if low > 0 else "dependent"
    known = None if None in least[0] else (least[0][0] or 0.0, least[0][1] or 0.0)
    share = (low, low, 1.0) if low > 0 else None
    return FoundNoise(looks, p_values, share, known)


def _pairs_of_answers(answers: Answers, pair: tuple[int, int], people: IndexArray) -> IndexArray:
    """Return how many people have which answers in two releases, (m, m)."""
    m = len(answers.labels_of(0)[1])
    one, two = answers.released[people][:, list(pair)].T
    return label_table(one, two, m, m)


def _smallest(tests: Sequence[float | None]) -> float | None:
    """Return the smallest p-value by Bonferroni's correction, None where nothing was tested."""
    known = [p for p in tests if p is not None]
    return min(1.0, len(known) * min(known)) if known else None


def noise_finding(answers: Answers, found: FoundNoise) -> Finding:
    """Return the tests of the releases' noise, how much was given twice, and what that costs."""
    people, confidence = len(answers.people()), answers.context.plan.confidence
    truth, (kind, assumptions) = answers.knows_truth, answers.standing(INDEPENDENT)
    declared, named = (*assumptions, AS_DECLARED), f"{answers.noise} noise"
    noise = named if answers.noise else "no random numbers used again"
    title = f"Noise of the releases goes together as declared: {noise} (p-value)"
    claimed = _smallest([found.p_values.get(name) for name in ("reused", answers.noise or "")])
    tests = [(f"person.{k}_noise", _TITLES[k], found.p_values.get(k)) for k in _TITLES]
    estimates = [
        _p_value(
            (name, title, p_value),
            confidence,
            n=people,
            kind=kind,
            method=f"{_PAIRED if truth else _ALONE}all pairs of releases, Bonferroni",
            assumptions=assumptions if truth else declared,
            reference=_BIRCH if truth else "Clopper & Pearson (1934)",
        )
        for name, title, p_value in (*tests, (PERSON_NOISE, title, claimed))
        if p_value is not None
    ]
    build: dict[str, Any] = {"unit": "proportion", "kind": kind, "assumptions": declared}
    if found.share is not None:
        value, low, high = found.share
        given = "person.remembered_share", "Answers that were given twice"
        build |= {"n": people, "method": _TWICE}
        estimates.append(
            Estimate.interval(*given, value, (low, high), confidence, **build)
            if truth
            else Estimate.lower_bound(*given, low, confidence, **build)
        )
    build |= {"n": None, "method": _LEAST, "reference": "Clopper & Pearson (1934)"}
    for name, value in zip(("fresh", "remembered"), found.least or (), strict=False):
        title = f"True labels that changed, at least, if noise is {name}"
        least = f"person.least_changed_if_{name}"
        estimates.append(Estimate.lower_bound(least, title, value, confidence, **build))
    return Finding(tuple(estimates), notes=(_note(answers, found),))


def _note(answers: Answers, found: FoundNoise) -> Note:
    """Return in words what the noise looks like, and what that costs."""
    price = ""
    if found.looks in ("fresh", "remembered"):
        epsilon = answers.epsilon("fresh" if found.looks == "fresh" else "remembered")
        verb = "adds up to" if found.looks == "fresh" else "stays"
        price = "" if epsilon is None else f", and ε {verb} {epsilon:.4g}"
    if found.looks == "remembered":
        price += "; an answer that changes reveals that the label did"
    elif found.looks == "fresh" and found.least is not None:
        share = f"{100 * found.least[1]:.0f} %"
        price = f", unless at least {share} of true labels changed between two releases{price}"
    odd = found.looks in ("reused", "dependent", "partly")
    other = found.looks in ("fresh", "remembered") and answers.noise not in (None, found.looks)
    return (Note.warning if odd or other else Note.info)("person", f"{_LOOKS[found.looks]}{price}.")


def odd_words(estimates: Sequence[Estimate], noise: str | None) -> str:
    """Return in words how noise goes together where it does not as claimed."""
    tests = {estimate.id: estimate.value for estimate in estimates}
    for name, text in _ODD.items():
        if name in ("reused", noise) and tests.get(f"person.{name}_noise", 1.0) <= _ODD_LEVEL:
            return text
    return ""
