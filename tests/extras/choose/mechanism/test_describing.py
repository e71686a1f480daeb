"""``mechanism describe`` of mechanisms that release several columns together."""

import math
from itertools import pairwise

import pytest
from extras.choose.mechanism.conftest import mechanism
from processes import refused

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.extras.choose.mechanism.analysis import conditional_curve, floor_curve
from ldpaudit.extras.choose.mechanism.result import Analysis
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.mechanisms import RandomizedResponse

SKEWED = [0.4, 0.05, 0.05, 0.1, 0.15, 0.25]


def test_both_parametrisations_say_the_same(result):
    by_epsilon = result("describe", "randomized-response", "--epsilon", 1, "--classes", "a,b,c")
    noise = by_epsilon["lambda"]
    by_lambda = result("describe", "randomized-response", "--lambda", noise, "--classes", "a,b,c")
    assert noise == pytest.approx(3 / (2 + math.e), rel=1e-14)
    assert by_lambda["epsilon"] == pytest.approx(1, rel=1e-12)
    assert by_lambda["channel"]["matrix"] == by_epsilon["channel"]["matrix"]


def test_the_floor_with_drawn_features(result):
    found = result("describe", "dummy-features-rr", "--lambda", 0.3, "--classes", "no,yes")
    floor = dict(map(tuple, found["conditional_rdp_floor"]))
    assert floor[2.0] == pytest.approx(2 * math.log(1 + 1.4 / 0.3) - math.log(2 / 0.3))
    other = result("describe", "double-rr", "--lambda", 0.3, "--classes", "no,yes")
    assert other["conditional_rdp_floor"] == found["conditional_rdp_floor"]
    plain = result("describe", "randomized-response", "--lambda", 0.3, "--classes", "no,yes")
    assert plain["conditional_rdp_floor"] == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("randomized-response", ()),
        ("double-rr", ()),
        ("dummy-features-rr", ()),
        ("model-based-rr", ("--set", "floor=0.05")),
        (
            "gaussian-rr",
            ("--set", "radius=1", "--set", "feature-epsilon=1", "--set", "feature-delta=1e-5"),
        ),
        ("rr-top-k", ("prior",)),
        ("rr-on-bins", ("prior",)),
        ("optimal-unbiased", ("prior",)),
        ("debiased-rr", ()),
        *((n, ()) for n in ("laplace", "discrete-laplace", "staircase", "discrete-staircase")),
        ("staircase", ("--set", "gamma=0.3", "--set", "clipped=true")),
        ("exponential", ()),
    ],
)
def test_every_mechanism_of_the_contract(result, prior, name, options):
    if options == ("prior",):
        options = ("--prior", prior(range(6), SKEWED))
    found = result("describe", name, "--epsilon", 1, "--labels", "0:5:1", *options)
    # A design never exceeds its ε, by rounding down a little; rr-top-k may keep a single label.
    assert found["epsilon"] <= 1 + 1e-9
    assert found["epsilon"] > 0.999 or (name == "rr-top-k" and found["epsilon"] == 0)
    deltas = [value for _, value in found["delta"]]
    assert all(a >= b - 1e-12 for a, b in pairwise(deltas))
    assert deltas[0] == found["total_variation"]
    assert found["delta"][-1][1] == pytest.approx(0, abs=1e-9)
    orders = [value for _, value in found["rdp"]]
    assert all(a <= b + 1e-9 for a, b in pairwise(orders))
    assert orders[-1] == pytest.approx(found["epsilon"], abs=1e-9)


def test_the_page_is_small_and_static(tmp_path):
    page = tmp_path / "page.html"
    names = '"<b>",</script><script>alert(1)</script>'
    mechanism("describe", "randomized-response", "--epsilon", 1, "--classes", names, "--html", page)
    text = page.read_text()
    assert "<script" not in text
    assert "<b>" not in text
    assert "default-src 'none'" in text
    assert text.count("<figure") == text.count("Table and description") == 3
    # Each figure is drawn wide and narrow, each with a title; the two share one description.
    assert (text.count("<desc"), text.count("<title")) == (3, 7)
    assert len(text) < 100_000


