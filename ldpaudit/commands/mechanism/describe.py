"""``describe`` and ``channel``: everything that is exactly known of one mechanism."""

from typing import Any, Final

from ldpaudit.commands.mechanism.analysis import Analysis, analyse
from ldpaudit.commands.mechanism.domain import prior_over, read_domain
from ldpaudit.commands.mechanism.page import mechanism_page
from ldpaudit.commands.mechanism.request import ChannelRequest, DescribeRequest
from ldpaudit.commands.mechanism.specification import build
from ldpaudit.commands.mechanism.tables import exact, show
from ldpaudit.commands.outputs import Outputs
from ldpaudit.datasets import read_channel
from ldpaudit.datasets.labels import read_texts
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.options import input_files
from ldpaudit.reports.json_report import as_json
from ldpaudit.terminal import say

_FEW: Final = 12
_NAMES: Final = {"epsilon": "ε (nats)", "lambda": "λ", "gamma": "γ", "sigma": "σ"}
_LOSSES: Final = {
    "squared": "expected squared loss ½(ŷ − y)²",
    "absolute": "expected absolute loss |ŷ − y|",
    "poisson": "expected Poisson log loss ŷ − y log ŷ",
}


def describe(request: DescribeRequest) -> Analysis:
    """Analyse a mechanism given by its parameters, print it and write what is asked for.

    Raises
    ------
    InputError, OutputError
        Where the request cannot be met; nothing is written then.
    """
    request.outputs.check(input_files(request))
    domain = read_domain(request.classes, request.labels, request.prior)
    analysis = analyse(build(request.wanted, domain), domain.prior)
    hand_out(analysis, request.outputs)
    return analysis


def describe_channel(request: ChannelRequest) -> Analysis:
    """Analyse a channel matrix, print it and write what is asked for.

    Raises
    ------
    InputError, OutputError
        Where the matrix is no channel, or the request cannot be met; nothing is written then.
    """
    request.outputs.check(input_files(request))
    stated = read_channel(request.file)
    rows, columns = read_texts(stated["classes"]), read_texts(stated["outputs"])
    mechanism = ExplicitChannel(Channel(stated["matrix"], rows, columns))
    known = None
    if request.prior is not None:
        from ldpaudit.datasets.beside.priors import read_prior

        known = prior_over(rows, read_prior(request.prior))
    analysis = analyse(mechanism, known)
    hand_out(analysis, request.outputs)
    return analysis


def hand_out(analysis: Analysis, outputs: Outputs) -> None:
    """Print an analysis and write what is asked for."""
    print_analysis(analysis)
    outputs.write(lambda: as_json(as_result(analysis)), lambda: mechanism_page(analysis))
    outputs.announce()


def as_result(analysis: Analysis) -> dict[str, Any]:
    """Return an analysis as what its JSON file holds."""
    errors, channel = analysis.errors, analysis.channel
    return {
        "schema_version": "1.0",
        "mechanism": analysis.mechanism,
        "description": analysis.description,
        "kind": analysis.kind,
        "epsilon": analysis.epsilon,
        "lambda": analysis.parametrisations.get("lambda"),
        "parametrisations": dict(analysis.parametrisations),
        "declaration": {"name": analysis.mechanism, **analysis.parameters},
        "total_variation": analysis.total_variation if analysis.delta else None,
        "delta": analysis.delta,
        "rdp": analysis.rdp,
        "labels": None if errors is None else errors.labels.tolist(),
        "bias": None if errors is None else errors.bias.tolist(),
        "variance": None if errors is None else errors.variance.tolist(),
        "unbiased": None if errors is None else errors.unbiased,
        "loss": analysis.loss,
        "accuracy": analysis.accuracy,
        "channel": None
        if channel is None
        else {
            "labels": list(channel.classes),
            "outputs": list(channel.outputs),
            "matrix": channel.matrix.tolist(),
        },
        "notes": list(analysis.notes),
    }


def print_analysis(analysis: Analysis) -> None:
    """Print an analysis as tables."""
    say(f"{analysis.mechanism}: {analysis.description} ({analysis.kind})")
    show("Privacy", ("parameter", "value"), privacy_rows(analysis))
    _print_curve("δ(ε)", ("ε (nats)", "δ"), analysis.delta)
    _print_curve("Rényi divergence", ("order α", "nats"), analysis.rdp)
    _print_errors(analysis)
    _print_channel(analysis.channel)
    for note in analysis.notes:
        say(f"\nNote: {note}")


def privacy_rows(analysis: Analysis) -> list[tuple[str, str]]:
    """Return the numbers of an analysis with their names."""
    found = [
        (_NAMES.get(key, key), exact(value)) for key, value in analysis.parametrisations.items()
    ]
    if analysis.delta:
        found.append(("total variation, δ(0)", exact(analysis.total_variation)))
    for name, value in (analysis.loss or {}).items():
        found.append((_LOSSES[name], exact(value) if not isinstance(value, str) else value))
    if analysis.accuracy is not None:
        found.append(("P(released = true) under the prior", exact(analysis.accuracy)))
    if analysis.errors is not None:
        bias = analysis.errors.largest_bias
        found.append(("largest |bias| of a label", exact(bias) if bias else "0 (unbiased)"))
    return found


def _print_curve(
    title: str, headers: tuple[str, str], points: tuple[tuple[float, float], ...]
) -> None:
    if points:
        kept = points[:: max(1, -(-len(points) // _FEW))]
        kept = kept if kept[-1] == points[-1] else (*kept, points[-1])
        show(title, headers, [(exact(x), exact(y)) for x, y in kept])


def _print_errors(analysis: Analysis) -> None:
    errors = analysis.errors
    if errors is None:
        return
    k = len(errors.labels)
    places = (
        range(k) if k <= _FEW else sorted({round(i * (k - 1) / (_FEW - 1)) for i in range(_FEW)})
    )
    bias = errors.bias if not errors.unbiased else 0 * errors.bias
    rows = [
        (exact(float(errors.labels[i])), exact(float(bias[i])), exact(float(errors.variance[i])))
        for i in places
    ]
    title = "Error by label" if k <= _FEW else f"Error by label ({len(rows)} of {k})"
    show(title, ("label", "bias", "variance"), rows)


def _print_channel(channel: Channel | None) -> None:
    if channel is None or max(channel.matrix.shape) > _FEW:
        return
    headers = ("P(output | label)", *(exact_or_text(z) for z in channel.outputs))
    rows = [
        (exact_or_text(label), *(f"{p:.6f}" for p in row))
        for label, row in zip(channel.classes, channel.matrix, strict=True)
    ]
    show("Channel", headers, rows)


def exact_or_text(label: Any) -> str:
    """Return a label for people."""
    if isinstance(label, bool | str):
        return str(label)
    return str(label) if isinstance(label, int) else exact(float(label))
