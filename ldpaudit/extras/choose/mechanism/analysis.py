"""``describe`` and ``channel``: a mechanism as options state it, and what is known of it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from ldpaudit.datasets.labels import read_texts, split_labels
from ldpaudit.datasets.probabilities import channel_table
from ldpaudit.doors import (
    Channel,
    FiniteMechanism,
    FloatArray,
    InputError,
    Mechanism,
    NumericMechanism,
    OnDomains,
    Progress,
    SyntheticFeatures,
    check_classes,
    check_epsilon,
    family,
    refuse,
)
from ldpaudit.errors import did_you_mean
from ldpaudit.extras.choose.mechanism.request import ChannelRequest, DescribeRequest
from ldpaudit.extras.choose.mechanism.result import Analysis, ColumnAnalysis, StoredChannel
from ldpaudit.extras.release.priors import SAME, prior_over, read_prior
from ldpaudit.mechanisms import MechanismOptions, full_name, names, traits_of
from ldpaudit.mechanisms.analysis import (
    CURVE_ORDERS,
    delta_curve,
    label_errors,
    privacy_of,
    rdp_curve,
)
from ldpaudit.mechanisms.joint import JOINT, joint_family
from ldpaudit.mechanisms.label_range import LabelRange, Loss
from ldpaudit.mechanisms.parameters import check_proportion
from ldpaudit.mechanisms.registry import families
from ldpaudit.mechanisms.response import ExplicitChannel, Response
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.plugins import NOT_HERE
from ldpaudit.release import Label

# Of an exact analysis.
MOST_LABELS: Final = 4096


def read_domain(
    classes: str | Sequence[Label] | None,
    labels: str | None,
    prior: Path | None,
    files: FileOptions = AS_FOUND,
) -> MechanismOptions:
    """Return the labels that ``--classes``, ``--labels`` and ``--prior`` state together."""
    # A range without a step means any number of it, with a prior the step 1; a prior names the
    # labels where nothing else does. ``files``: how its file is written. InputError: labels are
    # stated twice, or are no valid labels, or the prior is not one of theirs.
    twice = classes is not None and labels is not None
    refuse(twice, "Give the labels once: --classes or --labels, not both.")
    table = None if prior is None else read_prior(prior, files)
    span = None if labels is None else LabelRange.parse(labels)
    if span is not None and span.step is None and table is None:
        return MechanismOptions(labels=span)
    if span is not None:
        span = grid(span)
        many = "labels can be analysed; use a larger step."
        refuse(span.steps >= MOST_LABELS, f"At most {MOST_LABELS} {many}")
        named = span.classes
    elif classes is not None:
        named = check_classes(split_labels(classes) if isinstance(classes, str) else tuple(classes))
    elif table is not None:
        named = check_classes(table.labels)
    else:
        raise InputError("Give the labels: --classes A,B,… or --labels LO:HI:STEP.")
    refuse(
        len(named) > MOST_LABELS, f"At most {MOST_LABELS} labels can be analysed. Got {len(named)}."
    )
    if span is None and not any(isinstance(label, bool | str) for label in named):
        values = np.asarray(named, dtype=np.float64)
        gaps = np.diff(values)
        if (gaps > 0).all() and np.allclose(gaps, gaps[0], rtol=SAME, atol=0):
            low, step = float(values[0]), float(gaps[0])
            span = LabelRange(low, low + step * len(gaps), step)
    given = None if table is None else prior_over(named, table)
    return MechanismOptions(classes=named, labels=span, prior=given)


def grid(labels: LabelRange) -> LabelRange:
    """Return a range with a step: its own, or 1."""
    return labels if labels.step is not None else LabelRange(labels.low, labels.high, 1.0)


def settings(words: Sequence[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` parameters: numbers, ``true`` and ``false``, else text."""
    # InputError where one is not written so, or a key occurs twice.
    read: dict[str, Any] = {}
    truth = {"true": True, "false": False}
    for text in words:
        key, equals, value = (part.strip() for part in text.partition("="))
        key = key.replace("-", "_")
        refuse(
            not equals or not key or key in read,
            "Each further parameter must be KEY=VALUE, each key once.",
        )
        try:
            read[key] = truth[value.lower()] if value.lower() in truth else float(value)
        except ValueError:
            read[key] = value
    return read


