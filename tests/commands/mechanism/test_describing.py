import math
from itertools import pairwise

import pytest

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


def test_the_page_is_small_and_static(command, tmp_path):
    page = tmp_path / "page.html"
    names = '"<b>",</script><script>alert(1)</script>'
    command("describe", "randomized-response", "--epsilon", 1, "--classes", names, "--html", page)
    text = page.read_text()
    assert "<script" not in text
    assert "<b>" not in text
    assert "default-src 'none'" in text
    assert text.count("<figure") == text.count("Table and description") == 3
    # Each figure is drawn wide and narrow, each with a title; the two share one description.
    assert text.count("<desc") == 3
    assert text.count("<title") == 7
    assert len(text) < 100_000


def test_an_unbiased_mechanism_says_so(command, result):
    assert result("describe", "debiased-rr", "--epsilon", 1, "--labels", "0:9")["unbiased"]
    printed = command("describe", "debiased-rr", "--epsilon", 1, "--labels", "0:9")[1]
    assert "largest |bias| of a label, unbiased" in printed


def test_no_privacy_and_no_information_at_the_ends_of_lambda(result):
    nothing = result("describe", "randomized-response", "--lambda", 1, "--classes", "a,b")
    assert nothing["epsilon"] == 0
    assert {value for _, value in nothing["delta"]} == {0}
    everything = result("describe", "randomized-response", "--lambda", 0, "--classes", "a,b")
    assert everything["epsilon"] == "inf"
    assert {value for _, value in everything["delta"]} == {1}


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
def test_bad_input_is_one_line(command, words, says):
    status, out, err = command("describe", "randomized-response", *words)
    assert (status, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


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
def test_bad_mechanisms_are_one_line(command, name, words, says):
    status, out, err = command("describe", name, "--epsilon", 1, *words)
    assert (status, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


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
def test_bad_priors_are_one_line_without_a_cell(command, prior, labels, probabilities, says):
    file = prior(labels, probabilities)
    status, out, err = command(
        "describe", "rr-on-bins", "--epsilon", 1, "--labels", "0:2", "--prior", file
    )
    assert (status, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_prior_matches_labels_by_value_in_any_order(result, prior):
    file = prior(["0.3", "0", "0.1", "0.2"], [0.1, 0.4, 0.3, 0.2])
    found = result(
        "describe", "rr-on-bins", "--epsilon", 1, "--labels", "0:0.3:0.1", "--prior", file
    )
    assert found["labels"] == pytest.approx([0, 0.1, 0.2, 0.3])


def test_an_input_is_never_overwritten(command, prior):
    file = prior(range(3), [0.5, 0.25, 0.25])
    before = file.read_text()
    words = ("--epsilon", 1, "--labels", "0:2", "--prior", file, "--json", file)
    status, out, err = command("describe", "rr-on-bins", *words)
    assert (status, out) == (2, "")
    assert "not overwritten" in err
    assert file.read_text() == before


def test_result_and_page_are_two_files_in_a_folder_that_exists(command, tmp_path):
    common = ("describe", "randomized-response", "--epsilon", 1, "--classes", "a,b")
    both = tmp_path / "one"
    assert "two files" in command(*common, "--json", both, "--html", both)[2]
    assert "does not exist" in command(*common, "--json", tmp_path / "no" / "where")[2]
    assert "folder" in command(*common, "--json", tmp_path)[2]
    assert list(tmp_path.iterdir()) == []
