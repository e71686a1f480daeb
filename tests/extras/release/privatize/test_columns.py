"""Columns that should not leave the house: each fault is refused or warned of, and nothing else."""

import json
import math
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import ROWS, declared_json, frame, ran
from processes import refused

from ldpaudit.datasets import parse_declaration
from ldpaudit.errors import InputError
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.scan import released_as_they_are, told_together
from ldpaudit.extras.release.privatize.work import privatize
from ldpaudit.mechanisms import joint
from ldpaudit.options import LabelOptions

N = 3000
ROW = np.arange(N)


def drawn(key):
    """Return draws that depend on nothing but their key: tests may run in any order."""
    return np.random.default_rng([5, *key.encode()])


CODES = drawn("codes").integers(0, 3, N)
LABEL = np.array(["A1", "B1", "C1"])[CODES]


def table(**more):
    """Return an honest table, with further columns."""
    rng = drawn("table")
    plain = {"x": rng.normal(size=N) + CODES, "town": rng.choice(["oslo", "rome"], N)}
    columns = {**plain, "label": LABEL, **more}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def released(data, folder, **options):
    """Release a table; return the warnings."""
    pq.write_table(data, folder / "data.parquet", row_group_size=1000)
    options = {"mechanism": "randomized-response", "epsilon": 1.0} | options
    return privatize(
        PrivatizeRequest(str(folder / "data.parquet"), folder / "out.parquet", **options)
    ).warnings


REFUSED = {
    "copy": LABEL,
    "category": pd.Categorical(LABEL),
    "copy with a value missing": [None if text == "C1" else text for text in LABEL],
    "code": CODES * 7,
    "salted hash": np.array([hash((text, "salt")) for text in LABEL]),
    "finer code": [f"{text}{i % 10}" for i, text in enumerate(LABEL)],
    "many finer codes": CODES * 5000 + drawn("finer").integers(0, 400, N),
    "flag": LABEL == "A1",
    "list": pa.array([[text] for text in LABEL]),
    "list of codes": pa.array([[0, code] for code in CODES.tolist()]),
    "structure": pa.array([{"a": 1, "b": text} for text in LABEL]),
    "sum with an offset": CODES + drawn("offset").random(N) * 0.9,
}
"""Each tells the label in every row."""


@pytest.mark.scanned
@pytest.mark.parametrize("case", REFUSED)
def test_what_tells_the_label_in_every_row_is_refused(case, tmp_path):
    data = table(secret=REFUSED[case])
    data = data if case != "copy" else data.sort_by("label")
    with pytest.raises(
        InputError, match=r"Column 4 of 4 tells the true label in every row.*--keep"
    ):
        released(data, tmp_path)
    assert not (tmp_path / "out.parquet").exists()
    assert case == "copy" or released(data, tmp_path, drop=("secret",)) == ()


@pytest.mark.scanned
def test_a_refused_column_can_be_kept(tmp_path):
    assert released(table(secret=REFUSED["finer code"]), tmp_path, keep=("secret",)) == ()
    assert "secret" in pq.read_schema(tmp_path / "out.parquet").names


@pytest.mark.scanned
def test_a_number_that_decides_a_rare_label_is_refused(tmp_path):
    claims = np.random.default_rng(0).choice(6, N, p=[0.8, 0.15, 0.04, 0.005, 0.003, 0.002])
    data = pa.table({"claims": claims, "x": drawn("rare").normal(size=N), "label": claims >= 3})
    with pytest.raises(InputError, match="Column 1 of 3 tells"):
        released(data, tmp_path)


@pytest.mark.scanned
def test_the_same_number_up_to_a_factor_and_an_offset_is_refused(tmp_path):
    revenue = drawn("revenue").random(N) * 400
    data = pa.table(
        {"euro": revenue * 1.1 + 3, "x": drawn("euro").normal(size=N), "label": revenue}
    )
    options = {"mechanism": "laplace", "labels": "0:400"}
    with pytest.raises(InputError, match="Column 1 of 3 tells"):
        released(data, tmp_path, **options)
    almost = data.set_column(0, "euro", pa.array(revenue + drawn("almost").normal(size=N) * 0.01))
    (warning,) = released(almost, tmp_path, **options)
    assert "Column 1 of 3 reveals at least 98 %" in warning


