"""From the options, or a plan, to one checked request for each private column."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from ldpaudit.datasets.labels import split_labels
from ldpaudit.device import check_device, need_torch
from ldpaudit.doors import InputError, check_epsilon, refuse
from ldpaudit.errors import did_you_mean, quoted
from ldpaudit.extras.release.privatize.request import ColumnRequest, PrivatizeRequest
from ldpaudit.mechanisms import full_name, traits_of
from ldpaudit.mechanisms.joint import joint_family
from ldpaudit.mechanisms.keyed import NoiseKey
from ldpaudit.mechanisms.listing import DEFAULT, EXPLICIT
from ldpaudit.mechanisms.parameters import check_proportion
from ldpaudit.mechanisms.registry import applicable, families, names
from ldpaudit.options import (
    LabelOptions,
    check_distinct,
    check_ordered,
    label_options,
    option_name,
    parse_label,
    texts_of,
)
from ldpaudit.options.labels import KEYS
from ldpaudit.plugins import NOT_HERE
from ldpaudit.work.documents import parse_toml, read_document, why_unreadable
from ldpaudit.work.limits import POLICY_BYTES

# Options that hold for each of several columns that does not state its own.
_SHARED: Final = ("mechanism", "epsilon", "noise")
# Options that one column alone can mean.
_OF_ONE: Final = tuple(f for f, _ in KEYS.values() if f not in (*_SHARED, "by"))
# What may differ between the strata of a column.
_OF_STRATUM: Final = {*_SHARED, "channel", "classes", "loss", "unperturbed"}
_WORDS: Final = {field: key for key, (field, _) in KEYS.items()}
_OPTION: Final = re.compile(rf"--({'|'.join(sorted(KEYS, key=len, reverse=True))})\b")
_APART: Final = (
    ("prior", "private_prior"),
    ("classes", "labels"),
    ("epsilon", "noise"),
    ("synthetic", "generator"),
)
# Options that mean nothing without another one, and why.
_WITH: Final = {
    "seed": ("experimental", ": anybody who knows the seed can undo the mechanism."),
    "generator_data": ("generator", ", which is trained on it."),
    "synthetic_out": (
        "generator",
        ", which makes the sample; a table of --synthetic can be handed out itself.",
    ),
    "posterior_out": ("public", ", the table that the model is fitted on."),
    "synthetic_rows": ("synthetic_out", ", whose rows it counts."),
    "remember": ("id_column", ", the column that identifies people."),
}


@dataclass(frozen=True)
class StatedRelease:
    """What is to be released: the private columns, at least one, each with its request.

    ``joint`` is the full name of the mechanism that releases all of them together, else None; the
    requests then state no more than each column's labels.
    """

    columns: tuple[ColumnRequest, ...]
    joint: str | None = None
    epsilon: float | None = None


def stated_release(request: PrivatizeRequest, key: NoiseKey | None = None) -> StatedRelease:
    """Return the requests of all private columns, checked as far as options alone decide."""
    # InputError, MissingDependencyError if options contradict one another or a plan, a mechanism is
    # missing or cannot be one of several, or an option does not belong to it or is out of range.
    _check_company(request)
    refuse(
        request.id_column is not None and request.remember is None and request.secret is None,
        "--id must come with --remember or --secret, which it is for.",
    )
    if request.plan is not None:
        for option in _given(request, ("label", "joint", *_SHARED, *_OF_ONE)):
            raise InputError(
                f"The plan says what is done with each private column; leave out {option}."
            )
        stated, joint, epsilon = read_plan(request.plan)
        request = replace(request, plan=None, label=stated, joint=joint, epsilon=epsilon)
    stated = _labels(request)
    check_distinct(one.label for one in stated)
    joint = None if request.joint is None else joint_family(request.joint).name
    if joint is not None:
        _check_together(request, stated, joint)
        request = replace(request, joint=None, mechanism=DEFAULT)
    elif len(stated) > 1:
        _check_shared(request, stated)
    columns = tuple(_column(request, one, len(stated), key) for one in stated)
    for column in columns:
        with about(column):
            for one in (column, *column.strata.values()):
                check_column(one)
    return StatedRelease(columns, joint, request.epsilon)


@contextmanager
def about(request: ColumnRequest) -> Iterator[None]:
    """Let an error's message say which of several columns it is about, and name its keys."""
    try:
        yield
    except InputError as error:
        if request.one_of == 1:
            raise
        # A column has keys where a command has options.
        message = _OPTION.sub(r"\1", str(error))
        raise InputError(f"The column {quoted(request.label)}: {message}") from None


