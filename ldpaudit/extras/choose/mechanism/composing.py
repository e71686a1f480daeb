"""``compose``: the privacy of several releases of the same labels, exact or an upper bound."""

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.datasets.labels import positions
from ldpaudit.doors import (
    AnalysedMechanism,
    Channel,
    InputError,
    Mechanism,
    MissingDependencyError,
    NumericMechanism,
    Progress,
    from_declaration,
    parse_declaration,
    refuse,
)
from ldpaudit.errors import did_you_mean
from ldpaudit.extras.choose.mechanism.analysis import (
    analyse_columns,
    analysis_of,
    build,
    read_domain,
    settings,
)
from ldpaudit.extras.choose.mechanism.request import ComposeRequest
from ldpaudit.extras.choose.mechanism.result import Analysis
from ldpaudit.extras.several.merging import merged_columns
from ldpaudit.mechanisms import UNKNOWN, MechanismOptions, full_name, names
from ldpaudit.mechanisms.analysis import Privacy, delta_curve, privacy_of, rdp_curve
from ldpaudit.mechanisms.joint import from_declaration as joint_of
from ldpaudit.mechanisms.label_range import Loss
from ldpaudit.mechanisms.response import ExplicitChannel
from ldpaudit.options import FileOptions
from ldpaudit.release import ColumnsDeclaration, Label
from ldpaudit.result.numbers import exactly

_MOST: Final = 1000
# Above this many entries the product channel gives way to the upper bound.
_MOST_CELLS: Final = 1 << 22
# Combinations of outputs up to which each is named.
_MOST_NAMED: Final = 4096
# Of the curve of an upper bound.
_POINTS: Final = 61
# Points of the privacy loss grid for the sum of all ε.
_GRID: Final = 4000
_FINEST: Final = 1e-4
_RELEASED: Final = ("partly synthetic", "noisy")
# Labels that a message repeats.
_SOME: Final = 5
_NUMBERED: Final = (
    "The joint outputs are numbered: each stands for all combinations that reveal the same."
)
_KNOWN: Final = "Features are taken as known: this is about the labels alone."
_TOGETHER: Final = "columns released together"

# What labels and outputs are called that must not be shown.
Called = Mapping[Label, str]


@unchanged()
def compose_releases(request: ComposeRequest, _progress: Progress) -> Analysis:
    """Analyse the joint release."""
    # InputError, MissingDependencyError if a release cannot be composed, with the reason.
    stated = any((request.classes, request.labels, request.prior))
    contents = {
        text: _declaration(text, request)
        for text in request.releases
        if full_name(text.partition(":")[0]) not in names() or Path(text).exists()
    }
    if any(len(one.labels) > 1 for one in contents.values()):
        refuse(
            stated or any(text not in contents for text in request.releases),
            "Files that declare several private columns are composed with files alone: leave "
            "out mechanisms by name, and --classes, --labels and --prior.",
        )
        return _over_columns([contents[text] for text in request.releases])
    domain = None
    if stated:
        domain = read_domain(request.classes, request.labels, request.prior, request)
    classes = (domain and domain.classes) or ()
    unknown = any(one.mechanism.name == UNKNOWN for one in contents.values())
    refuse(unknown, "A release with an unknown mechanism cannot be composed.")
    files = {text: from_declaration(one.mechanism, classes) for text, one in contents.items()}
    if domain is None:
        channels = (mechanism.label_channel for mechanism in files.values())
        domain = next((MechanismOptions(classes=one.classes) for one in channels if one), None)
    if request.classes is not None:
        _check_stated(domain, files)
    mechanisms: list[Mechanism] = []
    for text in request.releases:
        mechanisms += [files[text]] if text in files else _specified(text, domain, request.loss)
    refuse(
        len(mechanisms) > _MOST, f"At most {_MOST} releases can be composed. Got {len(mechanisms)}."
    )
    if stated or domain is None:
        return analyse_jointly(mechanisms)
    # The labels of files are not shown.
    called = {label: f"class {place}" for place, label in enumerate(domain.classes or (), start=1)}
    return analyse_jointly(mechanisms, called)