WARNED = {
    "near copy": (np.where(drawn("copy").random(N) < 0.99, LABEL, "A1"), "reveals at least 98 %"),
    "partly missing": ([t if i % 60 else None for i, t in enumerate(LABEL)], "reveals at least"),
    "one row differs": (
        np.where(np.flatnonzero(CODES)[0] == ROW, "A1", LABEL),
        "reveals at least 98 %",
    ),
    "plus the row's number": (CODES + ROW, "reveals at least 98 %"),
    "named in a text": (
        [f"Person {i} has {t}" for i, t in enumerate(LABEL)],
        "reveals at least 98",
    ),
    "part of a name": ([f"{t}-{i}" for i, t in enumerate(LABEL)], "reveals at least 98 %"),
    "row before": (np.roll(LABEL, 1), "rows next to its own"),
    "two rows on": (np.roll(CODES, -2), "rows next to its own"),
    "identifier": (drawn("number").permutation(N) + 10**6, "identifier"),
    "free text": ([f"seen on ward {i} and sent home" for i in ROW], "free text"),
    "dates": (pd.date_range("2019-01-01", periods=N).date, "exact dates"),
    "index": (ROW, "numbers the rows"),
    "nested": ([{"a": int(i % 7)} for i in ROW], "nested values"),
}
"""What is warned of, and by which words."""


def test_labels_that_differ_in_spelling_are_warned_of(tmp_path):
    spelt = drawn("spelt").choice(["a1 ", "A1", "B1"], N)
    (warning,) = released(table(label=spelt), tmp_path)
    assert warning.startswith(
        "1 of the 3 labels differs from another only in spaces, in upper and lower case"
    )
    assert "A1" not in warning


@pytest.mark.scanned
def test_several_columns_of_one_kind_are_warned_of_together(tmp_path):
    dates = pd.date_range("2019-01-01", periods=N).date
    (warning,) = released(table(born=dates, came=dates[::-1]), tmp_path)
    assert warning.startswith("Of the columns 4, 5, each holds exact dates")
    assert "Leave them out with --drop" in warning


@pytest.mark.scanned
def test_cells_of_another_kind_are_warned_of_with_the_options_that_name_them(tmp_path):
    cells = np.where(ROW % 20 == 0, "negative", drawn("cells").integers(0, 50, N).astype(str))
    (warning,) = released(table(finding=cells), tmp_path)
    assert warning.endswith(
        "Correct it, name the mark of such cells (--missing-values), or have it read as text "
        "(--text)."
    )


@pytest.mark.scanned
@pytest.mark.parametrize("case", WARNED)
def test_what_may_give_people_away_is_warned_of(case, tmp_path):
    values, words = WARNED[case]
    warnings = released(table(secret=values), tmp_path)
    assert any("olumn 4 of 4" in text and words in text for text in warnings)
    assert all("secret" not in text and "olumn 1" not in text for text in warnings)
    (tmp_path / "out.parquet").unlink()
    assert released(table(secret=values), tmp_path, keep=("secret",)) == ()


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_an_index_of_pandas_is_known_by_its_name(name, tmp_path):
    (warning,) = released(table(**{name: drawn("index").integers(0, N, N)}), tmp_path)
    assert "numbers the rows" in warning


def test_the_index_of_a_csv_file_is_warned_of(tmp_path):
    table().to_pandas().to_csv(tmp_path / "data.csv")
    words = ("--mechanism", "rr", "--epsilon", "1", "-o", tmp_path / "out.parquet")
    status, printed = ran(tmp_path / "data.csv", *words)
    assert (status, "numbers the rows" in printed) == (0, True), printed


