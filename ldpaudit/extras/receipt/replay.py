"""A replay: which released labels are what the declared mechanism draws with the committed key."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.domains import read_numbers
from ldpaudit.datasets.formats.tables import TableSource
from ldpaudit.datasets.labels import label_forms, positions
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.datasets.reading import open_source
from ldpaudit.datasets.truth import comparable_ids, open_truth
from ldpaudit.doors import (
    FloatArray,
    InputError,
    PublicModelLabel,
    StagedLabel,
    from_declaration,
    parse_declaration,
)
from ldpaudit.extras.receipt.drawing import (
    Column,
    Drawn,
    NotDrawnError,
    drawn_again,
    drawn_by_us,
    drawn_together,
    numeric,
    sealed_as_drawn,
)
from ldpaudit.extras.receipt.features import draws_features, features_again
from ldpaudit.extras.receipt.prior import check_priors
from ldpaudit.extras.receipt.secrets import DrawnSeal, equal, read_secret, unpacked
from ldpaudit.extras.receipt.spelling import spelt_alike
from ldpaudit.mechanisms.joint import from_declaration as of_columns
from ldpaudit.mechanisms.keyed import SCHEME
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.receipt.commitment import LabelSeal, Secret, Statement, canonical_json
from ldpaudit.receipt.found import ColumnReplay, Replay, features_differ, upper_tail
from ldpaudit.receipt.seam import DrawnAgain
from ldpaudit.release import ColumnsDeclaration

NO_KEY: Final = (
    "The file of true labels holds no key (privatize --secret writes one), so the noise was not "
    "drawn again"
)

NO_KEY_BESIDE: Final = (
    "No key is next to the file of true labels (privatize --secret writes it into "
    "FILE.ldpaudit.json), so the noise was not drawn again"
)
SAME_KEY: Final = (
    "This release was drawn from the key of another one, so what differs between the two reveals "
    "labels"
)

# The numbers of decimals to which numbers are usually rounded, the fewest first.
_DECIMALS: Final = range(-3, 7)
_NEAR: Final = 1e-6


def replay(
    release: Any,
    truth: Any,
    *,
    id_column: str | None = None,
    files: FileOptions = AS_FOUND,
    posterior: FloatArray | None = None,
    synthetic: Any = None,
) -> Replay | None:
    """Draw the noise of a release again, and compare every row; None where it has no receipt.

    Parameters
    ----------
    release : path or table
        The release, with its declaration.
    truth : path or table, or None
        The file of true labels that ``privatize --secret`` wrote.
    id_column : str, optional
        The column of both by which rows are matched; default: that of ``privatize --id``, where the
        release has it, else the order of the rows.
    files : FileOptions
        How text files are written.
    posterior : float64 array of shape (n, k), optional
        P̂(label | features) of a public model, in the order of the true labels.
    synthetic : path or table, optional
        The rows, with labels, that a mechanism put in the place of others.

    Raises
    ------
    InputError
        If a file cannot be read, or a declaration is none; not where the noise cannot be drawn
        again, which the replay says.
    """
    table = open_source(release, None, files)
    if table.declaration is None:
        return None
    declared = parse_declaration(table.declaration)
    if not declared.receipt:
        return None
    scheme = declared.receipt["scheme"]
    if scheme != SCHEME:
        return Replay("impossible", f"The receipt is of the scheme {quoted(scheme)}, not {SCHEME}")
    known, bare = (None, True) if truth is None else open_truth(truth, files)
    content = None if known is None or bare else known.declaration
    try:
        secret = read_secret(content)
    except InputError as error:
        return Replay("foreign", str(error).removesuffix("."))
    if secret is None or known is None:
        return Replay("impossible", NO_KEY_BESIDE if known is not None and known.text else NO_KEY)
    stated, mark = declared.receipt.get("commitment"), secret.key.digest("commitment").hex()
    if not equal(secret.commitment, stated):
        kept = secret.statement
        own = Statement.of(table.declaration, kept.rows, kept.seals)
        if equal(own.commitment(secret.key), stated):
            return Replay("foreign", SAME_KEY, mark=mark)
        return Replay(
            "foreign",
            "The key in the file of true labels is not the one that this release commits to: it "
            "is of another release, or one of the two files was changed",
        )
    found = _compared(table, declared, known, secret, id_column, posterior, synthetic, files)
    return replace(found, commitment=secret.commitment, mark=mark)


def _compared(
    table: TableSource,
    declared: ColumnsDeclaration,
    known: TableSource,
    secret: Secret,
    id_column: str | None,
    posterior: FloatArray | None,
    synthetic: Any,
    files: FileOptions,
) -> Replay:
    stated = Statement.of(table.declaration or b"", secret.statement.rows, {}).declaration
    if canonical_json(stated) != canonical_json(secret.statement.declaration):
        original = parse_declaration(canonical_json(secret.statement.declaration))
        return Replay(
            "edited",
            "The declaration was changed after the noise was drawn",
            epsilon=(_epsilon(original), _epsilon(declared)),
            fields=_differing(stated, secret.statement.declaration),
        )
    committed = secret.statement.rows
    if declared.receipt.get("rows") != committed:
        return Replay("edited", "The number of rows in the receipt was changed")
    names = declared.names
    for name in names:
        if name not in table.names:
            raise missing_column(name, "label", table.names, typed=False)
    if id_column is not None:
        for source in (known, table):
            if id_column not in source.names:
                raise missing_column(id_column, "id", source.names)
    if lacking := [name for name in names if name not in known.names]:
        return Replay(
            "impossible", f"The file of true labels lacks {len(lacking)} of the private columns"
        )
    strata = [one.by for one in declared.labels if one.by is not None]
    if any(name not in known.names for name in strata):
        return Replay("impossible", "The file of true labels lacks the column of strata")
    vector = None if declared.joint is None else of_columns(declared, [()] * len(names))
    mechanisms = (
        vector.columns
        if vector is not None
        else [from_declaration(one.mechanism, ()) for one in declared.labels]
    )
    drawing = [one for one in mechanisms if vector is None and draws_features(one)]
    person = id_column or secret.person
    both = person in known.names and person in table.names
    # Where features are drawn, an id among them may be another row's.
    person = person if both and not drawing else None
    wanted = list(dict.fromkeys([*names, *strata, *filter(None, [person])]))
    cells = dict(known.columns(wanted, as_text=wanted))
    rows = len(cells[names[0]])
    if rows != committed:
        return Replay(
            "impossible",
            f"The file of true labels has {rows:,} rows, and the noise of {committed:,} was drawn",
            sealed=False,
        )
    features = partial(_features, table, declared, cells.get(person or ""), person, committed)
    columns = [
        Column(
            one.label,
            mechanism,
            cells[one.label],
            known.text,
            None if one.by is None else cells[one.by],
            posterior,
            features,
        )
        for one, mechanism in zip(declared.labels, mechanisms, strict=True)
    ]
    sealed = all(_sealed(one, declared, secret) for one in columns)
    try:
        if vector is not None:
            drawn = drawn_together(vector, columns, secret.key)
        else:
            drawn = [drawn_again(one, secret.key) for one in columns]
        for one, again in zip(columns, drawn, strict=True):
            _check_drawn(one, again, secret)
        unseen = check_priors(declared, columns, secret.priors, secret.key)
    except InputError as error:
        why = str(error).removesuffix(".")
        words = "the true labels were changed since" if not sealed else why
        return Replay("impossible", f"The noise cannot be drawn again: {words}", sealed=sealed)
    found = _matched(table, columns, drawn, cells.get(person or ""), person, secret, sealed=sealed)
    if any(one.offers(PublicModelLabel) is not None for one in mechanisms):
        found = replace(found, given="the given probabilities of the public model")
    found = replace(found, unseen=unseen)
    theirs = [one.name for one in mechanisms if not drawn_by_us(one)]
    if theirs and found.proven:
        # The key proves what was drawn, and not that the code draws by the channel that it states.
        return replace(
            found,
            status="impossible",
            columns=(),
            reason=f"All {rows:,} released labels are what the mechanism {quoted(theirs[0])} draws "
            "again with the committed key, by code of another package; only tests can say whether "
            "that code keeps its claim",
        )
    if not drawing or found.rows != committed:
        return found
    features_found = features_again(
        drawing[0],
        table,
        names[0],
        drawn[0].truth,
        secret.key,
        synthetic,
        files,
        generated="generator" in declared.provenance,
    )
    if features_differ(features_found) and found.status != "foreign":
        return replace(found, features=features_found, status="changed")
    return replace(found, features=features_found)


def _check_drawn(column: Column, drawn: Drawn, secret: Secret) -> None:
    """Refuse labels that are not those that were drawn at first (NotDrawnError)."""
    sealed = secret.drawn.get(column.name)
    if sealed is None or not sealed_as_drawn(column.mechanism):
        return
    seal = DrawnSeal(secret.key, column.name)
    seal.add(drawn.values)
    if equal(seal.digest(), sealed):
        return
    if column.mechanism.offers(PublicModelLabel) is not None:
        raise NotDrawnError(
            "the given probabilities of the public model are not those that the labels were drawn "
            "with"
        )
    if column.mechanism.offers(StagedLabel) is None:
        raise NotDrawnError("the mechanism's package draws other labels here than it did")
    raise NotDrawnError(
        "the models of the stages, fitted again, are not those that the labels were drawn with: "
        "features were changed, or a library has another version"
    )


def _features(
    table: TableSource,
    declared: ColumnsDeclaration,
    ids: pa.ChunkedArray | None,
    person: str | None,
    committed: int,
) -> pa.Table:
    """Return the features that the release holds unchanged, in the order of the true labels."""
    names = [name for name in declared.before if name in table.names]
    if len(names) < len(declared.before):
        raise NotDrawnError("columns that were in the release are not there")
    released = None if person is None else dict(table.columns([person], as_text=[person]))[person]
    place = _places(released, ids)
    rows = None if place is None else np.argsort(place, kind="stable")
    if place is not None and not np.array_equal(np.sort(place), np.arange(committed)):
        raise NotDrawnError("its stages need all rows, and some were left out, added or doubled")
    found = pa.table(dict(table.columns(names)))
    if rows is None and found.num_rows != committed:
        raise NotDrawnError("its stages need all rows, and some were left out or added")
    return found if rows is None else found.take(pa.array(rows))


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the entries in which two declarations differ, without their values."""
    found = []
    for key in sorted({*one, *other}):
        ours, theirs = one.get(key), other.get(key)
        if canonical_json(ours) == canonical_json(theirs):
            continue
        if key == "mechanism" and isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            found += [f"mechanism.{own}" for own in _differing(ours, theirs)]
        else:
            found.append(key)
    return tuple(found)


