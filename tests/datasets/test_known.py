"""Which columns are known to be from before the noise: by the truth, by name, by declaration."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import random as random_matrix

from ldpaudit.audits import before as asked
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.datasets import read_release
from ldpaudit.datasets.known import same_values
from ldpaudit.errors import InputError
from ldpaudit.pipeline.described import claim_of

N = 400
RNG = np.random.default_rng(5)
TRUE = RNG.choice(["no", "yes"], N)
RELEASED = np.where(RNG.random(N) < 0.27, np.where(TRUE == "no", "yes", "no"), TRUE)
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in RNG.integers(0, 900, N)]
PUBLIC = pa.table(
    {
        "number": pa.array(RNG.standard_normal(N), mask=RNG.random(N) < 0.1),
        "count": RNG.integers(0, 90, N),
        "code": RNG.integers(2**60, 2**61, N),
        "text": pa.array(RNG.choice(["oslo", "rome"], N), mask=RNG.random(N) < 0.1),
        "day": DAYS,
        "flag": RNG.random(N) < 0.5,
        "list": pa.array(RNG.random((N, 3)).tolist(), pa.list_(pa.float64())),
        "category": pa.array(RNG.choice(["a", "b", "c"], N)).dictionary_encode(),
    }
)
RELEASE = PUBLIC.append_column("label", pa.array(RELEASED)).append_column(
    "z", pa.array(RNG.random(N))
)
TRUTH = PUBLIC.append_column("label", pa.array(TRUE))


def known(release, truth=None, **options):
    """Return how each feature column is known, by its name."""
    found = read_release(release, truth=truth, **options).release
    arrays = {place for one in found.columns if one.before for place in one.arrays}
    assert found.before == arrays
    return {column.name: column.before for column in found.columns}


def changed(table, name, row=17):
    """Return a table in which a cell is another row's."""
    column = table[name].combine_chunks()
    other = next(i for i in range(N) if column[i] != column[row])
    rows = np.arange(N)
    rows[row] = other
    return table.set_column(table.column_names.index(name), name, column.take(pa.array(rows)))


def test_the_truth_holds_the_same_values():
    found = known(RELEASE, TRUTH)
    assert found == dict.fromkeys(PUBLIC.column_names, "truth") | {"z": None}
    assert not any(known(RELEASE, TRUE).values())
    assert not any(known(RELEASE, TRUTH.select(["label"])).values())


@pytest.mark.parametrize("name", PUBLIC.column_names)
def test_one_row_that_differs_is_enough(name):
    found = known(RELEASE, changed(TRUTH, name))
    assert [column for column, how in found.items() if how is None] == [name, "z"]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("same_order", [True, False])
def test_files_joined_by_id_in_any_order_with_rows_of_others(suffix, same_order, tmp_path):
    flat = [name for name in PUBLIC.column_names if name != "list"]
    ids = np.arange(N) + 1000
    release = RELEASE.select([*flat, "label", "z"]).append_column("id", pa.array(ids)).to_pandas()
    truth = TRUTH.select([*flat, "label"]).append_column("id", pa.array(ids)).to_pandas()
    if not same_order:
        more = truth.head(30).assign(id=np.arange(30), text="lima", number=7.5)
        truth = pd.concat([truth, more]).sample(frac=1, random_state=1)
    paths = [tmp_path / f"{name}.{suffix}" for name in ("release", "truth")]
    for table, path in zip((release, truth), paths, strict=True):
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    found = known(paths[0], paths[1], id_column="id")
    assert found == dict.fromkeys([*flat, "id"], "truth") | {"z": None}
    truth.iloc[3, truth.columns.get_loc("count")] += 1
    truth.to_csv(paths[1], index=False) if suffix == "csv" else truth.to_parquet(paths[1])
    only = known(paths[0], paths[1], id_column="id")
    assert {name for name in found if found[name] != only[name]} <= {"count"}


