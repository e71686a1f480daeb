"""What was released, for people: without any label."""

from dataclasses import dataclass
from pathlib import Path

from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.mechanisms.interface import Mechanism


@dataclass(frozen=True)
class PrivatizeSummary:
    """What was done.

    Attributes
    ----------
    rows : int
        How many rows were released.
    mechanism : Mechanism
        What they were released with; its ``description`` holds no label.
    total_epsilon : float
        ε in nats of the whole release: the mechanism's, and what a private prior spent.
    output : Path
    secret : Path or None
    warnings : tuple of str
        What people should know, one sentence each.
    sample_rows : int
        Rows of the synthetic sample beside it, 0 where none was asked for.
    """

    rows: int
    mechanism: Mechanism
    total_epsilon: float
    output: Path
    secret: Path | None
    warnings: tuple[str, ...] = ()
    sample_rows: int = 0


def summary_lines(summary: PrivatizeSummary, request: PrivatizeRequest) -> list[str]:
    """Return what was done in sentences for people, without any label."""
    lines = [f"Released {summary.rows} rows by {summary.mechanism.description}."]
    if request.private_prior is not None:
        lines.append(
            f"With the private prior's ε = {request.private_prior:.6g} the whole release comes to "
            f"ε = {summary.total_epsilon:.6g} nats."
        )
    if request.experimental:
        lines.append("An experiment: its draws can be repeated, so it protects nobody.")
    lines += [f"  warning      {text}" for text in summary.warnings]
    lines.append(f"  written      {summary.output}")
    if request.synthetic_out is not None:
        told = f"{summary.sample_rows} synthetic rows, none of them in the release"
        lines.append(f"  synthetic    {request.synthetic_out} ({told})")
    if summary.secret is not None:
        lines.append(f"  secret       {summary.secret} (true labels, readable by you only)")
    return lines