def _epsilon(declared: ColumnsDeclaration) -> float | None:
    try:
        if len(declared.labels) == 1:
            return from_declaration(declared.mechanism, ()).epsilon
        return of_columns(declared, [()] * len(declared.labels)).epsilon
    except InputError:
        return None


def _sealed(column: Column, declared: ColumnsDeclaration, secret: Secret) -> bool:
    """Return whether the true labels are those that the key was committed with."""
    alone = declared.joint is None and column.strata is None
    seal = LabelSeal(secret.key, column.name, numeric=alone and numeric(column.mechanism))
    try:
        seal.add(column.column, from_text=column.from_text)
    except InputError:
        return False
    return equal(seal.digest(), secret.statement.seals.get(column.name))


def _matched(
    table: TableSource,
    columns: Sequence[Column],
    drawn: Sequence[Drawn],
    ids: pa.ChunkedArray | None,
    person: str | None,
    secret: Secret,
    *,
    sealed: bool,
) -> Replay:
    """Compare the release's rows with those that were drawn."""
    names = [one.name for one in columns]
    strata = [one for one in columns if one.strata is not None]
    by = _strata_names(table)
    wanted = list(dict.fromkeys([*names, *by.values(), *filter(None, [person])]))
    cells = dict(table.columns(wanted, as_text=wanted))
    rows, committed = len(cells[names[0]]), secret.statement.rows
    found = Replay("proven", committed=committed, rows=rows, kept=rows, sealed=sealed)
    place, by_id = np.arange(rows), _places(cells.get(person or ""), ids)
    if by_id is not None:
        place = by_id
        matched = place[place >= 0]
        distinct = np.unique(matched)
        found = replace(
            found,
            kept=len(matched),
            added=rows - len(matched),
            left_out=committed - len(distinct),
            doubled=len(matched) - len(distinct),
            reordered=bool((np.diff(matched) < 0).any()),
        )
    elif rows != committed:
        more = "added" if rows > committed else "left out"
        return replace(
            found,
            status="unmatched",
            kept=0,
            left_out=max(committed - rows, 0),
            added=max(rows - committed, 0),
            reason=f"The release has {rows:,} rows, and {committed:,} were drawn: rows were "
            f"{more}, and without ids (privatize --id) none can be matched",
        )
    kept = np.flatnonzero(place >= 0)
    own = place[kept]
    results, repeated = list[ColumnReplay](), np.zeros(len(kept), dtype=bool)
    other_order = by_id is None
    for column, one in zip(columns, drawn, strict=True):
        shown = table.spelt(column.name)
        text = table.text or shown is not None
        shown = cells[column.name] if shown is None else shown
        released, values = _released(shown, one, from_text=text)
        same = released[kept] == values[own]
        if one.outputs is None and text:
            # How a number is written may say which one was true.
            same &= spelt_alike(shown)[kept]
        if column in strata:
            same &= _same_strata(column, cells[by[column.name]], kept, own, text=table.text)
        again = _repeated(secret, column.name, committed)[own]
        repeated |= again
        new = ~again  # Of the others nothing is known: they were drawn for another release.
        result = _column_replay(column, one, released, values, kept[new], own[new], same[new])
        if result.changed:
            result = replace(result, missing=int(_empty(shown)[result.places].sum()))
        results.append(result)
        other_order &= bool(result.changed) and _same_counts(released[kept], values[own])
    found = replace(
        found,
        columns=tuple(results),
        repeated=int(repeated.sum()),
        other_order=other_order and bool(results),
    )
    if any(one.changed for one in results):
        return replace(found, status="changed").if_sealed()
    partly = found.left_out or found.added or found.doubled or found.repeated
    return (replace(found, status="partly") if partly else found).if_sealed()


