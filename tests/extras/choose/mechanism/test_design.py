import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from extras.choose.mechanism.conftest import mechanism
from processes import refused

from ldpaudit.errors import InputError
from ldpaudit.extras.choose.mechanism.designing import best, compare_mechanisms
from ldpaudit.extras.choose.mechanism.invariant import invariant_channel
from ldpaudit.mechanisms.interface import Problem
from ldpaudit.mechanisms.label_range import LabelRange

SKEWED = np.array([0.4, 0.05, 0.05, 0.1, 0.15, 0.25])
LABELS = LabelRange(0, 5, 1)


def scores(epsilon=1.0, loss="squared", prior=SKEWED, labels=LABELS):
    return compare_mechanisms(Problem(labels, prior, epsilon, loss))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_optimum_is_below_every_other_candidate(epsilon, loss):
    found = scores(epsilon, loss)
    by_name = {s.title: s for s in found}
    bins, fair = by_name["rr-on-bins"], by_name["optimal-unbiased"]
    assert found[0] is bins
    assert bins.optimal_among
    unbiased = [s for s in found if s.unbiased and s.cost < float("inf")]
    if loss == "squared":
        assert unbiased[0] is fair
        assert fair.optimal_among
    found = tuple(s for s in found if s.cost < float("inf"))
    assert all(s.loss >= bins.loss * (1 - 1e-12) for s in found)
    assert all(s.epsilon <= epsilon * (1 + 1e-12) for s in found)
    assert all(a.loss <= b.loss for a, b in pairwise(found))


def test_the_losses_are_those_of_the_channels():
    """An independent sum over the declared channel's cells, for every finite candidate."""
    for scored in scores(2.0):
        channel = None if scored.made is None else scored.made.channel
        if channel is None:
            continue
        outputs = np.asarray(channel.outputs, dtype=np.float64)
        cells = 0.5 * (outputs[None, :] - np.arange(6.0)[:, None]) ** 2
        assert scored.loss == pytest.approx(
            SKEWED @ (channel.matrix * cells).sum(axis=1), rel=1e-10
        )
        assert scored.outputs == len(outputs)


def test_the_poisson_loss_gives_reasons():
    by_name = {s.title: s for s in scores(1.0, "poisson")}
    assert by_name["laplace (unclipped)"].loss == math.inf
    assert "infinite" in by_name["laplace (unclipped)"].reason
    assert by_name["optimal-unbiased"].loss is None
    assert "highest label" in by_name["optimal-unbiased"].reason
    assert tuple(by_name.values())[best(tuple(by_name.values()))].mechanism == "rr-on-bins"
    assert best(tuple(by_name.values()), unbiased=True) is None
    positive = scores(3.0, "poisson", SKEWED, LabelRange(1, 6, 1))
    assert positive[best(positive, unbiased=True)].mechanism == "optimal-unbiased"


def test_a_tiny_bias_is_a_bias_and_rounding_beats_no_proof():
    found = {s.mechanism: s for s in scores(30.0)}
    assert next(iter(found)) == "rr-on-bins"
    assert not found["randomized-response"].unbiased
    assert 0 < found["randomized-response"].errors.largest_bias < 1e-10


def test_negative_labels_have_no_poisson_loss():
    with pytest.raises(ValueError, match="not negative"):
        scores(1.0, "poisson", SKEWED, LabelRange(-1, 4, 1))


def test_the_contract_of_the_json(result, prior, tmp_path):
    page = tmp_path / "design.html"
    found = result(
        *("design", "--labels", "0:5", "--prior", prior(range(6), SKEWED.tolist())),
        *("--epsilon", 1, "--quiet", "--html", page),
    )
    assert found["candidates"][0]["mechanism"] == "rr-on-bins"
    for candidate in found["candidates"]:
        keys = {"mechanism", "epsilon", "loss", "max_bias", "outputs", "seconds", "optimal"}
        assert keys <= set(candidate)
    assert (found["total_epsilon"], found["prior_epsilon"]) == (1, 0)
    optimal = {c["mechanism"] for c in found["candidates"] if c["optimal"]}
    assert optimal == {"rr-on-bins", "optimal-unbiased"}
    fair = found["candidates"][found["best_unbiased"]]
    assert (fair["mechanism"], fair["max_bias"]) == ("optimal-unbiased", 0)
    text = page.read_text()
    assert "<script" not in text
    assert "optimal among all" in text


