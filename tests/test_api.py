"""The Python surface: what is listed, what calls accept, what results show, and its examples."""

import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pydantic import BaseModel
from releases import table, written
from small_tables import small_table

import ldpaudit
from ldpaudit.errors import InputError, LdpAuditError, OutputError, PolicyError
from ldpaudit.extras.choose.advise.page import Advice
from ldpaudit.extras.choose.mechanism.result import Analysis
from ldpaudit.extras.choose.sweep.page import Sweep
from ldpaudit.extras.compare.comparison import Comparison
from ldpaudit.extras.probe.models.result import ModelAudit, PredictionsAudit
from ldpaudit.judging.policy import parse_policy
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.options.declaring import RETIRED
from ldpaudit.result import AuditResult
from ldpaudit.result.access import CONFIDENTIAL, WITHOUT_TRUTH
from ldpaudit.surfaces import spelt


class OfPolars:
    """A table that only offers its Arrow stream, as a Polars frame does."""

    def __init__(self, table):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


def frames(**options):
    release, truth = table(claimed=None, **options)
    return release.to_pandas(), truth.to_pandas()["label"]


CLAIMS = [
    {"name": "randomized-response", "epsilon": 1.0},
    RandomizedResponse.from_epsilon(("no", "yes"), 1.0),
]


def test_every_kind_of_table_and_claim_gives_the_same_numbers(tmp_path):
    frame, truth = frames(rows=500)
    arrow, _ = table(rows=500, claimed=None)
    path, truth_path = written(tmp_path, rows=500, claimed=None)
    given = (
        (frame, truth),
        (frame, truth.to_numpy()),
        (arrow, truth.to_frame()),
        (OfPolars(arrow), OfPolars(pa.Table.from_pandas(truth.to_frame()))),
        (path, truth_path),
        (str(path), truth),
    )
    found = [
        ldpaudit.audit(*one, CLAIMS[i % 2], 5, only="mechanism") for i, one in enumerate(given)
    ]
    assert len({one["mechanism.epsilon_lower"].value for one in found}) == 1


def stream(table):
    """Return a stream of Arrow's, which can be read once."""
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())


def test_streams_are_read_once():
    release, truth = table(rows=500, claimed=None)
    options = {"slices": ["town"], "only": ["mechanism"], "seed": 5}
    found = ldpaudit.audit(stream(release), stream(truth), CLAIMS[0], **options)
    same = ldpaudit.audit(release, truth, CLAIMS[0], **options)
    assert found.estimates == same.estimates


def test_streams_of_several_releases_and_columns_are_read_once():
    release, truth = table(rows=300, claimed=None)
    both = release.append_column("other", release["label"])
    known = truth.append_column("other", truth["label"])
    options = {"only": ["mechanism", "person"], "seed": 5}
    columns = {"label": ["label:rr:epsilon=1", "other:rr:epsilon=1"], **options}
    found = ldpaudit.audit(stream(both), stream(known), **columns)
    assert found.estimates == ldpaudit.audit(both, known, **columns).estimates
    for years in ([stream(release), stream(release)], [release, release]):
        ldpaudit.audit(years, [stream(truth), stream(truth)], epsilon=1.0, **options)


def test_a_generator_is_as_good_as_a_seed():
    frame, truth = frames(rows=1000)
    claim = {"name": "randomized-response", "epsilon": 1.0}
    results = [
        ldpaudit.audit(frame, truth, claim, np.random.default_rng(3), only="mechanism")
        for _ in range(2)
    ]
    assert results[0].estimates == results[1].estimates
    assert results[0].run.seed == results[1].run.seed


def test_a_policy_decides(tmp_path):
    frame, truth = frames(rows=2000, made=3.0)
    policy = parse_policy(
        'schema = 1\nextends = "ldpaudit:default"\n[claim]\nepsilon = 1.0\n[audit]\nseed = 9'
    )
    result = ldpaudit.audit(frame, truth, policy=policy, rng=1, only="mechanism")
    assert (result.verdict, result.run.seed, result.mechanism.declared) == ("fail", 9, "policy")


@pytest.mark.parametrize("asked", ["laplace", "rr-top-k", "double-rr"])
def test_a_policy_of_another_mechanism_names_both(asked, tmp_path):
    path, _ = written(tmp_path, rows=300)
    policy = parse_policy(
        f'schema = 1\nextends = "ldpaudit:default"\n[claim]\nmechanism = "{asked}"\nepsilon = 1'
    )
    for release, who in ((path, "file declares"), (frames(rows=300)[0], "options declare")):
        claim = None if release is path else CLAIMS[0]
        with pytest.raises(PolicyError) as caught:
            ldpaudit.audit(release, mechanism=claim, policy=policy, rng=1, only="mechanism")
        assert str(caught.value) == (f"The policy asks for {asked}; the {who} randomized-response.")


