"""From the options, or a plan, to one request for each private column."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from ldpaudit.commands.privatize.checks import check_column
from ldpaudit.commands.privatize.plan_file import read_plan
from ldpaudit.commands.privatize.request import ColumnRequest, PrivatizeRequest
from ldpaudit.datasets.beside.priors import split_labels
from ldpaudit.errors import InputError, quoted
from ldpaudit.mechanisms import full_name, traits_of
from ldpaudit.mechanisms.joint import joint_family
from ldpaudit.mechanisms.places import DEFAULT, EXPLICIT
from ldpaudit.options import (
    LabelOptions,
    check_distinct,
    check_ordered,
    option_name,
    parse_label,
    texts_of,
)
from ldpaudit.options.labels import KEYS

_SHARED: Final = ("mechanism", "epsilon", "noise")
"""Options that hold for each of several columns that does not state its own."""
_OF_ONE: Final = tuple(f for f, _ in KEYS.values() if f not in (*_SHARED, "by"))
"""Options that one column alone can mean."""
_OF_STRATUM: Final = {*_SHARED, "channel", "loss"}
"""What may differ between the strata of a column."""
_WORDS: Final = {field: key for key, (field, _) in KEYS.items()}
_UNSAID: Final = (
    "Say what releases the label: --mechanism NAME, --label COL:MECHANISM:epsilon=1, or a plan "
    "(--plan FILE)."
)
_OPTION: Final = re.compile(rf"--({'|'.join(sorted(KEYS, key=len, reverse=True))})\b")


@dataclass(frozen=True)
class StatedRelease:
    """What is to be released: the private columns, at least one, each with its request.

    ``joint`` is the full name of the mechanism that releases all of them together, else None; the
    requests then state no more than each column's labels.
    """

    columns: tuple[ColumnRequest, ...]
    joint: str | None = None
    epsilon: float | None = None

    @property
    def files(self) -> list[Path]:
        """The files that the columns' requests name to be read."""
        every = [one for c in self.columns for one in (c, *c.strata.values())]
        named = [path for one in every for path in (one.prior, one.channel)]
        return [path for path in named if path is not None]


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


def stated_release(request: PrivatizeRequest) -> StatedRelease:
    """Return the requests of all private columns, checked as far as options alone decide.

    Raises
    ------
    InputError, MissingDependencyError
        If options contradict one another or a plan, a mechanism is missing or cannot be one of
        several, or an option does not belong to it or is out of range.
    """
    if request.remember is not None and request.id_column is None:
        raise InputError("--remember must come with --id, the column that tells people apart.")
    if request.id_column is not None and request.remember is None and request.secret is None:
        raise InputError("--id must come with --remember or --secret, which it is for.")
    request = _with_plan(request)
    stated = _labels(request)
    check_distinct(one.label for one in stated)
    if request.joint is not None:
        return _together(request, stated)
    if len(stated) > 1:
        _check_shared(request, stated)
    columns = tuple(_column(request, one, len(stated)) for one in stated)
    for column in columns:
        _check(column)
    return StatedRelease(columns)


def labels_of(mechanisms: Mapping[str, Any]) -> tuple[LabelOptions, ...]:
    """Return the private columns of a Python call.

    Parameters
    ----------
    mechanisms : mapping
        From a column to its mechanism: ``"MECHANISM:KEY=VALUE:…"``, or the keys of a plan.

    Raises
    ------
    InputError
        As :func:`parse_label` and :func:`read_plan`.
    """
    names = texts_of(mechanisms.keys(), "label")
    return tuple(_label_of(name, mechanisms[name]) for name in names)


def _label_of(name: str, how: Any) -> LabelOptions:
    if isinstance(how, str):
        return parse_label(f"{LabelOptions(label=name).text()}:{how}")
    if not isinstance(how, Mapping):
        raise InputError(
            f"The mechanism of the column {quoted(name)} must be its name, such as "
            "'rr:epsilon=1', or a mapping such as {'mechanism': 'rr', 'epsilon': 1.0}."
        )
    return read_plan({"labels": [{"label": name, **how}]}).labels[0]


def _with_plan(request: PrivatizeRequest) -> PrivatizeRequest:
    """Return the request with what the plan states instead of options."""
    if request.plan is None:
        return request
    for name in ("label", "joint", *_SHARED, *_OF_ONE):
        if getattr(request, name) not in (None, False, "label"):
            raise InputError(
                f"The plan says what is done with each private column; leave out "
                f"{option_name(request, name)}."
            )
    plan = read_plan(request.plan)
    return replace(request, plan=None, label=plan.labels, joint=plan.joint, epsilon=plan.epsilon)


def _labels(request: PrivatizeRequest) -> tuple[LabelOptions, ...]:
    given: Any = request.label
    check_ordered(given, "label")
    several = isinstance(given, Collection) and not isinstance(given, str)
    listed = tuple(given) if several else (given,)
    texts_of(tuple(one for one in listed if not isinstance(one, LabelOptions)), "label")
    if not listed:
        raise InputError("Name the private column: --label COL.")
    # With the mechanism in an option of its own a single name may hold colons.
    plain = len(listed) == 1 and request.mechanism is not None
    read = (lambda name: LabelOptions(label=name)) if plain else parse_label
    return tuple(one if isinstance(one, LabelOptions) else read(one) for one in listed)


