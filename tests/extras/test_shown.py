"""What calls of Python return has the same methods, and a file that is written gives nothing."""

import json
import re

import numpy as np
import pytest

import ldpaudit
from ldpaudit.commands.outputs import Outputs, ReportOutputs
from ldpaudit.datasets import affairs
from ldpaudit.errors import InputError
from ldpaudit.learners import ReleaseClassifier
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import Declaration
from ldpaudit.reports import FORMATS, Surroundings, render
from ldpaudit.result import AuditResult


@pytest.fixture(scope="module")
def table():
    features, truth = affairs()
    return features.assign(label=truth).sample(800, random_state=0)


@pytest.fixture(scope="module")
def results(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("shown") / "table.csv"
    table.to_csv(path, index=False)
    weak, strong = (ldpaudit.privatize(table, "rr", epsilon=e) for e in (2.0, 0.5))
    few = {"truth": table["label"], "only": "mechanism"}
    return {
        "audit": ldpaudit.audit(weak, **few),
        "compare": ldpaudit.compare(weak, strong, **few),
        "sweep": ldpaudit.sweep(path, "rr", epsilon=(0.5, 1.0), only="mechanism"),
        "advise": ldpaudit.advise(path, minutes=0.001),
        "describe": ldpaudit.describe("rr", epsilon=1.0, classes=("no", "yes")),
    }


@pytest.mark.parametrize("name", ["audit", "compare", "sweep", "advise", "describe"])
def test_every_result_has_a_view_a_page_json_and_a_frame(name, results, tmp_path):
    one = results[name]
    assert one.to_html(tmp_path / "page.html") is None
    assert one.to_json(tmp_path / "one.json") is None
    assert one.to_html() == (tmp_path / "page.html").read_text(encoding="utf-8")
    assert json.loads(one.to_json()) == json.loads((tmp_path / "one.json").read_text("utf-8"))
    outputs = Outputs(json=tmp_path / "one.json", html=tmp_path / "page.html")
    outputs.check()  # A later run may replace both.
    assert len(one.to_frame())
    assert "to_html(path)" in one._repr_html_()
    assert "<script" not in one.to_html()
    page = re.sub(r"<style>.*?</style>", "", one.to_html(), flags=re.DOTALL)
    for text in (str(one), page, one._repr_html_()):
        assert "(--" not in text
    if not isinstance(one, AuditResult):
        assert repr(one).startswith(f"{type(one).__name__}(")
    with pytest.raises(InputError, match="no picture"):
        one.plot("nothing")


@pytest.mark.parametrize("profile", ["internal", "public"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_report_may_replace_an_earlier_one(name, profile, results, tmp_path):
    place = tmp_path / "report"
    if (name, profile) != ("registry", "public"):  # An entry has one form.
        place.write_text(render(results["audit"], name, Surroundings(profile=profile)), "utf-8")
        assert ReportOutputs().replaces(name, place)


@pytest.mark.parametrize("name", ["sweep", "advise"])
def test_a_plan_has_its_picture(name, results):
    if results[name]._figures():
        assert "<svg" in results[name].plot()._repr_html_()


def test_a_mechanism_is_stated_in_one_way_everywhere(table):
    y = table["label"].to_numpy()
    x = table.drop(columns="label").to_numpy()
    forms = (
        "rr:epsilon=1",
        {"name": "rr", "epsilon": 1.0},
        Declaration("randomized-response", {"epsilon": 1.0}, "api"),
        from_declaration(
            Declaration("randomized-response", {"epsilon": 1.0}, "api"), tuple(np.unique(y))
        ),
    )
    answers = [ReleaseClassifier(noise=noise).fit(x, y).predict_proba(x) for noise in forms]
    assert all(np.array_equal(answers[0], one) for one in answers)
    with pytest.raises(InputError, match="such as 'rr:epsilon=1'"):
        ReleaseClassifier(noise="rr").fit(x, y)