def test_leaving_an_audit_out_changes_no_other_number():
    frame, truth = frames(rows=500)
    some = ("mechanism", "label-inference", "instance-loss")
    whole = ldpaudit.audit(frame, truth, CLAIMS[0], 4, only=some)
    part = ldpaudit.audit(frame, truth, CLAIMS[0], 4, only=some, skip=some[1])
    again = {e.id: e for e in part.estimates}
    assert {"mechanism.epsilon_lower", "instance_loss.mean_lower"} <= set(again)
    for estimate in whole.estimates:
        if estimate.id in again:
            assert estimate == again[estimate.id], estimate.id


def test_a_fault_names_its_audit(monkeypatch):
    from ldpaudit.audits import power

    def broken(*_):
        raise ZeroDivisionError("secret cell")

    monkeypatch.setattr(power, "AUDIT", replace(power.AUDIT, parts=broken))
    frame, truth = frames(rows=300)
    with pytest.raises(LdpAuditError, match="audit 'power' \\(ZeroDivisionError\\)") as caught:
        ldpaudit.audit(frame, truth, CLAIMS[0], 1, only=("mechanism", "power"))
    assert "secret" not in str(caught.value)


PACKAGES = ("attacks", "datasets", "learners", "mechanisms", "reports", "synthesis")
LISTED = """
import importlib, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    assert sorted(dir(package)) == sorted(package.__all__), name
print(*sorted({"torch", "sklearn", "pandas", "scipy"} & set(sys.modules)))
"""


def test_packages_list_their_public_names_and_import_nothing_for_it():
    names = ["ldpaudit", *(f"ldpaudit.{name}" for name in PACKAGES)]
    words = [sys.executable, "-c", LISTED, *names]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() == []


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_public_names_are_there_and_their_examples_run_as_printed(package):
    module = importlib.import_module(".".join(filter(None, ("ldpaudit", package))))
    lines = []
    runner = doctest.DocTestRunner(
        verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert re.match(r"\w.*[.:?](\n|$)", inspect.getdoc(value) or "", re.DOTALL), name
            for example in doctest.DocTestFinder(recurse=False).find(value, name, False, globs={}):
                runner.run(example, out=lines.append)
    assert not lines, "".join(lines)
    with pytest.raises(AttributeError, match="nothing_of_it"):
        _ = module.nothing_of_it


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (ldpaudit.audit, AuditResult),
        (ldpaudit.audit_model, ModelAudit),
        (ldpaudit.audit_predictions, PredictionsAudit),
        (ldpaudit.compare, Comparison),
        (ldpaudit.describe, Analysis),
        (ldpaudit.sweep, Sweep),
        (ldpaudit.advise, Advice),
    ],
)
def test_a_result_has_what_its_function_promises_and_prints_as_text(function, made):
    returns = inspect.getdoc(function).partition("Returns\n")[2].partition("Raises\n")[0]
    assert returns.split()[1] == made.__name__
    named = set(re.findall(r"``(\w+)(?:\(.*?\))?``", returns))
    assert named <= {*dir(made), *made.model_fields}
    assert made.__str__ is not BaseModel.__str__


@pytest.fixture(scope="module")
def data():
    _, truth = table(rows=600, claimed=None)
    release, _ = table(rows=600, claimed=None)
    return release.to_pandas().assign(label=truth.to_pandas()["label"])


@pytest.fixture(scope="module")
def released(data):
    return ldpaudit.privatize(data, "rr", epsilon=1.0, experimental=True, seed=5)


@pytest.fixture(scope="module")
def result(data, released):
    audits = ["mechanism", "label-inference"]
    return ldpaudit.audit(released, data["label"], only=audits, threads=1)