def _column(request: PrivatizeRequest, one: LabelOptions, one_of: int) -> ColumnRequest:
    """Return the request of one column: what it states, and the options that are for each."""
    if one.by is not None and not one.strata and one.channel is None:
        raise InputError(
            f"The column {quoted(one.label)}: a channel for each value of {quoted(one.by)} is "
            "stated by a table of them (channel=FILE), or in a plan (--plan FILE) as 'strata'."
        )
    if not one.strata:
        return _stated(request, one, one_of)
    strata = {}
    for value, own in one.strata.items():
        _check_stratum(one, own)
        merged = replace(one, by=None, strata={}, **own.stated())
        strata[value] = _stated(request, merged, one_of)
    first = next(iter(strata.values()))
    return replace(first, by=one.by, strata=strata)


def _check_stratum(column: LabelOptions, own: LabelOptions) -> None:
    """Refuse what a stratum may not state, or its column states already (InputError)."""
    foreign = own.stated().keys() - _OF_STRATUM
    if foreign:
        raise InputError(
            f"The column {quoted(column.label)}: a stratum may state its mechanism, epsilon, "
            f"lambda, channel and loss; {_WORDS[min(foreign)]} is the same for all of them."
        )
    both = own.stated().keys() & column.stated().keys() - {"mechanism"}
    if both:
        raise InputError(
            f"The column {quoted(column.label)} states {_WORDS[min(both)]} for all rows and for a "
            "stratum; leave one out."
        )


def _stated(request: PrivatizeRequest, one: LabelOptions, one_of: int) -> ColumnRequest:
    own = one.stated()
    if isinstance(own.get("classes"), str):
        own["classes"] = split_labels(own["classes"])
    common = {f.name: getattr(request, f.name) for f in fields(PrivatizeRequest)}
    if one_of == 1:
        twice = [k for k in own if common.get(k) not in (None, False)]
        if twice:
            raise InputError(f"{option_name(request, twice[0])} is stated twice; leave one out.")
    # A table of channels is a whole mechanism.
    default = EXPLICIT if one.channel is not None else common["mechanism"]
    mechanism = own.pop("mechanism", None) or default
    if mechanism is None:
        if one_of == 1 and not own:
            raise InputError(_UNSAID)
        raise InputError(
            f"The column {quoted(one.label)} must have a mechanism: COL:MECHANISM:epsilon=1, or "
            "--mechanism for every column that states none."
        )
    mechanism = full_name(mechanism)
    stated = own.keys() & {"epsilon", "noise"} or "epsilon" not in traits_of(mechanism).options
    if one_of > 1 and stated:
        common |= {"epsilon": None, "noise": None}
    names = {"mechanism": mechanism, "label": one.label, "one_of": one_of, "plan": None}
    return ColumnRequest(**(common | own | names))


def _check(column: ColumnRequest) -> None:
    with about(column):
        for one in (column, *column.strata.values()):
            check_column(one)
            _check_one_of(one)
        for own in column.strata.values():
            if own.private_prior is not None or own.round is not None:
                raise InputError("A column with strata takes no --private-prior and no --round.")


def _check_one_of(column: ColumnRequest) -> None:
    """Refuse mechanisms whose release is more than a column where there are several."""
    traits = traits_of(column.mechanism)
    if column.one_of > 1 and (traits.features != "unchanged" or traits.label_depends_on_features):
        raise InputError(
            f"The mechanism {column.mechanism!r} changes or uses the features of the whole row, so "
            "it cannot release one of several private columns; release that label alone."
        )


def _check_shared(request: PrivatizeRequest, stated: tuple[LabelOptions, ...]) -> None:
    """Refuse options that one column alone can mean, or that every column overrides."""
    for name in _OF_ONE:
        if getattr(request, name) not in (None, False):
            option = option_name(request, name)
            raise InputError(
                f"{option} could mean any of {len(stated)} private columns; state it with the "
                f"column's own: COL:MECHANISM:{_WORDS[name]}=…, or in a plan."
            )
    amounts = {"epsilon", "noise"}
    needed: Mapping[str, bool] = {
        "mechanism": any(one.mechanism is None for one in stated),
        "epsilon": any(not one.stated().keys() & amounts for one in stated),
    }
    for name in _SHARED:
        kind = "mechanism" if name == "mechanism" else "epsilon"
        if getattr(request, name) is not None and not needed[kind]:
            raise InputError(
                f"Every column states its own; leave out {option_name(request, name)}."
            )


def _together(request: PrivatizeRequest, stated: tuple[LabelOptions, ...]) -> StatedRelease:
    """Return the release of all columns by one mechanism."""
    assert request.joint is not None
    name = joint_family(request.joint).name
    if len(stated) < 2:
        raise InputError(f"The mechanism {name!r} releases several columns: name at least two.")
    for option in ("mechanism", "noise", *_OF_ONE):
        if getattr(request, option) not in (None, False):
            raise InputError(
                f"{option_name(request, option)} does not belong to the joint mechanism {name!r}."
            )
    if request.epsilon is None:
        raise InputError(f"The mechanism {name!r} must be given --epsilon, for all its columns.")
    for one in stated:
        foreign = set(one.stated()) - {"classes", "labels"}
        if foreign:
            raise InputError(
                f"The mechanism {name!r} releases the column {quoted(one.label)} with all others; "
                "state its classes or labels at most, and nothing else of its own."
            )
    alone = replace(request, joint=None, mechanism=DEFAULT)
    columns = tuple(_stated(alone, one, len(stated)) for one in stated)
    for column in columns:
        _check(column)
    return StatedRelease(columns, name, request.epsilon)
