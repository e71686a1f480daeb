"""What ``ldpaudit privatize`` prints: no label."""

from ldpaudit.commands.privatize.result import PrivatizeSummary
from ldpaudit.datasets.writing.tables import written_places
from ldpaudit.terminal import say


def print_summary(summary: PrivatizeSummary, *, quiet: bool) -> None:
    """Print what was released and where; nothing when ``quiet``."""
    if quiet:
        return
    request = summary.request
    say(f"Released {summary.rows} rows by {summary.mechanism.description}.")
    if summary.prior_epsilon > 0:
        say(
            f"With the private prior's ε = {summary.prior_epsilon:.6g} the whole release comes to "
            f"ε = {summary.total_epsilon:.6g} nats."
        )
    if request.experimental:
        say("An experiment: its draws can be repeated, so it protects nobody.")
    for warning in summary.warnings:
        say(f"  {'warning':<12} {warning}")
    for place in written_places(request.output):
        say(f"  {'written':<12} {place}")
    if request.synthetic_out is not None:
        rows = f"{summary.sample_rows} synthetic rows, none of them in the release"
        say(f"  {'synthetic':<12} {request.synthetic_out} ({rows})")
    if request.secret is not None:
        say(f"  {'secret':<12} {request.secret} (true labels, readable by you only)")
