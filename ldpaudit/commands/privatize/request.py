"""What ``ldpaudit privatize`` was asked for, and which options go with which mechanism."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ldpaudit.commands.privatize.features.generator_options import check_generator
from ldpaudit.device import check_device
from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.options import Argument, Option, option_name

if TYPE_CHECKING:
    import numpy as np

    from ldpaudit.release import Label


def _full_name(name: str) -> str:
    from ldpaudit.mechanisms import full_name

    return full_name(name)


def _split(classes: str) -> "tuple[Label, ...]":
    from ldpaudit.datasets.beside.priors import split_labels

    return split_labels(classes)


@dataclass(frozen=True)
class PrivatizeRequest:
    """The options of ``ldpaudit privatize``.

    Attributes
    ----------
    data : str
        A path or URL.
    mechanism : str
        A name of the contract.
    label : str
        The released label takes its name and place.
    epsilon, noise : float or None
        ε in nats (with ``private_prior`` of the whole release, else of the label), or λ.
    private_prior : float or None
        ε₁ in nats, spent on a private histogram of the labels.
    floor : float or None
        f, the least P̂(y | x).
    synthetic_out : Path or None
        Where a sample of the generator goes, to be handed out with the release.
    secret : Path or None
        Where the true labels are kept aside.
    seed : int or None
        Only with ``experimental``.
    """

    data: Annotated[str, Argument("The table with the true labels: Parquet or CSV.", file=True)]
    output: Annotated[Path, Option("The release to write, a Parquet file.", short="-o")]
    mechanism: Annotated[
        str,
        Option("The mechanism's name, for instance randomized-response.", read=_full_name),
    ]
    label: Annotated[str, Option("The true label's column.")] = "label"
    epsilon: Annotated[float | None, Option("ε in nats, with --private-prior of the whole.")] = None
    noise: Annotated[
        float | None,
        Option("λ: the chance of a label drawn anew, instead of --epsilon.", "--lambda"),
    ] = None
    classes: Annotated[
        "tuple[Label, ...] | None",
        Option("The labels A,B,… (default: read from the data).", type=str, read=_split),
    ] = None
    labels: Annotated[str | None, Option("The range of numeric labels, LO:HI or LO:HI:STEP.")] = (
        None
    )
    prior: Annotated[Path | None, Option("A public prior: CSV label,probability.", file=True)] = (
        None
    )
    private_prior: Annotated[
        float | None, Option("ε₁ of --epsilon to spend on a private prior.")
    ] = None
    loss: Annotated[
        Literal["squared", "absolute", "poisson"] | None,
        Option("What a design minimises (default: squared)."),
    ] = None
    clipped: Annotated[bool, Option("Clip noisy labels to their declared range.", "--clip")] = False
    channel: Annotated[
        Path | None, Option("A channel as CSV: rows labels, columns outputs.", file=True)
    ] = None
    public: Annotated[
        str | None, Option("A public labelled table to fit model-based-rr on.", file=True)
    ] = None
    floor: Annotated[float | None, Option("The model's least probability (default: 1/(10 k)).")] = (
        None
    )
    synthetic: Annotated[str | None, Option("Synthetic rows with a label column.", file=True)] = (
        None
    )
    generator: Annotated[
        Literal["gan", "mixture"] | None, Option("What makes synthetic rows instead.")
    ] = None
    generator_data: Annotated[
        str | None,
        Option("A public labelled table to train it on (default: the private rows).", file=True),
    ] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], Option("Where it is trained.")] = "auto"
    synthetic_out: Annotated[
        Path | None,
        Option("Write a sample of the generator, for compare --synthetic (.parquet or .csv)."),
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
    drop: Annotated[tuple[str, ...], Option("A column that is not released (repeatable).")] = ()
    secret: Annotated[
        Path | None, Option("Keep the true labels aside in this file, mode 0600.")
    ] = None
    overwrite: Annotated[bool, Option("Replace files that exist.")] = False
    experimental: Annotated[
        bool, Option("Draw from a NumPy generator: not private, and declared so.")
    ] = False
    seed: Annotated[int | None, Option("The seed of an experimental release.")] = None

    def randomness(self, part: str) -> "np.random.Generator | None":
        """Return where the draws of a part come from: None stands for the operating system."""
        import numpy as np

        from ldpaudit.randomness import child_generator

        if not self.experimental:
            return None
        if self.seed is None:
            return np.random.default_rng()
        return child_generator(self.seed, "privatize", part)


def check_request(request: PrivatizeRequest) -> None:
    """Check everything that can be told from the options alone.

    Raises
    ------
    InputError
        If the mechanism is not one that can be applied, an option does not belong to it, is
        missing, or is out of range.
    """
    _check_belonging(request)
    _check_amount(request)
    check_generator(request)
    check_device(request.device)
    if request.prior is not None and request.private_prior is not None:
        raise InputError("Give --prior or --private-prior, not both.")
    if request.classes is not None and request.labels is not None:
        raise InputError("Give --classes or --labels, not both.")
    if request.seed is not None and not request.experimental:
        raise InputError(
            "--seed must come with --experimental: whoever knows the seed can undo the mechanism."
        )
    if request.seed is not None and request.seed < 0:
        raise InputError("--seed must not be negative.")
    if request.label in request.drop:
        raise InputError("The label's column must not be dropped.")


def options_of(name: str) -> tuple[str, ...]:
    """Return the fields of :class:`PrivatizeRequest` that a mechanism uses.

    Raises
    ------
    InputError
        If there is no such mechanism, or none that can be applied to a table.
    """
    from ldpaudit.mechanisms.registry import applicable, names, traits_of

    if name not in names():
        choices = applicable()
        raise InputError(
            f"The mechanism {name!r} is not known; choose one of {', '.join(choices)}"
            f"{did_you_mean(name, choices)}"
        )
    options = traits_of(name).options
    if not options:
        raise InputError(
            f"The mechanism {name!r} cannot be applied to a table; choose one of "
            f"{', '.join(applicable())}."
        )
    return options


def _check_belonging(request: PrivatizeRequest) -> None:
    from ldpaudit.mechanisms.registry import families

    own = {option for family in families() for option in family.traits.options}
    foreign = own - set(options_of(request.mechanism))
    for field in fields(request):
        given: Any = getattr(request, field.name)
        if field.name in foreign and given is not None and given is not False:
            raise InputError(
                f"{option_name(request, field.name)} does not belong to the mechanism "
                f"{request.mechanism!r}."
            )


def _check_amount(request: PrivatizeRequest) -> None:
    """Check ε or λ: one of them, in range, and not without any effect."""
    from ldpaudit.mechanisms.parameters import check_epsilon, check_proportion

    takes = options_of(request.mechanism)
    if "epsilon" not in takes:
        return
    if request.epsilon is not None and request.noise is not None:
        raise InputError("Give --epsilon or --lambda, not both.")
    if request.epsilon is not None:
        check_epsilon(request.epsilon)
    elif request.noise is not None:
        check_proportion("lambda", request.noise)
    else:
        choice = "--epsilon or --lambda" if "noise" in takes else "--epsilon"
        raise InputError(f"The mechanism {request.mechanism!r} must be given {choice}.")
    if request.noise == 0:
        raise InputError("With lambda = 0 every true label would be released; give a larger one.")
    from ldpaudit.mechanisms import traits_of

    replaced = traits_of(request.mechanism).features == "partly synthetic"
    if replaced and request.noise == 1:
        raise InputError("With lambda = 1 nothing of the data would be released.")
    _check_split(request)


def _check_split(request: PrivatizeRequest) -> None:
    from ldpaudit.mechanisms.parameters import check_epsilon

    first = request.private_prior
    if first is None or request.epsilon is None:
        return
    if not check_epsilon(first) < request.epsilon:
        raise InputError(
            f"--private-prior spends a part of --epsilon and must be below it: "
            f"{first:g} leaves nothing of {request.epsilon:g} for the labels."
        )
