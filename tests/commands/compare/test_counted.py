"""The strongest attack is chosen by what was counted."""

import numpy as np
import pytest

from ldpaudit.audits.held_out_guesses import NOT_ASKED, HeldOutGuesses
from ldpaudit.commands.compare.differences.pairing import as_counted
from ldpaudit.commands.compare.differences.pairwise import _best_of, accuracy_folds


def test_attacks_are_scored_on_the_rows_that_they_were_asked_about() -> None:
    outcomes = {
        "bayes": np.array([1, 1, 0, NOT_ASKED], np.int8),
        "features-only": np.array([0, 1, 1, 0], np.int8),
    }
    guesses = HeldOutGuesses(outcomes)
    assert as_counted(guesses, "bayes", beyond=False) == pytest.approx(2 / 3)
    assert as_counted(guesses, "bayes", beyond=True) == 0


def test_the_strongest_attack_is_not_chosen_by_hidden_scores() -> None:
    """Both scores are shown as 1; the first attack is right for 90 %, the second for 99 %."""
    n, halves = 200, (np.arange(200) % 2).astype(np.int8)
    right = {"weak": np.arange(n) >= 20, "strong": np.arange(n) >= 2}
    guesses = HeldOutGuesses({name: one.astype(np.int8) for name, one in right.items()}, {}, halves)
    other = HeldOutGuesses({"weak": np.zeros(n, np.int8)}, {}, halves)
    shown = {"weak": 1.0, "strong": 1.0}
    found = _best_of(accuracy_folds, other, guesses, {"weak": 0.0}, shown, 0.05)
    assert found.value == pytest.approx(0.99)
