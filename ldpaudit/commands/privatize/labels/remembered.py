"""Answers that are given again: the next release of a person whose label has not changed."""

import hashlib
import json
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ldpaudit.commands.privatize.labels.domains import bare_labels, bare_type, label_values
from ldpaudit.commands.privatize.private_columns import PrivateColumn, PrivateColumns
from ldpaudit.datasets.beside.truth import comparable_ids
from ldpaudit.datasets.declaration import declared_content
from ldpaudit.datasets.labels import canonical
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.files.documents import check_regular
from ldpaudit.files.writing import PartFile
from ldpaudit.release import ColumnsDeclaration

Keys = npt.NDArray[np.uint64]
_METADATA: Final = b"ldpaudit-remembered"
_TEXT: Final = pa.large_string()
_SCHEMA: Final = pa.schema([("key", pa.uint64()), ("answer", _TEXT)])


class RememberedAnswers:
    """Repeats what a file remembers of people's answers, and remembers the new ones.

    An answer is found by a keyed hash of the person, the column, its mechanism, and the true label:
    whoever's label has not changed gets the same answer. A changed label, stratum or mechanism is
    answered anew. The file holds its key, and is as confidential as the true labels.

    Parameters
    ----------
    path : Path
        The file; it need not be there yet.
    columns : PrivateColumns

    Raises
    ------
    InputError
        If the file is none of these.
    """

    def __init__(self, path: Path, columns: PrivateColumns) -> None:
        self._columns, self._path = columns, path
        self._secret, self._keys, self._answers = _read(path)
        self._salts = [self._digest(stated) for stated in _stated(columns)]
        self._hits = [0] * len(columns)
        self._people: list[Keys] = []
        self._new: list[tuple[Keys, pa.Array]] = []

    def repeat(
        self,
        ids: pa.Array,
        features: pa.RecordBatch,
        labels: Sequence[pa.Array],
        released: Sequence[pa.Array],
    ) -> list[pa.Array]:
        """Return released labels, those that are remembered in place of the fresh ones.

        Parameters
        ----------
        ids : pyarrow.Array of n values
            Who each row is about.
        features : pyarrow.RecordBatch of n rows
            With the columns of strata.
        labels, released : sequence of pyarrow.Array, length d
            The true labels, and fresh draws of all of them.

        Raises
        ------
        InputError
            If an id is missing.
        """
        named = comparable_ids(pa.chunked_array([ids]), "data").to_pylist()
        people = [one if isinstance(one, bytes) else one.encode() for one in named]
        self._people.append(self._hashed(b"", people))
        texts = [_texts(label) for label in labels]
        answers = []
        for j, (column, fresh) in enumerate(zip(self._columns, released, strict=True)):
            # A joint mechanism answers anew where any label changed.
            told = texts if self._columns.joint is not None else [texts[j]]
            by = column.request.by
            material = [people, *told, *([] if by is None else [_texts(features.column(by))])]
            answers.append(self._repeated(j, self._hashed(self._salts[j], *material), fresh))
        return answers

    def _repeated(self, j: int, keys: Keys, fresh: pa.Array) -> pa.Array:
        places = np.searchsorted(self._keys, keys)
        places = np.minimum(places, max(len(self._keys) - 1, 0))
        known = self._keys[places] == keys if len(self._keys) else np.zeros(len(keys), dtype=bool)
        drawn = _plain(fresh).cast(_TEXT)
        self._hits[j] += int(known.sum())
        self._new.append((keys[~known], drawn.filter(pa.array(~known))))
        if not known.any():
            return fresh
        stored = self._answers.take(pa.array(np.where(known, places, 0)))
        return _like(pc.if_else(pa.array(known), stored, drawn), fresh)

    def check(self) -> Iterator[str]:
        """Refuse a person of several rows (InputError); yield what was not repeated."""
        people = np.concatenate(self._people) if self._people else np.zeros(0, np.uint64)
        repeated = len(people) - len(np.unique(people))
        if repeated:
            raise InputError(
                f"Every person must have one row, where answers are remembered; {repeated:,} of "
                f"{len(people)} rows repeat an id (--id)."
            )
        names = [c.name for c, hits in zip(self._columns, self._hits, strict=True) if not hits]
        if len(self._keys) and names:
            yield (
                f"No answer of {', '.join(map(quoted, names))} is repeated: the file remembers "
                "none of these people, labels and mechanisms. What is answered anew adds its ε to "
                "that of the release before."
            )

    def write(self, part: PartFile) -> None:
        """Write the file with all answers, old and new, sorted by their keys."""
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._new)])
        answers = pa.concat_arrays([self._answers, *(own for _, own in self._new)])
        order = np.argsort(keys, kind="stable")
        stated = json.dumps({"version": 1, "secret": self._secret.hex()}).encode()
        table = pa.table([pa.array(keys[order]), answers.take(pa.array(order))], schema=_SCHEMA)
        with part.writing():
            pq.write_table(table.replace_schema_metadata({_METADATA: stated}), part.stream)

    def _digest(self, *parts: bytes) -> bytes:
        whole = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
        return hashlib.blake2b(whole, key=self._secret, digest_size=8).digest()

    def _hashed(self, salt: bytes, *columns: Sequence[bytes]) -> Keys:
        """Return a keyed hash of each row, uint64 of shape (n,)."""
        rows = b"".join(self._digest(salt, *row) for row in zip(*columns, strict=True))
        return np.frombuffer(rows, dtype="<u8").astype(np.uint64)


