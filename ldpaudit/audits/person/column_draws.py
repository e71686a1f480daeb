"""Are the columns of a row drawn together as declared? With true vectors, and without."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from ldpaudit.audits.person.answers import MOST_PAIRS, Answers
from ldpaudit.estimators.epsilon.consistency import binomial_p_value, marginal_consistency
from ldpaudit.estimators.person.shared_draws import MOST_ROWS, shared_draws
from ldpaudit.mechanisms.joint import OnDomains
from ldpaudit.release import label_table

_TITLE: Final = "Draws of the columns as declared (p-value)"
_FEWEST_ALIKE: Final = 20
_LARGEST: Final = 40_000
"""Entries of the product of two channels; a linear program over them takes seconds."""
_TOO_LARGE: Final = "the product of the columns' domains is too large, or nothing is declared"
_WARNING: Final = (
    "The noise of one column goes along with another's: in at most {share} of releases would "
    "independent draws look like that. A seed or a draw may have been used for both; whoever knows "
    "one true label then reads the noise of the other."
)
_OTHERWISE: Final = (
    "The released vectors do not follow the declared joint mechanism: in at most {share} of "
    "releases would its draws look like that."
)


@dataclass(frozen=True)
class DrawTest:
    """A test of how the columns of a row were drawn, and its words.

    Attributes
    ----------
    p_value : float
    rows : int
    method, reference : str
    assumptions : tuple of str
        Companions independent rows.
    warning : str
        What is to be said where it is refuted.
    title : str
    """

    p_value: float
    rows: int
    method: str
    reference: str
    assumptions: tuple[str, ...]
    warning: str
    title: str = _TITLE


def draws_as_claimed(seen: Answers, rng: np.random.Generator) -> DrawTest | str:
    """Test the draws; or return why they cannot be tested.

    Independent draws with true vectors: rows with the same true labels of two columns, any channel.
    A joint mechanism: how often which columns show the true label. Without true vectors: whether
    any true vectors explain the released ones.
    """
    share = f"{1 - seen.contexts[0].plan.confidence:.0%}"
    if not seen.knows_truth:
        return _released_alone(seen, _WARNING.format(share=share))
    if not seen.independent:
        return _patterns(seen, _OTHERWISE.format(share=share))
    truth, released, strata = seen.truth, seen.released, seen.strata
    if len(truth) > MOST_ROWS:
        rows = np.sort(rng.permutation(len(truth))[:MOST_ROWS])
        truth, released, strata = truth[rows], released[rows], strata[rows]
    test = shared_draws(truth, released, strata, seen.same_labels)
    if test.rows < _FEWEST_ALIKE:
        return "hardly any two rows have the same true labels of two columns"
    words = (
        "among rows with the same true labels of two columns any pairing of their outputs is "
        f"equally likely; {test.tests} exact tests of pairs of columns, over all such groups and "
        "of each larger one, Bonferroni"
    )
    return DrawTest(
        test.p_value,
        len(truth),
        words,
        "Birch (1964): the exact conditional test of several tables",
        ("each column's channel is the same for all rows of a stratum",),
        _WARNING.format(share=share),
    )


def _patterns(seen: Answers, warning: str) -> DrawTest | str:
    """Compare how often which columns show the true label with a joint mechanism's channel."""
    joint, channel = seen.joint, None if seen.joint is None else seen.joint.channel()
    if not isinstance(joint, OnDomains) or channel is None:
        return _TOO_LARGE
    labels, outputs = seen.in_domains(seen.truth, seen.released)
    kinds = 2 ** np.arange(len(joint.sizes))
    codes = np.ravel_multi_index(tuple(labels.T), joint.sizes)
    present, rows = np.unique(codes, return_counts=True)
    vectors = np.stack(np.unravel_index(np.arange(joint.size), joint.sizes), axis=1)
    chances = np.zeros(2 ** len(joint.sizes))
    for code, count in zip(present, rows, strict=True):
        agreeing = (vectors == vectors[code]) @ kinds
        chances += count * np.bincount(agreeing, channel.matrix[code], minlength=len(chances))
    seen_patterns = np.bincount((labels == outputs) @ kinds, minlength=len(chances))
    n = np.asarray(len(labels))
    p_values = binomial_p_value(seen_patterns, n, chances / len(labels))
    words = (
        f"how often which columns show the true label, {len(chances)} patterns, against the joint "
        "mechanism; binomial tails, Bonferroni"
    )
    smallest = min(1.0, len(chances) * float(p_values.min()))
    reference = "Hoeffding (1956), Theorem 4; Clopper & Pearson (1934)"
    return DrawTest(smallest, len(labels), words, reference, (), warning)


def _released_alone(seen: Answers, warning: str) -> DrawTest | str:
    """Test whether any true vectors explain the released ones, drawn as declared."""
    if seen.strata.any():
        return "channels by stratum are compared with true labels only"
    p_values = list(_unexplained(seen) if seen.independent else _jointly_unexplained(seen))
    if not p_values:
        return _TOO_LARGE
    smallest = min(1.0, len(p_values) * min(p_values))
    words = (
        "the smallest level at which no true labels explain how often released labels go "
        f"together; {len(p_values)} comparisons, Bonferroni"
    )
    reference = "Clopper & Pearson (1934)"
    return DrawTest(smallest, len(seen.released), words, reference, (), warning)


def _unexplained(seen: Answers) -> Iterator[float]:
    """Yield the p-value of each pair of columns under independent draws."""
    released = seen.released
    for a, b in list(combinations(range(released.shape[1]), 2))[:MOST_PAIRS]:
        one, other = seen.by_stratum(a), seen.by_stratum(b)
        if one is None or other is None or one.size * other.size > _LARGEST:
            continue
        counts = label_table(released[:, a], released[:, b], one.shape[2], other.shape[2])
        p_value = marginal_consistency(counts.ravel(), np.kron(one[0], other[0]))
        if p_value is not None:
            yield p_value


def _jointly_unexplained(seen: Answers) -> Iterator[float]:
    """Yield the p-value of the released vectors under a joint mechanism."""
    joint = seen.joint
    channel = None if joint is None else joint.channel()
    if not isinstance(joint, OnDomains) or channel is None:
        return
    _, outputs = seen.in_domains(seen.released[:0], seen.released)
    codes = np.ravel_multi_index(tuple(outputs.T), joint.sizes)
    counts = np.bincount(codes, minlength=joint.size).astype(np.int64)
    p_value = marginal_consistency(counts, channel.matrix)
    if p_value is not None:
        yield p_value