@pytest.mark.parametrize(
    "claim",
    [
        {"mechanism": "rr", "epsilon": 1.0},
        {"epsilon": 1},
        {"mechanism": "randomized-response", "lambda_": 2 / (1 + np.e)},
        {"noise": 2 / (1 + np.e)},
        {"mechanism": {"name": "rr", "epsilon": 1.0}},
        {"mechanism": "rr:epsilon=1"},
        {"mechanism": RandomizedResponse.from_epsilon(("no", "yes"), 1.0)},
    ],
    ids=str,
)
def test_a_claim_in_any_form(claim, released):
    plain = pd.DataFrame(released.to_dict("series"))
    result = ldpaudit.audit(plain, only="mechanism", seed=3, **claim)
    assert result["mechanism.epsilon"].value == pytest.approx(1.0)
    assert (result.mechanism.name, result.run.seed) == ("randomized-response", 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: ldpaudit.audit(f, "t", "rr", 1, 2), "by position"),
        (lambda f: ldpaudit.audit(f, queries=0), "'queries'"),
        (lambda f: ldpaudit.audit(f, threads=-1), "'threads'"),
        (lambda f: ldpaudit.audit(f, only=("mechanisms",)), "no audit 'mechanisms'"),
        (lambda f: ldpaudit.audit(f, only=("power",), skip=("power",)), "No audit is left"),
        (lambda f: ldpaudit.audit(f, mechanism={"epsilon": 1.0}), "'name'"),
        (lambda f: ldpaudit.audit(f, rng=-1), "seed must not be negative"),
        (lambda f: ldpaudit.audit(f, None, "rr", np.int64(-5)), "seed must not be negative"),
        (lambda f: ldpaudit.audit(f, label=5, epsilon=1.0), "'label' must be a text, as '5'"),
        (lambda f: ldpaudit.audit(f, epsilom=1), "'epsilom'; did you mean 'epsilon'"),
        (lambda f: ldpaudit.audit(f, mechanism="rrr"), "did you mean|choose one of"),
        (lambda f: ldpaudit.audit(f, mechanism={"name": "rr", "epsilo": 1}), "mean 'epsilon'"),
        (lambda f: ldpaudit.audit(f, mechanism=RandomizedResponse), "Got one without instead"),
        (lambda f: ldpaudit.audit(f, mechanism=1.0), "Got float"),
        (lambda f: ldpaudit.audit(f, mechanism={"name": "rr"}, epsilon=1), "leave out epsilon"),
        (lambda f: ldpaudit.audit(f, noise=0.1, lambda_=0.2), "twice, once as 'lambda_'"),
        (lambda f: ldpaudit.audit(f, mechanism="rr:epsilon=1", epsilon=1), "says it all already"),
        (lambda f: ldpaudit.audit(f, mechanism="rr:epsilom=1"), "mean 'epsilon'"),
        (lambda f: ldpaudit.audit(f, mechanism="laplace", labels=range(9)), "LO:HI.* Got range"),
        (lambda f: ldpaudit.privatize(f, "laplace", epsilon=1, labels=(0, 9)), "LO:HI.* Got tuple"),
        (lambda f: ldpaudit.privatize(f, "rr:epsilom=1"), "mean 'epsilon'"),
        (lambda f: ldpaudit.describe({"name": "rr"}), "Got dict"),
        (lambda f: ldpaudit.describe(np.eye(2)), "Got ndarray"),
        (lambda f: ldpaudit.compare(f), "Got 1"),
        (lambda f: ldpaudit.compare(f, f, forc=True), "mean 'force'"),
        (lambda f: ldpaudit.privatize(f, "rr", lable="y"), "mean 'label'"),
        (lambda f: ldpaudit.privatize(f, "rr", epsilon=1, label="y"), "no label column 'y'"),
        (lambda f: ldpaudit.privatize(3, "rr", epsilon=1), "Got int"),
        (lambda f: ldpaudit.describe("rr", epsilon=1), "Give the labels"),
        (lambda f: ldpaudit.describe(RandomizedResponse((0, 1), 0.5), epsilon=1), "already"),
        (lambda f: ldpaudit.sweep("x.csv", "rr"), "needs 'grid'"),
        (lambda f: ldpaudit.sweep(f, "rr", epsilon=[1]), r"a path\. Got DataFrame\.$"),
        (lambda f: ldpaudit.advise(f, "label"), r"a path\. Got DataFrame\.$"),
        (lambda f: ldpaudit.advise("x.csv", "label", test=f), r"a path\. Got DataFrame\.$"),
        (lambda f: ldpaudit.audit(f["label"]), "pandas DataFrame or an Arrow table. Got Series"),
        (lambda f: ldpaudit.audit(f, only=5), "'only' must be a text, as '5', or a list of such"),
        (lambda f: ldpaudit.audit(f, drop=[5]), "'drop' must be a text, .* Got int instead"),
        (lambda f: ldpaudit.audit(f, attacks=[5]), "'attacks' must be a text, .* or a class"),
        (lambda f: ldpaudit.privatize(f, "rr", label=3, epsilon=1), "named by a text, as '5'"),
        (lambda f: ldpaudit.advise("x.csv", 3), "named by a text, as '5'. Got int"),
        (lambda f: ldpaudit.advise("x.csv", "y", wanted="learning"), "'wanted' must be 'class"),
        (lambda f: ldpaudit.privatize(f, {3: "rr"}, epsilon=1), "named by a text, as '5'. Got int"),
        (lambda f: ldpaudit.privatize(f, RandomizedResponse((0, 1), 0.5)), "name, such as 'rr'"),
        (lambda f: ldpaudit.privatize(f, "rr", label={"a", "b"}), "numbered in their order"),
        (lambda f: ldpaudit.privatize(f, plan=["label"]), "file or a mapping. Got list"),
    ],
)
def test_a_mistake_gets_one_clear_line(call, message, data):
    with pytest.raises(InputError, match=message):
        call(data)


