"""Whether the compared releases are of the same data, without a look at a true label.

Compared are rows, classes and feature columns and, of two files, the features themselves. A
mechanism on the label alone leaves all features unchanged, double randomized response those of a
share 1 − λ.
"""

from ldpaudit.commands.compare.names import told_apart
from ldpaudit.commands.compare.reading import Input, ReleaseInput, ResultInput
from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.commands.compare.same_rows import equal_rows
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.labels import canonical
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import UNKNOWN, Traits, from_declaration, traits_of
from ldpaudit.release import Release
from ldpaudit.result.comparison import Fingerprint

_LEAST_OF_ALL = 0.99
_LEAST_OF_UNCHANGED = 0.5
"""The share of the rows expected to be unchanged that must be unchanged."""
_SHOWN = 12


def fingerprints(request: CompareRequest, inputs: tuple[Input, ...]) -> tuple[Fingerprint, ...]:
    """Return what is known of each input's data, and how it differs from the first.

    Raises
    ------
    InputError
        If some differ and ``request.force`` is not set; fingerprints are in the message.
    """
    first = _fingerprint(inputs[0])
    prints = [first, *(_compared(request, inputs[0], first, other) for other in inputs[1:])]
    names = told_apart([print_.name for print_ in prints], request.inputs)
    prints = [p.model_copy(update={"name": n}) for p, n in zip(prints, names, strict=True)]
    apart = [p for p in prints if p.mismatch]
    if apart and not request.force:
        raise InputError(
            "The releases must be of the same data. "
            + "; ".join(
                f"{p.name} differs from {names[0]} in {' and '.join(p.mismatch)}" for p in apart
            )
            + f" ({'; '.join(_words(p) for p in prints)}). --force compares them all the same."
        )
    return tuple(prints)


def pairable(print_: Fingerprint) -> bool:
    """Return whether rows of a release can be paired with those of the first one."""
    return print_.source == "data" and not print_.mismatch


def _fingerprint(item: Input) -> Fingerprint:
    if isinstance(item, ResultInput):
        info = item.result.release
        return Fingerprint(
            letter=item.letter,
            source="result",
            name=info.name,
            sha256=info.sha256,
            rows=info.rows,
            classes=info.classes,
            features=info.features,
            truth=info.truth,
        )
    release = item.release
    return Fingerprint(
        letter=item.letter,
        source="data",
        name=release.name,
        sha256=release.sha256,
        rows=len(release),
        classes=len(release.classes),
        features=release.features.columns,
        truth=release.truth is not None,
    )


def _compared(
    request: CompareRequest, first: Input, ours: Fingerprint, other: Input
) -> Fingerprint:
    theirs = _fingerprint(other)
    mismatch = ["rows"] if ours.rows != theirs.rows else []
    numbers = any(isinstance(i, ReleaseInput) and i.release.numeric for i in (first, other))
    withheld = "withheld" in (_traits(first).features, _traits(other).features)
    if ours.classes != theirs.classes and not numbers:
        mismatch.append("classes")
    if ours.features != theirs.features and not withheld:
        mismatch.append("feature columns")
    if ours.truth != theirs.truth:
        mismatch.append("whether true labels were given")
    if mismatch or isinstance(first, ResultInput) or isinstance(other, ResultInput):
        return theirs.model_copy(update={"mismatch": tuple(mismatch)})
    one, two = ({canonical(y) for y in item.release.classes} for item in (first, other))
    if one != two and not numbers:
        mismatch.append("the values of the label")
    share = _shared_rows(request, first, other)
    least = 1.0 if request.id_column else _least_share(first.release, other.release)
    if share is not None and share < least:
        mismatch.append("the rows' features, or their order")
    return theirs.model_copy(update={"mismatch": tuple(mismatch), "shared_rows": share})


def _traits(item: Input) -> Traits:
    if isinstance(item, ResultInput):
        return traits_of(item.result.mechanism.name)
    declared = item.release.declaration
    return traits_of(UNKNOWN if declared is None else declared.name)


def _shared_rows(request: CompareRequest, a: ReleaseInput, b: ReleaseInput) -> float | None:
    names = _features(request, a) & _features(request, b)
    if request.id_column is not None:
        names = {request.id_column}
    same = equal_rows(a.path, b.path, sorted(names), request) if names else None
    return None if same is None else float(same.mean())


def _features(request: CompareRequest, item: ReleaseInput) -> set[str]:
    names = set(open_table(item.path, request).names)
    special = {item.release.label, *request.truth_column, request.id_column, *request.drop}
    special |= item.private
    return (names if request.features is None else names & set(request.features)) - special


def _least_share(a: Release, b: Release) -> float:
    """Return the least share of equal rows at which two releases may be of the same rows."""
    one, two = (from_declaration(r.declaration, r.classes).unchanged_share for r in (a, b))
    if one is None or two is None:
        return 0.0
    return _LEAST_OF_ALL if one * two == 1 else _LEAST_OF_UNCHANGED * one * two


def _words(print_: Fingerprint) -> str:
    digest = "no digest" if print_.sha256 is None else f"sha256 {print_.sha256[:_SHOWN]}…"
    return f"{print_.name}: {print_.rows} rows, {print_.features} feature columns, {digest}"
