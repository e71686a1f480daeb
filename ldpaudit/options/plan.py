"""Options of how to audit: which audits, how much work, where, by which policy."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ldpaudit.device import DeviceName
from ldpaudit.errors import InputError
from ldpaudit.options.declaring import Option
from ldpaudit.work.memory import size_of
from ldpaudit.work.tasks import ClusterPlace, check_cluster

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
        bool, Option("Compare every row with every other: slow, and changes little.", shown=True)
    ] = False
    smoothness: Annotated[
        float | None,
        Option(
            "C: label probabilities change by at most C·μ^β within a share μ of people; J(τ) is "
            "then bounded by Theorem 6.6 (compares every row with every other).",
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
        int | None, Option("Processors to use (default: all there are).", shown=True)
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