NAN = float("nan")
PAIRS = {
    "float32 of all values": ([0.1, 0.2], pa.float64(), [0.1, 0.2], pa.float32(), True),
    "float32 of one value": (
        [0.1, float(np.float32(0.2))],
        pa.float64(),
        [0.1, 0.2],
        pa.float64(),
        False,
    ),
    "the last bit": ([1.0, 0.1], pa.float64(), [1.0, np.nextafter(0.1, 1)], pa.float64(), False),
    "whole numbers as floats": ([1, 2], pa.int64(), [1.0, 2.0], pa.float64(), True),
    "widths": ([1, 2], pa.int8(), [1, 2], pa.int64(), True),
    "large whole numbers": ([2**53, 1], pa.int64(), [2**53 + 1, 1], pa.int64(), False),
    "decimals": ([Decimal("1.5"), None], pa.decimal128(9, 2), [1.5, NAN], pa.float64(), True),
    "NaN is missing": ([NAN, 1.0], pa.float64(), [None, 1.0], pa.float64(), True),
    "NaN equals NaN": ([NAN, 1.0], pa.float64(), [NAN, 1.0], pa.float64(), True),
    "two kinds of gaps": ([NAN, None, 1.0], pa.float64(), [None, None, 1.0], pa.float64(), False),
    "a gap": ([None, 1.0], pa.float64(), [0.0, 1.0], pa.float64(), False),
    "the sign of zero": ([-0.0, 1.0], pa.float64(), [0.0, 1.0], pa.float64(), False),
    "booleans as numbers": ([True, False], pa.bool_(), [1, 0], pa.int64(), True),
    "texts of another type": (["a", None], pa.string(), ["a", None], pa.large_string(), True),
    "a gap is no empty text": (["a", ""], pa.string(), ["a", None], pa.string(), False),
    "case": (["a", "b"], pa.string(), ["a", "B"], pa.string(), False),
    "only gaps": ([None, None], pa.null(), [None, None], pa.string(), True),
    "days as times": (
        [DAYS[0]],
        pa.date32(),
        [datetime.datetime(*DAYS[0].timetuple()[:3])],
        pa.timestamp("ms"),
        True,
    ),
    "lists": (
        [[1.0, NAN], None],
        pa.list_(pa.float64()),
        [[1.0, NAN], None],
        pa.list_(pa.float32()),
        True,
    ),
    "shorter lists": (
        [[1.0], [2.0]],
        pa.list_(pa.float64()),
        [[1.0, 2.0], []],
        pa.list_(pa.float64()),
        False,
    ),
    "text and numbers": (["a", "b"], pa.string(), [1, 2], pa.int64(), None),
    "structures": ([{"a": 1}], pa.struct({"a": pa.int64()}), [1], pa.int64(), None),
}


@pytest.mark.parametrize("case", PAIRS)
def test_when_values_are_equal(case):
    ours, kind, theirs, other, equal = PAIRS[case]
    one, two = (pa.chunked_array([pa.array(v, k)]) for v, k in ((ours, kind), (theirs, other)))
    assert same_values(one, two) is equal
    # Fewer kinds of gaps than in the truth reveal nothing.
    assert same_values(two, one) is equal or case == "two kinds of gaps"
    if len(one) > 1:
        parts = pa.chunked_array([one.slice(0, 1).chunk(0), one.slice(1).combine_chunks()])
        assert same_values(parts, two) is equal


def test_a_truth_with_columns_that_cannot_be_read(monkeypatch):
    mixed = TRUTH.to_pandas().assign(number=[1, "a"] * (N // 2), flag=[{1: 2}] * N)
    found = known(RELEASE, mixed)
    assert [name for name, how in found.items() if how is None] == ["number", "flag", "z"]


def test_names_say_it():
    assert known(RELEASE, before=["z", "text"]) == dict.fromkeys(PUBLIC.column_names) | {
        "text": "named",
        "z": "named",
    }
    assert set(known(RELEASE, TRUTH, before=["*"]).values()) == {"truth", "named"}
    grouped = known(RELEASE, before=["count"], group="count")
    assert grouped["count"] == "named"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"before": ["coumt"]}, "no column 'coumt' to take as before the noise among the 10"),
        ({"before": ["label"]}, "'label' is private or no feature"),
        ({"before": ["z"], "drop": ["z"]}, "'z' is private or no feature"),
        ({"before": "z"}, "must be a list"),
    ],
)
def test_a_name_that_is_no_feature(options, message):
    with pytest.raises(InputError, match=message):
        read_release(RELEASE, **options)


