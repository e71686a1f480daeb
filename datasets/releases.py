"""From several releases that were read to releases of the same people.

Rows are joined on their ids by a keyed hash. The key is drawn in memory for one audit; neither key
nor hashes are ever written.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ldpaudit.datasets.beside.truth import comparable_ids
from ldpaudit.datasets.private_columns import ColumnsReport
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.datasets.same_features import same_features
from ldpaudit.errors import InputError
from ldpaudit.release import FileColumns, IndexArray, Release, ReleasedFiles

_BYTES: Final = 16
_FEWEST: Final = 2
_LOOKED_AT: Final = 2_000


@dataclass(frozen=True)
class HashedIds:
    """Turns ids into keyed hashes, with one key for all releases of an audit."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def __call__(self, ids: pa.ChunkedArray) -> npt.NDArray[np.void]:
        """Return the hash of each id, of shape (n,).

        Raises
        ------
        InputError
            If a row has no id, or ids are neither whole numbers nor text.
        """
        plain = comparable_ids(ids, "release").combine_chunks().dictionary_encode()
        if isinstance(plain, pa.ChunkedArray):
            plain = plain.unify_dictionaries().combine_chunks()
        hashed = np.array([self._hash(one) for one in plain.dictionary], dtype=f"V{_BYTES}")
        return np.asarray(hashed[plain.indices.to_numpy(zero_copy_only=False)])

    def _hash(self, one: pa.Scalar) -> bytes:
        value = one.as_py()
        text = value if isinstance(value, bytes) else value.encode()
        return hashlib.blake2b(text, digest_size=_BYTES, key=self.key).digest()


def join_releases(readings: Sequence[ReadReport | ColumnsReport]) -> ReleasedFiles:
    """Return releases with the row of each person in each of them.

    Joined on the hashed ids of the readings; where they have none, rows are taken to be in the same
    order in all releases.

    Raises
    ------
    InputError
        If fewer than two people are in all of them, classes differ, or rows without ids cannot be
        in the same order.
    """
    files = tuple(map(_file, readings))
    columns = [one.columns if isinstance(one, FileColumns) else (one,) for one in files]
    if any(one.bags is not None or one.reports is not None for some in columns for one in some):
        raise InputError(
            "Several releases are audited together where each row has a released label; audit "
            "bags and local reports one by one."
        )
    hashed = [reading.people for reading in readings if reading.people is not None]
    if len(hashed) < len(readings):
        rows = np.arange(len(files[0]))[:, None].repeat(len(files), axis=1)
        _check_same_order([some[0] for some in columns])
        return ReleasedFiles(files, rows, by_id=False)
    rows, repeated = _joined(hashed)
    here = rows >= 0
    if (here[:, 1:] & here[:, :-1]).sum(axis=0).max() < _FEWEST:
        raise InputError(
            "The releases have no people in common: fewer than two ids are in one release and the "
            "next. Is the id column (--id) the same in all of them?"
        )
    return ReleasedFiles(files, rows, repeated=repeated)


def _file(reading: ReadReport | ColumnsReport) -> Release | FileColumns:
    return reading.file if isinstance(reading, ColumnsReport) else reading.release


def _joined(hashed: Sequence[npt.NDArray[np.void]]) -> tuple[IndexArray, int]:
    """Return the rows of each person (p, t), −1 where there is none, and how many repeat.

    People are in the order in which they first occur: that of the hashes varies with the key.
    """
    _, first, codes = np.unique(np.concatenate(hashed), return_index=True, return_inverse=True)
    codes, people = first.argsort().argsort()[codes.reshape(-1)], len(first)
    rows = np.full((people, len(hashed)), -1, dtype=np.int64)
    repeats = np.zeros(people, dtype=bool)
    start = 0
    for place, ids in enumerate(hashed):
        mine = codes[start : start + len(ids)]
        start += len(ids)
        rows[mine, place] = np.arange(len(ids))
        repeats |= np.bincount(mine, minlength=people) > 1
    return rows[~repeats], int(repeats.sum())


def _check_same_order(releases: Sequence[Release]) -> None:
    """Refuse releases without ids whose rows cannot be in the same order (InputError)."""
    counts = {len(release) for release in releases}
    if len(counts) > 1:
        raise InputError(
            "Without an id column (--id) the rows of all releases must be the same people in the "
            f"same order, and the releases have {min(counts)} to {max(counts)} rows."
        )
    first, *others = releases
    sample = np.arange(min(len(first), _LOOKED_AT))
    for other in others:
        same = same_features(first, other, sample, sample)
        if same is not None and len(sample) > 1 and not same.any():
            raise InputError(
                "Without an id column (--id) the rows of all releases must be the same people in "
                "the same order, and no row has the same features in two releases."
            )