def _places(
    released: pa.ChunkedArray | None, ids: pa.ChunkedArray | None
) -> npt.NDArray[np.int64] | None:
    """Return each row's place among the true labels by its id, −1 for none."""
    # None where rows can only be matched by their order: without ids, with several rows for one of
    # them, or where the release has others throughout.
    if released is None or ids is None:
        return None
    try:
        ours, theirs = comparable_ids(released, "release"), comparable_ids(ids, "truth")
    except InputError:
        return None
    if pc.count_distinct(theirs).as_py() < len(theirs):
        return None
    order = pc.index_in(ours, value_set=theirs.combine_chunks())
    found = order.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found if (found >= 0).any() else None


def _strata_names(table: TableSource) -> dict[str, str]:
    declared = parse_declaration(table.declaration or b"")
    return {one.label: one.by for one in declared.labels if one.by is not None}


def _repeated(secret: Secret, column: str, rows: int) -> npt.NDArray[np.bool_]:
    """Return which rows of the true labels repeat remembered answers."""
    text = secret.repeated.get(column)
    return np.zeros(rows, dtype=bool) if text is None else unpacked(text, rows)


def _released(column: pa.ChunkedArray, drawn: Drawn, *, from_text: bool) -> tuple[Any, Any]:
    """Return the released labels as the drawn ones are, and the drawn ones as a file holds them."""
    if drawn.outputs is not None:
        # Two spellings of one label would say more than was drawn.
        forms, codes = label_forms(column, "released", from_text=from_text, letter_for_letter=True)
        return np.append(positions(forms, drawn.outputs), np.int32(-1))[codes], drawn.values
    try:
        released = read_numbers(column, "released")
    except InputError:  # Some are no numbers any more.
        released = _loose_numbers(column)
    values = drawn.values
    if pa.types.is_float32(column.type):
        values = values.astype(np.float32).astype(np.float64)
    elif pa.types.is_integer(column.type):
        values = np.rint(values)
    return released, values


