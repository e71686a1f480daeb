"""Several private columns of one file: what is declared of them, and how they are read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldpaudit.datasets import parse_declaration, read_file_columns, read_release
from ldpaudit.datasets.declaration import agreed_columns, declared_content, same_claims
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.joint import marginal_claims
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.release import ColumnsDeclaration, Declaration, DeclaredColumns, LabelDeclaration

ROWS = 400
KNOWN: dict[str, Any] = {"coding": DeclaredCoding, "marginals": marginal_claims}


def rr(classes: list[Any], epsilon: float = 1.0) -> dict[str, Any]:
    return {"name": "randomized-response", "classes": classes, "epsilon": epsilon}


A: dict[str, Any] = {"label": "a", "mechanism": rr(["no", "yes"])}
B: dict[str, Any] = {"label": "b", "mechanism": rr([1, 2, 3])}
STRATA = [{"value": v, "mechanism": rr(["no", "yes"], e)} for v, e in ((1, 1.0), (2, 0.5))]
BY: dict[str, Any] = {
    "label": "a",
    "by": "region",
    "mechanism": {"name": "by-stratum", "strata": STRATA},
}
TWO: dict[str, Any] = {"version": 2, "labels": [A, B]}
JOINT: dict[str, Any] = {
    "version": 2,
    "labels": [{"label": "a"}, {"label": "b"}],
    "mechanism": {"name": "rs-fd", "domains": [["no", "yes"], [1, 2, 3]], "epsilon": 1.0},
}


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a release and the true values of its two private columns."""
    rng = np.random.default_rng(4)

    def columns() -> dict[str, Any]:
        return {"a": rng.choice(["no", "yes"], ROWS), "b": rng.choice([1, 2, 3], ROWS)}

    x, region = rng.standard_normal(ROWS), rng.choice([1, 2], ROWS)
    return pd.DataFrame({"x": x, "region": region, **columns()}), pd.DataFrame(columns())


def declared(content: Any) -> pd.DataFrame:
    frame = tables()[0]
    frame.attrs["ldpaudit"] = json.dumps(content)
    return frame


@pytest.mark.parametrize("content", [TWO, JOINT, {"version": 2, "labels": [BY, B]}])
def test_a_declaration_is_read_and_written(content: dict[str, Any]) -> None:
    found = parse_declaration(json.dumps({**content, "provenance": {"made": "2026"}}).encode())
    again = parse_declaration(declared_content(found))
    assert again == found
    assert same_claims(found, again)
    assert json.loads(declared_content(found)) == {**content, "provenance": {"made": "2026"}}


def test_one_column_is_version_one_unless_it_has_strata() -> None:
    for content, version in (({"labels": [A]}, 1), ({"labels": [BY]}, 2)):
        found = parse_declaration(json.dumps({"version": 2, **content}).encode())
        assert json.loads(declared_content(found))["version"] == version
        assert found.label == "a"
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
def test_what_is_no_declaration(content: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_declaration(json.dumps({"version": 2, **content}).encode())
    assert "sekret" not in str(caught.value)


def test_each_column_has_the_others_among_its_features(tmp_path: Path) -> None:
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


def test_one_of_several_can_be_read_alone() -> None:
    report = read_release(declared(TWO), label="b", **KNOWN)
    release = report.release
    assert release.declared == DeclaredColumns(2)
    assert release.declaration is not None
    assert release.declaration.parameters == {"classes": [1, 2, 3], "epsilon": 1.0}
    with pytest.raises(InputError, match="declares 2 private columns; say which"):
        read_release(declared(TWO), **KNOWN)
    with pytest.raises(InputError, match="'x' is none of the private"):
        read_release(declared(TWO), label="x", **KNOWN)


def test_columns_are_in_the_order_of_their_claim() -> None:
    truth = tables()[1].rename(columns={"a": "ta", "b": "tb"})
    for content, order in ((TWO, ("b", "a")), (JOINT, ("a", "b"))):
        file = read_file_columns(
            declared(content), labels=["b", "a"], truth=truth, truth_column=["tb", "ta"], **KNOWN
        ).file
        assert file.declaration is not None
        assert file.declaration.names == order
        assert tuple(column.label for column in file.columns) == order
        for column in file.columns:
            assert column.truth is not None
            known = np.array(column.classes, object)[column.truth]
            np.testing.assert_array_equal(known, truth[f"t{column.label}"])


def test_a_joint_mechanism_gives_each_column_its_exact_marginal() -> None:
    file = read_file_columns(declared(JOINT), **KNOWN).file
    assert file.declaration is not None
    assert file.declaration.joint is not None
    claims = marginal_claims(file.declaration.joint)
    assert [column.declaration for column in file.columns] == claims
    assert read_release(declared(JOINT), label="b", **KNOWN).release.declaration == claims[1]
    with pytest.raises(InputError, match="together"):
        read_release(declared(JOINT), label="b")


@pytest.mark.parametrize("label", [[1], {"a": 1}, None])
def test_domains_hold_plain_labels(label: Any) -> None:
    domains = [["no", label], [1, 2, 3]]
    content = {**JOINT, "mechanism": {**JOINT["mechanism"], "domains": domains}}
    with pytest.raises(InputError, match="texts"):
        read_file_columns(declared(content), **KNOWN)


@pytest.mark.parametrize("as_text", [False, True])
def test_each_row_has_its_stratum(as_text: bool) -> None:
    frame = declared({"version": 2, "labels": [BY, B]})
    if as_text:
        frame["region"] = frame["region"].astype(str)
    file = read_file_columns(frame, **KNOWN).file
    strata = file.columns[0].strata
    assert strata is not None
    assert strata.count == 2
    np.testing.assert_array_equal(strata.codes + 1, tables()[0]["region"])
    assert file.columns[0].take(np.arange(3)).strata.codes.shape == (3,)  # type: ignore[union-attr]
    assert file.columns[1].strata is None
    assert file.columns[0].features.width == 3


def test_strata_that_do_not_fit() -> None:
    def read(frame: pd.DataFrame, **more: Any) -> Any:
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


def test_a_copy_of_the_true_values_of_any_column_is_found() -> None:
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


def test_the_truth_may_be_called_as_before_the_release() -> None:
    frame, truth = tables()
    frame = frame.rename(columns={"a": "a_pram", "b": "b_pram"})
    file = read_file_columns(frame, labels=["a_pram", "b_pram"], truth=truth, **KNOWN).file
    assert all(column.truth is not None for column in file.columns)
    assert read_release(frame, label="b_pram", truth=truth, **KNOWN).release.truth is not None


def test_what_was_post_randomized_is_missed_beside_its_result() -> None:
    frame = tables()[0].rename(columns={"a": "roof_pram", "b": "roof"})
    (said,) = read_release(frame, label="roof_pram").warnings
    assert said.startswith("Column 4 of the release has the name that")
    assert read_release(frame, label="roof_pram", drop=["roof"]).warnings == ()


def test_what_cannot_be_read_together() -> None:
    frame, truth = tables()
    two = declared(TWO)
    for source, options, message in (
        (frame, {"labels": ["a"]}, "At least two"),
        (frame, {}, "At least two"),
        (frame, {"labels": ["a", "a"]}, "named once"),
        (frame, {"labels": ["a", "bb"]}, "did you mean 'b'"),
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


def test_claims_of_file_and_options_agree() -> None:
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