def _given(request: PrivatizeRequest, names: Iterable[str]) -> Iterator[str]:
    """Yield the options among these that are given, as they are called."""
    for name in names:
        value = getattr(request, name)
        if value is not None and value is not False and (name, value) != ("label", "label"):
            yield option_name(request, name)


def _labels(request: PrivatizeRequest) -> tuple[LabelOptions, ...]:
    given: Any = request.label
    check_ordered(given, "label")
    several = isinstance(given, Collection) and not isinstance(given, str)
    listed = tuple(given) if several else (given,)
    texts_of(tuple(one for one in listed if not isinstance(one, LabelOptions)), "label")
    refuse(not listed, "Name the private column: --label COL.")
    # With the mechanism in an option of its own a single name may hold colons.
    plain = len(listed) == 1 and request.mechanism is not None
    read = (lambda name: LabelOptions(label=name)) if plain else parse_label
    return tuple(one if isinstance(one, LabelOptions) else read(one) for one in listed)


def _check_shared(request: PrivatizeRequest, stated: tuple[LabelOptions, ...]) -> None:
    """Refuse options that one column alone can mean, or that every column overrides."""
    for name in _OF_ONE:
        for option in _given(request, [name]):
            raise InputError(
                f"{option} could mean any of {len(stated)} private columns; state it with the "
                f"column's own: COL:MECHANISM:{_WORDS[name]}=…, or in a plan."
            )
    own = [one.stated().keys() for one in stated]
    needless = [*_SHARED[:1]] if all("mechanism" in keys for keys in own) else []
    needless += _SHARED[1:] if all(keys & {*_SHARED[1:]} for keys in own) else ()
    for option in _given(request, needless):
        raise InputError(f"Every column has its own; leave out {option}.")


def _check_together(
    request: PrivatizeRequest, stated: tuple[LabelOptions, ...], joint: str
) -> None:
    """Refuse what cannot be stated of columns that one mechanism releases."""
    refuse(len(stated) < 2, f"The mechanism {joint!r} releases several columns: name at least two.")
    for option in _given(request, ("mechanism", "noise", *_OF_ONE)):
        raise InputError(f"{option} does not belong to the joint mechanism {joint!r}.")
    refuse(
        request.epsilon is None,
        f"The mechanism {joint!r} must be given --epsilon, for all its columns.",
    )
    for one in stated:
        refuse(
            one.stated().keys() - {"classes", "labels"},
            f"The mechanism {joint!r} releases the column {quoted(one.label)} with all others; "
            "state its classes or labels at most, and nothing else of its own.",
        )


def _column(
    request: PrivatizeRequest, one: LabelOptions, one_of: int, key: NoiseKey | None
) -> ColumnRequest:
    """Return the request of one column: what it states, and the options that are for each."""
    # A stratum has a request of its own, of which only the channel is used.
    name = quoted(one.label)
    if one.by is not None and not one.strata and one.channel is None:
        raise InputError(
            f"The column {name}: a channel for each value of {quoted(one.by)} is stated by a table "
            "of them (channel=FILE), or in a plan (--plan FILE) as 'strata'."
        )
    strata = {}
    for value, own in one.strata.items():
        if foreign := own.stated().keys() - _OF_STRATUM:
            raise InputError(
                f"The column {name}: a stratum may state its mechanism, epsilon, lambda, classes, "
                f"unperturbed, channel and loss; {_WORDS[min(foreign)]} is the same for all."
            )
        if both := own.stated().keys() & one.stated().keys() - {"mechanism"}:
            raise InputError(
                f"The column {name} states {_WORDS[min(both)]} for all rows and for a stratum; "
                "leave one out."
            )
        merged = replace(one, by=None, strata={}, **own.stated())
        strata[value] = _stated(request, merged, one_of, key)
        refuse(
            one.private_prior is not None or one.round is not None,
            "A column with strata takes no --private-prior and no --round.",
        )
    if not strata:
        return _stated(request, one, one_of, key)
    return replace(next(iter(strata.values())), by=one.by, strata=strata)