@pytest.mark.scanned
def test_an_honest_table_gives_no_warning(tmp_path):
    more = {"constant": np.ones(N), "lists": [[1.0, 2.0]] * N, "none": pa.nulls(N)}
    infinite = drawn("infinite").choice([np.inf, -np.inf], N)
    assert released(table(**more, infinite=infinite), tmp_path) == ()


@pytest.mark.scanned
def test_sorted_rows_are_warned_of(tmp_path):
    (warning,) = released(table().sort_by("label"), tmp_path)
    assert "order of the rows" in warning


def test_a_mechanism_that_gives_every_row_the_same_label_is_warned_of(tmp_path):
    labels = np.random.default_rng(1).choice(["a", "b", "c"], 2_000, p=[0.95, 0.03, 0.02])
    pq.write_table(pa.table({"x": np.arange(2_000.0), "label": labels}), tmp_path / "d.parquet")
    (tmp_path / "prior.csv").write_text("label,probability\na,0.95\nb,0.03\nc,0.02\n")
    words = ("--mechanism", "rr-top-k", "--epsilon", "0.1", "--prior", tmp_path / "prior.csv")
    status, printed = ran(tmp_path / "d.parquet", "-o", tmp_path / "r.parquet", *words)
    assert (status, "every row the same label" in printed) == (0, True), printed


def test_a_large_epsilon_and_few_rows_are_warned_of(tmp_path):
    large, few = released(table().slice(0, 90), tmp_path, epsilon=6.0)
    assert "ε = 6 the mechanism hides little: 99.5 % of labels are released as they are" in large
    assert "90 rows" in few


@pytest.mark.parametrize("ordered", [False, True])
def test_an_unused_category_does_not_stay_in_the_file(ordered, tmp_path):
    codes = np.minimum(
        drawn("groups").integers(0, 3, N), ROW // 1000
    )  # Row groups use different values.
    values = pd.Categorical.from_codes(codes, ["u", "v", "w", "UNUSED_SECRET"], ordered=ordered)
    missing = pd.Series(values)
    missing[5] = None
    data = table(kind=pa.array(values), holes=pa.array(missing))
    assert released(data, tmp_path) == ()
    assert b"UNUSED_SECRET" not in (tmp_path / "out.parquet").read_bytes()
    after = pq.read_table(tmp_path / "out.parquet")
    for name in ("kind", "holes"):
        assert after[name].to_pylist() == data[name].to_pylist()
        assert after[name].type.ordered == ordered


def test_an_unused_category_inside_a_list_or_a_structure_does_not_stay(tmp_path):
    codes = pa.array(drawn("small").integers(0, 2, N), pa.int8())
    values = pa.DictionaryArray.from_arrays(codes, pa.array(["u", "v", "UNUSED_SECRET"]))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(N + 1), pa.int32()), values)
    data = table(lists=lists, structure=pa.StructArray.from_arrays([values], ["a"])).slice(0, 900)
    released(data, tmp_path)
    assert b"UNUSED_SECRET" not in (tmp_path / "out.parquet").read_bytes()
    after = pq.read_table(tmp_path / "out.parquet")
    assert after["lists"].to_pylist() == data["lists"].to_pylist()
    assert after["structure"].to_pylist() == data["structure"].to_pylist()


@pytest.mark.scanned
def test_a_rare_label_beside_a_column_of_many_values_is_not_refused():
    rng = np.random.default_rng(1)
    label = pa.array((np.arange(N) < 5).astype(int)[rng.permutation(N)])
    zips = pa.array(rng.integers(0, 2000, N))
    both = pa.table({"zip": zips, "label": label})
    assert released_as_they_are(both, "label", (), both.schema.names).deciding() == []


