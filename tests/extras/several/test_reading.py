"""Several private columns of one file: what is declared of them, and how they are read."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.datasets import affairs, parse_declaration, read_release
from ldpaudit.datasets.declaration import declared_content, same_claims
from ldpaudit.datasets.groups import joint_slices, merged, read_slices
from ldpaudit.datasets.names import Header, check_unique, header_of, missing_column
from ldpaudit.datasets.probabilities import with_public_posterior
from ldpaudit.errors import InputError, did_you_mean, nearest, quoted
from ldpaudit.extras.several.files import FileColumns
from ldpaudit.extras.several.reading import agreed_columns, read_file_columns
from ldpaudit.mechanisms.joint import marginal_claims
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.release import (
    ColumnsDeclaration,
    Declaration,
    DeclaredColumns,
    FeatureTable,
    LabelDeclaration,
    Release,
    ReleasedLabels,
)

ROWS = 400
KNOWN = {"coding": DeclaredCoding, "marginals": marginal_claims}


def rr(classes, epsilon=1.0):
    return {"name": "randomized-response", "classes": classes, "epsilon": epsilon}


A = {"label": "a", "mechanism": rr(["no", "yes"])}
B = {"label": "b", "mechanism": rr([1, 2, 3])}
STRATA = [{"value": v, "mechanism": rr(["no", "yes"], e)} for v, e in ((1, 1.0), (2, 0.5))]
BY = {
    "label": "a",
    "by": "region",
    "mechanism": {"name": "by-stratum", "strata": STRATA},
}
TWO = {"version": 2, "labels": [A, B]}
JOINT = {
    "version": 2,
    "labels": [{"label": "a"}, {"label": "b"}],
    "mechanism": {"name": "rs-fd", "domains": [["no", "yes"], [1, 2, 3]], "epsilon": 1.0},
}


def tables():
    """Return a release and the true values of its two private columns."""
    rng = np.random.default_rng(4)

    def columns():
        return {"a": rng.choice(["no", "yes"], ROWS), "b": rng.choice([1, 2, 3], ROWS)}

    x, region = rng.standard_normal(ROWS), rng.choice([1, 2], ROWS)
    return pd.DataFrame({"x": x, "region": region, **columns()}), pd.DataFrame(columns())


def declared(content):
    frame = tables()[0]
    frame.attrs["ldpaudit"] = json.dumps(content)
    return frame


@pytest.mark.parametrize("content", [TWO, JOINT, {"version": 2, "labels": [BY, B]}])
def test_a_declaration_is_read_and_written(content):
    found = parse_declaration(json.dumps({**content, "provenance": {"made": "2026"}}).encode())
    again = parse_declaration(declared_content(found))
    assert again == found
    assert same_claims(found, again)
    assert json.loads(declared_content(found)) == {**content, "provenance": {"made": "2026"}}


def test_one_column_is_version_one_unless_it_has_strata():
    for content, version in (({"labels": [A]}, 1), ({"labels": [BY]}, 2)):
        found = parse_declaration(json.dumps({"version": 2, **content}).encode())
        assert (json.loads(declared_content(found))["version"], found.label) == (version, "a")
        assert found.provenance == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"labels": []}, "one private column or more"),
        ({"labels": [3]}, "JSON object"),
        ({"labels": [A, A]}, "different columns; repeated: 1 of 2"),
        ({"labels": [{"label": "a"}]}, "1 missing, 0 unknown"),
        ({"labels": [{**A, "sekret": 1}]}, "0 missing, 1 unknown"),
        ({"labels": [{**A, "by": "region"}]}, "by-stratum"),
        ({"labels": [{**BY, "by": 3}]}, "'by'"),
        ({"labels": [{key: BY[key] for key in ("label", "mechanism")}]}, "by-stratum"),
        ({"labels": [{**BY, "by": "b"}, B]}, "one is declared as private"),
        ({**JOINT, "labels": [A, B]}, "label alone"),
        ({**JOINT, "labels": [{"label": "a"}]}, "2 for 1"),
        ({**JOINT, "mechanism": {"name": "rs-fd", "domains": 3}}, "labels of each column"),
        ({"label": "a"}, "1 missing, 1 unknown"),
    ],
)
def test_what_is_no_declaration(content, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_declaration(json.dumps({"version": 2, **content}).encode())
    assert "sekret" not in str(caught.value)


def test_each_column_has_the_others_among_its_features(tmp_path):
    frame, truth = tables()
    path = tmp_path / "r.csv"
    frame.to_csv(path, index=False)
    (tmp_path / "r.csv.ldpaudit.json").write_text(json.dumps(TWO))
    truth.to_csv(tmp_path / "t.csv", index=False)
    file = read_file_columns(path, truth=tmp_path / "t.csv", **KNOWN).file
    assert [column.label for column in file.columns] == ["a", "b"]
    assert [column.classes for column in file.columns] == [("no", "yes"), (1, 2, 3)]
    # Numeric arrays come first: b stays a number for a, and a is a category for b.
    assert file.others == ((2,), (2,))
    for place, column in enumerate(file.columns):
        alone = file.alone(place).features
        assert (column.features.width, alone.width) == (3, 2)
        np.testing.assert_array_equal(alone.numeric[:, 1], frame["region"])
        assert column.truth is not None
        known = np.array(column.classes, object)[column.truth]
        np.testing.assert_array_equal(known, truth[column.label])
    assert file.sha256 == read_release(path, label="b").release.sha256
    assert file.declared is None


def test_one_of_several_can_be_read_alone():
    report = read_release(declared(TWO), label="b", **KNOWN)
    release = report.release
    assert release.declared == DeclaredColumns({("a",): None, ("b",): None})
    assert release.declaration.parameters == {"classes": [1, 2, 3], "epsilon": 1.0}
    with pytest.raises(InputError, match="declares 2 private columns; say which"):
        read_release(declared(TWO), **KNOWN)
    with pytest.raises(InputError, match="'x' is none of the private"):
        read_release(declared(TWO), label="x", **KNOWN)


def test_columns_are_in_the_order_of_their_claim():
    truth = tables()[1].rename(columns={"a": "ta", "b": "tb"})
    for content, order in ((TWO, ("b", "a")), (JOINT, ("a", "b"))):
        file = read_file_columns(
            declared(content), labels=["b", "a"], truth=truth, truth_column=["tb", "ta"], **KNOWN
        ).file
        assert file.declaration.names == order
        assert tuple(column.label for column in file.columns) == order
        for column in file.columns:
            assert column.truth is not None
            known = np.array(column.classes, object)[column.truth]
            np.testing.assert_array_equal(known, truth[f"t{column.label}"])


def test_a_joint_mechanism_gives_each_column_its_exact_marginal():
    file = read_file_columns(declared(JOINT), **KNOWN).file
    assert file.declaration.joint is not None
    claims = marginal_claims(file.declaration.joint)
    assert [column.declaration for column in file.columns] == claims
    assert read_release(declared(JOINT), label="b", **KNOWN).release.declaration == claims[1]
    with pytest.raises(InputError, match="together"):
        read_release(declared(JOINT), label="b")


@pytest.mark.parametrize("label", [[1], {"a": 1}, None])
def test_domains_hold_plain_labels(label):
    domains = [["no", label], [1, 2, 3]]
    content = {**JOINT, "mechanism": {**JOINT["mechanism"], "domains": domains}}
    with pytest.raises(InputError, match="texts"):
        read_file_columns(declared(content), **KNOWN)


@pytest.mark.parametrize("as_text", [False, True])
def test_each_row_has_its_stratum(as_text):
    frame = declared({"version": 2, "labels": [BY, B]})
    if as_text:
        frame["region"] = frame["region"].astype(str)
    file = read_file_columns(frame, **KNOWN).file
    strata = file.columns[0].strata
    assert strata.count == 2
    np.testing.assert_array_equal(strata.codes + 1, tables()[0]["region"])
    assert file.columns[0].take(np.arange(3)).strata.codes.shape == (3,)
    assert file.columns[1].strata is None
    assert file.columns[0].features.width == 3


def test_strata_that_do_not_fit():
    def read(frame, **more):
        return read_release(frame, label="a", **KNOWN, **more)

    by_region = {"version": 2, "labels": [BY]}
    third = {"value": "zzq", "mechanism": rr(["no", "yes"])}
    more = {**BY, "mechanism": {"name": "by-stratum", "strata": [*STRATA, third]}}
    assert read(declared({"version": 2, "labels": [more]})).warnings == (
        "1 of 3 declared strata have no row: nothing is measured there.",
    )
    for frame, message in (
        (
            declared(by_region).replace({"region": {2: 9876}}),
            "that of a declared stratum",
        ),
        (
            declared(by_region).astype({"region": float}).replace({"region": {2: None}}),
            "a value of",
        ),
        (declared(by_region).drop(columns="region"), "no strata column"),
    ):
        frame.attrs["ldpaudit"] = json.dumps(by_region)
        with pytest.raises(InputError, match=message) as caught:
            read(frame)
        assert "9876" not in str(caught.value)
    with pytest.raises(InputError, match="is private"):
        read(declared(by_region), id_column="region")


def test_a_copy_of_the_true_values_of_any_column_is_found():
    frame, truth = tables()
    frame.attrs["ldpaudit"] = json.dumps(TWO)
    frame["decoy"] = truth["b"] * 2
    warnings = read_file_columns(frame, truth=truth, **KNOWN).warnings
    assert len(warnings) == 1
    assert warnings[0].startswith("Private column 'b': Column 5 of the release determines")
    frame = frame.drop(columns="decoy").assign(ta=truth["a"], tb=truth["b"])
    report = read_file_columns(frame, truth_column=["ta", "tb"], **KNOWN)
    assert report.warnings == ()
    assert [column.features.width for column in report.file.columns] == [3, 3]


def test_the_truth_may_be_called_as_before_the_release():
    frame, truth = tables()
    frame = frame.rename(columns={"a": "a_pram", "b": "b_pram"})
    file = read_file_columns(frame, labels=["a_pram", "b_pram"], truth=truth, **KNOWN).file
    assert all(column.truth is not None for column in file.columns)
    assert read_release(frame, label="b_pram", truth=truth, **KNOWN).release.truth is not None


def test_what_was_post_randomized_is_missed_beside_its_result():
    frame = tables()[0].rename(columns={"a": "roof_pram", "b": "roof"})
    assert read_release(frame, label="roof_pram").release.named_as_truth == (4,)
    assert read_release(frame, label="roof_pram", drop=["roof"]).release.named_as_truth == ()


def test_what_cannot_be_read_together():
    frame, truth = tables()
    two = declared(TWO)
    for source, options, message in (
        (frame, {"labels": ["a"]}, "At least two"),
        (frame, {}, "At least two"),
        (frame, {"labels": ["a", "a"]}, "named once"),
        (frame, {"labels": ["a", "bb"]}, "the name of column 4 is most like it"),
        (two, {"labels": ["a", "x"]}, "'x' is none of the private"),
        (two, {"truth": truth.drop(columns="b")}, "column 2 of 2 has none"),
        (two, {"truth": truth["a"]}, "must be a table"),
        (two, {"truth": truth, "truth_column": ["a"]}, "for each of the 2"),
        (two, {"features": ["x", "b"]}, "must not be a feature"),
        (two, {"drop": ["b"]}, "another role"),
        (declared({"version": 2, "labels": [A, {**B, "label": "gone"}]}), {}, "no label column"),
    ):
        with pytest.raises(InputError, match=message):
            read_file_columns(source, **options, **KNOWN)
    both = {"labels": ["a", "b"], **KNOWN}
    assert read_file_columns(frame, **both).file.declaration is None
    assert read_file_columns(two, features=["x"], **both).file.columns[0].features.width == 2


def test_claims_of_file_and_options_agree():
    of_file = parse_declaration(json.dumps(TWO).encode())
    claim = Declaration("randomized-response", {"epsilon": 1.0}, "options")
    assert agreed_columns(of_file, None) is of_file
    given = ColumnsDeclaration((LabelDeclaration("a", claim),))
    assert agreed_columns(of_file, given) == of_file
    for other, message in (
        (LabelDeclaration("a", Declaration("unknown")), "one mechanism"),
        (LabelDeclaration("a", claim, "region"), "column of strata"),
        (LabelDeclaration("c", claim), "1 of the private columns"),
    ):
        with pytest.raises(InputError, match=message):
            agreed_columns(of_file, ColumnsDeclaration((other,)))
    with pytest.raises(InputError, match="one mechanism"):
        agreed_columns(of_file, parse_declaration(json.dumps(JOINT).encode()))


@given(st.text())
def test_a_quoted_name_is_short_printable_and_one_line(name):
    shown = quoted(name)
    assert shown.isprintable()
    assert len(shown) <= 63
    assert len(shown.splitlines()) == 1


def test_marks_that_turn_the_writing_around_are_escaped():
    assert (quoted("pay\u202egnol\n"), quoted("<script>")) == (r"'pay\u202egnol\n'", "'<script>'")
    assert quoted("x" * 10_000) == f"'{'x' * 60}…'"


def test_the_nearest_name():
    assert nearest("incme", ["age", "income", "label"]) == "income"
    assert nearest("Income", ["age", "income"]) == "income"
    assert nearest("q" * 20_000, ["w" * 20_000]) is None
    assert nearest("label", []) is None


def test_the_end_of_a_sentence():
    assert did_you_mean("Laplce", ["laplace", "staircase"]) == "; did you mean 'laplace'?"
    assert did_you_mean("gauss", ["laplace"]) == "."
    assert did_you_mean("gauss", ["laplace"], "; only one.") == "; only one."


def test_a_missing_column():
    close = str(missing_column("labell", "label", ["label", "x"]))
    assert close.endswith(
        "column 'labell' among the 2 columns; the name of column 1 is most like it."
    )
    case = str(missing_column("Label", "label", ["x", "label"]))
    assert case.endswith("the name of column 2 differs only in case.")
    assert str(missing_column("q", "id", ["label"])).endswith("among the 1 column.")

    named = str(missing_column("Label", "label", Header(("x", "label"))))
    assert named.endswith("among the 2 columns; did you mean 'label'?")


@pytest.mark.parametrize(
    ("role", "option"),
    [
        ("label", "--label"),
        ("true label", "--truth-column"),
        ("to drop", "--drop"),
        ("to keep", "--keep"),
        ("to read as text", "--text"),
        ("to use as a feature", "--features"),
        ("to slice by (--slice)", "--slice"),
        ("to take as before the noise", "--before"),
    ],
)
def test_names_in_a_list_are_named_one_by_one_with_the_option_that_was_used(role, option):
    said = str(missing_column("Patient ID, town", role, ["Patient ID", "town"]))
    assert said.endswith(f"each is named by itself: {option} 'Patient ID' {option} town.")
    # An id is one column, and what a file names nobody typed.
    assert "each" not in str(missing_column("Patient ID,town", "id", ["Patient ID", "town"]))
    assert "each" not in str(missing_column("a,b", role, ["a", "b"], typed=False))


COLUMNS = [["41", "7", "30"], ["1,5", "", "2,5"], ["Oslo", "Bergen", "Oslo"]]
"""Cells of two columns of numbers and one of texts."""
HEADERS = {
    ("age", "bmi", "town"): True,
    ("age", "bmi", ""): True,
    ("age", "", "town"): False,  # One name over numbers may be a word for a missing number.
    ("age", "unknown", "town"): False,
    ("keine", "keine", "Oslo"): False,
    ("-", "*", "town"): False,
    ("age", "3", "town"): False,
    ("age", "bmi", "Oslo"): False,
}
"""Whether first rows are names for certain."""


@pytest.mark.parametrize("names", HEADERS)
def test_names_that_are_no_row_for_certain(names):
    found = header_of(names, COLUMNS, "t.csv")
    assert found == names
    assert isinstance(found, Header) is HEADERS[names]


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("0", "1"), True),
        (("1", "2", "3"), True),
        (("2019", "2020", "2021"), True),
        (("60", "40", "20"), False),
        (("3", "2", "1"), True),
        (("5", "6"), False),
        (("1", "40", "41"), False),
    ],
)
def test_names_that_count_are_no_row(names, taken):
    """Though each would be at home among the cells of its column."""
    columns = [[str(int(name) + step) for step in (-1, 0, 1, 2)] for name in names]
    if taken:
        assert header_of(names, columns, "t.csv") == names
    else:
        with pytest.raises(InputError, match="looks like a row"):
            header_of(names, columns, "t.csv")


def test_the_first_row_of_a_file_without_names_is_not_told():
    said = str(missing_column("Oslo", "label", ["41", "Osl", "1,5"]))
    assert said.endswith("among the 3 columns; does the file's first line name its columns?")


def test_repeated_names_are_placed_but_not_told():
    check_unique(["a", "b"])
    with pytest.raises(InputError, match="columns 1, 2 do not") as caught:
        check_unique(["Smith", "Smith", "b"])
    assert "Smith" not in str(caught.value)


def frame(n=1000):
    rng = np.random.default_rng(0)
    region = np.repeat(["north", "south", "east", "west"], [n // 2, n // 4, n // 5, n // 20])
    return pd.DataFrame({"region": region, "age": rng.normal(size=n), "few": region == "west"})


def test_small_slices_are_merged_and_none_is_told_by_subtraction():
    (found,) = read_slices(frame(), ["region"])
    # West has 50 rows; east joins it, since the rest of 50 would be small.
    assert found.names == ("north", "south", "all others")
    assert np.bincount(found.codes).tolist() == [500, 250, 250]


def test_numbers_are_cut_at_their_quartiles():
    (found,) = read_slices(frame(), ["age"])
    assert np.bincount(found.codes).tolist() == [250] * 4


def test_many_slices_are_merged_into_the_last():
    codes = np.repeat(np.arange(30, dtype=np.int32), 100)
    found = merged("x", codes, [str(i) for i in range(30)])
    assert (len(found), np.bincount(found.codes)[-1]) == (12, 1900)


@pytest.mark.parametrize(
    ("columns", "word"), [(["nowhere"], "no column"), (["few"], "at least two slices")]
)
def test_what_cannot_be_sliced(columns, word):
    with pytest.raises(InputError, match=word):
        read_slices(frame(), columns)


def test_missing_values_are_a_slice_and_columns_combine():
    table = pd.DataFrame({"a": [None] * 200 + ["x"] * 200, "b": ["u", "v"] * 200})
    slices = read_slices(table, ["a", "b"])
    joint = joint_slices(slices, np.arange(400))
    assert np.bincount(joint).tolist() == [100] * 4
    assert joint_slices((), np.arange(400)) is None


def released(classes):
    none = FeatureTable(np.zeros((3, 0), np.float32), np.zeros((3, 0), np.int32), (), 0)
    labels = ReleasedLabels(np.array([0, 1, 0], dtype=np.int32))
    declaration = Declaration("model-based-rr", {"classes": ["no", "yes"], "lambda": 0.5})
    return Release(none, labels, classes, classes, declaration=declaration)


def test_a_public_model_is_read_in_the_order_of_the_classes():
    values = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    turned = released(("yes", "no"))
    assert with_public_posterior(turned, None) is turned
    for source in (values, pd.DataFrame(values, columns=["no", "yes"])):
        found = with_public_posterior(turned, source).public_posterior
        np.testing.assert_allclose(found, values[:, ::-1])


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.ones((2, 2)) / 2, "3 rows"),
        (np.ones((3, 2)), "sum to 1; in 3"),
        (pd.DataFrame({"no": [1.0] * 3}), "1 are missing"),
        (pd.DataFrame({"no": ["zzz"] * 3, "yes": ["b"] * 3}), "numbers"),
        (np.full((3, 2), "zzz"), "numbers"),
    ],
)
def test_a_public_model_that_is_none(values, word):
    with pytest.raises(InputError, match=word) as caught:
        with_public_posterior(released(("no", "yes")), values)
    assert "zzz" not in str(caught.value)


@pytest.mark.parametrize(
    ("classes", "columns"), [((False, True), ("false", "true")), ((1, 2), (1.0, 2.0))]
)
def test_columns_of_classes_are_matched_as_labels_are(classes, columns):
    values = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    found = with_public_posterior(released(classes), pd.DataFrame(values, columns=columns))
    np.testing.assert_allclose(found.public_posterior, values)


def test_the_survey():
    features, labels = affairs()
    assert features.shape == (6366, 8)
    assert "affairs" not in features.columns
    assert (set(labels), np.mean(labels == "yes")) == ({"no", "yes"}, 2053 / 6366)


def test_it_is_the_table_of_statsmodels():
    from statsmodels.datasets import fair  # Here: to import it takes seconds.

    data = fair.load_pandas().data
    features, labels = affairs()
    pd.testing.assert_frame_equal(features, data.drop(columns="affairs"), check_exact=True)
    assert ((labels == "yes") == (data["affairs"] > 0)).all()


def test_a_column_that_several_claims_name_counts_once() -> None:
    declared = DeclaredColumns({("u", "v"): 1.0, ("u",): 2.0})
    assert (declared.count, declared.epsilon) == (2, 3.0)


def test_private_columns_are_not_named_and_places_move():
    rng, n = np.random.default_rng(5), 400
    public = {"a": rng.standard_normal(n), "c": rng.choice(["oslo", "rome"], n)}
    drawn = [{"label": rng.choice(["no", "yes"], n), "b": rng.integers(0, 3, n)} for _ in range(2)]
    released = pa.table({"a": public["a"], **drawn[0], "c": public["c"]})
    truth = pa.table({"a": public["a"], **drawn[1]})
    report = read_file_columns(released, labels=("label", "b"), truth=truth, before=["*"])
    file = report.file
    assert isinstance(file, FileColumns)
    for place, column in enumerate(file.columns):
        assert {c.name: c.before for c in column.columns if c.arrays} | {
            "a": "truth",
            "c": "named",
        } == {c.name: c.before for c in column.columns}
        alone = file.alone(place)
        assert alone.before == {0, 1}
        assert {p for c in alone.columns for p in c.arrays} == {0, 1}
        private = [c for c in column.columns if c.name in ("label", "b")]
        assert [c.before for c in private] == [None]
    with pytest.raises(InputError, match="private or no feature"):
        read_file_columns(released, labels=("label", "b"), truth=truth, before=["b"])