def test_a_private_prior_spends_its_share(result, tmp_path):
    data = tmp_path / "data.parquet"
    labels = np.repeat(np.arange(6), [4000, 500, 500, 1000, 1500, 2500])
    pd.DataFrame({"y": labels}).to_parquet(data)
    words = ("design", "--labels", "0:5", "--epsilon", 2, "--data", data, "--label", "y", "--quiet")
    found = result(*words, "--private-prior", 0.5)
    assert (found["prior_epsilon"], found["epsilon"], found["total_epsilon"]) == (0.5, 1.5, 2)
    assert max(c["epsilon"] for c in found["candidates"]) <= 1.5 * (1 + 1e-12)
    # Noise of scale 4 on counts of thousands: off by 0.02 with probability below 1e-19.
    assert found["prior"] == pytest.approx(SKEWED, abs=0.02)
    assert found["prior"] != pytest.approx(SKEWED, abs=1e-12)
    assert "Total ε = 2 nats" in mechanism(*words, "--private-prior", 0.5)[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "public prior"),
        (("--private-prior", 0.5), "--data"),
        (("--private-prior", 1.0, "--data", "data", "--label", "y"), "leave something"),
        (("--private-prior", 1e-9, "--data", "two", "--label", "y"), "noise alone"),
        (("--private-prior", 0, "--data", "data", "--label", "y"), "above 0"),
        (("--private-prior", 0.5, "--data", "data", "--label", "z"), "column"),
        (("--private-prior", 0.5, "--data", "data", "--label", "y"), "range"),
        (("--prior", "prior", "--private-prior", 0.5), "no --prior"),
        (("--prior", "prior", "--loss", "poison"), "poison"),
    ],
)
def test_bad_designs_are_one_line(prior, tmp_path, words, says):
    files = {name: tmp_path / f"{name}.csv" for name in ("data", "two")}
    for path, label in zip(files.values(), "72", strict=True):
        path.write_text("y\n" + f"{label}\n" * 40)
    files["prior"] = prior(range(3), [0.5, 0.25, 0.25])
    given = [files.get(word, word) for word in words]
    said = refused("mechanism", "design", "--labels", "0:2", "--epsilon", 1, "--quiet", *given)
    assert says in said
    assert "7" not in said.replace("40 row", "")