def build(name: str, wanted: MechanismOptions) -> Mechanism:
    """Build a mechanism by its full name."""
    # InputError where the name is not known, a parameter is missing, unknown or out of range, or
    # the mechanism needs a prior or numeric labels and there are none.
    if name not in names():
        choices = sorted(f.traits.name for f in families() if not _elsewhere(f.traits.name))
        near = did_you_mean(name, choices, NOT_HERE)
        raise InputError(f"There is no such mechanism; choose one of {', '.join(choices)}{near}")
    refuse((reason := _elsewhere(name)), reason)
    mechanism, (epsilon, noise) = family(name), (wanted.epsilon, wanted.noise)
    if (epsilon is None) == (noise is None) and "scale" not in wanted.settings:
        # A misspelt key may mean one of the two.
        ends = (did_you_mean(key, ("epsilon", "lambda")) for key in wanted.settings)
        near = next((end for end in ends if end != "."), ".")
        raise InputError(f"Give one of --epsilon and --lambda{near}")
    refuse(
        noise is not None and "lambda" not in mechanism.traits.stated_by,
        f"The mechanism {name!r} is given by --epsilon; it has no λ.",
    )
    if epsilon is not None:
        check_epsilon(epsilon)
    if noise is not None:
        check_proportion("lambda", noise)
    in_range, classes = "range" in mechanism.traits.needs, wanted.classes
    refuse(
        in_range and wanted.labels is None,
        f"The mechanism {name!r} must have labels on a range: --labels LO:HI:STEP.",
    )
    if in_range:
        classes = None
    elif classes is None and wanted.labels is not None:
        classes = grid(wanted.labels).classes
    return mechanism.from_options(replace(wanted, classes=classes))


def _elsewhere(name: str) -> str:
    """Return why a mechanism is not made from options, "" where it is."""
    traits = traits_of(name)
    if "matrix" in traits.needs:
        return "A channel matrix is analysed by 'ldpaudit mechanism channel FILE'."
    if traits.rows == "bags":
        return f"{traits.title.capitalize()} are declared in the file, with their bags."
    return "" if traits.stated_by else f"Nothing is known of the mechanism {name!r}."


# Cells of a channel that is repeated in an analysis.
LARGEST_SHOWN: Final = 4096
# Vectors of several columns up to which the curves are computed from the channel.
_MOST: Final = 400


def analysis_of(
    mechanism: str,
    description: str,
    epsilon: float,
    parameters: dict[str, Any],
    channel: Channel | None,
    **more: Any,
) -> Analysis:
    """Return an analysis, exact unless it says otherwise, with a channel of at most 4,096 cells."""
    shown, delta = None, more.get("delta", ())
    if channel is not None and channel.matrix.size <= LARGEST_SHOWN:
        sides = {"labels": list(channel.classes), "outputs": list(channel.outputs)}
        shown = StoredChannel(matrix=channel.matrix.tolist(), **sides)
    other = {"epsilon": epsilon} | more.pop("parametrisations", {})
    return Analysis(
        **{"kind": "exact", **more},
        mechanism=mechanism,
        description=description,
        epsilon=epsilon,
        noise=other.get("lambda"),
        parametrisations=other,
        declaration={"name": mechanism, **parameters},
        total_variation=delta[0][1] if delta else None,
        shown_channel=shown,
    )


