"""``ldpaudit.describe``, ``sweep`` and ``advise``: the commands as functions."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpaudit.doors import InputError, Mechanism, NoProgress
from ldpaudit.extras.choose.advise.request import AdviseRequest
from ldpaudit.extras.choose.mechanism.request import DescribeRequest
from ldpaudit.extras.choose.sweep.request import SweepRequest
from ldpaudit.keywords import documented, in_python, made
from ldpaudit.options import texts_of
from ldpaudit.work.notebook import notebook_progress

if TYPE_CHECKING:
    from ldpaudit.extras.choose.advise.page import Advice
    from ldpaudit.extras.choose.mechanism.result import Analysis
    from ldpaudit.extras.choose.sweep.page import Sweep


@in_python(DescribeRequest)
def describe(mechanism: "str | Mechanism", **options: Any) -> "Analysis":
    """Say everything that is exactly known of a mechanism: ε, λ, δ(ε), Rényi curve, error.

    Parameters
    ----------
    mechanism : str or Mechanism
        Its name, for instance ``"rr"``, with ``epsilon`` or ``noise``, and ``classes`` or
        ``labels``; or a mechanism, which needs no more.
    epsilon, noise : float, optional
        ε in nats, or λ (also ``lambda_``).
    classes : sequence of labels, or str, optional
        The true labels.
    labels : str, optional
        Labels that are numbers on a range, ``"LO:HI"`` or ``"LO:HI:STEP"``.
    prior : path, optional
        The labels' probabilities, a CSV file ``label,probability``.
    loss : {"squared", "absolute", "poisson"}
        What a mechanism that is made for a prior minimises.
    more : collection of str
        Further parameters, each as ``"KEY=VALUE"``.
    domain : sequence of domains, optional
        The labels of each column, for ``"joint-rr"`` and ``"rs-fd"``.

    Returns
    -------
    Analysis

    Raises
    ------
    ldpaudit.errors.InputError
        If the labels, the prior or a parameter are not valid.

    Examples
    --------
    >>> import ldpaudit
    >>> analysis = ldpaudit.describe("rr", epsilon=1.0, classes=("no", "yes"))
    >>> round(analysis.parametrisations["lambda"], 3)
    0.538
    """
    from ldpaudit.extras.choose.mechanism.analysis import analyse
    from ldpaudit.extras.choose.mechanism.analysis import describe as work

    if isinstance(mechanism, Mechanism):
        if options:
            raise InputError("A mechanism has its parameters already; give no further ones.")
        return analyse(mechanism)
    if not isinstance(mechanism, str):
        raise InputError(
            "The mechanism must be its name, such as 'rr', or a mechanism. "
            f"Got {type(mechanism).__name__} instead."
        )
    return work(made(DescribeRequest, {"name": mechanism, **options}, "describe"), NoProgress())


@in_python(SweepRequest)
def sweep(data: str | Path, mechanisms: str | Sequence[str], **options: Any) -> "Sweep":
    """Before releasing: simulate, audit and learn over a grid of noise, and find the least noise.

    Parameters
    ----------
    data : path
        The table with the true labels.
    mechanisms : str or sequence of str
        Their names, for instance ``("rr", "double-rr")``.
    epsilon, lambda_ : sequence of float, or str
        The grid of one of them: values, or ``"LO:HI:N"``.

    Returns
    -------
    Sweep
        With ``points``, one for each setting, and ``least_noise``, what each mechanism needs.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the data, the policy or the options.
    """
    from ldpaudit.extras.choose.sweep.run import sweep as work

    for name in options.keys() & _GRIDS:
        values = options[name]
        options[name] = values if isinstance(values, str) else ",".join(map(str, values))
    stated = {"data": _file(data, "sweep"), "mechanisms": mechanisms, **options}
    with notebook_progress(None) as progress:
        return work(made(SweepRequest, stated, "sweep"), progress)


@in_python(AdviseRequest)
def advise(data: str | Path, label: str | Sequence[str] = (), **options: Any) -> "Advice":
    """Recommend a release that meets a policy, with the command to make it.

    Parameters
    ----------
    data : path
        The table with the true labels.
    label : str or sequence of str
        The private columns.

    Returns
    -------
    Advice
        With ``sentence``, ``recommendations``, ``outcome`` and ``to_frame()``.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the data, the policy or the options.
    """
    from ldpaudit.extras.choose.advise.work import advise as work

    stated = {"data": _file(data, "advise"), "label": texts_of(label, "label"), **options}
    for name in options.keys() & {"test", "truth", "public"}:
        stated[name] = None if options[name] is None else _file(options[name], "advise")
    with notebook_progress(None) as progress:
        return work(made(AdviseRequest, stated, "advise"), progress)


def _file(data: Any, function: str) -> str:
    """Return the path of a table; what is no path is refused, for its text would be cells."""
    if not isinstance(data, str | os.PathLike):
        kind = type(data).__name__
        raise InputError(f"{function}() reads tables from files: give a path. Got {kind}.")
    return str(data)


_GRIDS = {"epsilon", "lambda_"}
documented(describe, DescribeRequest, ("mechanism",))
documented(sweep, SweepRequest, ("data", "mechanisms"))
documented(advise, AdviseRequest, ("data", "label"))
