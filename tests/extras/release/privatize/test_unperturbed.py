"""Labels that stay as they are, such as "not applicable": what that costs, and whom."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import called

from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize
from ldpaudit.mechanisms import Channel, RandomizedResponse

ROWS = 1_500
NONE = "not applicable"
LABELS = [NONE, "coal", "fish", "wine"]


def ratios(matrix, places):
    """Return the largest log-ratio of any output, over all ordered pairs of some labels."""
    worst = 0.0
    for y, other in itertools.permutations(places, 2):
        for z in range(matrix.shape[1]):
            if matrix[y, z] > 0:
                gone = matrix[other, z] == 0
                worst = max(worst, math.inf if gone else math.log(matrix[y, z] / matrix[other, z]))
    return worst


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 4), st.integers(0, 2), st.integers(0, 2**32 - 1), st.booleans(), st.booleans()
)
def test_against_every_pair_of_labels(others, kept, seed, zeros, split):
    # A block of others, some labels with outputs of their own (one output, or two), in any order.
    rng = np.random.default_rng(seed)
    own = rng.dirichlet(np.ones(others), others)
    if zeros:
        own[0, 0] = 0
        own /= own.sum(axis=1, keepdims=True)
    each = 2 if split else 1
    whole = np.zeros((others + kept, others + each * kept))
    whole[:others, :others] = own
    for place in range(kept):
        to = others + each * place + np.arange(each)
        whole[others + place, to] = rng.dirichlet(np.ones(each))
    rows, columns = rng.permutation(others + kept), rng.permutation(whole.shape[1])
    matrix = whole[rows][:, columns]
    channel = Channel(matrix, tuple(range(len(rows))), tuple(range(len(columns))))
    # By definition: every output of the label has probability 0 under all others.
    alone = tuple(
        y
        for y in range(len(rows))
        if all(matrix[o, z] == 0 for z in np.flatnonzero(matrix[y]) for o in range(len(rows))
               if o != y)
    )  # fmt: skip
    assert channel.unperturbed == alone
    assert {*np.flatnonzero(rows >= others)} <= {*alone}
    rest = [y for y in range(len(rows)) if y not in alone]
    assert channel.epsilon_of_others == pytest.approx(ratios(matrix, rest), abs=1e-12)
    assert channel.epsilon == pytest.approx(ratios(matrix, range(len(rows))), abs=1e-12)
    if alone:
        assert channel.epsilon == math.inf
        # One of two labels has an output that the other never has: δ(ε) = 1 at every ε.
        assert channel.delta(20.0) == pytest.approx(1.0)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    work = rng.choice(LABELS, ROWS, p=[0.3, 0.3, 0.2, 0.2])
    region = rng.choice(["north", "south"], ROWS)
    return pd.DataFrame({"x": rng.normal(size=ROWS), "region": region, "label": work})


def release(data, folder, **options):
    stated = {"mechanism": "rr", "epsilon": 1.0, "experimental": True, "seed": 3}
    request = PrivatizeRequest(data, folder / "r.csv", overwrite=True, **(stated | options))
    summary = privatize(request)
    declared = json.loads((folder / "r.csv.ldpaudit.json").read_text())
    return pd.read_csv(folder / "r.csv", keep_default_na=False), declared, summary


def test_a_class_stays_and_the_others_are_drawn_among_themselves(data, tmp_path):
    released, declared, summary = release(data, tmp_path, unperturbed=(NONE,))
    before, after = data["label"], released["label"]
    pd.testing.assert_series_equal(before == NONE, after == NONE)
    mechanism = declared["mechanism"]
    channel = Channel(np.array(mechanism["matrix"]), tuple(mechanism["classes"]),
                      tuple(mechanism["outputs"]))  # fmt: skip
    inner = RandomizedResponse(LABELS[1:], _lambda(1.0, 3)).channel.matrix
    own = [channel.classes.index(label) for label in LABELS[1:]]
    np.testing.assert_allclose(channel.matrix[np.ix_(own, own)], inner)
    assert channel.epsilon == math.inf
    assert [channel.classes[place] for place in channel.unperturbed] == [NONE]
    assert channel.epsilon_of_others == pytest.approx(1.0)
    others = before != NONE
    kept = (before == after)[others].mean()
    # e / (e + 2) = 0.576; five standard deviations of about 1,050 people: false alarm 6e-7.
    assert kept == pytest.approx(math.e / (math.e + 2), abs=5 * 0.5 / math.sqrt(others.sum()))
    people = int((~others).sum())
    (said,) = [one for one in summary.warnings if "released as it is" in one]
    assert said == (
        f"1 label is released as it is: the true label of {people:,} of the {ROWS:,} people "
        f"({people / ROWS:.1%}), whose ε is infinite. Of everybody else it is revealed that the "
        "label is another one; which one of the others costs ε = 1."
    )
    assert not any("hides little" in one for one in summary.warnings)
    assert summary.total_epsilon == math.inf


def _lambda(epsilon, k):
    return k / (math.exp(epsilon) + k - 1)


def test_missing_labels_stay_a_class(data, tmp_path):
    gaps = data.assign(label=data["label"].where(data["label"] != NONE))
    released, *_ = release(gaps, tmp_path, missing="class", unperturbed=("missing",))
    pd.testing.assert_series_equal(gaps["label"].isna(), released["label"] == "missing",
                                   check_names=False)  # fmt: skip


@pytest.mark.parametrize("of", ["column", "stratum"])
def test_in_strata(of, data, tmp_path):
    own = {"unperturbed": [NONE]}
    strata = {"north": {"epsilon": 1.0, "classes": LABELS[:3]},
              "south": {"epsilon": 0.5, "classes": LABELS}}  # fmt: skip
    north = (data["region"] == "north") & (data["label"] == "wine")
    data.loc[north, "label"] = "coal"
    if of == "stratum":
        strata = {region: one | own for region, one in strata.items()}
    column = {"label": "label", "by": "region", "mechanism": "rr", "strata": strata}
    column |= own if of == "column" else {}
    released, declared, summary = release(
        data, tmp_path, mechanism=None, epsilon=None, plan={"labels": [column]}
    )
    pd.testing.assert_series_equal(data["label"] == NONE, released["label"] == NONE)
    assert {*released.loc[released["region"] == "north", "label"]} == {*LABELS[:3]}
    for one, epsilon in zip(declared["labels"][0]["mechanism"]["strata"], (1.0, 0.5), strict=True):
        mechanism = one["mechanism"]
        channel = Channel(np.array(mechanism["matrix"]), tuple(mechanism["classes"]),
                          tuple(mechanism["outputs"]))  # fmt: skip
        assert channel.unperturbed == (mechanism["classes"].index(NONE),)
        assert channel.epsilon_of_others == pytest.approx(epsilon)
    assert any("in some strata" in one and "costs ε = 1." in one for one in summary.warnings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unperturbed": ("gold",)}, "1 of 1 are none of its classes"),
        ({"unperturbed": tuple(LABELS[:3])}, "two labels at least to draw among; it leaves 1"),
        ({"unperturbed": (NONE,), "mechanism": "laplace", "labels": "0:1"}, "does not"),
        ({"unperturbed": (NONE,), "mechanism": "double-rr", "epsilon": None, "noise": 0.5,
          "generator": "mixture"}, "does not"),
    ],
)  # fmt: skip
def test_what_cannot_stay_is_refused(options, message, data, tmp_path):
    with pytest.raises(InputError, match=message) as caught:
        release(data, tmp_path, **options)
    assert NONE not in str(caught.value)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("receipt", [False, True])
def test_an_audit_does_not_call_it_publishable(receipt, data, tmp_path):
    data.to_csv(tmp_path / "d.csv", index=False)
    words = ["privatize", tmp_path / "d.csv", "-o", tmp_path / "r.csv", "--mechanism", "rr",
             "--epsilon", "1", "--unperturbed", NONE]  # fmt: skip
    words += ["--secret", tmp_path / "s.csv"] if receipt else []
    assert called(*words)[0] == 0
    truth = tmp_path / ("s.csv" if receipt else "d.csv")
    status, text = called("run", tmp_path / "r.csv", "--truth", truth, "--only", "mechanism",
                          "--json", tmp_path / "r.json")  # fmt: skip
    assert status == 3
    assert "Publish: not yet" in text
    assert "the claim promises nothing: its ε is infinite" in text
    assert ("every label is as drawn" in text) is receipt
    people = int((data["label"] == NONE).sum())
    assert f"that of {people:,} of the {ROWS:,} people" in text
    found = {one["id"]: one["value"]
             for one in json.loads((tmp_path / "r.json").read_text())["estimates"]}  # fmt: skip
    assert found["mechanism.epsilon_of_others"] == pytest.approx(1.0)


def test_labels_with_commas_and_the_column_s_own_words(data, tmp_path):
    odd = data.assign(label=data["label"].replace({NONE: "none, or unknown"}))
    words = 'label:rr:epsilon=1:unperturbed="none, or unknown"'
    released, *_ = release(odd, tmp_path, mechanism=None, epsilon=None, label=[words])
    pd.testing.assert_series_equal(odd["label"].str.startswith("none"),
                                   released["label"].str.startswith("none"))  # fmt: skip
    assert len(read_release(tmp_path / "r.csv").release.classes) == 4