def describe(request: DescribeRequest, _progress: Progress) -> Analysis:
    """Analyse a mechanism given by its parameters.

    InputError if the labels, the prior or a parameter are not valid.
    """
    if request.name in JOINT or request.domain:
        return _describe_columns(request)
    domain = read_domain(request.classes, request.labels, request.prior, request)
    stated = settings(request.more)
    divergence = stated.pop("divergence", None)
    wanted = replace(
        domain,
        epsilon=request.epsilon,
        noise=request.noise,
        loss=request.loss,
        settings=stated,
    )
    mechanism = build(full_name(request.name), wanted)
    found = analyse(mechanism, domain.prior)
    if divergence is None:
        return found
    return found.model_copy(update={"conditional": conditional_curve(mechanism, divergence)})


def conditional_curve(
    mechanism: Mechanism, divergence: float | str
) -> tuple[tuple[float, float], ...]:
    """Return (α, ε with features drawn from their label) for Δ, a number or ``α:Δ,…``, in nats."""
    # Busa-Fekete et al. (2023), Theorem 7.1.
    replaced = mechanism.offers(SyntheticFeatures)
    if replaced is None:
        raise InputError(f"{mechanism.name!r} has no synthetic features: leave out 'divergence'.")
    if not isinstance(divergence, str):
        orders = (alpha for alpha, _ in floor_curve(mechanism))
        points = [(alpha, float(divergence)) for alpha in orders]
    else:
        try:
            pairs = (part.split(":") for part in divergence.split(","))
            points = [(float(alpha), float(delta)) for alpha, delta in pairs]
        except ValueError:
            raise InputError(
                "The divergence must be a number of nats, or α:Δ,… for each order."
            ) from None
    if not all(alpha > 1 and 0 <= delta < math.inf for alpha, delta in points):
        raise InputError("Each order must be above 1, and each divergence finite and at least 0.")
    return tuple((alpha, replaced.conditional_epsilon(delta)) for alpha, delta in sorted(points))


def describe_channel(request: ChannelRequest, _progress: Progress) -> Analysis:
    """Analyse a channel matrix."""
    # InputError if the matrix is no channel, or the prior is not one of its labels.
    table = channel_table(request.file, request)
    rows, columns = read_texts(table.classes), read_texts(table.outputs)
    check_classes(rows)
    refuse(len({*columns}) < len(columns), "The outputs of a channel must be distinct.")
    mechanism = ExplicitChannel(Channel(np.array(table.matrix), rows, columns))
    prior = None if request.prior is None else prior_over(rows, read_prior(request.prior, request))
    return analyse(mechanism, prior, (table.remark,) if table.remark else ())


def analyse(
    mechanism: Mechanism, prior: FloatArray | None = None, remarks: tuple[str, ...] = ()
) -> Analysis:
    """Return everything that is exactly known of a mechanism."""
    # ``mechanism``: one whose privacy curve is known. ``prior``, float64 of shape (k,): the
    # probabilities of its labels, summing to 1. ``remarks``: further notes. InputError if its
    # privacy curve is not known.
    privacy, notes = privacy_of(mechanism), mechanism.remarks()
    delta, errors = delta_curve(privacy), label_errors(mechanism)
    finite, losses = mechanism.offers(FiniteMechanism), None
    if prior is not None:
        losses = {name: _loss_or_reason(mechanism, prior, name) for name in get_args(Loss)}
    if not delta:
        notes += ("Its labels and outputs are too many for δ(ε) and the Rényi curve.",)
    return analysis_of(
        mechanism.name,
        mechanism.description,
        privacy.epsilon,
        dict(mechanism.declaration()),
        mechanism.channel,
        delta=delta,
        rdp=rdp_curve(privacy),
        parametrisations=mechanism.parametrisations(),
        labels=None if errors is None else errors.labels.tolist(),
        bias=None if errors is None else errors.bias.tolist(),
        variance=None if errors is None else errors.variance.tolist(),
        unbiased=None if errors is None else errors.unbiased,
        loss=losses,
        accuracy=None if prior is None or finite is None else finite.accuracy(prior),
        floor=floor_curve(mechanism),
        notes=notes + remarks,
    )


