import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import refused

from ldpaudit.datasets import declare
from ldpaudit.datasets.declaration import declared_content
from ldpaudit.extras.choose.mechanism.composing import UpperBound, analyse_jointly
from ldpaudit.extras.kinds.mechanisms.bins import DebiasedRR
from ldpaudit.extras.several.joint import RandomSampling
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.analysis import privacy_of
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, Laplace, Staircase
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration

pytest.importorskip("dp_accounting", reason="the extra 'accounting' is not installed")


def rr(epsilon, k=3):
    return RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)


def dense_delta(rows, other, epsilon):
    return float(np.clip(rows - math.exp(epsilon) * other, 0, None).sum())


def test_finite_releases_compose_exactly():
    """Against the full Kronecker product of the channels, no columns merged."""
    parts = [rr(1.0), rr(0.4), DebiasedRR((0, 1, 2), 0.7)]
    joint = analyse_jointly(parts)
    assert joint.kind == "exact"
    matrices = [p.channel.matrix for p in parts]
    full = np.stack(
        [np.kron(np.kron(matrices[0][y], matrices[1][y]), matrices[2][y]) for y in range(3)]
    )
    for at, value in joint.delta:
        worst = max(dense_delta(full[a], full[b], at) for a in range(3) for b in range(3))
        assert value == pytest.approx(worst, abs=1e-12)
    assert joint.epsilon == pytest.approx(2.1, abs=1e-9)
    for alpha, value in joint.rdp:
        assert value == pytest.approx(sum(p.rdp(alpha) for p in parts), abs=1e-9)


def test_the_order_of_the_labels_does_not_matter():
    reversed_labels = RandomizedResponse.from_epsilon((2, 1, 0), 1.0)
    joint, plain = analyse_jointly([rr(1.0), reversed_labels]), analyse_jointly([rr(1.0), rr(1.0)])
    assert np.array(joint.delta) == pytest.approx(np.array(plain.delta), abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_upper_bound_is_above_the_truth_and_near_it(epsilon):
    """Validity: never below the exact product. Power: not 1e-3 above it."""
    parts = [rr(epsilon), rr(epsilon), rr(2 * epsilon)]
    exact = analyse_jointly(parts)
    bound = UpperBound([privacy_of(part) for part in parts])
    for at, truth in exact.delta:
        assert bound.delta(at) >= truth - 1e-12
        assert bound.delta(at) <= truth + 1e-3
    assert bound.epsilon == pytest.approx(exact.epsilon, rel=1e-9)


def test_noise_with_itself_against_a_dense_grid():
    """Two Laplace releases: δ by the densities on a fine grid, outputs independent."""
    labels, epsilon = LabelRange(0, 1), 1.0
    one = Laplace(labels, epsilon)
    joint = analyse_jointly([one, one])
    assert joint.kind == "upper bound"
    # The privacy loss of one release, from the inverse distribution function; 1,500 quantiles.
    n = 1500
    u = (np.arange(n) + 0.5) / n
    x = np.where(u < 0.5, np.log(2 * u), -np.log(2 - 2 * u))
    loss = np.abs(x - 1) - np.abs(x)
    both = loss[:, None] + loss[None, :]
    for at in (0.0, 0.5, 1.0, 1.5):
        truth = float(np.clip(-np.expm1(at - both), 0, None).mean())
        given = np.interp(at, *np.array(joint.delta).T)
        assert given >= truth - 3e-4  # the curve's points are joined by chords, the grid is finite
        assert given <= truth + 2e-3
    assert joint.delta[-1] == (2.0, 0.0)


def test_a_bound_is_never_called_exact_and_no_bound_is_zero():
    labels = LabelRange(0, 4, 1)
    mixed = [DiscreteLaplace(labels, 1.0), Staircase(labels, 0.5), rr(1.0, 5)]
    joint = analyse_jointly(mixed)
    assert (joint.kind, joint.epsilon) == ("upper bound", pytest.approx(2.5))
    # A composition gives away at least what any part does.
    for part in mixed:
        for at, value in joint.delta:
            assert value >= part.delta(at) - 1e-9


def test_clipping_noise_first_makes_the_composition_exact():
    labels = LabelRange(0, 4, 1)
    clipped = [DiscreteLaplace(labels, 1.0, True), rr(1.0, 5)]
    exact = analyse_jointly(clipped)
    bound = analyse_jointly([DiscreteLaplace(labels, 1.0), rr(1.0, 5)])
    assert (exact.kind, bound.kind) == ("exact", "upper bound")
    for (at, truth), (same, above) in zip(exact.delta, bound.delta, strict=True):
        assert at == pytest.approx(same)
        assert above >= truth - 1e-9


def released(folder, declaration, name="release.parquet"):
    path = folder / name
    pq.write_table(declare(pa.table({"label": ["a", "b"]}), declaration, "label"), path)
    return path


def test_a_file_and_a_specification(result, tmp_path):
    parameters = {"classes": ["a", "b"], "lambda": 0.5}
    file = released(tmp_path, Declaration("randomized-response", parameters, "file"))
    found = result("compose", file, "randomized-response:epsilon=1,times=2", "--classes", "a,b")
    assert found["kind"] == "exact"
    assert found["epsilon"] == pytest.approx(math.log(3) + 2, abs=1e-9)
    assert len(found["declaration"]["releases"]) == 3
    alone = result("compose", file)
    assert alone["epsilon"] == pytest.approx(math.log(3), abs=1e-12)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("randomized-response:epsilon=1",), "needs labels"),
        (("no-such-file.parquet",), "no-such-file"),
        (("randomized-response:epsilon=1,times=1.5", "--classes", "a,b"), "times"),
        (("randomized-response:epsilon=1,times=inf", "--classes", "a,b"), "times"),
        (("randomized-response:epsilon=1,times=often", "--classes", "a,b"), "times"),
        (("randomized-response:epsilon=much", "--classes", "a,b"), "number"),
        (("randomized-response:epsilon=1,epsilon=2", "--classes", "a,b"), "each key once"),
        (("randomized-response:", "--classes", "a,b"), "one of"),
        (("unknown:epsilon=1", "--classes", "a,b"), "unknown"),
        (("FILE", "randomized-response:epsilon=1", "--classes", "a,b,c"), "same true labels"),
        (("UNKNOWN",), "unknown"),
        (("BARE",), "declares no mechanism"),
    ],
)
def test_what_cannot_be_composed_is_refused(tmp_path, words, says):
    parameters = {"classes": ["a", "b"], "lambda": 0.5}
    bare = tmp_path / "bare.parquet"
    pq.write_table(pa.table({"label": ["a", "b"]}), bare)
    files = {
        "FILE": released(tmp_path, Declaration("randomized-response", parameters, "file")),
        "UNKNOWN": released(tmp_path, Declaration("unknown", {}, "file"), "unknown.parquet"),
        "BARE": bare,
    }
    assert says in refused("mechanism", "compose", *(files.get(word, word) for word in words))


