"""What holds of every document and every word, whatever is in it."""

import json
import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from fuzz.command_lines import DECLARED, PLAN, POLICY, STORED
from fuzz.mutations import changed, toml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from ldpaudit.datasets import parse_declaration, read_channel
from ldpaudit.datasets.declaration import declared_content
from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.extras.release.privatize.plan import read_plan
from ldpaudit.judging.policy import parse_policy
from ldpaudit.mechanisms import Channel, MechanismOptions, names, traits_of
from ldpaudit.mechanisms.interface import AnalysedMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.registry import family, from_declaration
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration
from ldpaudit.result import AuditResult
from ldpaudit.work.documents import parse_toml

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(max_size=8)
KEYS = st.sampled_from(["version", "label", "labels", "mechanism", "name", "schema", "checks", "a"])
VALUES = st.recursive(
    LEAVES,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=4),
    max_leaves=12,
)
"""Any JSON value, with the keys that parsers look for."""
SEEDS = st.integers(0, 2**32)
RESULTS = [json.loads(path.read_text()) for path in sorted(STORED.glob("1.*.json"))]
FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def outcome(parse, value):
    """Return what is parsed, None for bad input; its message is one line that can be read."""
    try:
        return parse(value)
    except LdpAuditError as error:
        _check_message(str(error))
        return None


def _check_message(message):
    assert "\n" not in message
    assert len(message) < 1000


def damaged(documents, seed):
    rng = Random(seed)
    return changed(rng.choice(documents), rng, rng.randint(1, 3))


@given(VALUES | st.builds(damaged, st.just(DECLARED), SEEDS))
def test_any_json_is_a_declaration_or_bad_input(value):
    declared = outcome(parse_declaration, json.dumps(value).encode())
    if declared is not None:
        for claim in filter(None, (*(one.mechanism for one in declared.labels), declared.joint)):
            outcome(lambda one: from_declaration(one, ("a", "b")), claim)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
MECHANISMS = st.builds(
    lambda classes, amount: Declaration(
        "randomized-response", {"classes": classes, **amount}, "file"
    ),
    st.lists(st.integers() | NAMES, min_size=2, max_size=4),
    st.fixed_dictionaries({"epsilon": st.floats(1e-6, 50)})
    | st.fixed_dictionaries({"lambda": st.floats(0, 1)}),
)


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), st.data())
def test_a_declaration_says_what_was_declared(columns, data):
    labels = tuple(LabelDeclaration(name, data.draw(MECHANISMS)) for name in columns)
    found = parse_declaration(declared_content(ColumnsDeclaration(labels)))
    assert found.labels == labels


@given(VALUES | st.builds(damaged, st.just([POLICY]), SEEDS))
def test_any_toml_is_a_policy_or_bad_input(value):
    policy = outcome(parse_policy, toml(value))
    assert policy is None or policy.checks.asked() or policy.audit.min_rows


@given(st.builds(damaged, st.just([PLAN]), SEEDS))
def test_any_toml_is_a_plan_or_bad_input(value):
    try:
        stated = parse_toml(toml(value), "A plan")
    except ValueError:
        return
    plan = outcome(read_plan, stated)
    assert plan is None or len(plan.labels) == len(stated["labels"])


@settings(max_examples=15)
@given(st.builds(damaged, st.just(RESULTS), SEEDS))
def test_any_json_is_a_stored_result_or_bad_input(value):
    result = outcome(AuditResult.from_json, json.dumps(value))
    assert result is None or AuditResult.from_json(result.to_json()) == result


@pytest.mark.parametrize("content", RESULTS, ids=lambda c: c["schema_version"])
def test_a_stored_result_is_stored_again_as_it_was(content):
    once = AuditResult.from_json(json.dumps(content)).to_json()
    assert AuditResult.from_json(once).to_json() == once


