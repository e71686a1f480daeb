"""What can be checked of ``ldpaudit sweep`` from the options alone."""

from ldpaudit.commands.privatize.checks import check_column, options_of
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.device import need_torch
from ldpaudit.errors import InputError
from ldpaudit.files.limits import RELEASES
from ldpaudit.mechanisms.registry import applicable, traits_of
from ldpaudit.options import option_name


def check_sweep(request: SweepRequest) -> None:
    """Check everything that the options alone decide.

    Raises
    ------
    InputError
        If a mechanism cannot be swept, or an option belongs to none of them, is missing or out of
        range.
    MissingDependencyError
        If it needs PyTorch, and that is not installed.
    """
    _check_mechanisms(request)
    _check_options(request)
    _check_numbers(request)
    if request.learner == "network":
        need_torch("The learner 'network'")
    if request.generator == "gan":
        need_torch("The generator 'gan'")
    for point in request.points():
        if point.repeat == 1:
            check_column(request.privatized(point, 0))


def _check_mechanisms(request: SweepRequest) -> None:
    if not request.mechanisms:
        raise InputError("A sweep must be given at least one mechanism: --mechanism NAME.")
    able = ", ".join(name for name in applicable() if traits_of(name).swept)
    for name in request.mechanisms:
        if name not in applicable():
            raise InputError(f"The mechanism {name!r} is not known; choose from {able}.")
        if not traits_of(name).swept:
            raise InputError(
                f"The mechanism {name!r} needs options of its own and cannot be swept; choose from "
                f"{able}."
            )
        if request.grid.parameter not in traits_of(name).stated_by:
            raise InputError(f"The mechanism {name!r} is swept by --epsilon.")
    numeric = {traits_of(name).numeric for name in request.mechanisms}
    if len(numeric) > 1:
        raise InputError(
            "Mechanisms on numbers and mechanisms on classes are judged by different attacks: "
            "sweep them apart (on numbers, debiased-rr is randomized response)."
        )


def _check_options(request: SweepRequest) -> None:
    for field in ("labels", "prior", "synthetic", "generator"):
        if getattr(request, field) is not None and not any(
            field in options_of(name) for name in request.mechanisms
        ):
            raise InputError(
                f"{option_name(request, field)} does not belong to any of the mechanisms."
            )
    source = request.synthetic is not None or request.generator is not None
    hungry = [n for n in request.mechanisms if "synthetic rows" in traits_of(n).needs]
    if hungry and not source:
        raise InputError(
            f"The mechanism {hungry[0]!r} must be given synthetic rows: --synthetic FILE or "
            f"--generator NAME."
        )
    if request.generator_data is not None and request.generator is None:
        raise InputError("--generator-data must come with --generator, which is trained on it.")
    if request.resume and request.out is None:
        raise InputError("--resume must come with --out, the folder of the sweep to go on with.")


def _check_numbers(request: SweepRequest) -> None:
    if not 0 < request.test_share < 1:
        raise InputError(f"--test-share must lie in (0, 1). Got {request.test_share:g} instead.")
    if request.cluster is not None and request.processes is not None:
        raise InputError("--processes does not go with --cluster, which has workers of its own.")
    request.check()
    for name in ("repeats", "processes"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"--{name} must be at least 1. Got {value} instead.")
    releases = request.repeats * len(request.grid.values) * len(request.mechanisms)
    if releases > RELEASES:
        raise InputError(
            f"A sweep must have at most {RELEASES:,} simulated releases. Got {releases:.6g}: take "
            "a coarser grid, fewer mechanisms or fewer --repeats."
        )
    if request.seed is not None and request.seed < 0:
        raise InputError("--seed must not be negative.")