def test_a_release_without_a_finite_epsilon_is_refused_where_a_bound_is_needed():
    plain = RandomizedResponse((0, 1), 0.0)
    with pytest.raises(ValueError, match="finite"):
        analyse_jointly([plain, Laplace(LabelRange(0, 1), 1.0)])
    assert analyse_jointly([plain, rr(1.0, 2)]).epsilon == math.inf


def test_other_labels_are_refused():
    with pytest.raises(ValueError, match="same true labels"):
        analyse_jointly([rr(1.0, 3), rr(1.0, 4)])
    with pytest.raises(ValueError, match="same true labels"):
        analyse_jointly([Laplace(LabelRange(0, 1), 1.0), Laplace(LabelRange(0, 2), 1.0)])


def test_a_product_that_is_too_large_becomes_an_upper_bound():
    rng = np.random.default_rng(3)
    from ldpaudit.mechanisms.channel import Channel
    from ldpaudit.mechanisms.response import ExplicitChannel

    parts = [
        ExplicitChannel(
            Channel(rng.dirichlet(np.full(300, 50.0), size=3), (0, 1, 2), tuple(range(300)))
        )
        for _ in range(3)
    ]
    joint = analyse_jointly(parts)
    assert joint.kind == "upper bound"
    assert any("too large" in note for note in joint.notes)
    assert joint.epsilon == pytest.approx(sum(p.epsilon for p in parts))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("randomised-response:epsilon=1", "'randomized-response'"),
        ("randomized-response:epsilonn=1", "'epsilon'"),
        ("randomized-response:epsilon=1,lamda=0.5", "'lambda'"),
    ],
)
def test_a_misspelt_word_is_recognised(text, meant):
    assert f"did you mean {meant}?" in refused("mechanism", "compose", text, "--classes", "a,b")


def test_labels_of_a_file_are_not_named_but_counted(result, tmp_path):
    parameters = {"classes": ["qzyes", "qzno"], "lambda": 0.5}
    file = released(tmp_path, Declaration("randomized-response", parameters, "file"))
    said = refused("mechanism", "compose", file, "rr:epsilon=1", "--classes", "no,yes")
    assert "--classes names 2 (no, yes); 'release.parquet' declares 2, and not those" in said
    assert "Leave out --classes" in said
    # The labels of a specification are then those of the file, and still not named.
    found = result("compose", file, "rr:epsilon=1")
    assert found["epsilon"] == pytest.approx(math.log(3) + 1, abs=1e-9)
    assert found["channel"]["labels"] == ["class 1", "class 2"]
    assert "class 1, class 2" in found["channel"]["outputs"]
    assert "qz" not in said + str(found)