def _stated(columns: PrivateColumns) -> Iterator[bytes]:
    """Yield, for each column, its name with all that makes its mechanism.

    What an experiment drew can be drawn again by whoever has its seed: no release repeats it.
    """
    declared = columns.declaration()
    drawn = b"experiment" if columns.first.request.experimental else b"release"
    for one, label in zip(columns, declared.labels, strict=True):
        own = declared if columns.joint is not None else ColumnsDeclaration((label,))
        yield b"\0".join([drawn, one.name.encode(), declared_content(own)])


def check_remembered(column: PrivateColumn) -> None:
    """Refuse a mechanism whose answers cannot be given again by themselves (InputError)."""
    traits = column.mechanism.traits
    uses = traits.label_depends_on_features and column.strata is None
    if uses or traits.features != "unchanged":
        raise InputError(
            f"The answers of the mechanism {column.mechanism.name!r} cannot be remembered: it "
            "changes or uses the features of the row."
        )


def _read(path: Path) -> tuple[bytes, Keys, pa.Array]:
    """Return the key of the hashes, the hashes in increasing order, and their answers."""
    if not path.exists():  # Nor what a link names.
        return secrets.token_bytes(32), np.zeros(0, np.uint64), pa.array([], _TEXT)
    try:
        check_regular(path)
        table = pq.read_table(path)
        stated = json.loads(table.schema.metadata[_METADATA])
        secret = bytes.fromhex(stated["secret"])
        known = table.schema.remove_metadata().equals(_SCHEMA) and stated["version"] == 1
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        known = False
    if not known:
        raise InputError(
            f"The file {quoted(path.name)} is none of remembered answers (--remember); name one "
            "that an earlier release wrote, or one that is not there yet."
        )
    keys = table.column("key").to_numpy().astype(np.uint64)
    return secret, keys, pa.concat_arrays([pa.array([], _TEXT), *table.column("answer").chunks])


def _texts(column: pa.Array) -> list[bytes]:
    """Return labels in the form by which they are matched, whatever their type."""
    encoded = bare_labels(column).dictionary_encode()
    forms = [canonical(value).encode() for value in label_values(encoded.dictionary)]
    return [forms[code] for code in encoded.indices.to_pylist()]


def _plain(released: pa.Array) -> pa.Array:
    kind = bare_type(released.type)
    return released if released.type == kind else released.cast(kind)


def _like(answers: pa.Array, fresh: pa.Array) -> pa.Array:
    """Return answers, as text, in the type of fresh ones."""
    if not pa.types.is_dictionary(fresh.type):
        return answers.cast(fresh.type)
    places = pc.index_in(answers, value_set=fresh.dictionary.cast(_TEXT))
    return pa.DictionaryArray.from_arrays(places.cast(fresh.type.index_type), fresh.dictionary)
