"""The options of an audit, declared once: for the command line and for the Python call.

A field that is annotated with an :class:`Option` is an option of every command that takes its
dataclass, with the environment twin ``LDPAUDIT_…``. This module imports nothing heavy.
"""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import date
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from ldpaudit.device import DeviceName
from ldpaudit.errors import InputError
from ldpaudit.running.memory import size_of
from ldpaudit.running.progress import Progress
from ldpaudit.running.stopping import Stop
from ldpaudit.tasks.opening import ClusterPlace, check_cluster

if TYPE_CHECKING:
    import numpy as np

    from ldpaudit.judging.policy import Policy
    from ldpaudit.mechanisms.interface import Mechanism
    from ldpaudit.release import Declaration


@dataclass(frozen=True)
class Option:
    """How a field is given on the command line.

    Attributes
    ----------
    help : str
    name : str
        Empty: made from the field's name.
    type : type or None
        What the command line reads, where a Python caller may give more than that.
    read : callable or None
        Turns what the command line reads into the field's value.
    shown : bool
        Whether a stored result may repeat the value: it holds no path and no column name.
    file : bool
        Whether it names a file that is read, so that no output may overwrite it.
    short : str
        A one-letter name, ``-o``.
    """

    help: str
    name: str = ""
    type: Any = None
    read: Callable[[Any], Any] | None = None
    shown: bool = False
    file: bool = False
    short: str = ""

    def long(self, field: str) -> str:
        """Return the option's name for a field."""
        return self.name or "--" + field.strip("_").replace("_", "-")


@dataclass(frozen=True)
class Argument:
    """A value that the command line takes by its position.

    Attributes
    ----------
    help : str
    metavar : str or None
        What ``--help`` calls it; None: the field's name.
    file : bool
        Whether it names files that are read.
    """

    help: str
    metavar: str | None = None
    file: bool = False


def declared(annotation: Any) -> Option | Argument | None:
    """Return the declaration in an annotation, None where it holds none."""
    return next((m for m in get_args(annotation)[1:] if isinstance(m, Option | Argument)), None)


def group(annotation: Any) -> Any:
    """Return the dataclass whose fields give this one on the command line, None without one."""
    parts = [annotation, *get_args(annotation)[1:]]
    return next((m for m in parts if isinstance(m, type) and dataclasses.is_dataclass(m)), None)


def option_name(options: Any, field: str) -> str:
    """Return what a field of a request is called on the command line."""
    option = declared(next(f.type for f in dataclasses.fields(options) if f.name == field))
    assert isinstance(option, Option)
    return option.long(field)


def input_files(options: Any) -> Iterator[str | Path]:
    """Give every file that the options name to be read."""
    for field in dataclasses.fields(options):
        value, option = getattr(options, field.name), declared(field.type)
        if dataclasses.is_dataclass(value) and group(field.type) is not None:
            yield from input_files(value)
        elif option is not None and option.file and value is not None:
            values = value if isinstance(value, tuple) else (value,)
            yield from (one for one in values if isinstance(one, str | Path))


def keywords_for(function: Callable[..., Any], options: Any) -> dict[str, Any]:
    """Return the options that a function takes, by name; those without a value are left out."""
    taken = inspect.signature(function).parameters
    values = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    return {name: value for name, value in values.items() if name in taken and value is not None}


def queries_of(text: str) -> int | Literal["all"]:
    """Read ``--queries``, how many rows look for neighbours."""
    if text == "all":
        return "all"
    if not text.isdecimal():
        raise InputError("--queries must be a number or 'all'.")
    return int(text)


