"""True labels that are spelt otherwise than the released ones, all of them or some."""

import unicodedata

import pyarrow as pa
import pytest

from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError
from ldpaudit.release import Declaration

ROWS = 200
RELEASED = ["café", "tea", "water"] * (ROWS // 3)
SPELLINGS = {
    "a space": (lambda text: text + " ", "have a space at an end"),
    "a space in front": (lambda text: f" {text}", "have a space at an end"),
    "case": (str.upper, "upper and lower case"),
    "accents": (lambda text: unicodedata.normalize("NFD", text), "accents are composed"),
    "all": (lambda text: f" {unicodedata.normalize('NFD', text).upper()}", "spelling alone"),
}


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("every", [1, 20])
@pytest.mark.parametrize("case", SPELLINGS)
def test_labels_in_another_spelling_are_refused_with_what_differs(case, every, declared):
    change, words = SPELLINGS[case]
    truth = [change(t) if i % every == 0 else t for i, t in enumerate(RELEASED)]
    changed = sum(a != b for a, b in zip(truth, RELEASED, strict=True))
    claim = Declaration(
        "randomized-response",
        {"epsilon": 1.0} | ({"classes": ["café", "tea", "water"]} if declared else {}),
    )
    with pytest.raises(InputError, match=f"{changed} .*{words}") as caught:
        read_release(pa.table({"label": RELEASED}), truth=truth, declaration=claim)
    assert "caf" not in str(caught.value)


def test_labels_of_the_release_may_differ_in_case():
    labels = ["a", "A", "b"] * 60
    release = read_release(pa.table({"label": labels}), truth=labels).release
    assert release.classes == ("A", "a", "b")


def test_another_label_is_no_other_spelling():
    truth = ["juice", *RELEASED[1:]]
    release = read_release(pa.table({"label": RELEASED}), truth=truth).release
    assert release.classes == ("café", "juice", "tea", "water")
