"""Check the receipt of randomized response: python verify.py release.csv truth.csv.

Needs NumPy and the standard library, and nothing of ldpaudit, which made both files:
ldpaudit privatize data.csv -o release.csv --secret truth.csv --mechanism rr --epsilon 1
"""

import csv
import hashlib
import hmac
import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

BLOCK = 1 << 16


def shake(key, texts, rest, size):
    """Return SHAKE-256 of the scheme, the key, texts after their lengths, and the rest."""
    framed = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return hashlib.shake_256(b"ldpaudit-1" + key + framed + rest).digest(size)


def drawn(codes, noise, k, key, column):
    """Return what randomized response draws for the codes 0 … k − 1 of true labels."""
    threshold, last, out = math.ceil(Fraction(noise) * 2**64), 2**64 // k * k - 1, codes.copy()
    for block, part in enumerate(out[start : start + BLOCK] for start in range(0, len(out), BLOCK)):
        texts, request, left = [b"release", column.encode()], 0, np.arange(len(part))
        words = np.empty(len(part), np.uint64)
        while left.size:  # A second time hardly ever: words beyond the last whole multiple of k.
            place = block.to_bytes(8, "little") + request.to_bytes(8, "little")
            words[left] = np.frombuffer(shake(key, texts, place, 8 * left.size), "<u8")
            if request == 0:
                rows = np.flatnonzero(words <= np.uint64(threshold - 1))  # Drawn, not kept.
                left = rows[words[rows] > np.uint64(threshold // k * k - 1)]
            else:
                left = left[words[left] > np.uint64(last)]
            request += 1
        part[rows] = words[rows] % np.uint64(k)
    return out


declared, secret = (json.loads(Path(f"{f}.ldpaudit.json").read_text()) for f in sys.argv[1:3])
receipt, kept, mechanism = declared.pop("receipt"), secret["secret"], declared["mechanism"]
stated = {"declaration": declared, "labels": kept["labels"], "rows": receipt["rows"]}
content = json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()
key, column = bytes.fromhex(kept["key"]), declared["label"]
commitment = shake(key, [b"commitment", content], b"", 32).hex()
if not hmac.compare_digest(commitment, receipt["commitment"]):
    sys.exit("The key and the true labels are not those of this release.")
place = {str(label): code for code, label in enumerate(mechanism["classes"])}
tables = [list(csv.DictReader(Path(f).open(newline=""))) for f in sys.argv[1:3]]
released, true = (np.array([place[row[column]] for row in table]) for table in tables)
same = drawn(true, mechanism["lambda"], len(place), key, column) == released
print(f"{np.sum(same)} of {receipt['rows']} released labels are as drawn.")
sys.exit(int(np.sum(same) != receipt["rows"] or len(released) != receipt["rows"]))
