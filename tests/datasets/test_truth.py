"""True labels are found beside the release, or in it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError

N = 60
RNG = np.random.default_rng(11)
CODES = RNG.integers(0, 2, N)
TRUE = [("no", "yes")[code] for code in CODES]
RELEASED = [("no", "yes")[code] for code in np.where(RNG.random(N) < 0.3, 1 - CODES, CODES)]
IDS = (RNG.permutation(N) + 100).tolist()
FRAME = pd.DataFrame({"id": IDS, "x": RNG.standard_normal(N), "income": RELEASED})


def read(truth, release=FRAME, **options):
    return read_release(release, label="income", truth=truth, **options)


def true_labels(report):
    release = report.release
    return [release.classes[code] for code in release.truth]


@pytest.mark.parametrize(
    "truth",
    [TRUE, np.array(TRUE), np.array(TRUE, dtype=object), pd.Series(TRUE), pa.array(TRUE),
     pa.chunked_array([TRUE]), pa.table({"income": TRUE}), pa.table({"anything": TRUE}),
     pd.DataFrame({"label": TRUE, "other": 1}), pd.Series(TRUE, dtype="category")],
)  # fmt: skip
def test_truths_in_row_order(truth):
    report = read(truth)
    assert (true_labels(report), report.warnings) == (TRUE, ())


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
@pytest.mark.parametrize("release_suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("joined", [True, False])
def test_truth_files(suffix, release_suffix, joined, tmp_path):
    frame = pd.DataFrame({"id": IDS, "income": TRUE})
    if joined:
        frame = frame.sample(frac=1, random_state=3)
    for table, path in ((frame, f"truth{suffix}"), (FRAME, f"release{release_suffix}")):
        if path.endswith(".parquet"):
            table.to_parquet(tmp_path / path)
        else:
            table.to_csv(tmp_path / path, index=False)
    options = {"id_column": "id"} if joined else {"drop": ["id"]}
    report = read(tmp_path / f"truth{suffix}", tmp_path / f"release{release_suffix}", **options)
    assert (true_labels(report), report.release.features.columns) == (TRUE, 1)


def test_ids_may_be_of_an_extension_type():
    ids = pa.array([i.to_bytes(16) for i in range(N)], pa.uuid())
    released = pa.table({"id": ids, "income": RELEASED})
    report = read(pa.table({"id": ids, "income": TRUE}), released, id_column="id")
    assert true_labels(report) == TRUE


@given(st.permutations(range(N)), st.sampled_from(["int", "text", "float", "category"]))
def test_joins_are_exact_in_any_order(order, kind):
    cast = {
        "int": pa.int64(), "text": pa.string(), "float": pa.float64(), "category": pa.string(),
    }  # fmt: skip
    ids = pa.array([IDS[i] for i in order]).cast(cast[kind])
    if kind == "category":
        ids = ids.dictionary_encode()
    truth = pa.table({"id": ids, "income": [TRUE[i] for i in order]})
    assert true_labels(read(truth, id_column="id")) == TRUE


def test_which_column_is_the_truth():
    columns = {"income": TRUE, "label": RELEASED[::-1], "other": ["no", "yes"] * (N // 2)}
    assert true_labels(read(pa.table(columns))) == TRUE
    named = read(pa.table(columns), truth_column="other")
    assert true_labels(named) == columns["other"]
    columns.pop("income")
    assert true_labels(read(pa.table(columns))) == RELEASED[::-1]
    with_id = pa.table({"id": IDS, "y": TRUE})
    assert true_labels(read(with_id, id_column="id")) == TRUE


def test_rows_of_the_truth_that_were_not_released():
    truth = pa.table({"id": [7, 8, *IDS], "income": ["maybe", None, *TRUE]})
    report = read(truth, id_column="id")
    assert (true_labels(report), report.release.classes) == (TRUE, ("no", "yes"))
    assert "no row of the release" in report.warnings[0]


@pytest.mark.parametrize(
    ("truth", "options", "message"),
    [
        (TRUE[:-2], {}, "58 against 60"),
        (pa.table({"a": TRUE, "b": TRUE}), {}, "none is called as the released label"),
        (pa.table({"incme": TRUE}), {"truth_column": "income"}, "name of column 1 is most like it"),
        (pa.table({"income": TRUE}), {"id_column": "id"}, "'id' as well; privatize --id keeps"),
        (pa.table({"id": [*IDS[:-2], 1, 2], "income": TRUE}), {"id_column": "id"}, "; 2 of 60"),
        (pa.table({"id": [*IDS[:-2], IDS[0], IDS[0]], "income": TRUE}), {"id_column": "id"},
         "2 in the truth are repeated"),
        (pa.table({"id": [*IDS[:-2], None, None], "income": TRUE}), {"id_column": "id"},
         "2 of the truth have none"),
        (pa.table({"id": [i + 0.5 for i in IDS], "income": TRUE}), {"id_column": "id"},
         "whole numbers or text"),
        (pa.table({"id": [[i, 0] for i in IDS], "income": TRUE}), {"id_column": "id"},
         "whole numbers or text"),
        ([None, *TRUE[1:]], {}, "true label; it is missing in 1 of 60"),
        (["no"] * N, {}, "at least two values"),
        (np.array([TRUE, TRUE]).T, {}, "A table must be"),
        (3, {}, "A table must be"),
        (pd.Series(TRUE, index=range(1, N + 1)), {}, "different indices"),
        (pd.Series(TRUE, index=range(1, N + 1)), {"id_column": "id"}, "different indices"),
    ],
)  # fmt: skip
def test_bad_truths(truth, options, message):
    with pytest.raises(InputError, match=message):
        read(truth, **options)


def test_repeated_and_missing_ids_in_the_release():
    truth = pa.table({"id": IDS, "income": TRUE})
    repeated = FRAME.assign(id=[IDS[0], IDS[0], IDS[0], *IDS[3:]])
    with pytest.raises(InputError, match="2 in the release are repeated"):
        read(truth, repeated, id_column="id")
    missing = FRAME.assign(id=[None, *IDS[1:]])
    with pytest.raises(InputError, match="1 of the release have none"):
        read(truth, missing, id_column="id")


def test_an_id_is_no_feature_and_text_ids_are_taken_letter_for_letter(tmp_path):
    assert read_release(FRAME, label="income", id_column="id").release.features.columns == 1
    table = pa.table({"id": [f"{i:04d}" for i in IDS], "x": FRAME["x"], "income": RELEASED})
    pyarrow.csv.write_csv(table, tmp_path / "release.csv")
    pq.write_table(pa.table({"id": IDS, "income": TRUE}), tmp_path / "truth.parquet")
    with pytest.raises(InputError, match="60 of 60"):
        read(tmp_path / "truth.parquet", tmp_path / "release.csv", id_column="id")


def test_true_labels_that_were_left_in_the_release():
    for leak in (TRUE, [label == "yes" for label in TRUE], [int(label == "no") for label in TRUE]):
        report = read(TRUE, FRAME.assign(secret=leak))
        assert len(report.warnings) == 1
        assert report.warnings[0].startswith("Column 4 of the release determines the true label")
        assert report.release.features.columns == 3
    named = read(pa.table({"x": TRUE, "id": IDS}), truth_column="x")
    assert named.release.named_as_truth == (2,)
    almost = [("yes" if label == "no" else "no") if i == 59 else label
              for i, label in enumerate(TRUE)]  # fmt: skip
    assert read(TRUE, FRAME.assign(secret=almost)).warnings == ()


def test_other_mistakes_are_told():
    assert "equal the released labels" in read(RELEASED).warnings[0]
    apart = read([{"no": "n", "yes": "y"}[label] for label in TRUE])
    assert "two different kinds" in apart.warnings[0]
    assert (apart.release.classes, apart.release.outputs) == (("n", "y"), ("no", "yes"))


def test_the_truth_as_a_column_of_the_release():
    report = read_release(
        FRAME.assign(really=TRUE), label="income", truth_column="really", id_column="id"
    )
    assert (true_labels(report), report.release.features.columns) == (TRUE, 1)
    assert report.warnings == ()


@pytest.mark.real_data
def test_adult(shared_data):
    path = shared_data / "adult.parquet"
    report = read_release(path, label="income")
    release = report.release
    assert (len(release), release.classes) == (48_842, ("<=50K", ">50K"))
    assert release.released.mean() == pytest.approx(0.239, abs=5e-4)
    assert (release.features.columns, release.features.numeric.shape[1]) == (15, 6)
    assert release.features.cardinalities[-1] == 2
    hours = read_release(path, label="hours_per_week").release
    assert (len(hours.classes), (hours.classes[0], hours.classes[-1])) == (96, (1, 99))


@pytest.mark.real_data
def test_adult_against_itself_is_noticed(shared_data):
    path = shared_data / "adult.parquet"
    report = read_release(path, label="income", truth=path)
    assert len(report.warnings) == 1
    assert "equal the released labels" in report.warnings[0]


@pytest.mark.real_data
def test_diabetes(shared_data):
    release = read_release(
        shared_data / "diabetes130.parquet",
        label="readmitted",
        id_column="encounter_id",
        drop=["patient_nbr"],
    ).release
    assert (len(release), release.classes) == (101_766, ("<30", ">30", "NO"))
    assert release.features.columns == 47
    with pytest.raises(InputError, match="1000"):
        read_release(shared_data / "diabetes130.parquet", label="patient_nbr")


@pytest.mark.real_data
def test_military(shared_data):
    release = read_release(shared_data / "military.parquet", label="gender").release
    assert (len(release), release.classes) == (1_414_593, ("female", "male"))
    assert (release.released == 0).mean() == pytest.approx(0.1433, abs=5e-4)
    assert release.features.columns == 5
    sample = np.arange(0, len(release), 977)
    content = pq.read_table(shared_data / "military.parquet").to_pandas().iloc[sample]
    assert (release.features.take(sample).numeric[:, 1] == content["rank"]).all()
    assert (
        len(set(zip(content["branch"], release.features.categorical[sample, 1], strict=True)))
        == (release.features.cardinalities[1])
    )


@pytest.mark.real_data
def test_skin_and_fertility(shared_data):
    skin = read_release(shared_data / "skin.parquet").release
    assert (skin.classes, skin.features.numeric.shape) == ((1, 2), (245_057, 3))
    weeks = read_release(
        shared_data / "fertility.parquet", label="work", id_column="rownames"
    ).release
    assert weeks.classes == tuple(range(53))
