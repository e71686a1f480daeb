"""The options about generated rows: what goes with what."""

from typing import TYPE_CHECKING, Final

from ldpaudit.errors import InputError

if TYPE_CHECKING:
    from ldpaudit.commands.privatize.request import PrivatizeRequest

GENERATORS: Final = ("gan", "mixture")
"""As :mod:`ldpaudit.synthesis.factory` has them, which takes its time to import."""


def check_generator(request: "PrivatizeRequest") -> None:
    """Check that synthetic rows have one origin, and that what needs a generator has one.

    Raises
    ------
    InputError
    """
    if request.synthetic is not None and request.generator is not None:
        raise InputError("Give --synthetic or --generator, not both.")
    if request.generator_data is not None and request.generator is None:
        raise InputError("--generator-data must come with --generator, which is trained on it.")
    if request.generator not in (None, *GENERATORS):
        raise InputError(
            f"There is no generator {request.generator!r}; choose from {', '.join(GENERATORS)}."
        )
    _check_sample(request)


def _check_sample(request: "PrivatizeRequest") -> None:
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