def _stated(
    request: PrivatizeRequest, one: LabelOptions, one_of: int, key: NoiseKey | None
) -> ColumnRequest:
    own = one.stated()
    for listed in ("classes", "unperturbed"):
        if isinstance(own.get(listed), str):
            own[listed] = split_labels(own[listed])
    common = {f.name: getattr(request, f.name) for f in fields(PrivatizeRequest)}
    if one_of == 1:
        for option in _given(request, [key for key in own if key in common]):
            raise InputError(f"{option} is stated twice; leave one out.")
    # A table of channels is a whole mechanism.
    default = EXPLICIT if one.channel is not None else common["mechanism"]
    mechanism = own.pop("mechanism", None) or default
    refuse(
        mechanism is None and one_of == 1 and not own,
        "Say what releases the label: --mechanism NAME, --label COL:MECHANISM:epsilon=1, or a "
        "plan (--plan FILE).",
    )
    refuse(
        mechanism is None,
        f"The column {quoted(one.label)} must have a mechanism: COL:MECHANISM:epsilon=1, or "
        "--mechanism for every column that has none.",
    )
    mechanism = full_name(mechanism)
    if one_of > 1 and (
        own.keys() & {"epsilon", "noise"} or "epsilon" not in traits_of(mechanism).options
    ):
        common |= {"epsilon": None, "noise": None}
    named = {"mechanism": mechanism, "label": one.label, "one_of": one_of, "plan": None}
    named["key"] = key
    return ColumnRequest(**(common | own | named))


def check_column(request: ColumnRequest) -> None:
    """Check everything that the options of one private column alone decide."""
    # InputError if the mechanism cannot be applied, or an option does not belong to it, is missing
    # or out of range. MissingDependencyError if it needs PyTorch, and that is not installed.
    takes, traits = options_of(request.mechanism), traits_of(request.mechanism)
    every = {option for family in families() for option in family.traits.options}
    for option in _given(request, (f.name for f in fields(request) if f.name in every - {*takes})):
        raise InputError(f"{option} does not belong to the mechanism {request.mechanism!r}.")
    _check_company(request)
    if "epsilon" in takes:
        _check_amount(request, synthetic=traits.features == "partly synthetic")
    if request.generator is not None:
        from ldpaudit.extras.release.synthesis.factory import check_generator

        check_generator(request.generator)
    if request.generator == "gan":
        need_torch("The generator 'gan'")
    check_device(request.device)
    for wrong, message in (
        (
            request.synthetic_rows is not None and request.synthetic_rows < 1,
            f"--synthetic-rows must be at least 1. Got {request.synthetic_rows}.",
        ),
        (request.seed is not None and request.seed < 0, "--seed must not be negative."),
        (
            request.missing == "class" and traits.numeric,
            f"--missing class makes a class, and the mechanism {request.mechanism!r} takes "
            "numbers; use --missing drop.",
        ),
        (
            request.unperturbed is not None
            and (
                traits.numeric
                or traits.features != "unchanged"
                or traits.label_depends_on_features
                or request.labels is not None
                or request.round is not None
                or request.channel is not None
            ),
            f"--unperturbed leaves out labels of a mechanism that draws among classes; "
            f"{request.mechanism!r} with these options does not. A channel says by itself which "
            "labels stay.",
        ),
        (request.label in request.drop, "The label's column must not be dropped."),
        (
            set(request.keep) & {request.label, *request.drop},
            "--keep must name other columns than --label and --drop.",
        ),
        (
            request.one_of > 1
            and (traits.features != "unchanged" or traits.label_depends_on_features),
            f"The mechanism {request.mechanism!r} changes or uses the features of the whole row, "
            "so it cannot release one of several private columns; release that label alone.",
        ),
    ):
        refuse(wrong, message)


