"""What ``ldpaudit run`` is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ldpaudit.errors import InputError
from ldpaudit.release import Declaration


@dataclass(frozen=True)
class Request:
    """The options of ``ldpaudit run``, checked and ready."""

    release: str
    label: str | None = None
    truth: str | None = None
    truth_column: str | None = None
    original: str | None = None
    synthetic: str | None = None
    held_out: str | None = None
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    claim: Declaration | None = None
    channel: Path | None = None
    """The file that the claim was read from, which no output may overwrite."""
    policy: Path | None = None
    seed: int | None = None
    queries: str | None = None
    neighbors: int | None = None
    metric: Literal["l2", "raw", "learned"] = "l2"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    threads: int | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    show_class_names: bool = False
    slices: tuple[str, ...] = ()
    budget: float | None = None
    public_posterior: str | None = None
    public: str | None = None
    canaries: str | None = None
    command: str = "ldpaudit run …"


def queries_of(text: str | None) -> int | Literal["all"] | None:
    """Return how many rows look for neighbours, from the text of the option."""
    if text is None or text == "all":
        return text  # type: ignore[return-value]
    if not text.isdecimal():
        raise InputError("--queries must be a number or 'all'.")
    return int(text)


def inputs_of(request: Request) -> tuple[Path | str | None, ...]:
    """Return every file that is read, so that none of them is written to."""
    own = (request.release, request.truth, request.original, request.synthetic, request.held_out)
    beside = (request.public_posterior, request.public, request.canaries)
    return (*own, *beside, request.policy, request.channel)
