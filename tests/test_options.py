"""Options are declared once: each is in ``--help``, in the environment, and in the Python call."""

import inspect
import json
import sys
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from processes import called, refused
from releases import written

import ldpaudit
from ldpaudit.api import plan_of
from ldpaudit.audits.interface import Plan
from ldpaudit.cli.commands import run
from ldpaudit.cli.parameters import parameters_of, recorded_command, spread
from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.choose.commands import sweep
from ldpaudit.extras.compare.commands import compare
from ldpaudit.options import (
    AuditOptions,
    ClaimOptions,
    LabelOptions,
    Option,
    PlanOptions,
    check_distinct,
    declared,
    group,
    input_files,
    label_options,
    option_name,
    parse_label,
)

NOT_SWEPT = {
    # A simulated release holds its declaration, its truth and its original rows.
    *("--truth", "--truth-column", "--original", "--held-out", "--id", "--group", "--features"),
    "--channel",
    # A mechanism that needs the first is not swept; the others are about one given release.
    *("--public-posterior", "--canaries", "--slice", "--timeout"),
    *("--projection", "--answers"),
    # The declaration of a simulated release names them.
    "--before",
}
"""The options of an audit that a sweep lacks, and why."""


def names(command):
    """Return the names of a command's options."""
    return {p.long for p in parameters_of(command) if isinstance(p.declared, Option)}


def leaves(options):
    """Return the options of a dataclass with those of the groups in it."""
    found = []
    for field in fields(options):
        option = declared(field.type)
        if isinstance(option, Option):
            found.append((option.long(field.name), option))
        elif group(field.type) is not None:
            found += leaves(group(field.type))
    return found


def test_every_shared_option_is_an_option_of_every_command():
    shared = {name for name, _ in leaves(AuditOptions)}
    assert shared <= names(run)
    # Guesses that are paired are never written; releases are compared one with the other.
    assert (shared - names(compare), shared - names(sweep)) == ({"--answers"}, NOT_SWEPT)
    assert {name for name, _ in leaves(PlanOptions)} <= names(sweep)


def test_the_python_call_takes_every_option():
    taken = inspect.signature(ldpaudit.audit).parameters
    for field in fields(AuditOptions):
        assert taken[field.name].default == field.default
    assert list(taken)[:4] == ["release", "truth", "mechanism", "rng"]
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert [n for n, p in taken.items() if p.kind is positional] == list(taken)[:4]
    described = ldpaudit.audit.__doc__ or ""
    for name in taken:
        assert f"\n{name} : " in described or f"{name}" in described.split("Returns\n")[0]
    with pytest.raises(InputError, match="'labell'; did you mean 'label'"):
        ldpaudit.audit("x.parquet", labell="y")


def test_what_is_read_and_what_is_planned_are_options():
    options = {field.name for field in fields(AuditOptions)}
    reading = {*inspect.signature(read_release).parameters} & options
    planned = {field.name for field in fields(Plan)} & options
    assert {"label", "truth", "id_column", "held_out", "public"} <= reading
    assert {"queries", "neighbors", "metric", "device", "slices"} <= planned
    plan = plan_of(AuditOptions(neighbors=7, threads=3, slices=("ignored",)), 5)
    assert ((plan.seed, plan.neighbors, plan.threads), plan.slices) == ((5, 7, 3), ())
    assert plan_of(AuditOptions(), 1, threads=2).threads == 2


def test_an_option_that_is_added_is_everywhere(monkeypatch, capsys):
    """A field more is an option more: in --help, in the environment, in the value."""
    more = Annotated[Literal["some", "all"], Option("How much more of it.", shown=True)]
    grown = make_dataclass(
        "Grown", [("how_much", more, "some")], bases=(AuditOptions,), frozen=True, kw_only=True
    )
    given = []

    def grow(options):
        given.append(options)

    grow.__annotations__["options"] = grown
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(spread(grow))

    monkeypatch.setattr(sys, "argv", ["ldpaudit", "--help"])
    app(standalone_mode=False)
    shown = capsys.readouterr().out
    assert "--how-much" in shown
    assert "some|all" in shown
    assert "How much more of it." in shown
    for words, twin, value in (
        ([], "some", "some"),
        (["--how-much", "all"], "some", "all"),
        ([], "all", "all"),
    ):
        monkeypatch.setenv("LDPAUDIT_HOW_MUCH", twin)
        monkeypatch.setattr(sys, "argv", ["ldpaudit", *words])
        app(standalone_mode=False)
        assert given[-1].how_much == value
    assert given[-1].truth is None
    assert given[-1].mechanism == ClaimOptions()
    assert "how_much" in inspect.signature(grown).parameters
    assert recorded_command(["", "grow", "--how-much", "all"], grow) == (
        "ldpaudit grow --how-much all"
    )