def _check_company(request: PrivatizeRequest) -> None:
    """Refuse options of which one excludes another, or lacks one that it needs."""
    for pair in _APART:
        both = [*_given(request, pair)]
        if len(both) == 2 and isinstance(request, ColumnRequest):
            raise InputError(f"Give {both[0]} or {both[1]}, not both.")
    for name, (needed, why) in _WITH.items():
        if getattr(request, name) is not None and getattr(request, needed) in (None, False):
            must, other = (option_name(request, one) for one in (name, needed))
            raise InputError(f"{must} must come with {other}{why}")


def _check_amount(request: ColumnRequest, *, synthetic: bool) -> None:
    """Check ε or λ: one of them, in range, and not without any effect."""
    if request.epsilon is not None:
        check_epsilon(request.epsilon)
    elif request.noise is not None:
        check_proportion("lambda", request.noise)
    else:
        takes = "noise" in options_of(request.mechanism)
        choice = "--epsilon or --lambda" if takes else "--epsilon"
        raise InputError(f"The mechanism {request.mechanism!r} must be given {choice}.")
    refuse(
        request.noise == 0, "With lambda = 0 every true label would be released; give a larger one."
    )
    refuse(
        synthetic and request.noise == 1, "With lambda = 1 nothing of the data would be released."
    )
    first = request.private_prior
    if first is None or first == "auto" or request.epsilon is None:
        return
    refuse(
        not check_epsilon(first) < request.epsilon,
        f"--private-prior spends a part of --epsilon and must be below it: "
        f"{first:g} leaves nothing of {request.epsilon:g} for the labels.",
    )


def options_of(name: str) -> tuple[str, ...]:
    """Return the fields of :class:`PrivatizeRequest` that a mechanism uses."""
    # InputError if there is no such mechanism, or it cannot be applied to a table.
    choices = applicable()
    refuse(
        name not in names(),
        f"The mechanism {name!r} is not known; choose one of {', '.join(choices)}"
        f"{did_you_mean(name, choices, NOT_HERE)}",
    )
    options = traits_of(name).options
    refuse(
        not options,
        f"The mechanism {name!r} cannot be applied to a table; choose one of {', '.join(choices)}.",
    )
    return options


def labels_of(mechanisms: Mapping[str, Any]) -> tuple[LabelOptions, ...]:
    """Return the private columns of a Python call.

    ``mechanisms``: from a column to its mechanism, ``"MECHANISM:KEY=VALUE:…"`` or the keys of a
    plan (InputError as :func:`parse_label` and :func:`read_plan`).
    """
    columns = list[LabelOptions]()
    for name in texts_of(mechanisms.keys(), "label"):
        how = mechanisms[name]
        if isinstance(how, str):
            columns.append(parse_label(f"{LabelOptions(label=name).text()}:{how}"))
            continue
        refuse(
            not isinstance(how, Mapping),
            f"The mechanism of the column {quoted(name)} must be its name, such as "
            "'rr:epsilon=1', or a mapping such as {'mechanism': 'rr', 'epsilon': 1.0}.",
        )
        columns += read_plan({"labels": [{"label": name, **how}]}).labels
    return tuple(columns)


class Plan(NamedTuple):
    """The private columns, at least one; the joint mechanism as it was typed; its ε in nats."""

    labels: tuple[LabelOptions, ...]
    joint: str | None = None
    epsilon: float | None = None


