"""The work of ``compose``: the privacy of several releases of the same labels."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ldpaudit.commands.mechanism.compose.outputs import Called, declared, hidden, with_names
from ldpaudit.commands.mechanism.compose.upper_bound import UpperBound
from ldpaudit.commands.mechanism.describe.result import LARGEST_SHOWN, Analysis
from ldpaudit.commands.mechanism.domain import Domain, read_domain
from ldpaudit.commands.mechanism.request import ComposeRequest
from ldpaudit.commands.mechanism.specification import Specification, build, settings
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.formats.watching import unchanged
from ldpaudit.datasets.labels import positions
from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms import UNKNOWN, from_declaration, full_name, names
from ldpaudit.mechanisms.analysis import Privacy, delta_curve, privacy_of, rdp_curve
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.composition import compose
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism, NumericMechanism
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.options import FileOptions
from ldpaudit.release import ColumnsDeclaration, Label
from ldpaudit.running.progress import Progress

_MOST: Final = 1000
_MOST_CELLS: Final = 1 << 22
"""Above this many entries the product channel gives way to the upper bound."""
_POINTS: Final = 61
"""Of the curve of an upper bound."""
_RELEASED: Final = ("partly synthetic", "noisy")
_SOME: Final = 5
"""Labels that a message repeats."""
_NUMBERED: Final = (
    "The joint outputs are numbered: each stands for all combinations that tell the same."
)
_KNOWN: Final = "Features are taken as known: this is about the labels alone."


@unchanged()
def compose_releases(request: ComposeRequest, _progress: Progress) -> Analysis:
    """Analyse the joint release.

    Raises
    ------
    InputError, MissingDependencyError
        If a release cannot be composed, with the reason.
    """
    several = _several_columns(request)
    if several is not None:
        from ldpaudit.commands.mechanism.compose.columns import analyse_columns

        return analyse_columns(several)
    stated = any((request.classes, request.labels, request.prior))
    domain = None
    if stated:
        domain = read_domain(request.classes, request.labels, request.prior, request)
    files = {text: _declared(text, domain, request) for text in request.releases if _is_file(text)}
    if domain is None:
        domain = _declared_domain(files.values())
    _check_stated(request.classes, domain, files)
    mechanisms: list[Mechanism] = []
    for text in request.releases:
        mechanisms += [files[text]] if text in files else _specified(text, domain, request.loss)
    if len(mechanisms) > _MOST:
        raise InputError(f"At most {_MOST} releases can be composed. Got {len(mechanisms)}.")
    return analyse_jointly(mechanisms, {} if stated else _called(domain))


def _several_columns(request: ComposeRequest) -> list[ColumnsDeclaration] | None:
    """Return what all files declare, where one of them declares several private columns."""
    files = [text for text in request.releases if _is_file(text)]
    declared = [parse_declaration(_content(text, request)) for text in files]
    if all(len(one.labels) == 1 for one in declared):
        return None
    if len(files) < len(request.releases) or request.classes or request.labels or request.prior:
        raise InputError(
            "Files that declare several private columns are composed with files alone: leave out "
            "mechanisms by name, and --classes, --labels and --prior."
        )
    return declared


def _called(domain: Domain | None) -> Called:
    """Return what the labels of files are called, which are not shown."""
    classes = domain.classes if domain is not None and domain.classes is not None else ()
    return {label: f"class {place}" for place, label in enumerate(classes, start=1)}


def _is_file(text: str) -> bool:
    return full_name(text.partition(":")[0]) not in names() or Path(text).exists()


def _declared_domain(files: Iterable[Mechanism]) -> Domain | None:
    """Return the labels that the first file with classes declares."""
    channels = (mechanism.label_channel for mechanism in files)
    return next((Domain(channel.classes) for channel in channels if channel is not None), None)


def _check_stated(stated: object, domain: Domain | None, files: Mapping[str, Mechanism]) -> None:
    """Refuse stated labels that a file does not have; those of the file are confidential."""
    if stated is None or domain is None or domain.classes is None:
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


def _specified(text: str, domain: Domain | None, loss: Loss) -> list[Mechanism]:
    """Return the mechanism of a specification, as often as it says."""
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
    wanted = Specification(full_name(name), epsilon, noise, more, loss)
    return [build(wanted, domain)] * int(times)


def _declared(file: str, domain: Domain | None, files: FileOptions) -> Mechanism:
    declared = parse_declaration(_content(file, files))
    declaration = declared.mechanism
    if declaration.name == UNKNOWN:
        raise InputError("A release with an unknown mechanism cannot be composed.")
    classes = () if domain is None or domain.classes is None else domain.classes
    return from_declaration(declaration, classes)


def _content(file: str, files: FileOptions) -> Any:
    """Return what a file declares, as it is written."""
    near = did_you_mean(file.partition(":")[0], names())
    if near != "." and not Path(file).exists():
        raise InputError(f"There is no such file, and no such mechanism{near}")
    content = open_table(file, files).declaration
    if content is None:
        raise InputError(f"The file {Path(file).name!r} declares no mechanism.")
    return content


def analyse_jointly(mechanisms: Sequence[Mechanism], called: Called | None = None) -> Analysis:
    """Return the privacy of independent releases of the same labels.

    Exact where every release is a finite channel and their product is not too large; else an upper
    bound. Labels are shown as they are ``called``, where that holds them.

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
            shown = with_names(product, finite, called or {})
            if shown is None:
                notes.append(_NUMBERED)
            privacy = privacy_of(ExplicitChannel(product))
            shown = hidden(shown or product, called or {})
            return _joint(mechanisms, privacy, shown, notes, called)
        notes.append("The product channel is too large to be computed; this is an upper bound.")
    bound = UpperBound([privacy_of(part) for part in mechanisms])
    return _joint(mechanisms, Privacy(bound.epsilon, bound, _POINTS), None, notes, called)


