"""What can be checked of one private column from its options alone."""

from dataclasses import fields
from typing import Any, get_args

from ldpaudit.commands.privatize.request import ColumnRequest, GeneratorName
from ldpaudit.device import check_device, need_torch
from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms.parameters import check_epsilon, check_proportion
from ldpaudit.mechanisms.registry import applicable, families, names, traits_of
from ldpaudit.options import option_name
from ldpaudit.plugins import NOT_HERE


def check_column(request: ColumnRequest) -> None:
    """Check everything that the options of one private column alone decide.

    Raises
    ------
    InputError
        If the mechanism cannot be applied, or an option does not belong to it, is missing or out of
        range.
    MissingDependencyError
        If it needs PyTorch, and that is not installed.
    """
    _check_belonging(request)
    _check_amount(request)
    _check_generator(request)
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
    if set(request.keep) & {request.label, *request.drop}:
        raise InputError("--keep must name other columns than --label and --drop.")


def options_of(name: str) -> tuple[str, ...]:
    """Return the fields of :class:`PrivatizeRequest` that a mechanism uses.

    Raises
    ------
    InputError
        If there is no such mechanism, or it cannot be applied to a table.
    """
    if name not in names():
        choices = applicable()
        raise InputError(
            f"The mechanism {name!r} is not known; choose one of {', '.join(choices)}"
            f"{did_you_mean(name, choices, NOT_HERE)}"
        )
    options = traits_of(name).options
    if not options:
        raise InputError(
            f"The mechanism {name!r} cannot be applied to a table; choose one of "
            f"{', '.join(applicable())}."
        )
    return options


def _check_belonging(request: ColumnRequest) -> None:
    every = {option for family in families() for option in family.traits.options}
    foreign = every - set(options_of(request.mechanism))
    for field in fields(request):
        value: Any = getattr(request, field.name)
        if field.name in foreign and value is not None and value is not False:
            raise InputError(
                f"{option_name(request, field.name)} does not belong to the mechanism "
                f"{request.mechanism!r}."
            )


def _check_amount(request: ColumnRequest) -> None:
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


def _check_split(request: ColumnRequest) -> None:
    first = request.private_prior
    if first is None or first == "auto" or request.epsilon is None:
        return
    if not check_epsilon(first) < request.epsilon:
        raise InputError(
            f"--private-prior spends a part of --epsilon and must be below it: "
            f"{first:g} leaves nothing of {request.epsilon:g} for the labels."
        )


def _check_generator(request: ColumnRequest) -> None:
    """Check that synthetic rows have one origin, and that what needs a generator has one."""
    if request.synthetic is not None and request.generator is not None:
        raise InputError("Give --synthetic or --generator, not both.")
    if request.generator_data is not None and request.generator is None:
        raise InputError("--generator-data must come with --generator, which is trained on it.")
    known = get_args(GeneratorName)
    if request.generator not in (None, *known):
        raise InputError(
            f"There is no generator {request.generator!r}; choose from {', '.join(known)}."
        )
    if request.generator == "gan":
        need_torch("The generator 'gan'")
    _check_sample(request)


def _check_sample(request: ColumnRequest) -> None:
    if request.synthetic_out is not None and request.generator is None:
        raise InputError(
            "--synthetic-out must come with --generator, which makes the sample; a table of "
            "--synthetic can be handed out itself."
        )
    if request.synthetic_rows is None:
        return
    if request.synthetic_out is None:
        raise InputError("--synthetic-rows must come with --synthetic-out, whose rows it counts.")
    if request.synthetic_rows < 1:
        raise InputError(f"--synthetic-rows must be at least 1. Got {request.synthetic_rows}.")
