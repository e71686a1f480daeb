"""An audit from Python: the same as on the command line."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeAlias

from ldpaudit.api.results import unwritten_result
from ldpaudit.errors import InputError
from ldpaudit.keywords import documented, made
from ldpaudit.options import AuditOptions
from ldpaudit.result import AuditResult

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    Released: TypeAlias = str | Path | pd.DataFrame | pa.Table

    @dataclass(frozen=True)
    class _Keywords(AuditOptions):
        """What a call may state: an audit's options, and the claim's in single words."""

        _: KW_ONLY
        epsilon: float | None = None
        noise: float | None = None
        lambda_: float | None = None
        channel: str | Path | None = None
        labels: str | None = None
        seed: int | None = None


P = ParamSpec("P")


class _Audit(Protocol[P]):
    """An audit that takes a release, and each option as a keyword."""

    def __call__(
        self, release: "Released | Sequence[Released]", *args: P.args, **keywords: P.kwargs
    ) -> AuditResult: ...


def _with_options(_options: "Callable[P, AuditOptions]") -> Callable[[Any], _Audit[P]]:
    """Let type checkers see the options of a function."""
    return lambda function: function


@_with_options(_Keywords if TYPE_CHECKING else AuditOptions)
def audit(release: Any, *args: Any, **keywords: Any) -> AuditResult:
    """Audit a released dataset: how much does it give away about each person's label?

    Parameters
    ----------
    release : path, pandas.DataFrame or pyarrow.Table
        Features and one column of released labels, n rows; or several private columns. A list of
        releases of the same people, joined on ``id_column``, is audited as a whole.
    epsilon, noise, channel, labels : optional
        The claim in single words, for ``mechanism`` or its default, randomized response: ε in nats,
        or λ (also ``lambda_``); a CSV file with the channel; the range of a numeric label,
        ``"LO:HI"`` or ``"LO:HI:STEP"``. Other options may be called as on the command line, too:
        ``seed`` for ``rng``, ``id`` for ``id_column``.

    Returns
    -------
    AuditResult
        With ``verdict``, ``sentence``, ``estimates`` …; ``to_frame()`` gives the numbers,
        ``to_html(path)`` writes the report. Of several private columns ``labels`` holds the result
        of each, and the numbers beside it are of all together; of several releases ``releases``
        does.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input or the policy.

    Examples
    --------
    >>> import ldpaudit
    >>> from ldpaudit.datasets import affairs
    >>> features, truth = affairs()
    >>> table = features.assign(label=truth).sample(1000, random_state=0)
    >>> released = ldpaudit.privatize(table, "rr", epsilon=1.0)
    >>> result = ldpaudit.audit(released, table["label"], only=["mechanism", "power"])
    >>> result["mechanism.epsilon"].value
    1.0
    """
    stated = dict(zip(_POSITIONS, args, strict=False))
    if len(args) > len(_POSITIONS) or stated.keys() & keywords.keys():
        raise InputError("audit() takes a release, true labels, a claim and a seed by position.")
    return audit_with(release, made(AuditOptions, stated | keywords, "audit"))


_POSITIONS: Final = ("truth", "mechanism", "rng")
documented(audit, AuditOptions, ("release",), _POSITIONS)


def audit_with(release: Any, options: AuditOptions) -> AuditResult:
    """Audit a released dataset as the options ask.

    With ``resume``, the finished parts are removed when the result is whole.
    """
    with unwritten_result(release, options) as result:
        return result