def expected_loss(mechanism: Mechanism, prior: FloatArray, name: Loss) -> float:
    """Return E[ℓ(ŷ, y)] under a prior, squared being ½(ŷ − y)²; ∞ where it is infinite."""
    # InputError where labels or outputs are no numbers, or the loss cannot be used with these
    # labels.
    numbers = mechanism.offers(NumericMechanism)
    if numbers is None:
        raise InputError("The outputs of this mechanism are not numbers.")
    value = float(numbers.expected_loss(prior, name))
    return math.inf if np.isnan(value) else value


def _loss_or_reason(mechanism: Mechanism, prior: FloatArray, name: Loss) -> float | str:
    try:
        return expected_loss(mechanism, prior, name)
    except InputError as reason:
        return str(reason)


def _describe_columns(request: DescribeRequest) -> Analysis:
    """Analyse a joint mechanism on the domains that the options state."""
    name, family = request.name, joint_family(request.name)
    foreign = [
        o for o in ("classes", "labels", "prior", "noise") if getattr(request, o) is not None
    ]
    wrong = ""
    if foreign:
        flag = "lambda" if foreign[0] == "noise" else foreign[0]
        wrong = (
            "releases several columns: give --epsilon and one --domain A,B,… for each; it takes no "
            f"--{flag}."
        )
    elif request.more:
        wrong = "takes no further parameter (--set)."
    elif (
        request.epsilon is None
        or not isinstance(request.domain, Sequence)
        or len(request.domain) < 2
    ):
        wrong = "must have --epsilon and at least two domains: --domain A,B,… for each column."
    if wrong or request.epsilon is None:
        raise InputError(f"The mechanism {name!r} {wrong}")
    domains: tuple[tuple[Label, ...], ...] = tuple(
        tuple(map(str, split_labels(one))) if isinstance(one, str) else check_classes(one)
        for one in request.domain
    )
    return analyse_columns(family(domains, request.epsilon))


def analyse_columns(mechanism: OnDomains) -> Analysis:
    """Return everything that is exactly known of a mechanism on several columns."""
    channel, notes = None, mechanism.remarks()
    curves: dict[str, Any] = {}
    if mechanism.size <= _MOST and (found := mechanism.channel()) is not None:
        privacy = privacy_of(ExplicitChannel(found))
        curves = {"delta": delta_curve(privacy), "rdp": rdp_curve(privacy)}
        words = tuple(", ".join(map(str, vector)) for vector in product(*mechanism.domains))
        channel = Channel(found.matrix, words, words)
    else:
        few = f"With {mechanism.size:.6g} vectors δ(ε) and the Rényi curve are not computed."
        notes = (*notes, few)
    return analysis_of(
        mechanism.name,
        mechanism.description,
        mechanism.epsilon,
        dict(mechanism.declaration()),
        channel,
        **curves,
        notes=notes,
        columns=tuple(_column(one, mechanism, j) for j, one in enumerate(mechanism.columns)),
    )


def _column(alone: Response, mechanism: OnDomains, place: int) -> ColumnAnalysis:
    kept, rare = 1 - alone.noise, alone.noise / len(alone.classes)
    return ColumnAnalysis(
        labels=len(alone.classes),
        epsilon_within=mechanism.epsilon_of(place),
        epsilon_alone=alone.epsilon,
        keep_probability=alone.keep_probability,
        # Var of (share of released − λ/k)/(1 − λ), where the true share is 0.
        frequency_error=math.sqrt(rare * (1 - rare)) / kept if kept > 0 else math.inf,
    )


def floor_curve(mechanism: Mechanism) -> tuple[tuple[float, float], ...]:
    """Return (α, lower bound of D_α with features drawn from their label) for α > 1, in nats."""
    # Empty for a mechanism without such a floor.
    # Busa-Fekete et al. (2023), Theorem 7.2.
    orders = (alpha for alpha in CURVE_ORDERS if 1 < alpha < math.inf)
    floors = ((alpha, mechanism.conditional_rdp_floor(alpha)) for alpha in orders)
    return tuple((alpha, float(floor)) for alpha, floor in floors if floor is not None)
