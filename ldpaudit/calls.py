"""The commands as Python functions: the same work, with keywords for options."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.requests import CompareRequest, DescribeRequest
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.errors import InputError
from ldpaudit.keywords import documented, in_python, made
from ldpaudit.mechanisms import Mechanism
from ldpaudit.options import texts_of
from ldpaudit.work.memory import Scratch
from ldpaudit.work.notebook import notebook_progress
from ldpaudit.work.progress import NoProgress

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from ldpaudit.commands.advise.page import Advice
    from ldpaudit.commands.mechanism.result import Analysis
    from ldpaudit.commands.sweep.page import Sweep
    from ldpaudit.result.comparison import Comparison


# How a mechanism is stated: its name, or one for each private column; None: in a plan.
_Stated = str | Mapping[str, Any] | None


@in_python(CompareRequest)
def compare(*inputs: Any, **options: Any) -> "Comparison":
    """Compare releases of the same data: leakage, attacks, and what can still be learnt.

    Parameters
    ----------
    *inputs : path, pandas.DataFrame or pyarrow.Table
        Two or more releases, or stored results (``.json``); the others are compared with the first.

    Returns
    -------
    Comparison
        With ``sentence``, ``differences`` and the result of each release.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input, the policy or the options.

    Examples
    --------
    >>> import ldpaudit
    >>> from ldpaudit.datasets import affairs
    >>> features, truth = affairs()
    >>> table = features.assign(label=truth).sample(1000, random_state=0)
    >>> weak, strong = (ldpaudit.privatize(table, "rr", epsilon=e) for e in (2.0, 0.5))
    >>> comparison = ldpaudit.compare(weak, strong, truth=table["label"], only="mechanism")
    >>> comparison.difference("mechanism.epsilon").value
    -1.5
    """
    from ldpaudit.commands.compare.work import compare as work

    request = made(CompareRequest, {"inputs": inputs, **options}, "compare")
    with notebook_progress(request.progress) as progress:
        return work(request, progress)


@overload
def privatize(
    data: "pd.DataFrame", mechanism: _Stated = None, output: None = None, **options: Any
) -> "pd.DataFrame": ...
@overload
def privatize(
    data: "str | Path | pa.Table", mechanism: _Stated = None, output: None = None, **options: Any
) -> "pa.Table": ...
@overload
def privatize(
    data: Any, mechanism: _Stated = None, *, output: str | Path, **options: Any
) -> Path: ...
@overload
def privatize(data: Any, mechanism: _Stated, output: str | Path, **options: Any) -> Path: ...
@in_python(PrivatizeRequest)
def privatize(
    data: Any, mechanism: _Stated = None, output: str | Path | None = None, **options: Any
) -> Any:
    """Release a table: private columns replaced by the mechanisms', the declaration inside.

    Labels are drawn from the operating system's randomness unless ``experimental`` is set.

    Parameters
    ----------
    data : path, pandas.DataFrame or pyarrow.Table
        n rows, with the column ``label`` of true labels.
    mechanism : str or mapping, optional
        Its name, for instance ``"rr"``, or with its parameters ``"rr:epsilon=1"`` or ``{"name":
        "rr", "epsilon": 1}``; or what releases each of several private columns, by the column's
        name: ``{"income": "rr:epsilon=1", "weeks": {"mechanism": "discrete-laplace",
        "labels": "0:52", "epsilon": 0.5}}``. Left out where a ``plan`` or ``joint`` says it.
    output : path, optional
        Where to write the release; default: it is returned, and nothing is written.

    Returns
    -------
    pandas.DataFrame, pyarrow.Table or Path
        The release: a data frame if ``data`` is one, with the declaration in its ``attrs``; else
        an Arrow table with the declaration in its metadata. With ``output`` its path.

    Warns
    -----
    UserWarning
        For each column or amount of noise that gives more away than it should.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong, without any cell of the data.

    Examples
    --------
    >>> import ldpaudit
    >>> from ldpaudit.datasets import affairs
    >>> features, truth = affairs()
    >>> table = features.assign(label=truth).sample(1000, random_state=0)
    >>> released = ldpaudit.privatize(table, "rr", epsilon=1.0)
    >>> released.shape
    (1000, 9)

    Several private columns, each drawn independently:

    >>> both = {"label": "rr", "rate_marriage": "exponential:labels=1:5"}
    >>> ldpaudit.privatize(table, both, epsilon=1.0).shape
    (1000, 9)
    """
    import warnings

    from ldpaudit.commands.privatize.plan import labels_of
    from ldpaudit.commands.privatize.work import privatize as work

    label = options.get("label", "label")
    if isinstance(mechanism, Mapping) and "name" in mechanism and "label" in options:
        named = {"mechanism" if key == "name" else key: mechanism[key] for key in mechanism}
        mechanism = {options.pop("label"): named}
    elif isinstance(mechanism, str) and "=" in mechanism and isinstance(label, str):
        mechanism = {options.pop("label", label): mechanism}
    stated = {"data": data, "mechanism": mechanism, **options}
    if isinstance(mechanism, Mapping):
        if "label" in options:
            raise InputError("The mechanisms name their columns; leave out 'label'.")
        stated |= {"mechanism": None, "label": labels_of(mechanism)}
    elif mechanism is not None and not isinstance(mechanism, str):
        raise InputError(
            "The mechanism must be its name, such as 'rr', or a mapping from each private column "
            f"to its mechanism. Got {type(mechanism).__name__} instead."
        )
    with Scratch() as scratch:
        place = scratch.folder / "release.parquet" if output is None else Path(output)
        summary = work(made(PrivatizeRequest, stated | {"output": place}, "privatize"))
        for text in summary.warnings:
            warnings.warn(text, stacklevel=2)
        return place if output is not None else _read(place, data)


def _read(place: Path, like: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ldpaudit.datasets.formats.tables import DECLARATION_KEY, is_frame

    table = pq.read_table(place)
    if not is_frame(like):
        return table
    frame = table.to_pandas(integer_object_nulls=True)
    if len(frame) == len(like):  # Rows without a label may be left out.
        frame = frame.set_axis(like.index)
    for at, (name, kind) in enumerate(zip(map(str, like), like.dtypes, strict=True)):
        # A float64 would round a large Int64.
        if name in frame and hasattr(kind, "__from_arrow__"):
            column = table.column(name)
            if column.type == pa.Array.from_pandas(like.iloc[:0, at]).type:
                frame[name] = kind.__from_arrow__(column)
    frame.attrs[DECLARATION_KEY.decode()] = table.schema.metadata[DECLARATION_KEY].decode()
    return frame


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
    from ldpaudit.commands.mechanism.analysis import analyse
    from ldpaudit.commands.mechanism.analysis import describe as work

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
    from ldpaudit.commands.sweep.run import sweep as work

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
    from ldpaudit.commands.advise.work import advise as work

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
documented(compare, CompareRequest, ("inputs",))
documented(privatize, PrivatizeRequest, ("data", "mechanism", "output"))
documented(describe, DescribeRequest, ("mechanism",))
documented(sweep, SweepRequest, ("data", "mechanisms"))
documented(advise, AdviseRequest, ("data", "label"))
