"""Check the receipt of randomized response: python verify.py release.csv truth.csv.

Both files are of ldpaudit privatize (--mechanism rr); nothing else of ldpaudit is needed.
"""

import csv
import hashlib
import hmac
import io
import json
import math
import sys
from pathlib import Path

import numpy as np


def shake(texts, rest, size):
    """Return SHAKE-256 of the scheme, the key, texts after their lengths, and the rest."""
    framed = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return hashlib.shake_256(b"ldpaudit-1" + key + framed + rest).digest(size)


def words(block, request, n):
    """Return the n words of a request."""
    place = block.to_bytes(8, "little") + request.to_bytes(8, "little")
    return np.frombuffer(shake([b"release", column], place, 8 * n), "<u8").copy()


def drawn(codes, threshold, k):
    """Return what randomized response draws for the codes 0 … k − 1 of true labels."""
    for block, part in enumerate(codes[i : i + (1 << 16)] for i in range(0, len(codes), 1 << 16)):
        found, limit, request = words(block, 0, len(part)), threshold // k * k - 1, 1
        new = found[rows := np.flatnonzero(found <= np.uint64(threshold - 1))]  # The rest is kept.
        while (again := np.flatnonzero(new > np.uint64(limit))).size:  # Hardly ever.
            new[again] = words(block, request, again.size)
            limit, request = 2**64 // k * k - 1, request + 1
        part[rows] = new % np.uint64(k)
    return codes


declared, secret = (json.loads(Path(f"{f}.ldpaudit.json").read_text()) for f in sys.argv[1:3])
receipt, mechanism, name = declared.pop("receipt"), declared["mechanism"], declared["label"]
key, column = bytes.fromhex(secret["secret"]["key"]), name.encode()
tables = [list(csv.DictReader(io.StringIO(Path(f).read_text("utf-8")))) for f in sys.argv[1:3]]
released, true = ([row[name] for row in table] for table in tables)
first = {label: code for code, label in enumerate(dict.fromkeys(true))}
forms = json.dumps([*first], separators=(",", ":")).encode()
codes = np.array([first[label] for label in true], "<i4").tobytes()
seal = shake([b"labels", column], codes + len(forms).to_bytes(4, "little") + forms, 32).hex()
stated = {"declaration": declared, "labels": {name: seal}, "rows": len(true)}
content = json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()
if not hmac.compare_digest(shake([b"commitment", content], b"", 32).hex(), receipt["commitment"]):
    sys.exit("The key and the true labels are not those of this release.")
place = {str(label): code for code, label in enumerate(mechanism["classes"])}
threshold = math.ceil(mechanism["lambda"] * 2.0**64)  # Exact: a power of two
again = drawn(np.array([place[label] for label in true]), threshold, len(place))
same = sum(place.get(label) == code for label, code in zip(released, again, strict=False))
print(f"{same} of {len(true)} released labels are as drawn.")
sys.exit(int(same != len(true) or len(released) != len(true)))
