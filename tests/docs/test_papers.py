"""The page that the site's search finds the papers' names on: each is there, and where it leads."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "papers" / "README.md"
NAMES = (
    *("RRWithPrior", "RRTop-k", "LabelRandomizer", "URR", "dbRR", "ALIBI", "PATE", "LP-MST"),
    *("RR-on-Bins", "IWP-SGD", "M^Lap", "static features", "label inference accuracy"),
    *("noisy label loss", "feature-oblivious", "Mechanism 1", "Mechanism 2", "Mechanism 3"),
    *("theorem 5.2", "theorems 6.4, 6.6", "theorems 7.1, 7.2", "theorem 4.2", "lemma G.1"),
    *("lemma 8", "lemma D.2", "theorem 5.3", "definition 4.2", "definition 4.4", "algorithm 1"),
    *("figure 2", "figures 3 and 4", "figure 5", "figures 1 to 7", "tables 1 and 2"),
)


@pytest.mark.parametrize("name", NAMES)
def test_each_name_of_the_papers_is_in_a_row_with_what_it_is_here(name: str) -> None:
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    rows = [line for line in lines if line.startswith("|") and name.lower() in line.lower()]
    assert rows
    assert all(len(re.split(r"(?<!\\)\|", row)) >= 4 for row in rows)
