"""The commitment to the key of a release, and what is kept of it with the true labels."""

# The commitment binds the key, the declared content, the number of rows and the true labels. The
# key has 256 bits and is hashed in front of everything else, so it hides all of them.

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self, get_args

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.declaration import SECRET
from ldpaudit.datasets.domains import read_numbers
from ldpaudit.datasets.labels import label_forms
from ldpaudit.mechanisms.keyed import DIGEST_BYTES, SCHEME, NoiseKey, framed
from ldpaudit.mechanisms.label_range import Loss

_VERSION: Final = 1


def canonical_json(value: Any) -> bytes:
    """Return the one form of a JSON value that is hashed: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


@dataclass(frozen=True)
class Statement:
    """What a commitment says besides the key."""

    declaration: Mapping[str, Any]
    """The declared content, as JSON values, without the receipt."""
    rows: int
    seals: Mapping[str, str]
    """Of each private column the digest of its true labels."""

    @classmethod
    def of(cls, declared: bytes, rows: int, seals: Mapping[str, str]) -> "Statement":
        """Return the statement about a declaration as a file holds it."""
        content = json.loads(declared)
        content.pop("receipt", None)
        return cls(content, rows, dict(seals))

    def commitment(self, key: NoiseKey) -> str:
        """Return the commitment to a key and this statement, 64 hexadecimal digits."""
        stated = {"declaration": self.declaration, "labels": self.seals, "rows": self.rows}
        return key.digest("commitment", framed(canonical_json(stated))).hex()

    def receipt(self, key: NoiseKey) -> dict[str, Any]:
        """Return what the declaration of the release says of the key."""
        return {"scheme": SCHEME, "commitment": self.commitment(key), "rows": self.rows}


@dataclass(frozen=True)
class PrivatePrior:
    """How the private prior of a column was drawn, so that its design can be made again."""

    epsilon: float
    """What the prior cost."""
    left: float
    """What was left for the labels, both in nats."""
    loss: Loss = "squared"

    @classmethod
    def read(cls, stated: Any) -> Self:
        """Return it from what a file says (ValueError, TypeError or LookupError where wrong)."""
        if stated["loss"] not in get_args(Loss):
            raise ValueError
        return cls(float(stated["epsilon"]), float(stated["left"]), stated["loss"])


@dataclass(frozen=True)
class Secret:
    """What is kept with the true labels: the key, and what was committed to."""

    key: NoiseKey = field(repr=False)
    statement: Statement
    person: str | None = None
    """The column of ids in the file, None without one."""
    repeated: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Which rows of a column repeat remembered answers, as :func:`packed`; of a column that is not
    there none."""
    drawn: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The seals of labels that depend on more than the key, see :class:`DrawnSeal`."""
    priors: Mapping[str, PrivatePrior] = field(default_factory=dict)
    """Of columns with a private prior, how it was drawn."""

    @property
    def commitment(self) -> str:
        """The commitment that the release states."""
        return self.statement.commitment(self.key)

    def content(self) -> bytes:
        """Return the metadata of the file of true labels."""
        kept: dict[str, Any] = {
            "scheme": SCHEME,
            "key": self.key.secret.hex(),
            "commitment": self.commitment,
            "declaration": self.statement.declaration,
            "rows": self.statement.rows,
            "labels": self.statement.seals,
        }
        kept |= {} if self.person is None else {"id": self.person}
        kept |= {"repeated": dict(self.repeated)} if self.repeated else {}
        kept |= {"drawn": dict(self.drawn)} if self.drawn else {}
        priors = {name: asdict(one) for name, one in self.priors.items()}
        kept |= {"priors": priors} if priors else {}
        return json.dumps({"version": _VERSION, SECRET: kept}).encode()


class LabelSeal:
    """The digest of the true labels of one column, batch by batch; without the key it says nothing.

    Numbers count as float64, other labels as the order in which they first occur.
    """

    def __init__(self, key: NoiseKey, column: str, *, numeric: bool) -> None:
        self._whole = hashlib.shake_256(key.prefix("labels") + framed(column))
        self._numeric, self._places = numeric, dict[str, int]()

    def add(self, column: Any, block: int = 0, *, from_text: bool = False) -> None:  # noqa: ARG002
        """Add the labels of further rows."""
        rows = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        if self._numeric:
            # 0.0 for −0.0.
            self._whole.update((read_numbers(rows, "true") + 0.0).astype("<f8").tobytes())
            return
        forms, codes = label_forms(rows, "true", from_text=from_text)
        places = [self._places.setdefault(form, len(self._places)) for form in forms]
        self._whole.update(np.array([*places, -1], dtype="<i4")[codes].tobytes())

    def digest(self) -> str:
        """Return the seal, 64 hexadecimal digits."""
        whole = self._whole.copy()
        whole.update(framed(canonical_json(list(self._places))))
        return whole.digest(DIGEST_BYTES).hex()