@pytest.mark.scanned
def test_columns_that_tell_the_label_together_are_warned_of(tmp_path):
    rng = np.random.default_rng(2)
    mask = rng.integers(0, 2, N)
    two = np.where(rng.random(N) < 0.5, "A1", "B1")
    hidden = ((two == "B1").astype(int) + mask) % 2
    data = table(label=two, mask=mask, hidden=hidden)
    assert any("together reveal true labels" in text for text in released(data, tmp_path))
    lab = np.where(two == "B1", rng.normal(7.5, 0.6, N), rng.normal(5.3, 0.6, N))
    warned = released(table(label=two, a1c=lab), tmp_path, overwrite=True)
    assert any("together reveal" in text for text in warned)
    vague = np.where(two == "B1", rng.normal(6.5, 0.6, N), rng.normal(5.3, 0.6, N))
    (tmp_path / "out.parquet").unlink()
    assert released(table(label=two, a1c=vague), tmp_path) == ()


def test_a_narrow_band_of_one_column_is_told_and_an_infinite_number_is_a_missing_one():
    rng = np.random.default_rng(3)
    wide, holes = rng.random((2, 2000))
    holes[rng.random(2000) < 0.1] = np.inf
    decided = ((np.abs(wide - 0.5) < 0.1) ^ np.isinf(holes)).astype(np.int32)
    told, by_chance = (
        told_together([wide, holes], labels) for labels in (decided, rng.integers(0, 2, 2000))
    )
    assert by_chance < 0.6 < 0.98 < told


TWO = ("--label", "label:rr:epsilon=1", "--label", "weeks:discrete-laplace:epsilon=0.5:labels=0:10")
PLAN = """
[[labels]]
label = "label"
mechanism = "rr"
epsilon = 1.0
classes = ["no", "perhaps", "yes"]

[[labels]]
label = "weeks"
mechanism = "discrete-laplace"
epsilon = 0.5
labels = [0, 10]

[[labels]]
label = "flag"
by = "town"
mechanism = "rr"
strata = { oslo = { epsilon = 1.0 }, rome = { lambda = 0.5 }, bonn = { epsilon = 0.25 } }
"""


@pytest.fixture
def here(data, monkeypatch):
    """The folder of the table, which is the current one."""
    monkeypatch.chdir(data.parent)
    return data.parent


def applied(**options):
    """Release the table of the current folder as an experiment; return the release."""
    output = Path("applied.parquet")
    common = {"experimental": True, "seed": 5, "overwrite": True}
    privatize(PrivatizeRequest("data.parquet", output, **{**common, **options}))
    return pq.read_table(output).to_pandas()


def test_two_columns_one_declaration_one_secret(here):
    status, printed = ran("data.parquet", "-o", "r.parquet", "--secret", "s.parquet", *TWO)
    assert (status, f"{ROWS:,} rows with 2 private columns" in printed) == (0, True), printed
    assert "Releasing both reveals up to ε = 1.5 nats about a person." in printed
    stated = declared_json(Path("r.parquet"))
    assert stated["version"] == 2
    assert [one["label"] for one in stated["labels"]] == ["label", "weeks"]
    assert stated["provenance"]["classes"] == {"label": "data", "weeks": "declared"}
    declaration = parse_declaration(json.dumps(stated).encode())
    assert joint.from_declaration(declaration, [(), ()]).epsilon == pytest.approx(1.5)
    true, secret = frame(), pq.read_table("s.parquet").to_pandas()
    assert stat.S_IMODE(Path("s.parquet").stat().st_mode) == 0o600
    pd.testing.assert_frame_equal(secret, true[["label", "weeks"]], check_dtype=False)
    release = pq.read_table("r.parquet").to_pandas()
    assert list(release) == list(true)
    public = ["x", "town", "count", "flag"]
    pd.testing.assert_frame_equal(release[public], true[public], check_dtype=False)
    for column in ("label", "weeks"):
        assert (release[column] != true[column]).any()


