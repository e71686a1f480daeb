"""What a comparison is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ldpaudit.comparison import LETTERS
from ldpaudit.errors import InputError

Model = Literal["logistic", "boosting", "network"]


@dataclass(frozen=True)
class CompareRequest:
    """The options of ``ldpaudit compare``.

    Attributes
    ----------
    inputs : tuple of str
        Released files, or results of ``ldpaudit run`` (``.json``); the first is what the others are
        held against.
    truth, truth_column, id_column, label, drop, features
        The columns' roles, the same for all releases.
    synthetic : tuple of str
        The synthetic rows of the releases by double randomized response, in their order; a single
        one is that of all.
    test : str or None
        Rows outside of all releases, with true labels.
    model : {"logistic", "boosting", "network"}
        What is trained on each release.
    slices : tuple of str
        Columns by whose values the strongest attack is scored; the groups are those of the first
        release, so that each holds the same people in all.
    public, public_posterior, canaries : str or None
        Public rows, the public model's probabilities and those of drawn labels, as
        :func:`ldpaudit.audit` takes them; the same for all releases.
    force : bool
        Whether releases are compared although their data differ.
    """

    inputs: tuple[str, ...]
    label: str | None = None
    truth: str | None = None
    truth_column: str | None = None
    original: str | None = None
    synthetic: tuple[str, ...] = ()
    test: str | None = None
    model: Model = "logistic"
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    policy: Path | None = None
    seed: int | None = None
    queries: int | Literal["all"] | None = None
    neighbors: int | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    public: str | None = None
    public_posterior: str | None = None
    canaries: str | None = None
    threads: int | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    budget: float | None = None
    show_class_names: bool = False
    force: bool = False
    command: str = "ldpaudit compare …"

    def check(self) -> None:
        """Refuse options that contradict one another.

        Raises
        ------
        InputError
        """
        if not 2 <= len(self.inputs) <= len(LETTERS):
            raise InputError(
                f"A comparison needs 2 to {len(LETTERS)} releases or results. "
                f"Got {len(self.inputs)}."
            )
        for name, value in (("seed", self.seed), ("budget", self.budget)):
            if value is not None and not value >= 0:
                raise InputError(f"The {name!r} must not be negative. Got {value} instead.")
        for name, count in (("threads", self.threads), ("neighbors", self.neighbors)):
            if count is not None and count < 1:
                raise InputError(f"The {name!r} must be at least 1. Got {count} instead.")
        if isinstance(self.queries, int) and self.queries < 1:
            raise InputError("The 'queries' must be at least 1, or 'all'.")
        stored = [name for name in self.inputs if is_result(name)]
        if stored and self.policy is not None:
            raise InputError(
                "--policy judges releases that are audited here; a stored result was judged when "
                f"it was made, and {len(stored)} of the inputs are results."
            )
        self._check_use(len(self.inputs) - len(stored))

    def _check_use(self, releases: int) -> None:
        if releases:
            return
        if self.test is not None:
            raise InputError(
                "--test trains a model on each release, and none is given: all inputs are results."
            )
        audited = {
            "--slice": self.slices,
            "--public": self.public,
            "--public-posterior": self.public_posterior,
            "--canaries": self.canaries,
        }
        for name, value in audited.items():
            if value:
                raise InputError(
                    f"{name} goes into the audit of a release, and none is given: all inputs are "
                    "results."
                )

    def paths(self) -> tuple[str | Path, ...]:
        """Return every file that is read, so that none of them is written to."""
        own = (self.truth, self.original, self.test, self.policy, *self.synthetic)
        audited = (self.public, self.public_posterior, self.canaries)
        return (*self.inputs, *(path for path in (*own, *audited) if path is not None))


def is_result(name: str) -> bool:
    """Return whether an input is a stored result rather than a release."""
    return name.lower().endswith(".json")


def queries_of(text: str | None) -> int | Literal["all"] | None:
    """Return how many rows look for neighbours, from the text of the option.

    Raises
    ------
    InputError
        If it is neither a number nor "all".
    """
    if text is None:
        return None
    if text == "all":
        return "all"
    if not text.isdecimal():
        raise InputError("--queries must be a number or 'all'.")
    return int(text)
