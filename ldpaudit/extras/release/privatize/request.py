"""The options of ``ldpaudit privatize``, and those that ``sweep`` shares."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ldpaudit.commands.requests import split_text
from ldpaudit.device import DeviceName
from ldpaudit.doors import Argument, InputError, Option
from ldpaudit.options import FileOptions, LabelOptions
from ldpaudit.options.tables import Table

if TYPE_CHECKING:
    from ldpaudit.mechanisms.keyed import NoiseKey, Purpose, Stream
    from ldpaudit.release import Label


def _full_name(name: str) -> str:
    from ldpaudit.mechanisms import full_name

    return full_name(name)


def _amount(text: str) -> "float | Literal['auto']":
    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise InputError("--private-prior must be given a number, or auto.") from None


Missing = Annotated[
    Literal["refuse", "drop", "class"],
    Option("Rows without a label: refuse, drop them, or make them a class 'missing'."),
]


@dataclass(frozen=True)
class DataOptions:
    """The true data, and what mechanisms take besides: shared by ``privatize`` and ``sweep``."""

    data: Annotated[
        Table,
        Argument("The table with the true labels: Parquet, CSV, Excel …", file=True, type=str),
    ]
    _: KW_ONLY
    label: Annotated["str | Sequence[str | LabelOptions]", Option("The true label's column.")] = (
        "label"
    )
    labels: Annotated[str | None, Option("The range of numeric labels, LO:HI or LO:HI:STEP.")] = (
        None
    )
    prior: Annotated[Path | None, Option("A public prior: CSV label,probability.", file=True)] = (
        None
    )
    missing: Missing = "refuse"
    drop: Annotated[tuple[str, ...], Option("A column that is not released (repeatable).")] = ()
    keep: Annotated[
        tuple[str, ...],
        Option("A column to release although it reveals labels or identifies people (repeatable)."),
    ] = ()
    synthetic: Annotated[str | None, Option("Synthetic rows with a label column.", file=True)] = (
        None
    )
    generator: Annotated[str | None, Option("Draws such rows: gan, mixture or a plug-in.")] = None
    generator_data: Annotated[
        str | None,
        Option("A public labelled table to train it on (default: the private rows).", file=True),
    ] = None


@dataclass(frozen=True)
class PrivatizeRequest(FileOptions, DataOptions):
    """The options of ``ldpaudit privatize``.

    Attributes
    ----------
    label : str or tuple
        The private column, or several: each as :func:`parse_label` reads it.
    mechanism : str or None
        A name of the contract, for columns that state none.
    plan : path, mapping or None
        What to do with each private column, instead of ``label``: a TOML file, or what it holds.
    joint : str or None
        The mechanism that releases all private columns together.
    epsilon, noise : float or None
        ε in nats (with ``private_prior`` of the whole release, with ``joint`` of its columns
        together, else of each column that states none), or λ.
    unperturbed : tuple or None
        Labels that are released as they are; the mechanism draws among the others.
    private_prior : float, "auto" or None
        ε₁ in nats, spent on a private histogram of the labels; "auto" is √(k/n).
    round : {"unbiased", "nearest"} or None
        How numbers between the mechanism's labels become labels; None: there are none.
    floor : float or None
        f, the least P̂(y | x).
    stages : int or None
        In how many stages rows are released; the model of each is learnt from those before.
    posterior_out : Path or None
        Where P̂(y | x) of the public model is written, row by row, for an audit.
    synthetic_out : Path or None
        Where a sample of the generator is written, to be handed out with the release.
    secret : Path or None
        Where the true labels are kept.
    remember : Path or None
        Where people's answers are remembered, for the next release.
    id_column : str or None
        Who a row is about: for ``remember``, and kept beside the true labels in ``secret``.
    missing : {"refuse", "drop", "class"}
        What becomes of rows without a label.
    seed : int or None
        Only with ``experimental``.
    memory : int, str or None
        The most bytes that reading may take; None: half of the machine's.
    """

    output: Annotated[
        Path,
        Option("The release to write: .parquet, .csv, .feather, .jsonl, .orc, .sav …", short="-o"),
    ]
    mechanism: Annotated[
        str | None,
        Option("The mechanism's name, for instance randomized-response.", read=_full_name),
    ] = None
    label: Annotated[
        "str | Sequence[str | LabelOptions]",
        Option(
            "A private column: COL or COL:MECHANISM:epsilon=1:… (repeatable; default: label).",
            type=tuple[str, ...],
            lines=True,
        ),
    ] = field(default="label", kw_only=True)
    plan: Annotated[
        "Path | Mapping[str, Any] | None",
        Option("A TOML file that lists the private columns instead.", type=Path, file=True),
    ] = None
    joint: Annotated[
        str | None,
        Option("One mechanism for all private columns together: joint-rr or rs-fd."),
    ] = None
    epsilon: Annotated[
        float | None,
        Option("ε in nats of each column; with --private-prior or --joint the total."),
    ] = None
    noise: Annotated[
        float | None,
        Option("λ: the chance that a label is drawn again, instead of --epsilon.", "--lambda"),
    ] = None
    classes: Annotated[
        "tuple[Label, ...] | None",
        Option("The labels A,B,… (default: read from the data).", type=str, read=split_text),
    ] = None
    unperturbed: Annotated[
        "tuple[Label, ...] | None",
        Option(
            "Labels A,B,… that stay as they are, such as 'not applicable'; their ε is infinite.",
            type=str,
            read=split_text,
        ),
    ] = None
    private_prior: Annotated[
        float | Literal["auto"] | None,
        Option(
            "ε₁ of --epsilon to spend on a private prior; auto: √(labels/rows).",
            type=str,
            read=_amount,
        ),
    ] = None
    loss: Annotated[
        Literal["squared", "absolute", "poisson"] | None,
        Option("What a design minimises (default: squared)."),
    ] = None
    round: Annotated[
        Literal["unbiased", "nearest"] | None,
        Option("Round numbers between the mechanism's labels to one of them, without bias or not."),
    ] = None
    clipped: Annotated[bool, Option("Clip noisy labels to their declared range.", "--clip")] = False
    channel: Annotated[
        Path | None, Option("A channel as CSV: rows labels, columns outputs.", file=True)
    ] = None
    public: Annotated[
        str | None, Option("A public labelled table to fit model-based-rr on.", file=True)
    ] = None
    posterior_out: Annotated[
        Path | None,
        Option("Write the public model's P̂(label | features), for run --public-posterior."),
    ] = None
    stages: Annotated[
        int | None,
        Option("Release in so many stages, each with a model of the labels of those before."),
    ] = None
    floor: Annotated[float | None, Option("The model's least probability (default: 1/(10 k)).")] = (
        None
    )
    device: Annotated[DeviceName, Option("Where the generator is trained.")] = "auto"
    synthetic_out: Annotated[
        Path | None,
        Option("Write a sample of the generator, for compare --synthetic (.parquet, .csv …)."),
    ] = None
    synthetic_rows: Annotated[int | None, Option("Its rows (default: as many as the release).")] = (
        None
    )
    radius: Annotated[float | None, Option("R, the largest norm of a feature vector.")] = None
    sigma: Annotated[float | None, Option("The noise's standard deviation.")] = None
    feature_epsilon: Annotated[float | None, Option("ε of the features, instead of --sigma.")] = (
        None
    )
    delta: Annotated[float | None, Option("δ of the features.")] = None
    project: Annotated[bool, Option("Shorten longer feature vectors to R.")] = False
    secret: Annotated[
        Path | None, Option("Keep the true labels aside in this file, mode 0600.")
    ] = None
    remember: Annotated[
        Path | None,
        Option("Repeat the answers that this file remembers, and remember new ones; with --id."),
    ] = None
    id_column: Annotated[
        str | None,
        Option("The column that identifies people: kept in --secret, for --remember.", "--id"),
    ] = None
    overwrite: Annotated[bool, Option("Replace files that exist.")] = False
    experimental: Annotated[
        bool, Option("Draw from a NumPy generator: not private, and declared so.")
    ] = False
    seed: Annotated[int | None, Option("The seed of an experimental release.")] = None
    memory: Annotated[
        int | str | None, Option("The most memory to use, such as 4GiB (default: half).", type=str)
    ] = None


@dataclass(frozen=True)
class ColumnRequest(PrivatizeRequest):
    """The options of one private column: all that is asked for, with what is stated of it."""

    mechanism: str = field(kw_only=True)
    label: str = field(kw_only=True)
    key: "NoiseKey | None" = field(default=None, repr=False, kw_only=True)
    """What the noise is drawn from; None: of an experiment, or before anything is drawn."""
    one_of: int = field(default=1, kw_only=True)
    """How many private columns there are."""
    by: str | None = field(default=None, kw_only=True)
    """The public column whose values have channels of their own."""
    strata: "Mapping[str, ColumnRequest]" = field(default_factory=dict, kw_only=True)
    """From these values, as text, to the options of their channels."""

    def draws(self, purpose: "Purpose") -> "Stream":
        """Return where the draws for a purpose come from."""
        import numpy as np

        from ldpaudit.doors import child_generator
        from ldpaudit.mechanisms.keyed import ExperimentalStream, NoiseKey

        joint = purpose == "joint release"
        if not self.experimental:
            return (self.key or NoiseKey.drawn()).stream(purpose, "" if joint else self.label)
        if self.seed is None:
            return ExperimentalStream(np.random.default_rng())
        several = self.one_of > 1 and not joint  # Then each column draws for itself.
        stream = ("column", str(self.label)) if several else ()
        part = "release" if joint else purpose
        return ExperimentalStream(child_generator(self.seed, "privatize", *stream, part))
