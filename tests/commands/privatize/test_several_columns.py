"""Several private columns in one release: what is written, declared, said and refused."""

import json
import math
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import ROWS, Command, declared_json, frame, refused

from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
from ldpaudit.datasets import parse_declaration
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import joint
from ldpaudit.options import LabelOptions

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
def here(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the table, which is the current one."""
    monkeypatch.chdir(data.parent)
    return data.parent


def applied(**options: Any) -> pd.DataFrame:
    """Release the table of the current folder as an experiment; return the release."""
    output = Path("applied.parquet")
    common: dict[str, Any] = {"experimental": True, "seed": 5, "overwrite": True}
    privatize(PrivatizeRequest("data.parquet", output, **{**common, **options}))
    return pq.read_table(output).to_pandas()


def test_two_columns_one_declaration_one_secret(here: Path, command: Command) -> None:
    status, printed = command("data.parquet", "-o", "r.parquet", "--secret", "s.parquet", *TWO)
    assert status == 0, printed
    assert "2,000 rows with 2 private columns" in printed
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


def test_a_plan_says_the_same_and_knows_strata(here: Path, command: Command) -> None:
    Path("plan.toml").write_text(PLAN)
    status, printed = command("data.parquet", "-o", "r.csv", "--plan", "plan.toml")
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
def test_each_stratum_has_its_own_channel(here: Path) -> None:
    strata = {"oslo": {"lambda": 0.9}, "rome": {"lambda": 0.1}, "bonn": {"lambda": 0.5}}
    one = {"label": "flag", "by": "town", "mechanism": "rr", "strata": strata}
    release, true = applied(plan={"labels": [one]}), frame()
    for town, stated in strata.items():
        rows = (true["town"] == town).to_numpy()
        kept = float((release["flag"] == true["flag"])[rows].mean())
        expected = 1 - stated["lambda"] / 2
        assert abs(kept - expected) < 5 * math.sqrt(expected * (1 - expected) / rows.sum())


@pytest.mark.parametrize("name", ["joint-rr", "rs-fd"])
def test_a_joint_mechanism_releases_both(name: str, here: Path, command: Command) -> None:
    labels = ("--label", "label:classes=no,perhaps,yes", "--label", "flag")
    options = ("--joint", name, *labels, "--epsilon", "2")
    status, printed = command("data.parquet", "-o", "r.parquet", *options)
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


def test_the_columns_draws_are_independent_and_do_not_depend_on_their_order(here: Path) -> None:
    """As an experiment each column has a stream of its own, told by its name."""
    labels = ("label", "flag")
    options: dict[str, Any] = {"mechanism": "randomized-response", "noise": 0.8}
    both, true = applied(label=labels, **options), frame()
    again = applied(label=labels[::-1], **options)
    pd.testing.assert_frame_equal(both, again)
    changed = pd.DataFrame({name: both[name] != true[name] for name in labels})
    correlation = float(np.corrcoef(changed.to_numpy(dtype=float).T)[0, 1])
    assert abs(correlation) < 5 / math.sqrt(ROWS)


def test_one_column_in_one_word_is_what_options_say(here: Path) -> None:
    """A name may hold a colon."""
    frame().rename(columns={"flag": "a:b"}).to_parquet("data.parquet")
    words = applied(label='"a:b":rr:epsilon=1')
    stated = declared_json(Path("applied.parquet"))
    assert stated["version"] == 1
    pd.testing.assert_frame_equal(words, applied(label="a:b", mechanism="rr", epsilon=1.0))
    assert stated == declared_json(Path("applied.parquet"))
    options = LabelOptions(label="a:b", mechanism="rr", epsilon=1.0)
    pd.testing.assert_frame_equal(words, applied(label=(options,)))


def test_numbers_are_released_beside_words_and_letters_stay(here: Path, command: Command) -> None:
    table = frame().assign(price="1.50")
    table.to_csv("data.csv", index=False)
    status, printed = command("data.csv", "-o", "r.csv", *TWO)
    assert status == 0, printed
    released = pd.read_csv("r.csv", dtype=str)
    assert (released["price"] == "1.50").all()
    assert released["weeks"].astype(int).min() < 0


def test_private_priors_add_up(here: Path) -> None:
    entry = {"mechanism": "rr-top-k", "epsilon": 1.5, "private-prior": 0.5}
    labels = [{"label": "label", **entry}, {"label": "flag", **entry}]
    applied(plan={"labels": labels})
    provenance = declared_json(Path("applied.parquet"))["provenance"]
    assert provenance["epsilon"] == pytest.approx({"prior": 1.0, "labels": 2.0, "total": 3.0})
    assert provenance["prior"] == {"label": "private histogram", "flag": "private histogram"}


def test_every_private_column_is_watched(here: Path) -> None:
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


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
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


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, here: Path, command: Command) -> None:
    options, word = REFUSED[case]
    Path("plan.toml").write_text(PLAN)
    assert word in refused(command, here, "data.parquet", "-o", "r.parquet", *options)


RR = {"mechanism": "rr", "epsilon": 1.0}
NOISE = {t: {"mechanism": "discrete-laplace", "epsilon": 1} for t in ("oslo", "rome", "bonn")}
PLANS: dict[str, tuple[dict[str, Any], str]] = {
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
        {
            "labels": [
                {"label": "flag", "by": "town", "strata": {"oslo": {**RR, "classes": [0, 1]}}}
            ]
        },
        "classes is the same for all",
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
    "stratum absent": (
        {"labels": [{"label": "flag", "by": "towm", "strata": {"oslo": RR}}]},
        "did you mean '",
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_plans_that_are_refused(case: str, here: Path) -> None:
    plan, word = PLANS[case]
    with pytest.raises(InputError, match=word):
        applied(plan=plan)


def test_channels_by_stratum_state_the_same_labels(here: Path) -> None:
    Path("one.csv").write_text(",False,True\nFalse,0.7,0.3\nTrue,0.1,0.9\n")
    Path("turned.csv").write_text(",True,False\nTrue,0.9,0.1\nFalse,0.3,0.7\n")
    strata = {town: {"channel": "one.csv"} for town in ("oslo", "rome", "bonn")}
    column = {"label": "flag", "by": "town", "mechanism": "channel", "strata": strata}
    release, true = applied(plan={"labels": [column]}), frame()
    kept = float((release["flag"] == true["flag"])[true["flag"]].mean())
    assert abs(kept - 0.9) < 5 * math.sqrt(0.09 / int(true["flag"].sum()))
    strata["rome"] = {"channel": "turned.csv"}
    with pytest.raises(InputError, match="the same labels in the same order"):
        applied(plan={"labels": [column]})


def test_a_table_has_the_channels_of_columns_and_strata(here: Path, command: Command) -> None:
    rows = "{0},{1},False,0.7,0.3\n{0},{1},True,0.1,0.9\n"
    body = "".join(rows.format("flag", town) for town in ("oslo", "rome", "bonn"))
    Path("t.csv").write_text(f"variable,town,label,False,True\n{body}")
    word = "flag:channel=t.csv:by=town"
    status, printed = command("data.parquet", "-o", "r.parquet", "--label", word)
    assert status == 0, printed
    stated = declared_json(Path("r.parquet"))
    assert stated["labels"][0]["by"] == "town"
    assert len(stated["labels"][0]["mechanism"]["strata"]) == 3
    label = "label:rr:epsilon=1"
    assert command("data.parquet", "-o", "r2.parquet", "--label", word, "--label", label)[0] == 0
    for wrong, part in (
        ("flag:channel=t.csv:by=weeks", "column 'weeks' among the 5 columns"),
        ("weeks:channel=t.csv:by=town", "has none for the column 'weeks'"),
    ):
        assert part in refused(command, here, "data.parquet", "-o", "r3.parquet", "--label", wrong)
    Path("t.csv").write_text("town,label,False,True\noslo,False,1,0\noslo,True,0,1\n")
    options = ("data.parquet", "-o", "r3.parquet", "--label", word)
    assert "strata in the column 'town'" in refused(command, here, *options)
    frame().assign(town="oslo").to_parquet("data.parquet")
    assert "epsilon is infinite" in refused(command, here, *options)


def test_a_product_of_domains_may_be_large_but_not_without_end(here: Path) -> None:
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


def test_a_stratum_without_rows_is_said(here: Path) -> None:
    strata = dict.fromkeys(("oslo", "rome", "bonn", "pisa"), RR)
    plan = {"labels": [{"label": "flag", "by": "town", "strata": strata}]}
    request = PrivatizeRequest("data.parquet", Path("r.parquet"), plan=plan)
    (warning,) = privatize(request).warnings
    assert "1 of 4 strata" in warning