def _declaration(file: str, files: FileOptions) -> ColumnsDeclaration:
    near = did_you_mean(file.partition(":")[0], names())
    missing = near != "." and not Path(file).exists()
    refuse(missing, f"There is no such file, and no such mechanism{near}")
    content: Any = open_table(file, files).declaration
    refuse(content is None, f"The file {Path(file).name!r} declares no mechanism.")
    return parse_declaration(content)


def _check_stated(domain: MechanismOptions | None, files: Mapping[str, Mechanism]) -> None:
    """Refuse stated labels that a file does not have; those of the file are confidential."""
    if domain is None or domain.classes is None:
        return
    for file, mechanism in files.items():
        theirs = _labels(mechanism)
        if not _agree(domain.classes, theirs):
            typed = ", ".join(map(str, domain.classes[:_SOME]))
            more = ", …" if len(domain.classes) > _SOME else ""
            raise InputError(
                f"Composed releases must have the same true labels. --classes names "
                f"{len(domain.classes)} ({typed}{more}); {Path(file).name!r} declares "
                f"{len(theirs)}, and not those. Leave out --classes: the labels are then taken "
                "from the file."
            )


def _specified(text: str, domain: MechanismOptions | None, loss: Loss) -> list[Mechanism]:
    """Return the mechanism of a specification, as often as it says."""
    if domain is None:
        raise InputError(
            "A mechanism without a file needs labels: --classes A,B,… or --labels LO:HI:STEP."
        )
    name, _, rest = text.partition(":")
    more = settings([part for part in rest.split(",") if part])
    times = more.pop("times", 1.0)
    refuse(
        isinstance(times, bool | str) or not 1 <= times <= _MOST or times != int(times),
        f"'times' must be a whole number from 1 to {_MOST}.",
    )
    epsilon, noise = more.pop("epsilon", None), more.pop("lambda", None)
    wanted = replace(domain, epsilon=epsilon, noise=noise, settings=more, loss=loss)
    return [build(full_name(name), wanted)] * int(times)


def _over_columns(files: Sequence[ColumnsDeclaration]) -> Analysis:
    """Return the privacy of everything that files with new noise reveal of a person."""
    # Columns with noise of their own are composed over the files, each by itself, and their ε is
    # added up; one mechanism for several columns counts by its own ε.
    over: dict[str, list[Mechanism]] = {}
    parts: list[tuple[str, Analysis]] = []
    for declared in files:
        if declared.joint is not None:
            joint = joint_of(declared, [()] * len(declared.labels)).on_domains
            assert joint is not None
            parts.append((_TOGETHER, analyse_columns(joint)))
            continue
        for one in declared.labels:
            over.setdefault(one.label, []).append(from_declaration(one.mechanism, ()))
    for name, mechanisms in over.items():
        try:
            parts.append((f"column {name}", analyse_jointly(mechanisms)))
        except InputError as error:
            raise InputError(f"Column {name}: {error}") from None
    total = math.fsum(one.epsilon for _, one in parts)
    each: dict[str, float] = {}
    for name, part in parts:
        each[f"ε of {name}"] = each.get(f"ε of {name}", 0.0) + part.epsilon
    # Of one mechanism for several columns the worst pair may differ from release to release.
    apart = len(parts) == 1 or all(name != _TOGETHER for name, _ in parts)
    exact = apart and all(one.kind == "exact" for _, one in parts)
    curves = [dict(one.rdp) for _, one in parts]
    orders = [a for a in curves[0] if all(a in curve for curve in curves)]
    description = (
        f"{len(over) or len(files[0].labels)} private columns over {len(files)} "
        f"release{'s' * (len(files) > 1)} of the same people"
    )
    return analysis_of(
        "composition",
        description,
        total,
        {},
        None,
        kind="exact" if exact else "upper bound",
        rdp=tuple((alpha, math.fsum(curve[alpha] for curve in curves)) for alpha in orders),
        parametrisations=each,
        notes=("δ(ε) is not computed for several columns.",),
    )