def test_a_plan_says_the_same_and_knows_strata(here):
    Path("plan.toml").write_text(PLAN)
    status, printed = ran("data.parquet", "-o", "r.csv", "--plan", "plan.toml")
    assert status == 0, printed
    largest = math.log(1 + 2 * 0.5 / 0.5)
    assert f"Releasing all 3 reveals up to ε = {1.5 + largest:.6g} nats" in printed
    stated = json.loads(Path("r.csv.ldpaudit.json").read_text())
    assert stated["labels"][2]["by"] == "town"
    strata = stated["labels"][2]["mechanism"]["strata"]
    assert [one["value"] for one in strata] == ["oslo", "rome", "bonn"]
    whole = joint.from_declaration(parse_declaration(json.dumps(stated).encode()), [(), (), ()])
    assert whole.epsilon == pytest.approx(1.5 + largest)


# With fixed seeds these are facts; five standard deviations say that they are plausible ones.
def test_each_stratum_has_its_own_channel(here):
    strata = {"oslo": {"lambda": 0.9}, "rome": {"lambda": 0.1}, "bonn": {"lambda": 0.5}}
    one = {"label": "flag", "by": "town", "mechanism": "rr", "strata": strata}
    release, true = applied(plan={"labels": [one]}), frame()
    for town, stated in strata.items():
        rows = (true["town"] == town).to_numpy()
        kept = float((release["flag"] == true["flag"])[rows].mean())
        expected = 1 - stated["lambda"] / 2
        assert abs(kept - expected) < 5 * math.sqrt(expected * (1 - expected) / rows.sum())


@pytest.mark.parametrize("name", ["joint-rr", "rs-fd"])
def test_a_joint_mechanism_releases_both(name, here):
    labels = ("--label", "label:classes=no,perhaps,yes", "--label", "flag")
    options = ("--joint", name, *labels, "--epsilon", "2")
    status, printed = ran("data.parquet", "-o", "r.parquet", *options)
    assert status == 0, printed
    stated = declared_json(Path("r.parquet"))
    assert stated["labels"] == [{"label": "label"}, {"label": "flag"}]
    domains = [["no", "perhaps", "yes"], [False, True]]
    assert stated["mechanism"] == {"name": name, "domains": domains, "epsilon": 2.0}
    whole = joint.joint_family(name).from_parameters({"epsilon": 2.0}, domains)
    assert f"up to ε = {whole.epsilon:.6g} nats" in printed
    release = applied(joint=name, label=("label", "flag"), epsilon=2.0)
    kept, true = whole.columns[0].channel.matrix[0, 0], frame()
    share = float((release["label"] == true["label"]).mean())
    assert abs(share - kept) < 5 * math.sqrt(kept * (1 - kept) / ROWS)


def test_the_columns_draws_are_independent_and_do_not_depend_on_their_order(here):
    """As an experiment each column has a stream of its own, told by its name."""
    labels = ("label", "flag")
    options = {"mechanism": "randomized-response", "noise": 0.8}
    both, true = applied(label=labels, **options), frame()
    again = applied(label=labels[::-1], **options)
    pd.testing.assert_frame_equal(both, again)
    changed = pd.DataFrame({name: both[name] != true[name] for name in labels})
    correlation = float(np.corrcoef(changed.to_numpy(dtype=float).T)[0, 1])
    assert abs(correlation) < 5 / math.sqrt(ROWS)


def test_one_column_in_one_word_is_what_options_say(here):
    """A name may hold a colon."""
    frame().rename(columns={"flag": "a:b"}).to_parquet("data.parquet")
    words = applied(label='"a:b":rr:epsilon=1')
    stated = declared_json(Path("applied.parquet"))
    assert stated["version"] == 1
    pd.testing.assert_frame_equal(words, applied(label="a:b", mechanism="rr", epsilon=1.0))
    assert stated == declared_json(Path("applied.parquet"))
    options = LabelOptions(label="a:b", mechanism="rr", epsilon=1.0)
    pd.testing.assert_frame_equal(words, applied(label=(options,)))


