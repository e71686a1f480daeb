"""The options of ``ldpaudit compare``."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard

from ldpaudit.device import need_torch
from ldpaudit.doors import Argument, AuditOptions, Option, refuse
from ldpaudit.extras.learn.utility import ModelKind
from ldpaudit.options import ClaimOptions
from ldpaudit.options.tables import Table


@dataclass(frozen=True, kw_only=True)
class CompareRequest(AuditOptions):
    """The options of ``ldpaudit compare``: those of an audit, the same for all releases.

    Attributes
    ----------
    inputs : tuple of paths or tables
        Released files, or results of ``ldpaudit run`` (``.json``); the others are compared with the
        first.
    mechanism
        The claim of each release that declares none.
    synthetic : path, table or a sequence of them, optional
        The synthetic rows of the releases by double randomized response, in their order; a single
        table is used for all.
    test : str or None
        Rows outside of all releases, with true labels.
    model : {"logistic", "boosting", "network"}
        What is trained on each release.
    slices : tuple of str
        Columns by whose values the strongest attack is scored; each group holds the same people in
        all releases.
    force : bool
        Whether releases are compared although their data differ.
    answers : None
        No option here: releases are compared one with the other.
    """

    inputs: Annotated[
        tuple[Table, ...],
        Argument(
            "Two or more released files, or results of run (.json).",
            file=True,
            type=tuple[str, ...],
        ),
    ]
    synthetic: Annotated[
        Table | Sequence[Table] | None,
        Option(
            "The synthetic rows of double-rr, or one for each.",
            type=tuple[str, ...],
            file=True,
        ),
    ] = None
    test: Annotated[
        str | None,
        Option("Rows of no release, with true labels, to score on.", file=True),
    ] = None
    model: Annotated[
        ModelKind,
        Option("What is trained on each release for --test.", shown=True),
    ] = "logistic"
    force: Annotated[bool, Option("Compare although the data differ; nothing is paired then.")] = (
        False
    )
    answers: None = None
    command: str = "ldpaudit compare …"

    def check(self) -> None:
        """Refuse options that contradict one another (InputError)."""
        from ldpaudit.extras.compare.comparison import LETTERS

        refuse(
            not 2 <= len(self.inputs) <= len(LETTERS),
            f"A comparison needs 2 to {len(LETTERS)} releases or results. Got {len(self.inputs)}.",
        )
        super().check()
        given = self.truth if isinstance(self.truth, tuple) else ()
        refuse(
            len(given) > 1 and all(isinstance(one, str) for one in given),
            "Releases of the same people are compared, with one file of true labels: give --truth "
            "once, and --id where the rows stand in another order.",
        )
        if self.model == "network":
            need_torch("The model 'network'")
        stored = [name for name in self.inputs if is_result(name)]
        refuse(
            stored and self.policy is not None,
            "--policy judges releases that are audited here; a stored result was judged when "
            f"it was made, and {len(stored)} of the inputs are results.",
        )
        self._check_use(len(self.inputs) - len(stored))

    @property
    def synthetic_tables(self) -> tuple[Table, ...]:
        """The synthetic rows of the releases, one for all or one for each."""
        if self.synthetic is None:
            return ()
        if isinstance(self.synthetic, list | tuple):
            return tuple(self.synthetic)
        single: Any = self.synthetic
        return (single,)

    def _check_use(self, releases: int) -> None:
        if releases:
            return
        refuse(
            self.test is not None,
            "--test trains a model on each release, and none is given: all inputs are results.",
        )
        audited = {
            "--slice": self.slices,
            "--public": self.public,
            "--public-posterior": self.public_posterior,
            "--canaries": self.canaries,
            "--held-out": self.held_out,
            "--mechanism": self.mechanism is not None and self.mechanism != ClaimOptions(),
        }
        for name, value in audited.items():
            refuse(
                value,
                f"{name} goes into the audit of a release, and none is given: all inputs are "
                "results.",
            )


def is_result(name: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether an input is a stored result rather than a release."""
    return isinstance(name, str | os.PathLike) and str(name).lower().endswith(".json")
