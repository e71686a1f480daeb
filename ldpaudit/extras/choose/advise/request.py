"""The options of ``ldpaudit advise``."""

from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ldpaudit.doors import Argument, Option, refuse
from ldpaudit.errors import quoted
from ldpaudit.extras.choose.sweep.request import Grid, Point, SweepRequest
from ldpaudit.extras.release.privatize.request import ColumnRequest, Missing
from ldpaudit.options import FileOptions, LabelOptions, check_distinct, parse_label

if TYPE_CHECKING:
    from ldpaudit.judging.policy import Policy

# What the release is wanted for.
Use = Literal["classification", "regression", "counts"]


@dataclass(frozen=True, kw_only=True)
class Simulated(SweepRequest):
    """The simulations of one private column; a prior that nobody gave costs a part of ε."""

    def privatized(self, point: Point, seed: int) -> ColumnRequest:
        """Return what ``ldpaudit privatize`` would be asked for at a point, as a simulation."""
        asked = super().privatized(point, seed)
        return replace(asked, private_prior="auto") if self.buys_prior(point.mechanism) else asked

    def buys_prior(self, mechanism: str) -> bool:
        """Return whether a mechanism's prior is counted from the data, with noise."""
        from ldpaudit.mechanisms import traits_of

        return self.prior is None and "prior" in traits_of(mechanism).needs


@dataclass(frozen=True)
class AdviseRequest(FileOptions):
    """The options of ``ldpaudit advise``.

    Attributes
    ----------
    data : str
        The table with the true labels; with ``truth`` a release.
    label : tuple of str
        The private columns; empty: the one that the release declares, else ``"label"``.
    policy : Policy, path or None
        None: ``ldpaudit:default``.
    wanted : {"classification", "regression", "counts"} or None
        None: regression where ``labels`` states a range, else classification.
    public : str or None
        A public table, from which the synthetic rows of double randomized response are learnt.
    minutes : float
        After which no further simulation is started.
    apart : bool
        Whether the true labels and the features turned out to be in two files, row by row.
    """

    data: Annotated[
        str, Argument("The table with the true labels; or a release, with --truth.", file=True)
    ]
    _: KW_ONLY
    label: Annotated[
        tuple[str, ...],
        Option("A private column, COL or COL:labels=LO:HI:STEP (repeatable; default: label)."),
    ] = ()
    policy: Annotated[
        "Policy | str | Path | None",
        Option("What a release may leak: a TOML file, or ldpaudit:strict.", type=Path, file=True),
    ] = None
    wanted: Annotated[
        Use | None,
        Option("What the release is for (default: classification; numbers: regression).", "--for"),
    ] = None
    labels: Annotated[
        str | None, Option("Labels are numbers of this range, LO:HI:STEP; declared, never read.")
    ] = None
    prior: Annotated[Path | None, Option("A public prior: CSV label,probability.", file=True)] = (
        None
    )
    missing: Missing = "refuse"
    test: Annotated[
        str | None, Option("Rows with true labels to measure on (default: a fifth).", file=True)
    ] = None
    public: Annotated[
        str | None,
        Option(
            "A public labelled table: double-rr is tried, too, with synthetic rows like it.",
            file=True,
        ),
    ] = None
    drop: Annotated[tuple[str, ...], Option("A column that is not released (repeatable).")] = ()
    keep: Annotated[
        tuple[str, ...],
        Option("A column to release although it reveals labels or identifies people (repeatable)."),
    ] = ()
    truth: Annotated[
        str | None, Option("DATA is a release, and this file holds its true labels.", file=True)
    ] = None
    minutes: Annotated[float, Option("Minutes at most; simulations take what is left.")] = 5.0
    seed: Annotated[int | None, Option("The seed (default: 0).")] = None
    threads: Annotated[int | None, Option("Processors to use (default: 1).")] = None
    apart: bool = False

    @property
    def table(self) -> str:
        """The table with the true labels; of two files the one with the features."""
        return self.data if self.truth is None or self.apart else self.truth

    def columns(self) -> "tuple[AdviseRequest, ...]":
        """Return a request for each private column, with what is stated of it."""
        # InputError if a column is named twice, or more is stated of it than its labels.
        stated = [parse_label(text) for text in self.label]
        check_distinct(one.label for one in stated)
        refuse(
            self.labels is not None and len(stated) > 1,
            "Each of several private columns needs its range: --label NAME:labels=LO:HI:STEP.",
        )
        return tuple(self._column(one) for one in stated)

    def _column(self, stated: LabelOptions) -> "AdviseRequest":
        beyond = stated.stated().keys() - {"labels", "prior"}
        refuse(
            beyond,
            f"The column {quoted(stated.label)}: advise chooses the mechanism and its noise; "
            "give no more than labels=LO:HI:STEP and prior=FILE.",
        )
        labels, prior = stated.labels or self.labels, stated.prior or self.prior
        use = self.wanted
        if use == "regression" and labels is None and len(self.label) > 1:
            use = "classification"
        return replace(self, label=(stated.label,), labels=labels, prior=prior, wanted=use)

    @property
    def numeric(self) -> bool:
        """Whether labels are taken as numbers."""
        return self.labels is not None and self.use != "classification"

    @property
    def use(self) -> Use:
        """What the release is for."""
        return self.wanted or ("classification" if self.labels is None else "regression")

    def check(self) -> None:
        """Refuse what the options alone show to be wrong (InputError)."""
        refuse(
            not 0 < self.minutes < 24 * 60,
            f"--minutes must lie above 0 and below a day. Got {self.minutes:g}.",
        )
        refuse(
            self.wanted == "regression"
            and self.labels is None
            and all("labels=" not in text for text in self.label),
            "--for regression must come with --labels LO:HI:STEP, the range of the numbers: "
            "it is declared, never read from the data.",
        )

    def simulated(self, label: str, mechanism: str, drop: tuple[str, ...]) -> Simulated:
        """Return the simulations of one column; ``mechanism`` states how its labels are coded."""
        return Simulated(
            data=self.table,
            label=label,
            labels=self.labels if self.numeric else None,
            mechanisms=(mechanism,),
            grid=Grid("epsilon", (1.0,)),
            drop=drop,
            keep=self.keep,
            prior=self.prior,
            missing=self.missing,
            test=self.test,
            seed=self.seed,
            threads=self.threads,
            policy=self.policy,
            generator=None if self.public is None else "mixture",
            generator_data=self.public,
            **vars(self.files),
        )