def analyse_jointly(mechanisms: Sequence[Mechanism], called: Called | None = None) -> Analysis:
    """Return the privacy of independent releases of the same labels."""
    # Exact where every release is a finite channel and their product is not too large; else an
    # upper bound. Labels are shown as they are ``called``, where that holds them. InputError if a
    # mechanism's privacy is not known, its ε is infinite where a bound is needed, or the labels
    # differ.
    for one in mechanisms:
        refuse(
            one.offers(AnalysedMechanism) is None or one.epsilon is None,
            f"The mechanism {one.name!r} cannot be composed: it is not known.",
        )
    first, *others = map(_labels, mechanisms)
    for own in others:  # Where one has labels, noise must span their range.
        refuse(
            not _agree(first, own),
            "Composed releases must have the same true labels. The first has "
            f"{len(first)}, another has {len(own)}{' others' * (len(own) == len(first))}.",
        )
    called, n = called or {}, len(mechanisms)
    notes = [_KNOWN] if any(m.traits.features in _RELEASED for m in mechanisms) else []
    finite = [m.label_channel for m in mechanisms if m.label_channel is not None]
    found = _product(finite, called) if len(finite) == n else None
    joint = None if found is None else found[0]
    if found is not None:
        privacy = privacy_of(ExplicitChannel(found[0]))
        notes += [_NUMBERED] * (not found[1])
    else:
        if len(finite) == n:
            notes.append("The product channel is too large to be computed; this is an upper bound.")
        bound = UpperBound([privacy_of(part) for part in mechanisms])
        privacy = Privacy(bound.epsilon, bound, _POINTS)
    texts = Counter(f"{m.name}: {m.description}" for m in mechanisms)
    stated = [
        {
            key: [called.get(one, one) for one in value] if key in ("classes", "outputs") else value
            for key, value in (("name", m.name), *m.declaration().items())
        }
        for m in mechanisms
    ]
    total = math.fsum(float(m.epsilon or 0.0) for m in mechanisms)
    return analysis_of(
        "composition",
        f"{n} independent release{'s' if n > 1 else ''} of the same labels",
        privacy.epsilon,
        {"releases": stated},
        joint,
        kind="upper bound" if joint is None else "exact",
        delta=delta_curve(privacy),
        rdp=rdp_curve(privacy),
        parametrisations={"sum of the releases' ε": total},
        notes=(*(text if k == 1 else f"{k} × {text}" for text, k in texts.items()), *notes),
    )


def _labels(mechanism: Mechanism) -> tuple[Label, ...]:
    if mechanism.label_channel is not None:
        return mechanism.label_channel.classes
    if (numbers := mechanism.offers(NumericMechanism)) is not None:
        values = numbers.label_values
        return numbers.label_bounds if values is None else tuple(values.tolist())
    return tuple(mechanism.declaration()["classes"])


def _agree(one: tuple[Label, ...], other: tuple[Label, ...]) -> bool:
    if len(one) == len(other):
        return sorted(positions(other, one).tolist()) == list(range(len(one)))
    # A range without a step against a grid: the same ends.
    short, long = sorted((one, other), key=len)
    numbers = all(isinstance(v, int | float) for v in (*short, *long))
    return numbers and len(short) == 2 and {*short} == {min(long), max(long)}