def test_an_unbiased_mechanism_says_so(result):
    assert result("describe", "debiased-rr", "--epsilon", 1, "--labels", "0:9")["unbiased"]
    printed = mechanism("describe", "debiased-rr", "--epsilon", 1, "--labels", "0:9")[1]
    assert "largest |bias| of a label, unbiased" in printed


def test_no_privacy_and_no_information_at_the_ends_of_lambda(result):
    nothing = result("describe", "randomized-response", "--lambda", 1, "--classes", "a,b")
    assert (nothing["epsilon"], {value for _, value in nothing["delta"]}) == (0, {0})
    everything = result("describe", "randomized-response", "--lambda", 0, "--classes", "a,b")
    assert (everything["epsilon"], {value for _, value in everything["delta"]}) == ("inf", {1})


def test_many_labels_are_described_quickly_by_symmetry(result):
    found = result("describe", "debiased-rr", "--epsilon", 1, "--labels", "0:999")
    rr = RandomizedResponse.from_epsilon(tuple(range(1000)), 1.0)
    assert found["total_variation"] == pytest.approx(rr.delta(0), rel=1e-9)
    assert found["rdp"][6][1] == pytest.approx(rr.rdp(found["rdp"][6][0]), rel=1e-9)
    assert found["channel"] is None


def test_a_channel_file(result, tmp_path):
    file = tmp_path / "channel.csv"
    file.write_text(",low,high\n0,0.75,0.25\n1,0.25,0.75\n")
    found = result("channel", file)
    assert found["epsilon"] == pytest.approx(math.log(3), rel=1e-14)
    assert found["total_variation"] == pytest.approx(0.5, rel=1e-14)
    assert dict(map(tuple, found["rdp"]))[1.0] == pytest.approx(0.5 * math.log(3), rel=1e-12)
    assert found["declaration"]["name"] == "channel"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("label,no,yes\nno,0.8,0.2\nno,0.2,0.8\n", "1 row has the label of a row before."),
        ("label,a,b,c\nx,1,0,0\nx,0,1,0\nx,0,0,1\n", "2 rows have the label of a row before."),
        ("label,no,yes\n1,0.8,0.2\n1.0,0.2,0.8\n", "The labels of a mechanism must be distinct."),
        ("label,1,1.0\nno,0.8,0.2\nyes,0.2,0.8\n", "The outputs of a channel must be distinct."),
    ],
)
def test_a_channel_with_a_name_twice_is_refused(tmp_path, text, said):
    file = tmp_path / "channel.csv"
    file.write_text(text)
    line = refused("mechanism", "channel", file, folder=tmp_path)
    assert line.endswith(said)