def read_plan(source: str | os.PathLike[str] | Mapping[str, Any]) -> Plan:
    """Read a plan; the files that it names lie beside it, unless their paths say otherwise.

    ::

        [[labels]]
        label = "income"
        mechanism = "rr"
        epsilon = 1.0

        [[labels]]
        label = "diagnosis"
        by = "region"
        mechanism = "rr"
        strata = { north = { epsilon = 1.0 }, south = { epsilon = 0.5 } }

    InputError if it cannot be read, or a key is missing, unknown or not of its kind.
    """
    stated: Mapping[str, Any] = source if isinstance(source, Mapping) else {}
    folder = None
    if not isinstance(source, Mapping):
        refuse(
            not isinstance(source, str | os.PathLike),
            f"A plan must be a TOML file or a mapping. Got {type(source).__name__} instead.",
        )
        path = Path(source)
        folder, name = path.parent, quoted(path.name or str(path))
        try:
            stated = parse_toml(read_document(path, POLICY_BYTES), "A plan")
        except InputError:
            raise
        except (OSError, UnicodeError) as error:
            raise InputError(f"The plan {name} cannot be read: {why_unreadable(error)}.") from None
        except ValueError as error:
            raise InputError(f"The plan {name} is not TOML: {error}.") from None
    _check_keys(stated, ("labels", "joint"), "The plan")
    tables: Any = stated.get("labels")
    refuse(
        not isinstance(tables, list | tuple) or not tables,
        "A plan must list the private columns: a table [[labels]] for each.",
    )
    labels = tuple(_label(table, folder) for table in tables)
    if "joint" not in stated:
        return Plan(labels)
    joint = stated["joint"]
    refuse(
        not isinstance(joint, Mapping) or not isinstance(joint.get("mechanism"), str),
        'The plan\'s [joint] must name its mechanism, such as "joint-rr".',
    )
    _check_keys(joint, ("mechanism", "epsilon"), "The plan's [joint]")
    amount = {key: value for key, value in joint.items() if key == "epsilon"}
    return Plan(labels, joint["mechanism"], label_options("[joint]", amount).epsilon)


def _label(table: Any, folder: Path | None) -> LabelOptions:
    refuse(
        not isinstance(table, Mapping) or not isinstance(table.get("label"), str),
        'Each [[labels]] of a plan must name its column: label = "COLUMN".',
    )
    name, strata = table["label"], table.get("strata", {})
    options = _options(name, table, folder)
    refuse(
        not isinstance(strata, Mapping) or not all(isinstance(s, Mapping) for s in strata.values()),
        f"The column {quoted(name)}: strata must be a table of tables, such as "
        "strata = { north = { epsilon = 1.0 }, south = { epsilon = 0.5 } }.",
    )
    channels = strata or options.channel is not None
    refuse(
        (strata and options.by is None) or (options.by is not None and not channels),
        f"The column {quoted(name)} must state 'by', a public column, with 'strata', a channel "
        "for each of its values (or 'channel', a table of them), or neither.",
    )
    return replace(options, strata={str(k): _options(name, s, folder) for k, s in strata.items()})


def _options(name: str, table: Mapping[str, Any], folder: Path | None) -> LabelOptions:
    mechanism, own = table.get("mechanism"), ("label", "mechanism", "strata")
    refuse(
        mechanism is not None and not isinstance(mechanism, str),
        f"The column {quoted(name)}: mechanism must be a name.",
    )
    settings = {str(k).replace("_", "-"): v for k, v in table.items() if k not in own}
    options = label_options(name, settings, mechanism)
    if folder is None:
        return options
    files = {key: getattr(options, key) for key in ("prior", "channel")}
    return replace(options, **{k: folder / v for k, v in files.items() if v is not None})


def _check_keys(stated: Mapping[str, Any], known: Collection[str], what: str) -> None:
    for key in stated:
        if key not in known:
            otherwise = f"; known are {', '.join(known)}."
            near = did_you_mean(str(key), known, otherwise)
            raise InputError(f"{what} has an unknown key {quoted(str(key))}{near}")
