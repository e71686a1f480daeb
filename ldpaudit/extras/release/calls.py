"""``ldpaudit.privatize``: the command as a function, with keywords for options."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ldpaudit.doors import InputError, Scratch
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.keywords import documented, in_python, made

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# How a mechanism is stated: its name, or one for each private column; None: in a plan.
_Stated = str | Mapping[str, Any] | None


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

    from ldpaudit.extras.release.privatize.plan import labels_of
    from ldpaudit.extras.release.privatize.work import privatize as work

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


documented(privatize, PrivatizeRequest, ("data", "mechanism", "output"))
