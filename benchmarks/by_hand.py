"""What a user would write instead of an audit: boosting, or neighbours, of one release.

`python -m benchmarks.by_hand boosting|neighbours RELEASE.parquet` prints one line of what it found.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq


def main(what: str, release: str) -> None:
    """Read a release of benchmarks.tables and its true labels, and do one thing with them."""
    path = Path(release)
    table, truth = pq.read_table(path), pq.read_table(path.with_suffix(".truth.parquet"))
    label = truth.column_names[0]
    columns = [table[name].to_pandas() for name in table.column_names if name != label]
    columns = [pd.factorize(one)[0] if one.dtype.kind not in "iuf" else one for one in columns]
    rows = np.column_stack(columns).astype(np.float32)
    codes = pd.factorize(truth[label].to_pandas(), sort=True)[0]
    half = len(rows) // 2
    if what == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier().fit(rows[:half], codes[:half])
        right = float((model.predict(rows[half:]) == codes[half:]).mean())
        print(f"accuracy {right:.4f}")
        return
    import faiss

    cells = 4 * int(math.sqrt(half))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(rows.shape[1]), rows.shape[1], cells)
    index.train(rows[: min(half, 40 * cells)])
    index.add(rows[:half])
    index.nprobe, k = max(cells // 32, 1), 4 * int(math.sqrt(half))
    shares = []
    for block in np.array_split(rows[half : half + 20_000], 40):
        found = index.search(np.ascontiguousarray(block), k)[1]
        shares += np.where(found >= 0, codes[found], 0).mean(axis=1).tolist()
    print(f"mean share {np.mean(shares):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
