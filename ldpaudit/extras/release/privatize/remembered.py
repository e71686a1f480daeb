"""Answers that are given again: the next release of a person whose label has not changed."""

import hashlib
import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ldpaudit.datasets.declaration import declared_content
from ldpaudit.datasets.labels import canonical
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.truth import comparable_ids
from ldpaudit.doors import InputError, refuse
from ldpaudit.extras.receipt.secrets import packed
from ldpaudit.extras.release.privatize.columns import PrivateColumns
from ldpaudit.extras.release.privatize.labels import bare_labels, label_values
from ldpaudit.release import ColumnsDeclaration
from ldpaudit.work.documents import check_regular
from ldpaudit.work.files import PartFile

Keys = npt.NDArray[np.uint64]
_METADATA: Final = b"ldpaudit-remembered"
_TEXT: Final = pa.large_string()
_SCHEMA: Final = pa.schema([("key", pa.uint64()), ("answer", _TEXT)])


class RememberedAnswers:
    """Repeats what a file remembers of people's answers, if it is there, and remembers new ones."""

    # An answer is found by a keyed hash of the person, the column, its mechanism, the stratum and
    # the true label. The file holds the key: it is as confidential as the true labels. InputError:
    # the file is none of these, or a mechanism's answers cannot be given again by themselves.

    def __init__(self, path: Path, columns: PrivateColumns) -> None:
        self.new = not path.exists()  # Nor what a link names.
        empty = secrets.token_bytes(32), np.zeros(0, np.uint64), pa.array([], _TEXT)
        self._secret, self._keys, self._answers = empty if self.new else _read(path)
        self._columns, declared = columns, columns.declaration()
        self._repeated, self._salts = set[str](), list[bytes]()
        self._people, self._fresh = list[Keys](), list[tuple[Keys, pa.Array]]()
        self._again = dict[str, list[npt.NDArray[np.bool_]]]()
        # What an experiment drew can be drawn again by its seed: no release repeats it.
        drawn = b"experiment" if columns.first.request.experimental else b"release"
        for one, label in zip(columns.each, declared.labels, strict=True):
            traits = one.mechanism.traits
            uses = traits.label_depends_on_features and one.strata is None
            refuse(
                uses or traits.features != "unchanged",
                f"The answers of the mechanism {one.mechanism.name!r} cannot be remembered: it "
                "changes or uses the features of the row.",
            )
            own = declared if columns.joint is not None else ColumnsDeclaration((label,))
            stated = b"\0".join([drawn, one.name.encode(), declared_content(own)])
            self._salts.append(self._digest(stated))

    def repeat(
        self,
        ids: pa.Array,  # Who each row is about (InputError where one is missing).
        features: pa.RecordBatch,  # With the columns of strata.
        labels: Sequence[pa.Array],
        released: Sequence[pa.Array],  # Fresh draws of all labels.
    ) -> list[pa.Array]:
        """Return released labels, those that are remembered in place of the fresh ones."""
        named = comparable_ids(pa.chunked_array([ids]), "data").to_pylist()
        people = [one if isinstance(one, bytes) else one.encode() for one in named]
        self._people.append(self._hashed(b"", people))
        texts, answers = [_forms(label) for label in labels], []
        for j, (column, fresh) in enumerate(zip(self._columns.each, released, strict=True)):
            # A joint mechanism answers anew where any label changed.
            told = texts if self._columns.joint is not None else [texts[j]]
            by = column.request.by
            told = told if by is None else [*told, _forms(features.column(by))]
            material = ([one.encode() for one in text.to_pylist()] for text in told)
            keys = self._hashed(self._salts[j], people, *material)
            places = np.searchsorted(self._keys, keys)
            new = np.append(self._keys, ~keys[-1:])[places] != keys
            drawn = _forms(fresh)
            self._again.setdefault(column.name, []).append(~new)
            self._fresh.append((keys[new], drawn.filter(pa.array(new))))
            if new.all():
                answers.append(fresh)
                continue
            self._repeated.add(column.name)
            again = pc.coalesce(self._answers.take(pa.array(places, mask=new)), drawn)
            if pa.types.is_dictionary(kind := fresh.type):
                codes = pc.index_in(again, value_set=_forms(fresh.dictionary)).cast(kind.index_type)
                answers.append(pa.DictionaryArray.from_arrays(codes, fresh.dictionary))
            else:
                answers.append(again.cast(kind))
        return answers

    def repeated(self) -> dict[str, str]:
        """Return which rows repeat an answer, packed, of each column that has such rows."""
        whole = {name: np.concatenate(parts) for name, parts in self._again.items()}
        return {name: packed(rows) for name, rows in whole.items() if rows.any()}

    def write(self, part: PartFile) -> tuple[str, ...]:
        """Write all answers, old and new, sorted by their keys; return what was not repeated."""
        # InputError where a person has several rows.
        people = np.concatenate(self._people)
        refuse(
            (twice := len(people) - len(np.unique(people))),
            f"Every person must have one row, where answers are remembered; {twice:,} of "
            f"{len(people):,} rows repeat an id (--id).",
        )
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._fresh)])
        answers = pa.concat_arrays([self._answers, *(own for _, own in self._fresh)])
        order = np.argsort(keys, kind="stable")
        stated = json.dumps({"version": 1, "secret": self._secret.hex()}).encode()
        schema = _SCHEMA.with_metadata({_METADATA: stated})
        with part.writing():
            table = pa.table([pa.array(keys[order]), answers.take(pa.array(order))], schema=schema)
            pq.write_table(table, part.stream)
        none = ", ".join(quoted(one) for one in self._columns.names if one not in self._repeated)
        return (
            f"No answer of {none} is repeated: the file remembers none of these people, labels and "
            "mechanisms. New answers add their ε to that of the release before.",
        ) * bool(none and not self.new)

    def _digest(self, *parts: bytes) -> bytes:
        whole = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
        return hashlib.blake2b(whole, key=self._secret, digest_size=8).digest()

    def _hashed(self, salt: bytes, *columns: Sequence[bytes]) -> Keys:
        """Return a keyed hash of each row, uint64 of shape (n,)."""
        rows = b"".join(self._digest(salt, *row) for row in zip(*columns, strict=True))
        return np.frombuffer(rows, dtype="<u8").astype(np.uint64)


def _read(path: Path) -> tuple[bytes, Keys, pa.Array]:
    """Return the key of the hashes, the hashes in increasing order, and their answers."""
    with suppress(OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        check_regular(path)
        table = pq.read_table(path)
        stated = json.loads(table.schema.metadata[_METADATA])
        secret = bytes.fromhex(stated["secret"])
        if table.schema.remove_metadata().equals(_SCHEMA) and stated["version"] == 1:
            keys = table.column("key").to_numpy().astype(np.uint64)
            return secret, keys, table.column("answer").combine_chunks()
    raise InputError(
        f"The file {quoted(path.name)} is none of remembered answers (--remember); name one that "
        "an earlier release wrote, or one that is not there yet."
    )


def _forms(column: pa.Array) -> pa.Array:
    """Return labels as texts in the form by which they are matched, whatever their type."""
    encoded = bare_labels(column).dictionary_encode()
    forms = [canonical(value) for value in label_values(encoded.dictionary)]
    return pa.array(forms, _TEXT).take(encoded.indices)