def date_of(text: str) -> date:
    """Read ``--made-on``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--made-on must be a day such as 2026-01-31. Got {text!r}.") from None


@dataclass(frozen=True)
class ClaimOptions:
    """The claim about a release that declares none, as the command line states it."""

    mechanism: Annotated[str | None, Option("The claimed mechanism, or unknown.", shown=True)] = (
        None
    )
    epsilon: Annotated[float | None, Option("The claimed ε, in nats.", shown=True)] = None
    noise: Annotated[
        float | None,
        Option("The claimed λ: the chance of a label drawn anew from all.", "--lambda", shown=True),
    ] = None
    channel: Annotated[
        Path | None,
        Option("The claimed channel as CSV: rows labels, columns outputs.", file=True),
    ] = None
    labels: Annotated[
        str | None, Option("The claimed range of a numeric label: LO:HI or LO:HI:STEP.")
    ] = None


@dataclass(frozen=True)
class ReleaseOptions:
    """What is known about a release: its true labels, its claim, its columns, its companions."""

    truth: Annotated[
        Any,
        Option("A file with the true labels, in the same row order.", type=str, file=True),
    ] = None
    mechanism: Annotated[
        "Mechanism | Declaration | Mapping[str, Any] | ClaimOptions | str | None", ClaimOptions
    ] = None
    rng: Annotated[
        "np.random.Generator | int | None",
        Option("The seed (default: derived from the release).", "--seed", type=int, shown=True),
    ] = None
    _: KW_ONLY
    label: Annotated[
        str | None, Option("The released label's column (default: as declared, or 'label').")
    ] = None
    truth_column: Annotated[
        str | None, Option("The column of the release that holds the true labels.")
    ] = None
    original: Annotated[
        Any,
        Option("A file with the original features, in the same row order.", type=str, file=True),
    ] = None
    synthetic: Annotated[
        Any,
        Option("The synthetic rows, with labels, that replaced features.", type=str, file=True),
    ] = None
    held_out: Annotated[
        Any,
        Option("Rows like the originals that no generator was trained on.", type=str, file=True),
    ] = None
    id_column: Annotated[
        str | None, Option("The column on which --truth and --original are joined.", "--id")
    ] = None
    group: Annotated[
        str | None, Option("The column of rows that belong together: a household, a person.")
    ] = None
    projection: Annotated[
        int | None,
        Option("Columns that sparse features become (svmlight; default: 256).", shown=True),
    ] = None
    drop: Annotated[Collection[str], Option("A column that is no feature (repeatable).")] = ()
    features: Annotated[
        Collection[str] | None,
        Option("A column that is a feature (repeatable; default: the rest)."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """How audits are run and by which policy they are judged, for releases and simulations."""

    policy: Annotated[
        "Policy | str | Path | None",
        Option("What a release may leak (TOML).", type=Path, file=True),
    ] = None
    queries: Annotated[
        int | Literal["all"] | None,
        Option(
            "Rows that look for neighbours: a number or 'all'.",
            type=str,
            read=queries_of,
            shown=True,
        ),
    ] = None
    neighbors: Annotated[
        int | None, Option("How many neighbours (default: adapts to n).", shown=True)
    ] = None
    metric: Annotated[
        Literal["l2", "raw", "learned"],
        Option("The space in which neighbours are near.", shown=True),
    ] = "l2"
    exact: Annotated[
        bool, Option("Compare every row that looks for neighbours with every other.", shown=True)
    ] = False
    only: Annotated[Collection[str], Option("Run this audit only (repeatable).", shown=True)] = ()
    skip: Annotated[Collection[str], Option("Leave this audit out (repeatable).", shown=True)] = ()
    budget: Annotated[
        float | None, Option("Seconds for the attacks on a release (default: 60).", shown=True)
    ] = None
    thorough: Annotated[bool, Option("Run every attack, however long they take.", shown=True)] = (
        False
    )
    threads: Annotated[
        int | None, Option("Processors to use (default: all there are).", shown=True)
    ] = None
    device: Annotated[DeviceName, Option("Where torch models run.", shown=True)] = "auto"
    memory: Annotated[
        int | str | None,
        Option(
            "The most memory to use: 4GiB, 800MB … (default: half of the machine's).",
            type=str,
            shown=True,
        ),
    ] = None
    cluster: Annotated[
        ClusterPlace | None,
        Option(
            "Dask workers that share the work: tcp://HOST:8786, or local:4 on this machine.",
            type=str,
        ),
    ] = None
    seeds_tried: Annotated[
        int | None,
        Option("Seeds of random generators to try: 0 to 4294967296 (default: 32768).", shown=True),
    ] = None
    made_on: Annotated[
        date | None,
        Option(
            "The day of the release, 2026-01-31: its seconds are seeds to try.",
            type=str,
            read=date_of,
            shown=True,
        ),
    ] = None

    def __post_init__(self) -> None:
        """Read the size of the memory, from here on a number of bytes."""
        if self.memory is not None:
            object.__setattr__(self, "memory", size_of(self.memory))

    def check(self) -> None:
        """Refuse numbers out of range.

        Raises
        ------
        InputError
        """
        check_cluster(self.cluster)
        for name in ("queries", "neighbors", "threads"):
            count = getattr(self, name)
            if isinstance(count, int) and count < 1:
                raise InputError(f"The {name!r} parameter must be at least 1. Got {count} instead.")
        if self.seeds_tried is not None and not 0 <= self.seeds_tried <= 1 << 32:
            raise InputError(
                f"'seeds_tried' must be from 0 to 4294967296. Got {self.seeds_tried} instead."
            )
        if self.budget is not None and not self.budget >= 0:
            raise InputError(
                f"The 'budget' must be at least 0 seconds. Got {self.budget!r} instead."
            )


@dataclass(frozen=True)
class AuditOptions(PlanOptions, ReleaseOptions):
    """The options that ``ldpaudit run``, ``compare`` and :func:`ldpaudit.audit` share.

    Parameters
    ----------
    truth : path, DataFrame, Series, Arrow table or array of shape (n,), optional
        The true labels: in the same row order, or joined on ``id_column``. Without them the audit
        is the outsider's.
    mechanism : Mechanism, Declaration, mapping or str, optional
        The claim, where the release declares none: a mechanism, its declaration, a mapping such as
        ``{"name": "randomized-response", "epsilon": 1.0}``, or ``"unknown"``.
    rng : numpy.random.Generator or int, optional
        The source of all randomness, or its seed. Default: a seed derived from the released file,
        so that an audit gives the same numbers every time; for a table in memory, 0.
    label, truth_column, id_column, group, drop, features
        The columns' roles, as on the command line.
    projection : int, optional
        Of sparse features, the numeric columns that they become; default: 256.
    original, synthetic, held_out : path or table, optional
        The original features in the same row order (or joined on ``id_column``), the synthetic
        rows that features were replaced with, with the column ``label``, and rows of the same
        population that no generator was trained on.
    policy : Policy or path, optional
        What is allowed; default: only that the claim is not refuted.
    only, skip : collections of audit ids, optional
    queries, neighbors, metric, exact, threads, device, memory, seeds_tried, made_on,
    show_class_names
        See :class:`ldpaudit.audits.interface.Plan`.
    cluster : str or distributed.Client, optional
        Where pieces of the work are done: ``"local:4"``, the address of a Dask scheduler or a
        client; default: in this process.
    slices : collection of str
        Columns of the release by whose values the strongest attack is scored, group by group.
    budget : float, optional
        Seconds for the attacks; default: 60.
    thorough : bool
        Whether all attacks run, without a budget; default: those that can be the strongest.
    timeout : float, optional
        Seconds after which the audit ends with what it has: audits that were not finished are
        recorded as stopped, and the verdict is then never a pass. An interruption in Python
        (KeyboardInterrupt) ends the call without a result, as usual.
    resume : path, optional
        A folder for finished parts, so that an audit that was cut short goes on where it was and
        gives the same result. They are confidential: the folder is its owner's alone, and the
        parts are removed when the audit has run to its end. Release and companions must be files.
    public_posterior : path, table or float array of shape (n, k), optional
        For model-based randomized response: P̂(label | features) of the public model, one column
        for each class, named by it; an array has them in the order of the declared classes.
    public : path or table, optional
        Public rows with labels, for the observational audit: what can be learnt without the
        release.
    canaries : path, table or float array of shape (n, k), optional
        For the observational audit: the probabilities with which the auditor drew the true labels
        of some rows, one column for each class; empty for rows with labels of their own.
    progress : Progress, optional
    stop : Stop, optional
        Ends the audit early; default: after ``timeout``.
    command : str
        How to run it again, without paths or names.
    """

    _: KW_ONLY
    slices: Annotated[
        Collection[str],
        Option("Score the best attack for each value of a column (repeatable).", "--slice"),
    ] = ()
    public_posterior: Annotated[
        Any,
        Option("P̂(label | features) of model-based-rr: a table.", type=str, file=True),
    ] = None
    public: Annotated[
        Any, Option("Public rows with labels: what is known anyway.", type=str, file=True)
    ] = None
    canaries: Annotated[
        Any,
        Option(
            "The probabilities that some rows' true labels were drawn with.", type=str, file=True
        ),
    ] = None
    timeout: Annotated[
        float | None,
        Option("Seconds after which to stop and report what is there.", shown=True),
    ] = None
    resume: Annotated[
        Path | None,
        Option("Keep finished parts in this folder, and go on from those that are there."),
    ] = None
    show_class_names: Annotated[
        bool, Option("Name classes, the label and columns that warnings are about in the report.")
    ] = False
    progress: Progress | None = None
    stop: Stop | None = None
    command: str = "ldpaudit.audit(…)"

    def check(self) -> None:
        """Refuse numbers out of range, a negative seed among them."""
        super().check()
        if self.timeout is not None and not self.timeout > 0:
            raise InputError(
                f"The 'timeout' must be more than 0 seconds. Got {self.timeout!r} instead."
            )
        seed: Any = self.rng
        if isinstance(seed, Integral) and seed < 0:
            raise InputError("The seed must not be negative.")
