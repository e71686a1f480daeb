"""The options of an audit: what ``run``, ``compare`` and :func:`ldpaudit.audit` share."""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Annotated, Any, Literal

from ldpaudit.errors import InputError
from ldpaudit.options.declaring import Option
from ldpaudit.options.files import FileOptions
from ldpaudit.options.plan import PlanOptions
from ldpaudit.options.release import ReleaseOptions, check_ordered
from ldpaudit.work.progress import Progress, Stop


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
        Any,
        Option("P̂(label | features) of model-based-rr: a table.", type=str, file=True),
    ] = None
    public: Annotated[
        Any, Option("Public rows with labels, for the observational audit.", type=str, file=True)
    ] = None
    canaries: Annotated[
        Any,
        Option(
            "The probabilities with which the auditor drew some true labels.", type=str, file=True
        ),
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