CLASSES = ("xu", "yv", "zw")
GRID = LabelRange(0, 6, 1)
SIMPLE = tuple(
    name
    for name in names()
    if traits_of(name).stated_by
    and not traits_of(name).needs & {"prior", "strata"}
    and name not in ("gaussian-rr", "frequency-oracle", "label-proportions", "by-stratum")
)


@given(st.sampled_from(SIMPLE), st.floats(1e-6, 50) | st.sampled_from([1e-6, 50.0]))
@example("discrete-staircase", 38.0)
def test_a_mechanism_keeps_its_epsilon(name, epsilon):
    """ε is what was stated or less, δ(ε) falls, the Rényi curve rises up to ε."""
    traits = traits_of(name)
    in_range = "range" in traits.needs
    options = MechanismOptions(
        epsilon=epsilon,
        classes=None if in_range else (GRID.classes if traits.numeric else CLASSES),
        labels=GRID if traits.numeric else None,
    )
    try:
        mechanism = family(name).from_options(options)
    except InputError:
        return
    assert isinstance(mechanism, AnalysedMechanism)
    exact = mechanism.epsilon
    assert 0 <= exact <= epsilon * (1 + 1e-9) + 1e-12
    places = np.linspace(0, exact, 4).tolist()
    deltas = [mechanism.delta(place) for place in places]
    assert all(a >= b - 1e-12 for a, b in pairwise(deltas))
    assert 0 <= deltas[-1] <= 1e-9
    assert deltas[0] <= 1
    curve = [mechanism.rdp(alpha) for alpha in (0.5, 1.0, 1.5, 2.0, 16.0, 256.0)]
    assert all(a <= b + 1e-9 for a, b in pairwise(curve))
    assert 0 <= curve[0] <= curve[-1] <= exact * (1 + 1e-9) + 1e-9


@given(st.sampled_from(names()), st.text("0123456789.eE+-:,ab", max_size=12), SEEDS)
def test_any_words_are_a_mechanism_or_bad_input(name, labels, seed):
    rng = Random(seed)
    keys = ("epsilon", "lambda", "classes", "low", "high", "step", "floor", "sigma", "zzz")
    values = (-1.0, 0.0, 1e-9, 0.5, 1.0, 50.0, 51.0, 1e300, math.inf, "a", True, None, [1], {})
    stated = {rng.choice(keys): rng.choice(values) for _ in range(rng.randint(0, 4))}
    found = outcome(LabelRange.parse, labels)
    parameters = {} if found is None else found.declaration()
    declared = Declaration(name, parameters | stated, "options")
    outcome(lambda one: from_declaration(one, ("a", "b")), declared)


@FILE
@given(
    k=st.integers(2, 5),
    m=st.integers(2, 5),
    seed=SEEDS,
    separator=st.sampled_from([",", ";", "\t"]),
)
def test_a_channel_file_says_what_was_written(k, m, seed, separator, tmp_path):
    matrix = np.random.default_rng(seed).dirichlet(np.full(m, 0.3), size=k)
    assume(np.abs(matrix.sum(axis=1) - 1).max() < 1e-12)
    lines = [["label", *(f"o{j}" for j in range(m))]]
    lines += [[f"c{i}", *map(repr, row.tolist())] for i, row in enumerate(matrix)]
    path = tmp_path / "channel.csv"
    path.write_text("\n".join(separator.join(line) for line in lines))
    found = read_channel(path)
    assert found["matrix"] == matrix.tolist()
    channel = Channel(np.array(found["matrix"]), tuple(found["classes"]), tuple(found["outputs"]))
    assert channel.delta(0.0) >= channel.delta(1.0)


@FILE
@example(rows=[["1"]])
@given(rows=st.lists(st.lists(st.text(",;\t\"'ab01.5-e ", max_size=5), max_size=4), max_size=5))
def test_any_table_is_a_channel_or_bad_input(rows, tmp_path):
    path = tmp_path / "channel.csv"
    path.write_text("\n".join(",".join(row) for row in rows))
    found = outcome(read_channel, path)
    assert found is None or len(found["matrix"]) == len(found["classes"]) >= 2