def test_the_data_are_never_overwritten(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("y\n0\n1\n")
    words = ("--labels", "0:1", "--epsilon", 1, "--private-prior", 0.5, "--data", data)
    words = ("design", *words, "--label", "y", "--html", data)
    assert "not overwritten" in refused("mechanism", *words, folder=tmp_path)


@pytest.mark.real_data
def test_weeks_worked(shared_data):
    """The papers' task on the nearest public data: mothers who worked in 1979, 1 … 52 weeks.

    The papers use everyone at work in 1940 (mean squared error of a constant 52: 274.11, here
    549.53, since fewer worked the whole year), so the numbers differ; their structure does not.
    """
    weeks = pd.read_parquet(shared_data / "fertility.parquet")["work"].to_numpy()
    weeks = weeks[weeks > 0]
    prior = np.bincount(weeks, minlength=53)[1:] / len(weeks)
    constant = float(((52 - weeks.astype(np.float64)) ** 2).mean())
    ratios = {}
    for epsilon in (0.5, 1.0, 4.0, 8.0):
        found = scores(epsilon, prior=prior, labels=LabelRange(1, 52, 1))
        by_name = {s.mechanism: s for s in found if not s.variant or s.variant == "with prior"}
        kept, bins = by_name["rr-top-k"], by_name["rr-on-bins"]
        if epsilon <= 1:
            # As in the papers: one kept label, the release says "52" of everyone.
            assert 2 * kept.loss == pytest.approx(constant, rel=1e-12)
        ratios[epsilon] = kept.loss / bins.loss
        assert found[0].mechanism == "rr-on-bins"
    # The papers' ratios: 1.52, 1.72, 3.79, 4.56.
    assert ratios == pytest.approx({0.5: 1.964, 1.0: 2.252, 4.0: 5.208, 8.0: 3.328}, rel=1e-3)


INVARIANT = {"no": 0.55, "sometimes": 0.3, "often": 0.149, "always": 0.001}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.2, 0.8), (0.25,) * 4, tuple(INVARIANT.values())])
def test_an_invariant_channel_keeps_shares_and_as_many_labels_as_can_be(epsilon, shares):
    weights, growth = np.array(shares), math.exp(epsilon)
    found = invariant_channel(tuple(range(len(shares))), weights, epsilon)
    matrix = found.matrix
    assert weights @ matrix == pytest.approx(weights, abs=1e-15)
    assert epsilon - 1e-6 <= found.epsilon <= epsilon
    kept = weights @ np.diag(matrix)
    if len(set(shares)) == 1:  # Randomized response keeps most of all, and is invariant.
        assert kept == pytest.approx(growth / (growth + len(shares) - 1), abs=1e-8)
    elif len(shares) == 2:
        p = min(shares)
        assert matrix[0, 0] == pytest.approx(p * growth / (1 - p + p * growth), abs=1e-8)
    redrawn = min(weights) * (
        growth - 1
    )  # Drawn from the prior again with 1 − this: invariant too.
    assert kept >= redrawn / (1 + redrawn) * (1 - weights @ weights) + weights @ weights - 1e-9


def test_an_invariant_design_is_an_analysis_and_a_matrix_for_privatize(result, prior, tmp_path):
    file, matrix = prior(INVARIANT, INVARIANT.values()), tmp_path / "matrix.csv"
    words = ("design", "--invariant", "--prior", file, "--epsilon", 1)
    found = result(*words, "--channel-out", matrix)
    assert result(*words, "--channel-out", matrix) == found  # A channel is replaced.
    assert found["declaration"]["name"] == "channel"
    assert found["epsilon"] == pytest.approx(1.0, abs=1e-6)
    assert found["channel"]["labels"] == list(INVARIANT)
    again = result("channel", matrix, "--prior", file)
    assert again["epsilon"] == pytest.approx(found["epsilon"], abs=1e-12)
    assert again["accuracy"] == pytest.approx(found["accuracy"], abs=1e-12)
    assert "public prior" in refused("mechanism", "design", "--invariant", "--epsilon", 1)
    assert "--invariant" in refused(
        "mechanism", "design", "--prior", file, "--epsilon", 1, "--channel-out", matrix
    )


def test_the_channel_of_a_design_replaces_no_input_and_no_other_output(prior, tmp_path):
    file, matrix = prior(INVARIANT, INVARIANT.values()), tmp_path / "matrix.csv"
    words = ("mechanism", "design", "--invariant", "--prior", file, "--epsilon", 1)
    other = tmp_path / "notes.csv"
    other.write_text("ward,beds\nwest,12\n")
    for more, said in (
        (("--channel-out", file), "is an input"),
        (("--channel-out", other), "did not write it"),
        (("--channel-out", matrix, "--json", matrix), "must be two files"),
        (("--channel-out", tmp_path / "nowhere" / "matrix.csv", "--json", matrix), "folder"),
    ):
        assert said in refused(*words, *more, folder=tmp_path)


def test_an_invariant_channel_of_too_many_labels_is_refused():
    with pytest.raises(InputError, match=r"at most 64 labels\. Got 65"):
        invariant_channel(tuple(range(65)), np.full(65, 1 / 65), 1.0)