def test_numbers_are_released_beside_words_and_letters_stay(here):
    table = frame().assign(price="1.50")
    table.to_csv("data.csv", index=False)
    status, printed = ran("data.csv", "-o", "r.csv", *TWO)
    assert status == 0, printed
    released = pd.read_csv("r.csv", dtype=str)
    assert (released["price"] == "1.50").all()
    assert released["weeks"].astype(int).min() < 0


def test_private_priors_add_up(here):
    entry = {"mechanism": "rr-top-k", "epsilon": 1.5, "private-prior": 0.5}
    labels = [{"label": "label", **entry}, {"label": "flag", **entry}]
    applied(plan={"labels": labels})
    provenance = declared_json(Path("applied.parquet"))["provenance"]
    assert provenance["epsilon"] == pytest.approx({"prior": 1.0, "labels": 2.0, "total": 3.0})
    assert provenance["prior"] == {"label": "private histogram", "flag": "private histogram"}


@pytest.mark.scanned
def test_every_private_column_is_watched(here):
    true, two = frame(), ("label:rr:epsilon=3", "flag:rr:epsilon=3")
    codes = true["label"].map({"no": 7, "perhaps": 1, "yes": 3})
    true.assign(copy=true["flag"].map({True: "t", False: "f"}), code=codes).to_parquet(
        "data.parquet"
    )
    with pytest.raises(InputError, match=r"Column 7 of 8 tells the true 'flag' in every row"):
        applied(label=two, drop=("code",), keep=("x",))
    assert not Path("applied.parquet").exists()
    three = (*two, "code:rr:epsilon=1")
    request = PrivatizeRequest("data.parquet", Path("r.parquet"), label=three, drop=("copy",))
    whole, each = privatize(request).warnings
    assert "With ε = 7 for all 3 private columns together" in whole
    assert "'label' and 'code' follow from each other" in each


REFUSED_SEVERAL_COLUMNS = {
    "twice": (("--label", "flag:rr:epsilon=1", "--label", "flag:rr:epsilon=1"), "named twice"),
    "absent": ((*TWO, "--label", "flagg:rr:epsilon=1"), "did you mean '"),
    "unknown mechanism": ((*TWO, "--label", "flag:rrr:epsilon=1"), "'rrr' is not known"),
    "no mechanism": ((*TWO, "--label", "flag"), "'flag' must have a mechanism"),
    "no amount": ((*TWO, "--label", "flag:rr"), "The column 'flag': The mechanism"),
    "no range": ((*TWO, "--label", "count:laplace:epsilon=1"), "with labels LO:HI"),
    "outside": (
        (*TWO, "--label", "count:discrete-laplace:epsilon=1:labels=0:9"),
        "The column 'count': The labels must lie in the declared range",
    ),
    "features": ((*TWO, "--label", "flag:double-rr:epsilon=1"), "one of several"),
    "model": ((*TWO, "--label", "flag:model-based-rr:epsilon=1"), "one of several"),
    "foreign": ((*TWO, "--label", "flag:rr:epsilon=1:clip"), "clip does not belong"),
    "whose": ((*TWO, "--classes", "a,b"), "--classes could mean any of 2"),
    "needless": ((*TWO, "--epsilon", "1"), "leave out --epsilon"),
    "dropped": ((*TWO, "--drop", "weeks"), "must not be dropped"),
    "generator": ((*TWO, "--generator", "mixture"), "--generator does not belong"),
    "stated twice": (("--label", "flag:rr:epsilon=1", "--epsilon", "2"), "--epsilon is stated"),
    "nothing": ((), "Say what releases the label"),
    "strata in a word": (("--label", "flag:rr:by=town:epsilon=1"), "a plan"),
    "plan and label": (("--plan", "plan.toml", "--label", "flag"), "leave out --label"),
    "plan and epsilon": (("--plan", "plan.toml", "--epsilon", "1"), "leave out --epsilon"),
    "plan and joint": (("--plan", "plan.toml", "--joint", "rs-fd"), "leave out --joint"),
    "stratum dropped": (("--plan", "plan.toml", "--drop", "town"), "'town' is dropped"),
    "no plan": (("--plan", "plain.toml"), "cannot be read"),
    "joint alone": (("--joint", "rs-fd", "--label", "flag", "--epsilon", "1"), "at least two"),
    "joint unknown": (("--joint", "rsfd", *TWO), "did you mean 'rs-fd'"),
    "joint and own": (("--joint", "rs-fd", *TWO, "--epsilon", "1"), "with all others"),
    "joint without": (("--joint", "rs-fd", "--label", "flag", "--label", "label"), "--epsilon"),
}