def _empty(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return which cells are missing, or blank."""
    blank = column.is_null(nan_is_null=True)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        blank = pc.or_(blank, pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(column)), 0))
    return np.asarray(pc.fill_null(blank, fill_value=True).to_numpy(), dtype=np.bool_)


def _loose_numbers(column: pa.ChunkedArray) -> FloatArray:
    """Return numbers, NaN where one is missing or none."""
    plain = column.cast(pa.large_string()).to_pylist()
    found = np.full(len(plain), np.nan)
    for place, text in enumerate(plain):
        try:
            found[place] = np.nan if text is None else float(text)
        except ValueError:
            continue
    return found


def _same_strata(
    column: Column,
    released: pa.ChunkedArray,
    kept: npt.NDArray[np.int64],
    own: npt.NDArray[np.int64],
    *,
    text: bool,
) -> npt.NDArray[np.bool_]:
    """Return which rows have the stratum whose channel drew them."""
    assert column.strata is not None
    values: Any = getattr(column.mechanism, "values", ())
    codes = []
    for cells, from_text in ((released, text), (column.strata, column.from_text)):
        forms, places = label_forms(cells, "released", from_text=from_text)
        codes.append(np.append(positions(forms, values), np.int32(-1))[places])
    return np.asarray(codes[0][kept] == codes[1][own])


def _same_counts(one: Any, other: Any) -> bool:
    """Return whether two columns hold the same labels in whatever order."""
    return bool(np.array_equal(np.sort(one), np.sort(other)))


def _column_replay(
    column: Column,
    drawn: Drawn,
    released: Any,
    values: Any,
    kept: npt.NDArray[np.int64],
    own: npt.NDArray[np.int64],
    same: npt.NDArray[np.bool_],
) -> ColumnReplay:
    changed = np.flatnonzero(~same)
    if not len(changed):
        return ColumnReplay(column.name, len(kept), len(kept))
    at, of = kept[changed], own[changed]
    truth, new, old = drawn.truth[of], released[at], values[of]
    hits = (new == truth) & (truth >= 0 if drawn.outputs is not None else True)
    before = old == truth
    likely = _likely(drawn, old)
    m, true, drawn_true = len(changed), int(hits.sum()), int(before.sum())
    # A label that was drawn is more often the true one than another that is put in its place, if
    # nothing is known but the drawn labels: both must be beyond chance.
    by_pairs = upper_tail(true, true + drawn_true, 0.5)
    p_value = max(upper_tail(true, m, float(likely.mean())), by_pairs)
    names: list[tuple[str, int]] = []
    if drawn.outputs is not None:
        counts = np.bincount(new[new >= 0], minlength=len(drawn.outputs))
        order = np.argsort(-counts, kind="stable")
        names = [(str(drawn.outputs[z]), int(counts[z])) for z in order if counts[z]]
    return ColumnReplay(
        column.name,
        len(kept),
        len(kept) - m,
        true,
        drawn_true,
        p_value,
        tuple(names),
        decimals=_rounded(new, old) if drawn.outputs is None else None,
        places=at.astype(np.int64),
        hits=hits,
    )


def _rounded(new: FloatArray, old: FloatArray) -> int | None:
    """Return the fewest decimals to which all numbers look rounded, up or down; None if not."""
    there = np.isfinite(new)
    new, old = new[there], old[there]
    if len(np.unique(new)) < 2 or np.array_equal(new, old):
        return None
    for decimals in _DECIMALS:
        unit = 10.0**-decimals
        steps = new / unit
        near = np.abs(new - old).max() < unit * (1 + _NEAR)
        if near and np.abs(steps - np.rint(steps)).max() <= _NEAR:
            return decimals
    return None


def _likely(drawn: Drawn, old: Any) -> FloatArray:
    """Return the chance that another label than the drawn one is true, by the best blind guess."""
    # Who looks at the drawn labels alone guesses the likeliest of the true labels that differ from
    # them, given what was drawn.
    truth = drawn.truth
    if drawn.outputs is None:
        _, counts = np.unique(truth, return_counts=True)
        return np.full(len(old), counts.max() / len(truth))
    k = len(drawn.outputs)
    joint = np.zeros((k + 1, k + 1))
    np.add.at(joint, (drawn.values, truth), 1)
    joint[:, k] = 0  # True labels that are no output cannot be hit.
    total = joint.sum(axis=1).clip(1)
    np.fill_diagonal(joint, 0)
    best = joint.max(axis=1) / total
    return np.asarray(best[old])


DRAWN_AGAIN: Final = DrawnAgain(replay)
