"""What ``ldpaudit privatize`` prints: no label."""

from ldpaudit.commands.privatize.result import PrivatizeSummary
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.writing.tables import written_places
from ldpaudit.terminal import remark, say


def print_summary(summary: PrivatizeSummary, *, quiet: bool) -> None:
    """Print what was released and where; ``quiet``: only that labels were drawn a second time."""
    if quiet:
        for line in summary.again:
            remark(line)
        return
    request = summary.request
    _say_mechanisms(summary)
    if request.remember is not None:
        say(
            "Over all releases that share the remembered answers that is all they tell of a person "
            "whose labels stay the same; a changed answer shows that a label changed."
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
    if request.remember is not None:
        say(f"  {'remembered':<12} {request.remember} (people's answers, readable by you only)")
    if request.secret is not None:
        say(f"  {'secret':<12} {request.secret} (true labels, readable by you only)")


def _say_mechanisms(summary: PrivatizeSummary) -> None:
    """Say what released each private column, and what the release tells of a person."""
    columns, rows = summary.columns, f"{summary.rows} rows"
    spent = f"ε = {summary.prior_epsilon:.6g}"
    if len(columns) == 1:
        say(f"Released {rows} by {columns.first.mechanism.description}.")
        if summary.prior_epsilon > 0:
            say(
                f"With the private prior's {spent} the whole release comes to "
                f"ε = {summary.total_epsilon:.6g} nats."
            )
        return
    how = "" if columns.joint is None else f" together, by {columns.joint.description}"
    say(f"Released {rows} with {len(columns)} private columns{how}.")
    width = max(12, *(len(quoted(name)) for name in columns.names))
    for column in columns:
        alone = "" if columns.joint is None else "seen alone: "
        say(f"  {quoted(column.name):<{width}} {alone}{column.mechanism.description}")
    which = "both" if len(columns) == 2 else f"all {len(columns)}"
    prior = f"; {spent} of it went into private priors" if summary.prior_epsilon > 0 else ""
    say(
        f"Releasing {which} tells up to ε = {summary.total_epsilon:.6g} nats about a person{prior}."
    )
