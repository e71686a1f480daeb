"""Options of how to audit: which audits, how much work, where, by which policy; then all."""

import math
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from datetime import date
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ldpaudit.device import DeviceName
from ldpaudit.errors import InputError
from ldpaudit.options.declaring import Option
from ldpaudit.options.release import FileOptions, ReleaseOptions, check_ordered
from ldpaudit.options.tables import Probabilities, Table
from ldpaudit.work.cluster import ClusterPlace, check_cluster
from ldpaudit.work.memory import size_of
from ldpaudit.work.progress import Progress, Stop

if TYPE_CHECKING:
    from ldpaudit.judging.policy import Policy


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


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """How audits are run and by which policy they are judged, for releases and simulations."""

    policy: Annotated[
        "Policy | str | Path | None",
        Option("What a release may leak: a TOML file, or ldpaudit:strict.", type=Path, file=True),
    ] = None
    queries: Annotated[
        int | Literal["all"] | None,
        Option(
            "Rows that look for neighbours (or 'all').",
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
    exact: Annotated[bool, Option("Compare every row with every other: slow.", shown=True)] = False
    smoothness: Annotated[
        float | None,
        Option(
            "C of Theorem 6.6, which bounds J(τ): in a share μ of people, label probabilities "
            "change by at most C·μ^β.",
            shown=True,
        ),
    ] = None
    smoothness_power: Annotated[
        float, Option("β of --smoothness, above 0 and at most 1.", shown=True)
    ] = 1.0
    only: Annotated[Collection[str], Option("Run this audit only (repeatable).", shown=True)] = ()
    skip: Annotated[Collection[str], Option("Leave this audit out (repeatable).", shown=True)] = ()
    attacks: Annotated[
        Collection[str | type],
        Option("An attack of your own, FILE.py:CLASS or MODULE:CLASS (repeatable).", "--attack"),
    ] = ()
    threads: Annotated[
        int | None,
        Option("Processors to use (default: OMP_NUM_THREADS, else all there are).", shown=True),
    ] = None
    device: Annotated[DeviceName, Option("Where torch models run.", shown=True)] = "auto"
    memory: Annotated[
        int | str | None,
        Option(
            "The most memory to use, such as 4GiB (default: half); larger tables are sampled.",
            type=str,
            shown=True,
        ),
    ] = None
    cluster: Annotated[
        ClusterPlace | None,
        Option(
            "Dask workers that share the work: tls://HOST:8786, or local:4 on this machine.",
            type=str,
        ),
    ] = None
    cluster_without_tls: Annotated[
        bool, Option("Let other machines' workers be reached without TLS (tcp://).")
    ] = False
    seeds_tried: Annotated[
        int | None,
        Option("Seeds of common generators to try, up to 4294967296 (default: 10000).", shown=True),
    ] = None
    made_on: Annotated[
        date | None,
        Option(
            "The release's day, 2026-01-31: seeds to try.",
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
        check_cluster(self.cluster, without_tls=self.cluster_without_tls)
        for name in ("queries", "neighbors", "threads"):
            count = getattr(self, name)
            if isinstance(count, int) and count < 1:
                raise InputError(f"The {name!r} parameter must be at least 1. Got {count} instead.")
        if self.smoothness is not None and not 0 <= self.smoothness < math.inf:
            raise InputError(
                f"The 'smoothness' parameter must be finite and ≥ 0. Got {self.smoothness} instead."
            )
        if not 0 < self.smoothness_power <= 1:
            raise InputError(
                "The 'smoothness_power' parameter must be above 0 and at most 1. "
                f"Got {self.smoothness_power} instead."
            )
        if self.seeds_tried is not None and not 0 <= self.seeds_tried <= 1 << 32:
            raise InputError(
                f"'seeds_tried' must be from 0 to 4294967296. Got {self.seeds_tried} instead."
            )


@dataclass(frozen=True)
class AuditOptions(FileOptions, PlanOptions, ReleaseOptions):
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
    before : collection of str, optional
        Columns that were there before the noise, so none was computed from released labels;
        ``"*"``: all but the private ones.
    projection : int, optional
        Of sparse features, the numeric columns that they become; default: 256.
    original, synthetic, held_out : path or table, optional
        The original features in the same row order (or joined on ``id_column``), the synthetic
        rows that features were replaced with, with the column ``label``, and rows of the same
        population that no generator was trained on.
    separator, decimal, encoding, sheet : str, optional
        How text files and workbooks are written; default: detected, and reported in a note.
    header : bool
        Whether their first line names the columns even if it looks like a row.
    text, missing_values : collections of str
        Columns that are read as text, and further marks of a missing value.
    policy : Policy or path, optional
        What is allowed; default: only that the claim is not refuted.
    only, skip : collections of audit ids, optional
    queries, neighbors, metric, exact, smoothness, smoothness_power, threads, device, memory
        See :class:`ldpaudit.audits.interface.Plan`.
    seeds_tried, made_on
        See :class:`ldpaudit.audits.interface.Plan`.
    cluster : str or distributed.Client, optional
        Where pieces of the work are done: ``"local:4"``, the address of a Dask scheduler or a
        client; default: in this process.
    cluster_without_tls : bool
        Whether another machine's workers may be reached without TLS (``tcp://``): who can read or
        change that traffic can run code here.
    slices : collection of str
        Columns of the release by whose values the strongest attack is scored, group by group.
    attacks : collection of str or classes
        Attacks of your own, scored like the others: classes, or where they are, ``FILE.py:CLASS``
        or ``MODULE:CLASS``.
    answers : {"fresh", "remembered"}, optional
        What is claimed of several releases of the same people: each draws its answers again, or
        repeats the answer for a label that did not change. Default: detected from the data.
    timeout : float, optional
        Seconds after which the audit ends with what it has: audits that were not finished are
        recorded as stopped, and the verdict is then never a pass. An interruption in Python
        (KeyboardInterrupt) ends the call without a result, as usual.
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
        Probabilities | None,
        Option("Table of P̂(label | features), model-based-rr.", type=str, file=True),
    ] = None
    public: Annotated[
        Table | None,
        Option("Public rows with labels, for the observational audit.", type=str, file=True),
    ] = None
    canaries: Annotated[
        Probabilities | None,
        Option("Probabilities with which labels were drawn.", type=str, file=True),
    ] = None
    answers: Annotated[
        Literal["fresh", "remembered"] | None,
        Option(
            "Of several releases: answers drawn again each time, or repeated while a label "
            "stays the same (default: detected).",
            shown=True,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        Option("Seconds after which to stop and report what is there: never a pass.", shown=True),
    ] = None
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
        check_ordered(self.label, "label")
        check_ordered(self.truth_column, "true label")
        seed: Any = self.rng
        if isinstance(seed, Integral) and seed < 0:
            raise InputError("The seed must not be negative.")
