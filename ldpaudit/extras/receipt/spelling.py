"""Numbers whose spelling may say more than was drawn."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def spelt_alike(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return which numbers of a text column (n,) are written in the way in which most are.

    As short as can be, so with or without ``.0``, or with one number of decimals.
    """
    encoded = column.cast(pa.large_string()).dictionary_encode().combine_chunks()
    texts = [text.strip().replace(",", ".") for text in encoded.dictionary.to_pylist()]
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    sizes = np.bincount(places[places >= 0], minlength=len(texts))
    ways: dict[str, npt.NDArray[np.bool_]] = {}
    for place, text in enumerate(texts):
        for way in _ways_of_writing(text):
            ways.setdefault(way, np.zeros(len(texts), dtype=np.bool_))[place] = True
    none = np.zeros(len(texts), dtype=np.bool_)
    usual = max(ways.values(), key=lambda of: int(sizes[of].sum()), default=none)
    return np.asarray(np.append(usual, True)[places])


def _ways_of_writing(text: str) -> Iterator[str]:
    """Yield the ways of writing numbers in which a text writes one."""
    try:
        short = repr(float(text))
    except ValueError:
        return
    same = text.lower().replace("e+", "e").replace("e0", "e")
    short = short.replace("e+", "e").replace("e0", "e")
    if same == short:
        yield "short"
    if same == short.removesuffix(".0"):
        yield "short, whole"
    if "e" not in same:
        yield f"{len(text.partition('.')[2])} decimals"
