"""Counts of guesses: the datum from which a black-box audit bounds ε."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GuessCounts:
    """What came of guessing the inputs of fresh candidates.

    Attributes
    ----------
    candidates : int
        N, each with one of two inputs by a fair coin.
    right, wrong : int
        Guesses that were right and wrong; the rest are abstentions.
    sides : int
        1 where only one of the two inputs is ever guessed, else 2.
    """

    candidates: int
    right: int
    wrong: int
    sides: int = 2

    @property
    def guesses(self) -> int:
        """How many guesses were made."""
        return self.right + self.wrong