def test_a_channel_with_a_zero_protects_nothing(result, tmp_path):
    file = tmp_path / "channel.csv"
    file.write_text("label,a,b\nx,1,0\ny,0.5,0.5\n")
    found = result("channel", file)
    assert found["epsilon"] == "inf"
    # x never gives b, so the pair (y, x) has δ(ε) = 1/2 at every ε.
    assert found["delta"][-1][1] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--epsilon", 0, "--classes", "a,b"), "above 0"),
        (("--epsilon", "nan", "--classes", "a,b"), "number"),
        (("--epsilon", "inf", "--classes", "a,b"), "finite"),
        (("--lambda", 1.5, "--classes", "a,b"), "[0, 1]"),
        (("--lambda", 0.5, "--epsilon", 1, "--classes", "a,b"), "one of"),
        (("--classes", "a,b"), "one of"),
        (("--epsilon", 1), "Give the labels"),
        (("--epsilon", 1, "--classes", "a"), "at least two"),
        (("--epsilon", 1, "--classes", "a,a"), "distinct"),
        (("--epsilon", 1, "--labels", "0:inf"), "finite"),
        (("--epsilon", 1, "--labels", "3:1"), "below"),
        (("--epsilon", 1, "--labels", "0:1:0.3"), "whole number of steps"),
        (("--epsilon", 1, "--labels", "0:9", "--classes", "a,b"), "once"),
        (("--epsilon", 1, "--classes", "a,b", "--set", "clipped"), "KEY=VALUE"),
        (("--epsilon", 1, "--classes", "a,b", "--set", "colour=3"), "unknown"),
    ],
)
def test_bad_input_is_one_line(words, says):
    assert says in refused("mechanism", "describe", "randomized-response", *words)


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("debiased-rr", ("--classes", "3,1,2"), "increasing"),
        ("debiased-rr", ("--classes", "0,1,inf"), "numbers"),
        ("laplace", ("--classes", "a,b"), "range"),
        ("laplace", ("--labels", "0:9", "--set", "clipped=3"), "true or false"),
        ("rr-on-bins", ("--labels", "0:9"), "--prior"),
        ("model-based-rr", ("--classes", "a,b", "--set", "floor=0"), "floor"),
        ("gaussian-rr", ("--classes", "a,b"), "radius"),
        (
            "gaussian-rr",
            (
                *("--classes", "a,b", "--set", "radius=x"),
                *("--set", "feature-epsilon=1", "--set", "feature-delta=1e-5"),
            ),
            "radius",
        ),
        ("model-based-rr", ("--classes", "a,b", "--set", "floor=low"), "floor"),
        ("staircase", ("--labels", "0:9", "--set", "gamma=x"), "number"),
        ("staircase", ("--labels", "0:9", "--set", "gamma=2"), "(0, 1)"),
        ("discrete-staircase", ("--labels", "0:9", "--set", "width=nan"), "number"),
        ("laplace", ("--labels", "0:9", "--set", "clipped=perhaps"), "true or false"),
        ("channel", ("--classes", "a,b"), "mechanism channel"),
        ("rnadomized", ("--classes", "a,b"), "no such mechanism"),
    ],
)
def test_bad_mechanisms_are_one_line(name, words, says):
    assert says in refused("mechanism", "describe", name, "--epsilon", 1, *words)


@pytest.mark.parametrize(
    ("labels", "probabilities", "says"),
    [
        (range(3), [0.5, 0.5, 0.5], "sum to 1"),
        (range(3), [1.2, -0.1, -0.1], "not negative"),
        (range(4), [0.25] * 4, "one row for each of the 3 labels"),
        ([0, 1, 7], [0.25, 0.25, 0.5], "labels without one: 1, rows of other labels: 1"),
        ([0, 1, 1], [0.25, 0.25, 0.5], "spelling"),
        (range(3), ["x", "y", "z"], "numbers"),
    ],
)
def test_bad_priors_are_one_line_without_a_cell(prior, labels, probabilities, says):
    file = prior(labels, probabilities)
    assert says in refused(
        "mechanism", "describe", "rr-on-bins", "--epsilon", 1, "--labels", "0:2", "--prior", file
    )


def test_a_prior_matches_labels_by_value_in_any_order(result, prior):
    file = prior(["0.3", "0", "0.1", "0.2"], [0.1, 0.4, 0.3, 0.2])
    found = result(
        "describe", "rr-on-bins", "--epsilon", 1, "--labels", "0:0.3:0.1", "--prior", file
    )
    assert found["labels"] == pytest.approx([0, 0.1, 0.2, 0.3])


def test_an_input_is_never_overwritten(prior):
    file = prior(range(3), [0.5, 0.25, 0.25])
    before = file.read_text()
    words = ("--epsilon", 1, "--labels", "0:2", "--prior", file, "--json", file)
    assert "not overwritten" in refused("mechanism", "describe", "rr-on-bins", *words)
    assert file.read_text() == before


def test_result_and_page_are_two_files_in_a_folder_that_exists(tmp_path):
    common = ("describe", "randomized-response", "--epsilon", 1, "--classes", "a,b")
    both = tmp_path / "one"
    for words, said in (
        (("--json", both, "--html", both), "two files"),
        (("--json", tmp_path / "no" / "where"), "does not exist"),
        (("--json", tmp_path), "folder"),
    ):
        assert said in refused("mechanism", *common, *words)
    assert list(tmp_path.iterdir()) == []