def test_outputs_are_named_and_notes_are_said_once():
    joint = analyse_jointly([rr(1.0, 2), rr(1.0, 2), rr(0.5, 2)])
    names = [str(name) for name in joint.channel.outputs]
    assert sorted(names) == sorted(
        [
            "0, 0, 0",
            "0, 0, 1",
            "1, 1, 0",
            "1, 1, 1",
            "0, 1, 0 (or 1 like it)",
            "0, 1, 1 (or 1 like it)",
        ]
    )
    # Each name is that of its column: three of one label are likeliest under it.
    first = joint.channel.matrix[:, names.index("0, 0, 0")]
    assert (first[0] / first[1], len(joint.notes)) == (pytest.approx(math.exp(2.5)), 2)
    assert joint.notes[0].startswith("2 × randomized-response: ")
    many = analyse_jointly([rr(0.1, 3)] * 9)
    assert "numbered" in many.notes[-1]


def columns(folder, name, joint=None, **epsilons):
    """Write a file that declares private columns, each by randomized response."""
    table = pa.table({label: ["a", "b"] for label in epsilons})
    stated = [
        LabelDeclaration(
            label, Declaration("randomized-response", {"classes": ["a", "b"], "epsilon": epsilon})
        )
        for label, epsilon in epsilons.items()
    ]
    if joint is not None:
        stated = [LabelDeclaration(label) for label in epsilons]
    path = folder / name
    content = declared_content(ColumnsDeclaration(tuple(stated), joint))
    pq.write_table(table.replace_schema_metadata({b"ldpaudit": content}), path)
    return path


def test_columns_of_several_files_add_up(result, tmp_path):
    one = columns(tmp_path, "one.parquet", income=0.6, illness=0.6, benefit=0.6)
    two = columns(tmp_path, "two.parquet", income=0.6, illness=0.6, benefit=0.6)
    found = result("compose", one, two)
    assert (found["kind"], found["epsilon"]) == ("exact", pytest.approx(3.6))
    assert found["parametrisations"]["ε of column illness"] == pytest.approx(1.2)
    alone = dict(analyse_jointly([rr(0.6, 2), rr(0.6, 2)]).rdp)
    for alpha, value in found["rdp"]:
        assert value == pytest.approx(3 * alone[math.inf if alpha == "inf" else alpha])


def test_a_joint_mechanism_counts_by_its_own_epsilon(result, tmp_path):
    domains = [["a", "b"], ["a", "b"]]
    joint = Declaration("rs-fd", {"domains": domains, "epsilon": 1.0})
    one = columns(tmp_path, "one.parquet", joint, income=0, illness=0)
    alone = RandomSampling.from_parameters(joint.parameters, ()).epsilon
    assert result("compose", one)["epsilon"] == pytest.approx(alone)
    found = result("compose", one, one)
    assert (found["kind"], found["epsilon"]) == ("upper bound", pytest.approx(2 * alone))


def test_joint_releases_and_columns_are_parts_that_add_up_to_the_total(result, tmp_path):
    domains = [["a", "b"], ["a", "b"]]
    joint = [Declaration("rs-fd", {"domains": domains, "epsilon": epsilon}) for epsilon in (1, 0.5)]
    names = "one.parquet", "two.parquet"
    files = [
        columns(tmp_path, name, one, income=0, illness=0)
        for name, one in zip(names, joint, strict=True)
    ]
    alone = columns(tmp_path, "alone.parquet", benefit=0.3)
    made = [RandomSampling.from_parameters(one.parameters, ()) for one in joint]
    found = result("compose", *files, alone, alone)
    parametrisations = found["parametrisations"]
    assert found["epsilon"] == pytest.approx(parametrisations.pop("epsilon"))
    assert parametrisations == {
        "ε of columns released together": pytest.approx(sum(one.epsilon for one in made)),
        "ε of column benefit": pytest.approx(0.6),
    }
    assert found["epsilon"] == pytest.approx(sum(parametrisations.values()))
    parts = [result("compose", *some)["rdp"] for some in (files[:1], files[1:], [alone, alone])]
    for (alpha, value), *each in zip(found["rdp"], *parts, strict=True):
        assert [order for order, _ in each] == [alpha] * 3
        assert value == pytest.approx(sum(part for _, part in each))


def test_several_columns_go_with_no_mechanism_by_name(tmp_path):
    one = columns(tmp_path, "one.parquet", income=0.6, illness=0.5)
    words = ("compose", one, "randomized-response:epsilon=1")
    assert "with files alone" in refused("mechanism", *words)
