"""What a file holds besides its table: metadata may hold rows, and no audit looks at them."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import ldpaudit
from ldpaudit.datasets.formats.besides import bytes_besides, provenance_besides

N = 2000
RNG = np.random.default_rng(1)
TRUTH = RNG.integers(0, 2, N)
RELEASED = np.where(RNG.random(N) < 1 / (1 + np.e), 1 - TRUTH, TRUTH)
FRAME = pd.DataFrame({"x": RNG.normal(size=N), "label": RELEASED})
SECRET = json.dumps(TRUTH.tolist())
CLAIM = {"name": "randomized-response", "classes": [0, 1], "epsilon": 1.0}


def table(provenance=None, **metadata):
    content = {"version": 1, "label": "label", "mechanism": CLAIM}
    content |= {} if provenance is None else {"provenance": provenance}
    kept = {"ldpaudit": json.dumps(content)} | metadata
    return pa.Table.from_pandas(FRAME, preserve_index=False).replace_schema_metadata(kept)


def in_a_field():
    plain = table()
    field = plain.schema.field("x").with_metadata({"note": SECRET})
    return plain.cast(pa.schema([field, plain.schema.field("label")], plain.schema.metadata))


WHOLE = {
    "plain": table(),
    "of pandas": table(pandas=pa.Schema.from_pandas(FRAME).metadata[b"pandas"]),
    "a short note": table(writer="some program 1.2"),
    "of Spark": table(**{"org.apache.spark.sql.parquet.row.metadata": "{" + 300 * " " + "}"}),
    "how it was made": table({"randomness": "operating system", "classes": "declared"}),
}
MORE = {
    "a note": table(note=SECRET),
    "of a column": in_a_field(),
    "of R": table(r=SECRET),
    "attributes": table(PANDAS_ATTRS=json.dumps({"truth": TRUTH.tolist()})),
    "a list in pandas": table(pandas=json.dumps({"columns": [], "attributes": TRUTH.tolist()})),
    "in pandas": table(pandas=json.dumps({"columns": [], "attributes": {"t": TRUTH.tolist()}})),
    "how it was made": table({"note": TRUTH.tolist()}),
}


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize(
    ("made", "decision"),
    [
        *(pytest.param(one, "publish", id=name) for name, one in WHOLE.items()),
        *(pytest.param(one, "not yet", id=f"more: {name}") for name, one in MORE.items()),
    ],
)
def test_what_no_audit_looks_at_is_not_published(made, decision, suffix, tmp_path):
    place = tmp_path / f"r.{suffix}"
    write = pq.write_table if suffix == "parquet" else pyarrow.feather.write_feather
    write(made, place)
    result = ldpaudit.audit(place, pd.Series(TRUTH), only=("mechanism", "power"), rng=1)
    assert result.decision == decision
    (check,) = [c for c in result.checks if c.id == "whole-file"] or (None,)
    assert (check is None) == (decision == "publish")
    if check is not None:
        assert "bytes of the file's metadata" in check.reason
        assert result.next_steps[0].startswith("Write the file anew without metadata")


@pytest.mark.parametrize("made", ["frame", "table"])
def test_what_we_write_holds_nothing_else(made, tmp_path):
    place, data = tmp_path / "r.parquet", FRAME
    if made == "frame":
        released = ldpaudit.privatize(data, "rr", label="label", epsilon=1.0)
        released.to_parquet(place)
    else:
        ldpaudit.privatize(pa.table(data), "rr", place, label="label", epsilon=1.0)
    assert bytes_besides(pq.read_schema(place)) == 0


def test_a_provenance_of_many_columns_is_longer():
    each = {f"column {number}": "declared" for number in range(40)}
    assert provenance_besides({"classes": each}, 40) == 0
    assert provenance_besides({"classes": each}, 1) > 1000