def _product(channels: Sequence[Channel], called: Called) -> tuple[Channel, bool] | None:
    """Return the product of channels, and whether its outputs are named; None: it is too large."""
    # Combinations of outputs that tell the same are one output. It is called as the first of them,
    # one output after the other, unless there are too many.
    classes, stands = channels[0].classes, list[Any]([[()]])
    matrix = np.ones((len(classes), 1))
    named = math.prod(len(channel.outputs) for channel in channels) <= _MOST_NAMED
    for channel in channels:
        own = channel.matrix[positions(classes, channel.classes)]
        if matrix.shape[1] > 1 and matrix.size * len(channel.outputs) > _MOST_CELLS:
            return None
        every = (matrix[:, :, None] * own[:, None, :]).reshape(len(classes), -1)
        matrix, groups = merged_columns(every)
        if named:
            found: list[Any] = [[] for _ in matrix.T]
            for group, (alike, place) in zip(
                groups, product(stands, range(own.shape[1])), strict=True
            ):
                if group >= 0:
                    found[group] += [(*one, place) for one in alike]
            stands = found
    outputs: list[Any] = list(range(matrix.shape[1]))
    for i, alike in enumerate(stands if named else ()):
        first = (channel.outputs[at] for channel, at in zip(channels, min(alike), strict=True))
        words = (
            called.get(one) or (exactly(one, 3) if isinstance(one, float) else str(one))
            for one in first
        )
        more = f" (or {len(alike) - 1} like it)" if len(alike) > 1 else ""
        outputs[i] = ", ".join(words) + more
    labels = tuple(called.get(label, label) for label in classes)
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    return Channel(matrix, labels, tuple(outputs)), named


class UpperBound:
    """An upper bound of the privacy of independent releases of the same labels."""

    # It goes through privacy loss distributions. A mechanism's exact curve δ(ε) is that of some
    # pair of distributions, which dominates every pair of labels; composing dominating pairs
    # dominates the composition (Zhu et al. 2022, Theorem 10), and connecting the dots of the curve
    # at the points of a grid only raises it (Doroshenko et al. 2022, Algorithm 1). ``releases``:
    # each with a finite ε; at least one. InputError if some ε is infinite. MissingDependencyError
    # if dp-accounting is not installed.

    def __init__(self, releases: Sequence[Privacy]) -> None:
        refuse(
            not all(math.isfinite(release.epsilon) for release in releases),
            "A release without a finite ε cannot be composed: nothing bounds it.",
        )
        self._releases = tuple(releases)
        self.epsilon = math.fsum(release.epsilon for release in releases)
        interval = max(_FINEST, self.epsilon / _GRID)
        # Equal releases share one curve, computed once; ε = 0 gives nothing away.
        leaking = [release for release in releases if release.epsilon]
        losses = {id(r.curves): _loss_distribution(r, interval) for r in leaking}
        self._joint: Any = None
        for loss in (losses[id(release.curves)] for release in leaking):
            self._joint = loss if self._joint is None else self._joint.compose(loss)

    def delta(self, epsilon: float) -> float:
        """Return a δ ≥ δ(ε) for which the joint release is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        if self._joint is None or epsilon >= self.epsilon:
            return 0.0
        return min(float(self._joint.get_delta_for_epsilon(epsilon)), 1.0)

    def rdp(self, alpha: float) -> float:
        """Return the sum of the Rényi parameters at order α > 0, in nats: an upper bound."""
        # Source: Mironov (2017), Proposition 1.
        return min(math.fsum(release.curves.rdp(alpha) for release in self._releases), self.epsilon)


def _loss_distribution(release: Privacy, interval: float) -> Any:
    """Return a pessimistic privacy loss distribution made of the exact δ(ε)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from dp_accounting.pld import pld_pmf, privacy_loss_distribution
    except ImportError:
        raise MissingDependencyError(
            "These releases can only be composed with dp-accounting: pip install "
            "'ldpaudit[accounting]'."
        ) from None
    steps = math.ceil(release.epsilon / interval * (1 - 1e-12)) + 1
    above = np.array([release.curves.delta(step * interval) for step in range(steps + 1)])
    above[-1] = 0.0
    grid = interval * np.arange(1, steps + 1)
    # The curve of a symmetric pair below 0: δ(−ε) = 1 − e^{−ε} + e^{−ε} δ(ε).
    below = -np.expm1(-grid) + np.exp(-grid) * above[1:]
    falling = np.minimum.accumulate(np.clip(np.concatenate([below[::-1], above]), 0.0, 1.0))
    places = np.arange(-steps, steps + 1)
    masses = pld_pmf.create_pmf_pessimistic_connect_dots(interval, places, falling)
    return privacy_loss_distribution.PrivacyLossDistribution(masses)
