"""What ``ldpaudit privatize`` was asked for, and which options go with which mechanism."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ldpaudit.commands.privatize.features.generator_options import check_generator
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import names, traits_of
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.parameters import check_epsilon, check_proportion, did_you_mean
from ldpaudit.mechanisms.registry import applicable, families
from ldpaudit.randomness import child_generator
from ldpaudit.release import Label

OPTIONS: Final[Mapping[str, str]] = {"noise": "--lambda", "clipped": "--clip"}
"""The options that are not called like their field."""


@dataclass(frozen=True)
class PrivatizeRequest:
    """The options of ``ldpaudit privatize``.

    Attributes
    ----------
    data : str
        The table with the true labels: Parquet or CSV, a path or URL.
    output : Path
        The release, Parquet.
    mechanism : str
        A name of the contract.
    label : str
        The true label's column; the released label takes its name and place.
    epsilon, noise : float or None
        ε in nats (with ``private_prior`` of the whole release, else of the label), or λ.
    classes : tuple or None
        The labels, where they are not to be read from the data.
    labels : str or None
        The range of numeric labels, ``LO:HI`` or ``LO:HI:STEP``.
    prior : Path or None
        A CSV file label,probability.
    private_prior : float or None
        ε₁ in nats, spent on a private histogram of the labels.
    loss : {"squared", "absolute", "poisson"} or None
        What a design minimises (default: squared).
    clipped : bool
        Whether noisy labels are clipped to the declared range.
    channel : Path or None
        A channel matrix as CSV.
    public : str or None
        A public labelled table, on which P̂(y | x) is fitted.
    floor : float or None
        f, the least P̂(y | x) (default: 1/(10 k)).
    synthetic : str or None
        A table of synthetic rows.
    generator : {"gan", "mixture"} or None
        What makes the synthetic rows instead.
    generator_data : str or None
        A public table with labels, on which it is trained; None: on the private rows themselves.
    synthetic_out : Path or None
        Where a sample of the generator goes, to be handed out with the release.
    synthetic_rows : int or None
        How many rows that sample has (default: as many as the release).
    device : {"auto", "cpu", "cuda"}
        Where it is trained.
    radius, sigma, feature_epsilon, delta : float or None
        Of the Gaussian noise on the features.
    project : bool
        Whether feature vectors longer than the radius are shortened.
    drop : tuple of str
        Columns that are not released.
    secret : Path or None
        Where the true labels are kept aside, with mode 0600.
    overwrite : bool
        Whether files that exist are replaced.
    experimental : bool
        Whether draws come from a NumPy generator: not private, and declared as such.
    seed : int or None
        Its seed; only with ``experimental``.
    """

    data: str
    output: Path
    mechanism: str
    label: str = "label"
    epsilon: float | None = None
    noise: float | None = None
    classes: tuple[Label, ...] | None = None
    labels: str | None = None
    prior: Path | None = None
    private_prior: float | None = None
    loss: Loss | None = None
    clipped: bool = False
    channel: Path | None = None
    public: str | None = None
    floor: float | None = None
    synthetic: str | None = None
    generator: str | None = None
    generator_data: str | None = None
    synthetic_out: Path | None = None
    synthetic_rows: int | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    radius: float | None = None
    sigma: float | None = None
    feature_epsilon: float | None = None
    delta: float | None = None
    project: bool = False
    drop: tuple[str, ...] = ()
    secret: Path | None = None
    overwrite: bool = False
    experimental: bool = False
    seed: int | None = None

    def randomness(self, part: str) -> np.random.Generator | None:
        """Return where the draws of a part come from: None stands for the operating system."""
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
    own = {option for family in families() for option in family.traits.options}
    foreign = own - set(options_of(request.mechanism))
    for field in fields(request):
        given: Any = getattr(request, field.name)
        if field.name in foreign and given is not None and given is not False:
            raise InputError(
                f"{option_name(field.name)} does not belong to the mechanism {request.mechanism!r}."
            )


def option_name(field: str) -> str:
    """Return the command line's name of a field."""
    return OPTIONS.get(field, "--" + field.replace("_", "-"))


def _check_amount(request: PrivatizeRequest) -> None:
    """Check ε or λ: one of them, in range, and not without any effect."""
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
    replaced = traits_of(request.mechanism).features == "partly synthetic"
    if replaced and request.noise == 1:
        raise InputError("With lambda = 1 nothing of the data would be released.")
    _check_split(request)


def _check_split(request: PrivatizeRequest) -> None:
    first = request.private_prior
    if first is None or request.epsilon is None:
        return
    if not check_epsilon(first) < request.epsilon:
        raise InputError(
            f"--private-prior spends a part of --epsilon and must be below it: "
            f"{first:g} leaves nothing of {request.epsilon:g} for the labels."
        )