def test_the_declaration_says_it_unless_the_truth_contradicts():
    mechanism = {"name": "randomized-response", "epsilon": 1.0, "classes": ["no", "yes"]}
    content = {
        "version": 1,
        "label": "label",
        "mechanism": mechanism,
        "before": ["z", "count", "w"],
    }
    release = RELEASE.replace_schema_metadata({"ldpaudit": json.dumps(content)})
    alone = known(release)
    assert {name for name, how in alone.items() if how} == {"z", "count"}
    assert alone["z"] == "declared"
    assert known(release, changed(TRUTH, "count"))["count"] is None
    assert known(release, changed(TRUTH, "count"), before=["count"])["count"] == "named"
    for wrong, message in ((["label"], "A private column is"), ("z", "list of names")):
        content["before"] = wrong
        bad = RELEASE.replace_schema_metadata({"ldpaudit": json.dumps(content)})
        with pytest.raises(InputError, match=message):
            read_release(bad)


def test_what_audits_ask():
    release = read_release(RELEASE, truth=TRUTH).release
    context = AuditContext(release, claim_of(release), Plan(0))
    here, others = asked.before(context), asked.unknown(context)
    assert sorted((*here, *others)) == list(range(release.features.width))
    assert asked.names(context, here) == tuple(PUBLIC.column_names)
    assert asked.names(context, others) == ("z",)
    some = release.take(np.arange(0, N, 3))
    assert some.before == release.before
    assert some.followed_by(some).before == release.before


def test_sparse_features():
    matrix = random_matrix(N, 500, 0.02, "csr", random_state=1)
    matrix.data = np.round(matrix.data * 8)
    same = read_release((matrix, RELEASED), projection=32, truth=TRUE, before=["*"]).release
    assert same.before == frozenset(range(same.features.width))


def test_svmlight_files(tmp_path):
    from sklearn.datasets import dump_svmlight_file

    matrix = random_matrix(N, 300, 0.03, "csr", random_state=2)
    paths = [str(tmp_path / f"{name}.svmlight") for name in ("release", "truth")]
    for path, labels in zip(paths, (RELEASED, TRUE), strict=True):
        dump_svmlight_file(matrix, (labels == "yes").astype(int), path)
    found = read_release(paths[0], truth=paths[1], projection=64).release
    assert found.before == frozenset(range(found.features.width))
    matrix.data[9] += 1
    dump_svmlight_file(matrix, (TRUE == "yes").astype(int), paths[1])
    assert not read_release(paths[0], truth=paths[1], projection=64).release.before


@pytest.mark.parametrize("joined", [False, True])
def test_a_sample_of_the_rows(joined, tmp_path, monkeypatch):
    from ldpaudit.datasets import cells

    rows = np.sort(RNG.choice(N, 100, replace=False))
    monkeypatch.setattr(cells, "rows_to_read", lambda *_, **__: (N, rows))
    ids, paths = pa.array(np.arange(N)), [tmp_path / "release.parquet", tmp_path / "truth.parquet"]
    order = pa.array(RNG.permutation(N) if joined else np.arange(N))
    pq.write_table(RELEASE.append_column("id", ids), paths[0])
    pq.write_table(
        changed(TRUTH, "count", int(rows[50])).append_column("id", ids).take(order), paths[1]
    )
    options = {"id_column": "id"} if joined else {"drop": ["id"]}
    found = known(paths[0], paths[1], **options)
    assert [name for name, how in found.items() if how is None and name != "id"] == ["count", "z"]