RECORDED = {
    "values of shown options": (
        ["r.parquet", "--truth", "t.csv", "--epsilon", "1", "--seed=3", "--metric", "raw"],
        "ldpaudit run … --truth … --epsilon 1 --seed=3 --metric raw",
    ),
    "hidden values after an equals sign": (
        ["--label=income", "r.parquet"],
        "ldpaudit run --label=… …",
    ),
    "a flag takes no value": (
        ["--quiet", "r.parquet", "--exit-zero"],
        "ldpaudit run --quiet … --exit-zero",
    ),
    "a column that is called like an option": (
        ["--label", "--seed", "r.parquet", "--id", "--who"],
        "ldpaudit run --label … … --id …",
    ),
    "negative values": (["--seed", "-5", "r.parquet"], "ldpaudit run --seed -5 …"),
    "files that are called like options": (
        ["--only", "power", "--", "--secret.parquet"],
        "ldpaudit run --only power … …",
    ),
    "all but the last value of an option, which alone was checked": (
        ["r.parquet", "--seed", "/home/alice", "--queries=/home/bob", "--queries=3", "--seed", "5"],
        "ldpaudit run … --seed … … --queries=3 --seed 5",
    ),
    "an option that there is not": (["r", "--salary", "x"], "ldpaudit run … … …"),
}


@pytest.mark.parametrize("case", RECORDED)
def test_the_recorded_command_repeats_no_path_and_no_column(case):
    words, recorded = RECORDED[case]
    assert recorded_command(["ldpaudit", "run", *words], run) == recorded


def test_a_value_is_shown_only_where_it_is_declared_so():
    shown = {
        command: {p.long for p in parameters_of(command) if getattr(p.declared, "shown", False)}
        for command in (run, compare)
    }
    audit = {"--seed", "--queries", "--neighbors", "--metric", "--only", "--skip", "--threads"}
    audit |= {"--exact", "--projection", "--smoothness", "--smoothness-power"}
    claim = {"--epsilon", "--lambda", "--mechanism"}
    attacks = {"--seeds-tried", "--made-on"}
    work = {
        "--device",
        "--memory",
        "--timeout",
        "--separator",
        "--decimal",
        "--encoding",
        "--header",
    }
    assert shown[run] == audit | claim | attacks | work | {"--answers"}
    assert shown[compare] == audit | claim | attacks | work | {"--model"}


def test_the_files_that_options_name():
    claim = ClaimOptions(channel=Path("c.csv"))
    options = AuditOptions("t.csv", claim, synthetic=("a", "b"), label="l")
    assert list(input_files(options)) == ["t.csv", Path("c.csv"), "a", "b"]
    assert option_name(options, "id_column") == "--id"


@dataclass(frozen=True)
class Group:
    """Two options that make one value."""

    low: Annotated[int, Option("The low end.")] = 0
    high: Annotated[int, Option("The high end.")] = 1

    def value(self):
        """Return the ends."""
        return self.low, self.high


def test_a_group_of_options_makes_one_value():
    def command(ends: Annotated[tuple[int, int], Group]) -> Any:
        return ends

    assert spread(command)(low=1, high=4) == (1, 4)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"queries": 0}, "'queries'"),
        ({"neighbors": 0}, "'neighbors'"),
        ({"threads": 0}, "'threads'"),
        ({"smoothness": -1.0}, "'smoothness'"),
        ({"smoothness": 1.0, "smoothness_power": 0.0}, "'smoothness_power'"),
        ({"rng": -1}, "must not be negative"),
    ],
)
def test_numbers_out_of_range(options, word):
    with pytest.raises(InputError, match=word):
        AuditOptions(**options).check()


