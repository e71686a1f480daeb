"""The work of ``compose``: the privacy of several releases of the same labels."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ldpaudit.commands.mechanism.compose.upper_bound import UpperBound
from ldpaudit.commands.mechanism.describe.result import LARGEST_SHOWN, Analysis
from ldpaudit.commands.mechanism.domain import Domain, read_domain
from ldpaudit.commands.mechanism.request import ComposeRequest
from ldpaudit.commands.mechanism.specification import Specification, build, settings
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.labels import positions
from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms import UNKNOWN, from_declaration, full_name, names
from ldpaudit.mechanisms.analysis import Privacy, delta_curve, privacy_of, rdp_curve
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.composition import compose
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism, NumericMechanism
from ldpaudit.options import FileOptions
from ldpaudit.release import Label
from ldpaudit.running.progress import Progress

_MOST: Final = 1000
_MOST_CELLS: Final = 1 << 22
"""Above this many entries the product channel gives way to the upper bound."""
_POINTS: Final = 61
"""Of the curve of an upper bound."""
_RELEASED: Final = ("partly synthetic", "noisy")
_KNOWN: Final = "Features are taken as known: this is about the labels alone."


def compose_releases(request: ComposeRequest, _progress: Progress) -> Analysis:
    """Analyse the joint release.

    Raises
    ------
    InputError, MissingDependencyError
        If a release cannot be composed, with the reason.
    """
    stated = (request.classes, request.labels, request.prior)
    domain = read_domain(*stated, request) if any(stated) else None
    mechanisms: list[Mechanism] = []
    for text in request.releases:
        mechanisms += _release(text, domain, request)
    if len(mechanisms) > _MOST:
        raise InputError(f"At most {_MOST} releases can be composed. Got {len(mechanisms)}.")
    return analyse_jointly(mechanisms)


def _is_specification(text: str) -> bool:
    return full_name(text.partition(":")[0]) in names() and not Path(text).exists()


def _release(text: str, domain: Domain | None, request: ComposeRequest) -> list[Mechanism]:
    """Return the mechanism of one argument, as often as it says."""
    if not _is_specification(text):
        return [_declared(text, domain, request)]
    if domain is None:
        raise InputError(
            "A mechanism without a file needs labels: --classes A,B,… or --labels LO:HI:STEP."
        )
    name, _, rest = text.partition(":")
    more = settings([part for part in rest.split(",") if part])
    times = more.pop("times", 1.0)
    if isinstance(times, bool | str) or not 1 <= times <= _MOST or times != int(times):
        raise InputError(f"'times' must be a whole number from 1 to {_MOST}.")
    epsilon, noise = more.pop("epsilon", None), more.pop("lambda", None)
    wanted = Specification(full_name(name), epsilon, noise, more, request.loss)
    return [build(wanted, domain)] * int(times)


def _declared(file: str, domain: Domain | None, files: FileOptions) -> Mechanism:
    near = did_you_mean(file.partition(":")[0], names())
    if near != "." and not Path(file).exists():
        raise InputError(f"There is no such file, and no such mechanism{near}")
    content = open_table(file, files).declaration
    if content is None:
        raise InputError(f"The file {Path(file).name!r} declares no mechanism.")
    declaration = parse_declaration(content).mechanism
    if declaration.name == UNKNOWN:
        raise InputError("A release with an unknown mechanism cannot be composed.")
    classes = () if domain is None or domain.classes is None else domain.classes
    return from_declaration(declaration, classes)


def analyse_jointly(mechanisms: Sequence[Mechanism]) -> Analysis:
    """Return the privacy of independent releases of the same labels.

    Exact where every release is a finite channel and their product is not too large; else an upper
    bound.

    Raises
    ------
    InputError
        If a mechanism's privacy is not known, its ε is infinite where a bound is needed, or the
        labels differ.
    """
    channels = [_label_channel(mechanism) for mechanism in mechanisms]
    _check_same_labels(mechanisms)
    notes = [_KNOWN] if any(m.traits.features in _RELEASED for m in mechanisms) else []
    finite = [channel for channel in channels if channel is not None]
    if len(finite) == len(channels):
        product = _product(finite)
        if product is not None:
            return _joint(mechanisms, privacy_of(ExplicitChannel(product)), product, notes)
        notes.append("The product channel is too large to be computed; this is an upper bound.")
    bound = UpperBound([privacy_of(part) for part in mechanisms])
    return _joint(mechanisms, Privacy(bound.epsilon, bound, _POINTS), None, notes)


def _label_channel(mechanism: Mechanism) -> Channel | None:
    if not isinstance(mechanism, AnalysedMechanism) or mechanism.epsilon is None:
        raise InputError(f"The mechanism {mechanism.name!r} cannot be composed: it is not known.")
    return mechanism.label_channel


def _check_same_labels(mechanisms: Sequence[Mechanism]) -> None:
    """Refuse releases of different labels; where one has labels, noise must span their range."""
    sets = [_labels(mechanism) for mechanism in mechanisms]
    for one in sets[1:]:
        if not _agree(sets[0], one):
            raise InputError("Composed releases must have the same true labels.")


def _labels(mechanism: Mechanism) -> tuple[Label, ...] | tuple[float, float]:
    if mechanism.label_channel is not None:
        return mechanism.label_channel.classes
    if isinstance(mechanism, NumericMechanism):
        values = mechanism.label_values
        return mechanism.label_bounds if values is None else tuple(values.tolist())
    return tuple(mechanism.declaration()["classes"])


def _agree(one: tuple[Label, ...], other: tuple[Label, ...]) -> bool:
    if len(one) == len(other):
        return sorted(positions(other, one).tolist()) == list(range(len(one)))
    # A range without a step against a grid: the same ends.
    short, long = sorted((one, other), key=len)
    numbers = all(isinstance(v, int | float) for v in (*short, *long))
    return numbers and len(short) == 2 and {*short} == {min(long), max(long)}


def _product(channels: Sequence[Channel]) -> Channel | None:
    first = channels[0]
    joint = compose(first)
    for channel in channels[1:]:
        order = positions(first.classes, channel.classes)
        same = Channel(channel.matrix[order], first.classes, channel.outputs)
        if joint.matrix.size * len(same.outputs) > _MOST_CELLS:
            return None
        joint = compose(joint, same)
    return joint


def _joint(
    mechanisms: Sequence[Mechanism], privacy: Privacy, product: Channel | None, notes: list[str]
) -> Analysis:
    """Return the analysis: exact with a product channel, else an upper bound."""
    delta, n = delta_curve(privacy), len(mechanisms)
    total = math.fsum(float(m.epsilon or 0.0) for m in mechanisms)
    distinct = {id(mechanism): mechanism for mechanism in mechanisms}.values()
    return Analysis(
        mechanism="composition",
        description=f"{n} independent release{'s' if n > 1 else ''} of the same labels",
        kind="upper bound" if product is None else "exact",
        epsilon=privacy.epsilon,
        total_variation=delta[0][1] if delta else math.nan,
        delta=delta,
        rdp=rdp_curve(privacy),
        parametrisations={"epsilon": privacy.epsilon, "sum of the releases' ε": total},
        parameters={"releases": [{"name": m.name, **m.declaration()} for m in mechanisms]},
        channel=product if product is not None and product.matrix.size <= LARGEST_SHOWN else None,
        notes=(*(f"{m.name}: {m.description}" for m in distinct), *notes),
    )