TWO = ("--domain", "no,yes", "--domain", "a,b,c,d")


def test_each_epsilon_is_said_to_be_whose_it_is(result):
    found = result("describe", "rs-fd", "--epsilon", 1, *TWO)
    assert found["epsilon"] == pytest.approx(math.log(2 * math.expm1(1) + 1))
    assert [one["labels"] for one in found["columns"]] == [2, 4]
    within = [one["epsilon_within"] for one in found["columns"]]
    assert within[0] < 1 < within[1] < found["epsilon"]
    assert found["channel"]["labels"][:2] == ["no, a", "no, b"]
    assert dict(map(tuple, found["rdp"]))["inf"] == pytest.approx(found["epsilon"])
    Analysis.model_validate(found)
    status, said = mechanism("describe", "rs-fd", "--epsilon", 1, *TWO)
    assert (status, "The published ε = 1 is not that of all columns" in said) == (0, True), said


def test_the_error_of_a_share_is_that_of_the_published_estimator(result):
    """Arcolezi et al. (2021): Var = σ(1 − σ)d²/(p − q)², σ = (q + (d − 1)/k)/d of a rare one."""
    found = result("describe", "rs-fd", "--epsilon", 1, *TWO)
    d, gain = 2, 2 * math.expm1(1)
    for one in found["columns"]:
        k = one["labels"]
        p, q = (1 + gain) / (k + gain), 1 / (k + gain)
        sigma = (q + (d - 1) / k) / d
        variance = sigma * (1 - sigma) * d**2 / (p - q) ** 2
        assert one["frequency_error"] ** 2 == pytest.approx(variance)


def test_a_domain_too_large_for_curves_says_so(result):
    wide = ",".join(map(str, range(40)))
    found = result("describe", "joint-rr", "--epsilon", 1, "--domain", wide, "--domain", wide)
    assert found["delta"] == found["rdp"] == []
    assert found["channel"] is None
    assert any("1600 vectors" in note for note in found["notes"])
    assert found["columns"][0]["epsilon_within"] == 1


def test_from_python():
    found = ldpaudit.describe("joint-rr", epsilon=2.0, domain=(("a", "b"), ("c", "d")))
    assert (found.epsilon, len(found.columns)) == (2.0, 2)


@pytest.mark.parametrize("domain", [5, (5, 6), ("a,b", 3)])
def test_bad_domains_from_python(domain):
    with pytest.raises(InputError):
        ldpaudit.describe("joint-rr", epsilon=2.0, domain=domain)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("joint-rr", "--epsilon", 1), "at least two domains"),
        (("joint-rr", *TWO), "must have --epsilon"),
        (("joint-rr", "--epsilon", 1, "--classes", "a,b"), "takes no --classes"),
        (("rs-fd", "--lambda", 0.1, *TWO), "takes no --lambda"),
        (("rs-fd", "--epsilon", 1, "--set", "a=1", *TWO), "no further parameter"),
        (("rs-f", "--epsilon", 1, *TWO), "did you mean 'rs-fd'"),
        (("rr", "--epsilon", 1, *TWO), "does not release several columns"),
    ],
)
def test_mistakes_are_one_line(words, said):
    assert said in refused("mechanism", "describe", *words)


def test_a_divergence_is_one_number_or_one_for_each_order():
    mechanism = DoubleRR(("no", "yes"), 0.4)
    found = conditional_curve(mechanism, 0.3)
    assert [alpha for alpha, _ in found] == sorted(alpha for alpha, _ in floor_curve(mechanism))
    assert {value for _, value in found} == {mechanism.conditional_epsilon(0.3)}
    by_order = conditional_curve(mechanism, "8:0.4,2:0.1")
    assert by_order == (
        (2, mechanism.conditional_epsilon(0.1)),
        (8, mechanism.conditional_epsilon(0.4)),
    )