@pytest.mark.parametrize("case", REFUSED_SEVERAL_COLUMNS)
def test_what_is_refused(case, here):
    options, word = REFUSED_SEVERAL_COLUMNS[case]
    Path("plan.toml").write_text(PLAN)
    assert word in refused("privatize", "data.parquet", "-o", "r.parquet", *options, folder=here)


def test_a_decimal_comma_in_a_plan_is_said_with_its_line(here):
    Path("plan.toml").write_text('[[labels]]\nlabel = "flag"\nmechanism = "rr"\nepsilon = 1,0\n')
    said = refused(
        "privatize", "data.parquet", "-o", "r.parquet", "--plan", "plan.toml", folder=here
    )
    assert said.endswith("; write a decimal point: 1.0 (at line 4, column 12).")


RR = {"mechanism": "rr", "epsilon": 1.0}
NOISE = {t: {"mechanism": "discrete-laplace", "epsilon": 1} for t in ("oslo", "rome", "bonn")}
PLANS = {
    "empty": ({}, "must list the private columns"),
    "unknown": ({"label": []}, "did you mean 'labels'"),
    "no name": ({"labels": [RR]}, "must name its column"),
    "key": ({"labels": [{"label": "flag", **RR, "epsilonn": 1}]}, "did you mean 'epsilon'"),
    "by alone": ({"labels": [{"label": "flag", "by": "town", **RR}]}, "or neither"),
    "joint": ({"labels": [], "joint": {}}, "must list"),
    "joint without": (
        {"labels": [{"label": "flag"}, {"label": "label"}], "joint": {"epsilon": 1.0}},
        "must name its mechanism",
    ),
    "stratum missing": (
        {"labels": [{"label": "flag", "by": "town", "strata": {"oslo": RR, "rome": RR}}]},
        "one of the 2 strata in the column 'town'",
    ),
    "stratum both": (
        {"labels": [{"label": "flag", "by": "town", **RR, "strata": {"oslo": {"epsilon": 1}}}]},
        "for all rows and for a stratum",
    ),
    "stratum's classes": (
        {"labels": [{"label": "flag", "by": "town", "strata": {"oslo": {**RR, "clip": True}}}]},
        "the same for all",
    ),
    "stratum's numbers": (
        {"labels": [{"label": "weeks", "by": "town", "labels": "0:10", "strata": NOISE}]},
        "must have a finite channel",
    ),
    "stratum private": (
        {
            "labels": [
                {"label": "town", **RR},
                {"label": "flag", "by": "town", "strata": {"oslo": RR}},
            ]
        },
        "'town' is private",
    ),
    "stratum infinite": (
        {"labels": [{"label": "flag", "by": "none", "strata": {"1": RR, "2": RR}}]},
        "one of the 2 strata in the column 'none'",
    ),
    "stratum absent": (
        {"labels": [{"label": "flag", "by": "towm", "strata": {"oslo": RR}}]},
        "did you mean '",
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_plans_that_are_refused(case, here):
    plan, word = PLANS[case]
    if case == "stratum infinite":
        frame().assign(none=np.inf).to_parquet("data.parquet")
    with pytest.raises(InputError, match=word):
        applied(plan=plan)


def test_channels_by_stratum_may_state_the_labels_in_any_order(here):
    Path("one.csv").write_text(",False,True\nFalse,0.7,0.3\nTrue,0.1,0.9\n")
    Path("turned.csv").write_text(",True,False\nTrue,0.9,0.1\nFalse,0.3,0.7\n")
    strata = {town: {"channel": "one.csv"} for town in ("oslo", "rome", "bonn")}
    column = {"label": "flag", "by": "town", "mechanism": "channel", "strata": strata}
    for own in ("one.csv", "turned.csv"):
        strata["rome"] = {"channel": own}
        release, true = applied(plan={"labels": [column]}), frame()
        kept = float((release["flag"] == true["flag"])[true["flag"]].mean())
        assert abs(kept - 0.9) < 5 * math.sqrt(0.09 / int(true["flag"].sum()))


def test_a_table_has_the_channels_of_columns_and_strata(here):
    rows = "{0},{1},False,0.7,0.3\n{0},{1},True,0.1,0.9\n"
    body = "".join(rows.format("flag", town) for town in ("oslo", "rome", "bonn"))
    Path("t.csv").write_text(f"variable,town,label,False,True\n{body}")
    word = "flag:channel=t.csv:by=town"
    status, printed = ran("data.parquet", "-o", "r.parquet", "--label", word)
    assert status == 0, printed
    stated = declared_json(Path("r.parquet"))
    assert stated["labels"][0]["by"] == "town"
    assert len(stated["labels"][0]["mechanism"]["strata"]) == 3
    label = "label:rr:epsilon=1"
    assert ran("data.parquet", "-o", "r2.parquet", "--label", word, "--label", label)[0] == 0
    for wrong, part in (
        ("flag:channel=t.csv:by=weeks", "column 'weeks' among the 5 columns"),
        ("weeks:channel=t.csv:by=town", "has none for the column 'weeks'"),
    ):
        assert part in refused(
            "privatize", "data.parquet", "-o", "r3.parquet", "--label", wrong, folder=here
        )
    Path("t.csv").write_text("town,label,False,True\noslo,False,1,0\noslo,True,0,1\n")
    options = ("data.parquet", "-o", "r3.parquet", "--label", word)
    assert "strata in the column 'town'" in refused("privatize", *options, folder=here)
    frame().assign(town="oslo").to_parquet("data.parquet")
    assert "epsilon is infinite" in refused("privatize", *options, folder=here)


def test_a_product_of_domains_may_be_large_but_not_without_end(here):
    rng = np.random.default_rng(0)
    columns = {f"c{j}": rng.integers(0, 100, 300) for j in range(8)}
    pd.DataFrame(columns).to_parquet("data.parquet")
    labels = [{"label": name, "labels": "0:99"} for name in columns]
    joint_rr = {"mechanism": "joint-rr", "epsilon": 1.0}
    release = applied(plan={"labels": labels[:6], "joint": joint_rr})  # A channel of 10²⁴ entries.
    assert len(release) == 300
    with pytest.raises(InputError, match="next to nothing would be kept"):
        applied(plan={"labels": labels, "joint": joint_rr})
    applied(plan={"labels": labels, "joint": {"mechanism": "rs-fd", "epsilon": 1.0}})


def test_a_stratum_without_rows_is_said(here):
    strata = dict.fromkeys(("oslo", "rome", "bonn", "pisa"), RR)
    plan = {"labels": [{"label": "flag", "by": "town", "strata": strata}]}
    request = PrivatizeRequest("data.parquet", Path("r.parquet"), plan=plan)
    (warning,) = privatize(request).warnings
    assert "1 of 4 strata" in warning


def test_labels_of_few_rows_are_pointed_out(tmp_path):
    true = table().to_pandas()
    true.loc[0, "label"] = "600"
    (warning,) = released(pa.Table.from_pandas(true, preserve_index=False), tmp_path)
    assert "1 label stands in fewer than 5 rows" in warning
    assert "600" not in warning