def test_a_release_from_memory_declares_itself(data, released):
    assert list(released.columns) == list(data.columns)
    assert released.index.equals(data.index)
    assert released.drop(columns="label").equals(data.drop(columns="label"))
    assert (released["label"] != data["label"]).any()
    arrow = ldpaudit.privatize(pa.Table.from_pandas(data), "rr", epsilon=1.0)
    named = ldpaudit.privatize(data, "rr:epsilon=1")
    stated = ldpaudit.privatize(data, {"name": "rr", "epsilon": 1}, label="label")
    for release in (released, arrow, named, stated, released.head(500)):
        result = ldpaudit.audit(release, only="mechanism")
        assert (result.mechanism.declared, result["mechanism.epsilon"].value) == ("file", 1.0)


def test_a_data_frame_keeps_types_and_large_numbers(data):
    large = pd.Series([2**53 + 1, None] * (len(data) // 2), dtype="Int64")
    table = data.assign(
        large=large, old=large.astype(object), label=pd.Series(data["label"] == "no")
    )
    table["label"] = table["label"].astype("boolean")
    released = ldpaudit.privatize(table, "rr", epsilon=1.0)
    assert released["large"].equals(large)
    assert (released["old"][0], released.dtypes["label"]) == (2**53 + 1, "boolean")


def test_a_period_is_no_label(data):
    """It would be released as a bare number of months."""
    months = pd.Series(pd.period_range("2020-01", periods=2, freq="M").repeat(len(data) // 2))
    with pytest.raises(InputError, match="write it as text"):
        ldpaudit.privatize(data.assign(label=months), "rr", epsilon=1.0)


def test_a_folder_is_named_where_a_file_should_be(result):
    with pytest.raises(OutputError, match=r"The file '\.' cannot be written: it is a folder"):
        result.to_json(".")


def test_a_release_is_written_where_asked(data, tmp_path):
    place = tmp_path / "release.parquet"
    assert ldpaudit.privatize(data, "rr", str(place), epsilon=1.0) == place
    assert ldpaudit.audit(place, only="mechanism").mechanism.declared == "file"


def test_what_warns_on_the_command_line_warns(data):
    with pytest.warns(UserWarning, match="order of the rows"):
        ldpaudit.privatize(data.sort_values("label"), "rr", epsilon=1.0)


def test_the_option_that_left_an_audit_out_is_the_one_to_take_away(released):
    """Also where another option chose audits: LDPAUDIT_SKIP and --only."""
    result = ldpaudit.audit(released, only=("mechanism", "power"), skip="mechanism")
    step = "Run the audit mechanism: do not leave it out (--skip mechanism)."
    assert result.next_steps[0] == step


def test_compare_takes_frames(data, released):
    weaker = ldpaudit.privatize(data, "rr", epsilon=2.0)
    comparison = ldpaudit.compare(released, weaker, truth=data["label"], only="mechanism")
    assert isinstance(comparison, Comparison)
    assert "the audit label-inference" in comparison.sentence
    assert comparison.to_frame().loc["mechanism.epsilon", "value"] == pytest.approx(1.0)
    assert repr(comparison) == f"Comparison({comparison})"


def test_results_show_the_sentence_and_give_frames(result):
    assert str(result) == spelt(result.sentence, "python")
    assert repr(result) == f"AuditResult({result.decision}: {result})"
    frame = result.to_frame()
    assert list(frame.index) == [estimate.id for estimate in result.estimates]
    assert {"title", "section", "kind", "value", "low", "high", "level", "unit"} <= {*frame}
    assert result.to_frame("checks").loc["claimed-epsilon", "verdict"] == "inconclusive"
    assert "label-inference" in result.to_frame("audits").index
    scores = result.attacks
    assert scores.loc["prior", "accuracy"] == result["attack.prior.accuracy"].value
    scored = scores.dropna(subset="accuracy_low")
    assert (scored["accuracy_low"] <= scored["accuracy"]).all()
    check = result.check("claimed-epsilon")
    assert check.level == "error"
    with pytest.raises(KeyError, match=r"did you mean 'mechanism\.epsilon'"):
        _ = result["mechanism.epsilo"]
    with pytest.raises(InputError, match="mean 'checks'"):
        result.to_frame("check")


def test_completion_offers_what_a_result_has(result):
    for part in (result, result.release, result.estimates[0]):
        offered = set(dir(part))
        assert set(type(part).model_fields) <= offered
        assert not {n for n in offered if n.startswith(("_", "model_")) or n in ("copy", "json")}


def test_errors_name_keywords_not_options():
    frame = pd.DataFrame({"x": range(60), "y": ["A", "B", None] * 20})
    for call, words in (
        (lambda: ldpaudit.audit(frame), "no other was chosen (label=)"),
        (lambda: ldpaudit.privatize(frame, "rr", label="y", epsilon=1.0), "missing='drop' leaves"),
        (lambda: ldpaudit.privatize(frame, "rr", label="x"), "epsilon= or noise="),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert words in str(caught.value)
        assert "--" not in str(caught.value)


FORMATS = {"html": "a.html", "json": "a.json", "markdown": "a.md", "sarif": "a.sarif"}
FORMATS |= {"junit": "a.xml", "registry": "a.yaml"}
Command = Callable[..., tuple[int, str, str]]
CLAIM = ("--mechanism", "rr", "--epsilon", "1", "--only", "mechanism")


@pytest.fixture
def here(tmp_path, monkeypatch):
    released, truth = small_table(np.random.default_rng(1), 80)
    released.to_csv(tmp_path / "released.csv", index=False)
    pd.DataFrame({"label": truth}).to_csv(tmp_path / "truth.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mode(path):
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("truth", [True, False])
def test_every_form_begins_with_who_may_see_it(truth, here, command):
    line = CONFIDENTIAL if truth else WITHOUT_TRUTH
    more = ("--truth", "truth.csv") if truth else ()
    outputs = [word for name, file in FORMATS.items() for word in (f"--{name}", file)]
    status, out, err = command("run", "released.csv", *more, *CLAIM, *outputs)
    assert status != 2, err
    assert out.splitlines()[0] == line
    texts = {name: (here / file).read_text() for name, file in FORMATS.items()}
    assert next(iter(json.loads(texts["json"]).items())) == ("access", line)
    assert line.partition(":")[0] in texts["markdown"].splitlines()[0]
    body = texts["html"].partition("</svg>")[2]
    body = body.replace("<kbd>", "").replace("</kbd>", "")
    assert body.index(line) < body.index("<h1>")
    assert json.loads(texts["sarif"])["runs"][0]["properties"]["access"] == line
    properties = ET.fromstring(texts["junit"]).iter("property")
    assert line in [one.attrib["value"] for one in properties]
    assert {mode(here / file) == 0o600 for file in FORMATS.values()} == {truth}


def test_comparisons_and_rendered_results_are_their_owners_and_public_pages_are_not(here, command):
    with_truth = ("--truth", "truth.csv", *CLAIM)
    two = ("released.csv", "released.csv")
    assert command("compare", *two, *with_truth, "--json", "c.json")[0] == 0
    assert next(iter(json.loads((here / "c.json").read_text()))) == "access"
    command("run", "released.csv", *with_truth, "--json", "r.json")
    command("report", "r.json", "--html", "r.html")
    assert [mode(here / name) for name in ("c.json", "r.json", "r.html")] == [0o600] * 3
    command("report", "r.json", "--html", "p.html", "--profile", "public")
    assert mode(here / "p.html") != 0o600
    assert CONFIDENTIAL not in (here / "p.html").read_text()


@pytest.mark.parametrize("option", RETIRED)
def test_an_option_that_is_gone_says_so_in_one_line(option, here, command):
    status, out, err = command("run", "released.csv", *CLAIM, option)
    assert (status, out) == (2, "")
    assert err == f"ldpaudit: The option {option} is gone: {RETIRED[option]}.\n"
    keyword = {option.strip("-").replace("-", "_"): True}
    with pytest.raises(InputError, match="is gone"):
        ldpaudit.audit(pd.read_csv(here / "released.csv"), **keyword)
