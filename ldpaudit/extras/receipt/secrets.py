"""The key in a file of true labels, and what is kept with it, read again."""

import hashlib
import hmac
import json
import zlib
from typing import Any, Final

import numpy as np

from ldpaudit.arrays import BoolArray
from ldpaudit.datasets.declaration import SECRET
from ldpaudit.doors import InputError
from ldpaudit.mechanisms.keyed import DIGEST_BYTES, KEY_BYTES, SCHEME, NoiseKey, framed
from ldpaudit.receipt.commitment import PrivatePrior, Secret, Statement

_INVALID: Final = (
    "The key in the file of true labels cannot be read: it was changed, or another program wrote "
    "it."
)


def read_secret(content: bytes | None) -> Secret | None:
    """Return what a file of true labels keeps of a key; None where it keeps none."""
    # InputError where it cannot be read, or the key does not fit what it keeps of the commitment.
    # None for another scheme: a later version's.
    try:
        value = json.loads(content or b"{}")
        kept = value.get(SECRET) if isinstance(value, dict) else None
        if kept is None or kept["scheme"] != SCHEME:
            return None
        key = NoiseKey(bytes.fromhex(kept["key"]))
        seals = {str(name): str(seal) for name, seal in kept["labels"].items()}
        statement = Statement(dict(kept["declaration"]), int(kept["rows"]), seals)
        again = {str(name): str(rows) for name, rows in kept.get("repeated", {}).items()}
        drawn = {str(name): str(seal) for name, seal in kept.get("drawn", {}).items()}
        priors = {str(name): PrivatePrior.read(one) for name, one in kept.get("priors", {}).items()}
        secret = Secret(key, statement, kept.get("id"), again, drawn, priors)
        whole = len(key.secret) == KEY_BYTES and equal(secret.commitment, kept["commitment"])
        for rows in again.values():
            unpacked(rows, statement.rows)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise InputError(_INVALID) from None
    if not whole:
        raise InputError(_INVALID)
    return secret


def packed(rows: BoolArray) -> str:
    """Return marked rows as a text."""
    return zlib.compress(np.packbits(rows).tobytes(), 9).hex()


def unpacked(text: str, rows: int) -> BoolArray:
    """Return the marked ones of so many rows (ValueError where the text is none of these)."""
    size = -(-rows // 8)
    try:
        content = zlib.decompressobj().decompress(bytes.fromhex(text), size + 1)
    except zlib.error:
        raise ValueError from None
    if len(content) != size:
        raise ValueError
    return np.unpackbits(np.frombuffer(content, dtype=np.uint8), count=rows).astype(bool)


def equal(one: str, other: Any) -> bool:
    """Return whether two commitments are the same, in a time that does not depend on where not."""
    return isinstance(other, str) and hmac.compare_digest(one.encode(), other.encode())


class DrawnSeal:
    """The digest of the labels of one column as they were drawn, block by block.

    Where a model of the installed libraries has a part in the draw, it tells whether drawing again
    gave the same labels: a label that differs was then changed.
    """

    # Codes of outputs count as int32, numbers as float64.

    def __init__(self, key: NoiseKey, column: str) -> None:
        self._whole = hashlib.shake_256(key.prefix("drawn") + framed(column))

    def add(self, values: Any) -> None:
        """Add the labels of further rows."""
        column = np.asarray(values)
        kind = "<f8" if column.dtype.kind == "f" else "<i4"
        self._whole.update(column.astype(kind).tobytes())

    def digest(self) -> str:
        """Return the seal, 64 hexadecimal digits."""
        return self._whole.copy().digest(DIGEST_BYTES).hex()
