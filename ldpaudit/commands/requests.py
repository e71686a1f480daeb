"""The options of the commands that have few of their own, one request for each."""

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from ldpaudit.commands.utility import LearnerKind, ModelKind
from ldpaudit.device import DeviceName, need_torch
from ldpaudit.errors import InputError, refuse
from ldpaudit.options import (
    Argument,
    AuditOptions,
    ClaimOptions,
    FileOptions,
    Option,
    ReleaseOptions,
)
from ldpaudit.work.documents import parse_json
from ldpaudit.work.limits import EPSILON, INPUTS, SAMPLES, SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldpaudit.release import Label


def split_text(classes: str) -> "tuple[Label, ...]":
    """Return the labels of ``A,B,…``."""
    from ldpaudit.datasets.probabilities import split_labels

    return split_labels(classes)


@dataclass(frozen=True, kw_only=True)
class RunRequest(AuditOptions):
    """The options of ``ldpaudit run``: those of an audit, of one released file or several."""

    release: Annotated[
        tuple[str, ...],
        Argument(
            "The released file: Parquet, CSV, Excel …; or several releases of the same people.",
            file=True,
        ),
    ]
    command: str = "ldpaudit run …"


@dataclass(frozen=True, kw_only=True)
class CompareRequest(AuditOptions):
    """The options of ``ldpaudit compare``: those of an audit, the same for all releases.

    Attributes
    ----------
    inputs : tuple of str
        Released files, or results of ``ldpaudit run`` (``.json``); the others are compared with the
        first.
    mechanism
        The claim of each release that declares none.
    synthetic : tuple of str
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
        tuple[str, ...],
        Argument("Two or more released files, or results of run (.json).", file=True),
    ]
    synthetic: Annotated[
        Any,
        Option(
            "The synthetic rows of double-rr, or one for each.",
            type=tuple[str, ...],
            file=True,
        ),
    ] = ()
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
        from ldpaudit.result.comparison import LETTERS

        refuse(
            not 2 <= len(self.inputs) <= len(LETTERS),
            f"A comparison needs 2 to {len(LETTERS)} releases or results. Got {len(self.inputs)}.",
        )
        super().check()
        if self.model == "network":
            need_torch("The model 'network'")
        stored = [name for name in self.inputs if is_result(name)]
        refuse(
            stored and self.policy is not None,
            "--policy judges releases that are audited here; a stored result was judged when "
            f"it was made, and {len(stored)} of the inputs are results.",
        )
        self._check_use(len(self.inputs) - len(stored))

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


def is_result(name: Any) -> bool:
    """Return whether an input is a stored result rather than a release."""
    return isinstance(name, str | os.PathLike) and str(name).lower().endswith(".json")


@dataclass(frozen=True, kw_only=True)
class LearnRequest(FileOptions, ReleaseOptions):
    """The options of ``ldpaudit learn``."""

    # ``release``, ``test``: the released file, and rows outside of it with true labels.
    # ``learner``: what is trained; of numbers, "logistic" stands for ridge regression. ``loss``:
    # the loss where the learner offers several; None: its usual one. ``confidence``: of the score's
    # interval.

    release: Annotated[str, Argument("The released file: Parquet, CSV, Excel …", file=True)]
    test: Annotated[
        str, Option("Rows outside of the release with true labels, to score on.", file=True)
    ]
    learner: Annotated[
        LearnerKind, Option("What is trained, corrected for the declared mechanism.")
    ] = "logistic"
    loss: Annotated[
        Literal["squared", "poisson", "quadratic", "exponential", "log"] | None,
        Option("Of numbers squared or poisson; of iwp quadratic, exponential or log."),
    ] = None
    confidence: Annotated[float, Option("The confidence of the score's interval.")] = 0.95
    device: Annotated[DeviceName, Option("Where a network is trained.")] = "auto"

    def check(self) -> None:
        """Refuse values out of range (InputError)."""
        refuse(
            not 0.5 < self.confidence < 1,
            f"The 'confidence' must lie between 0.5 and 1. Got {self.confidence:g} instead.",
        )
        refuse(isinstance(self.rng, int) and self.rng < 0, "The seed must not be negative.")
        if self.learner == "network":
            need_torch("The learner 'network'")


@dataclass(frozen=True, kw_only=True)
class DeclareRequest(FileOptions):
    """The options of ``ldpaudit declare``; without a claim the present declaration is shown."""

    # The file may be a folder or a pattern of Parquet files. ``label``: each alone or with its
    # claim; none: as declared, as a table of channels names them, or ``label``. ``claim`` is about
    # each column that has none of its own. Without ``output`` the declaration goes into the file,
    # or into one of its own next to it.

    file: Annotated[str, Argument("The released file: Parquet, CSV, Excel …", file=True)]
    label: Annotated[
        tuple[str, ...],
        Option(
            "A released private column, alone or with its claim, NAME:rr:epsilon=1 (repeatable; "
            "default: as declared, or 'label').",
            lines=True,
        ),
    ] = ()
    claim: Annotated[ClaimOptions, ClaimOptions] = ClaimOptions()  # noqa: RUF009 - frozen
    by: Annotated[
        str | None,
        Option("A public column: --channel has a channel for each of its values."),
    ] = None
    before: Annotated[
        tuple[str, ...],
        Option(
            "A column that was there before the noise and is released as it was (repeatable; "
            "'*': all but the private ones).",
            lines=True,
        ),
    ] = ()
    joint: Annotated[
        str | None,
        Option("The mechanism that released all columns together (joint-rr, rs-fd)."),
    ] = None
    classes: Annotated[
        "tuple[Label, ...] | None",
        Option("The labels A,B,… (default: those in the file).", type=str, read=split_text),
    ] = None
    output: Annotated[
        Path | None, Option("Write a copy with the declaration here.", short="-o")
    ] = None
    overwrite: Annotated[bool, Option("Replace another declaration, or the file at -o.")] = False


@dataclass(frozen=True, kw_only=True)
class SelftestRequest:
    """The options of ``ldpaudit selftest``."""

    # ``minutes``: after so many no further release is begun; None: 10, and no limit with
    # ``thorough``. ``thorough``: 1,000 honest and 300 leaking releases instead of 30 and 21.
    # ``seed``: of all releases and audits. ``threads``: releases that are audited at the same time;
    # None: as many as there are processors. ``resume``: a folder for finished releases.

    minutes: Annotated[
        float | None,
        Option("Begin no release after so many minutes (default: 10; thorough: no limit)."),
    ] = None
    thorough: Annotated[
        bool, Option("1,000 honest and 300 leaking releases of up to 50,000 rows: about an hour.")
    ] = False
    seed: Annotated[int, Option("The seed of all releases and audits.")] = 20260101
    threads: Annotated[
        int | None, Option("Releases audited at the same time (default: all processors).")
    ] = None
    resume: Annotated[
        Path | None, Option("Keep finished releases in this folder, and go on from there.")
    ] = None

    def check(self) -> None:
        """Refuse values out of range (InputError)."""
        if self.minutes is not None and not self.minutes > 0:
            raise InputError(f"The 'minutes' must be more than 0. Got {self.minutes:g} instead.")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"The 'threads' must be at least 1. Got {self.threads} instead.")
        refuse(self.seed < 0, "The seed must not be negative.")


FEWEST_SAMPLES: Final = 200


def parse_inputs(text: str) -> tuple[Any, ...]:
    """Read the inputs of the command line: ``A,B,…`` or a JSON list (InputError where it is none).

    A part that is a JSON number, true or false is one; anything else is text.
    """
    if text.lstrip().startswith("["):
        invalid = "Inputs that begin with [ must be a JSON list."
        return tuple(parse_json(text, "The inputs", invalid))
    return tuple(_value(part.strip()) for part in text.split(","))


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float) else text


@dataclass(frozen=True)
class Claim:
    """What is claimed of the randomizer."""

    epsilon: Annotated[float | None, Option("The claimed ε, in nats.")] = None
    delta: Annotated[float, Option("The δ of (ε, δ)-DP.")] = 0.0


@dataclass(frozen=True)
class BlackBoxRequest:
    """The options of ``ldpaudit mechanism audit``."""

    # A tenth to a half of the samples, and as many of every other input, serve to choose the event.
    # ``claim``: ε is None where nothing is claimed; δ is that of the (ε, δ)-DP that is claimed, or
    # under which ε is bounded. The value of ``features`` for an output must not depend on the other
    # outputs. ``path``: where modules are searched first.

    function: Annotated[
        str,
        Argument(
            "The randomizer, FUNCTION(value, n, rng) -> n outputs; or FILE.py:FUNCTION.",
            metavar="MODULE:FUNCTION",
        ),
    ]
    inputs: Annotated[
        tuple[Any, ...],
        Option(
            "The values to compare: A,B,… (0 is a number) or a JSON list.",
            type=str,
            read=parse_inputs,
        ),
    ]
    samples: Annotated[int, Option("Outputs to draw of each input of the tested pair.")] = 100_000
    claim: Claim = field(default_factory=Claim)
    features: Annotated[
        str,
        Option("MODULE:FUNCTION(outputs, value) -> what is public of them.", "--feature-function"),
    ] = ""
    confidence: Annotated[float, Option("One-sided, of the certified bound.")] = 0.95
    max_excess: Annotated[
        float,
        Option("An audit that could miss more is inconclusive.", "--max-undetected-excess"),
    ] = 0.5
    stop_early: Annotated[
        bool, Option("Test in growing parts, and stop as soon as the claim is refuted.")
    ] = False
    timeout: Annotated[float, Option("Seconds that one call of the function may take.")] = 60.0
    processes: Annotated[
        int | None, Option("Processes to draw in (default: one per processor).", "--threads")
    ] = None
    seed: Annotated[int, Option("The seed of all generators.")] = 0
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, claimed, delta = len(self.inputs), self.claim.epsilon, self.claim.delta
        twice = any(a == b for i, a in enumerate(self.inputs[:INPUTS]) for b in self.inputs[:i])
        finite = claimed is None or (claimed >= 0 and math.isfinite(claimed))
        processes = 1 if self.processes is None else self.processes
        positive = self.timeout > 0 and self.max_excess > 0 and processes > 0
        for wrong, message in (
            (n < 2, f"There must be at least two inputs. Got {n} instead."),
            (n > INPUTS, f"There must be at most {INPUTS:,} inputs. Got {n:,}."),
            (twice, "The inputs must differ from one another; some are given twice."),
            (
                self.samples < FEWEST_SAMPLES,
                f"There must be at least {FEWEST_SAMPLES} samples. Got {self.samples} instead.",
            ),
            (
                self.samples > SAMPLES or not self.timeout <= SECONDS,
                f"There must be at most {SAMPLES:,} samples, and {SECONDS:,} seconds for a call.",
            ),
            (
                not 0 < self.confidence < 1,
                f"The confidence must lie in (0, 1). Got {self.confidence:g} instead.",
            ),
            (not 0 <= delta < 1, f"δ must lie in [0, 1). Got {delta:g} instead."),
            (not finite, f"The claimed ε must be finite and at least 0. Got {claimed or 0:g}."),
            (
                (claimed or 0) > EPSILON[1],
                f"The claimed ε must be at most {EPSILON[1]:g}. Got {claimed or 0:g}.",
            ),
            (not positive, "The time limit, the excess and the processes must be above 0."),
            (
                self.stop_early and (claimed is None or delta > 0),
                "To stop early there must be a claim of pure ε (--epsilon, no --delta).",
            ),
        ):
            refuse(wrong, message)


Prior = Annotated[
    Path | None, Option("The labels' prior: a CSV file label,probability.", file=True)
]


@dataclass(frozen=True, kw_only=True)
class DomainOptions(FileOptions):
    """The labels that a mechanism is analysed for, their prior and the loss."""

    classes: Annotated[
        "str | Sequence[Label] | None", Option("The true labels: A,B,…", type=str)
    ] = None
    labels: Annotated[str | None, Option("Numeric labels on a range: LO:HI or LO:HI:STEP.")] = None
    prior: Prior = None
    loss: Annotated[
        Literal["squared", "absolute", "poisson"],
        Option("What a mechanism made for a prior minimises."),
    ] = "squared"


@dataclass(frozen=True, kw_only=True)
class DescribeRequest(DomainOptions):
    """The options of ``ldpaudit mechanism describe``."""

    name: Annotated[str, Argument("The mechanism, for instance randomized-response.")]
    epsilon: Annotated[float | None, Option("ε, in nats.")] = None
    noise: Annotated[
        float | None, Option("λ: the chance that a label is drawn again from all.", "--lambda")
    ] = None
    more: Annotated[
        tuple[str, ...],
        Option("A further parameter as KEY=VALUE, such as clipped=true (repeatable).", "--set"),
    ] = ()
    domain: Annotated[
        tuple[Any, ...],
        Option(
            "The labels of one column, A,B,… (repeatable), of joint-rr and rs-fd.",
            type=tuple[str, ...],
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class ChannelRequest(FileOptions):
    """The options of ``ldpaudit mechanism channel``."""

    file: Annotated[
        Path, Argument("A channel as CSV: rows labels, columns outputs, with names.", file=True)
    ]
    prior: Prior = None


@dataclass(frozen=True, kw_only=True)
class DesignRequest(FileOptions):
    """The options of ``ldpaudit mechanism design``."""

    labels: Annotated[
        str | None, Option("The labels: LO:HI or LO:HI:STEP (not needed with --invariant).")
    ] = None
    epsilon: Annotated[float, Option("The total ε, in nats.")]
    invariant: Annotated[
        bool,
        Option("Keep the prior's shares among released labels, and most labels (invariant PRAM)."),
    ] = False
    prior: Prior = None
    loss: Annotated[
        Literal["squared", "absolute", "poisson"], Option("What is minimised in expectation.")
    ] = "squared"
    private_epsilon: Annotated[
        float | None,
        Option("ε₁ to spend on a prior estimated from --data.", "--private-prior"),
    ] = None
    data: Annotated[
        Path | None, Option("The file that a private prior is estimated from.", file=True)
    ] = None
    column: Annotated[str | None, Option("The column of true labels in --data.", "--label")] = None


@dataclass(frozen=True, kw_only=True)
class ComposeRequest(DomainOptions):
    """The options of ``ldpaudit mechanism compose``."""

    releases: Annotated[
        tuple[str, ...],
        Argument(
            "Release files with a declaration, or NAME:KEY=VALUE,… such as "
            "randomized-response:epsilon=1,times=3.",
            file=True,
        ),
    ]