def _label_channel(mechanism: Mechanism) -> Channel | None:
    if not isinstance(mechanism, AnalysedMechanism) or mechanism.epsilon is None:
        raise InputError(f"The mechanism {mechanism.name!r} cannot be composed: it is not known.")
    return mechanism.label_channel


def _check_same_labels(mechanisms: Sequence[Mechanism]) -> None:
    """Refuse releases of different labels; where one has labels, noise must span their range."""
    sets = [_labels(mechanism) for mechanism in mechanisms]
    for one in sets[1:]:
        if not _agree(sets[0], one):
            raise InputError(
                "Composed releases must have the same true labels. The first has "
                f"{len(sets[0])}, another has {len(one)}{' others' * (len(one) == len(sets[0]))}."
            )


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
    mechanisms: Sequence[Mechanism],
    privacy: Privacy,
    product: Channel | None,
    notes: list[str],
    called: Called | None,
) -> Analysis:
    """Return the analysis: exact with a product channel, else an upper bound."""
    delta, n = delta_curve(privacy), len(mechanisms)
    total = math.fsum(float(m.epsilon or 0.0) for m in mechanisms)
    texts = Counter(f"{m.name}: {m.description}" for m in mechanisms)
    return Analysis(
        mechanism="composition",
        description=f"{n} independent release{'s' if n > 1 else ''} of the same labels",
        kind="upper bound" if product is None else "exact",
        epsilon=privacy.epsilon,
        total_variation=delta[0][1] if delta else math.nan,
        delta=delta,
        rdp=rdp_curve(privacy),
        parametrisations={"epsilon": privacy.epsilon, "sum of the releases' ε": total},
        parameters={
            "releases": [
                {"name": m.name, **declared(m.declaration(), called or {})} for m in mechanisms
            ]
        },
        channel=product if product is not None and product.matrix.size <= LARGEST_SHOWN else None,
        notes=(*(text if n == 1 else f"{n} × {text}" for text, n in texts.items()), *notes),
    )