def test_compare_takes_a_claim_where_none_is_declared(tmp_path):
    """The claim is that of the release that declares none; the other one has its own."""
    for name in "ab":
        (tmp_path / name).mkdir()
    declared_one, truth = written(tmp_path / "a", rows=600)
    bare, _ = written(tmp_path / "b", rows=600, claimed=None)
    result = tmp_path / "c.json"
    common = ("--truth", truth, "--only", "mechanism", "--metric", "raw", "--json", result)
    assert called("compare", declared_one, bare, "--epsilon", "2", *common)[0] == 0
    content = json.loads(result.read_text())
    epsilons = [release["mechanism"]["epsilon"] for release in content["releases"]]
    assert epsilons == pytest.approx([1.0, 2.0])
    command = "ldpaudit compare … … --epsilon 2 --truth … --only mechanism --metric raw --json …"
    assert content["run"]["command"] == command


def test_compare_has_no_use_for_a_claim_about_results(tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    words = ("compare", tmp_path / "a.json", tmp_path / "b.json")
    for more, said in (("--epsilon", "--mechanism"), ("--held-out", "--held-out")):
        assert said in refused(*words, more, "1")


READ = {
    "income": {},
    "a:rr": {"mechanism": "rr"},
    "a:rr:epsilon=1": {"mechanism": "rr", "epsilon": 1.0},
    "a:rr:lambda=0.3:classes=no,yes": {"mechanism": "rr", "noise": 0.3, "classes": "no,yes"},
    "b:discrete-laplace:epsilon=0.5:labels=0:100:5:clip": {
        "mechanism": "discrete-laplace",
        "epsilon": 0.5,
        "labels": "0:100:5",
        "clipped": True,
    },
    "b:channel:channel=C:\\m.csv:by=region": {
        "mechanism": "channel",
        "channel": Path("C:\\m.csv"),
        "by": "region",
    },
    "c:classes=x,y": {"classes": "x,y"},
    "d:rr-top-k:epsilon=1:private-prior=auto": {
        "mechanism": "rr-top-k",
        "epsilon": 1.0,
        "private_prior": "auto",
    },
}


@pytest.mark.parametrize("text", READ)
def test_what_is_read_is_written_so_that_it_is_read_again(text):
    read = parse_label(text)
    assert (read.stated(), parse_label(read.text())) == (READ[text], read)


@pytest.mark.parametrize("name", ["a:b", '"quoted"', 'a"b', "ünï cödé", "a=b"])
def test_any_name_can_be_written(name):
    options = LabelOptions(label=name, mechanism="rr", epsilon=0.1, classes=("x,y", 'say "z"'))
    assert parse_label(options.text()).label == name
    assert parse_label(options.text()).classes == '"x,y","say ""z"""'


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a:", "the mechanism must follow"),
        (":rr", "must have a name"),
        ('"a:rr', "must end with one"),
        ("a:rr:epsilonn=1", "did you mean 'epsilon'?"),
        ("a:rr:colour=1", "known are epsilon, lambda"),
        ("a:rr:epsilon=", "must have a value: epsilon=VALUE"),
        ("a:rr,epsilon=1", "each after a colon"),
        ("a:rr:1", "KEY=VALUE must follow"),
        ("a:rr:epsilon=one", "epsilon must be a number. Got 'one'."),
        ("a:rr:epsilon=1:epsilon=2", "stated twice"),
        ("a:rr:loss=cubic", "must be one of squared, absolute, poisson"),
        ("a:rr:clip=maybe", "must be yes or no"),
    ],
)
def test_what_cannot_be_read_says_so_in_one_line(text, part):
    with pytest.raises(InputError) as error:
        parse_label(text)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_a_plan_states_lists_and_numbers():
    stated = {"labels": [0, 100, 5], "classes": [0, 1], "epsilon": 1, "clip": True}
    read = label_options("b", stated, mechanism="rr")
    assert (read.labels, read.classes, read.epsilon) == ("0:100:5", (0, 1), 1.0)
    for wrong in ({"epsilon": True}, {"labels": 7}, {"by": 1}, {"epsilon": None}):
        with pytest.raises(InputError, match="'b'"):
            label_options("b", wrong)


def test_a_column_is_private_once():
    assert check_distinct(iter("ab")) == ("a", "b")
    with pytest.raises(InputError, match="'a' is named twice"):
        check_distinct("aba")


@pytest.mark.parametrize(
    ("stated", "threads"), [("1", 1), ("64", 3), ("2,1", 2), ("0", 3), ("", 3)]
)
def test_threads_are_those_that_the_environment_states(stated, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", stated)
    monkeypatch.setattr("joblib.cpu_count", lambda: 3)
    assert plan_of(PlanOptions(), 0).threads == threads
