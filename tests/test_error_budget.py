"""No bound, and no check, spends more of the error probability than it has."""

import ast
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from estimators.honest import OTHERS, PERSONS
from estimators.worlds import WORLDS, World
from judging.cases import case, p_value

import ldpaudit.estimators.epsilon.bounds as epsilon_bounds
from ldpaudit import attacks, error_budget
from ldpaudit.error_budget import PROOFS, PROOFS_OF_NUMBERS, SHARED_NOISE, Split
from ldpaudit.estimators import instance_loss, mean_loss, renyi
from ldpaudit.estimators.epsilon import guesses, strongest
from ldpaudit.extras.kinds.bags import audit as bags
from ldpaudit.extras.kinds.observational import evidence as observational
from ldpaudit.extras.kinds.synthetic import counts as synthetic
from ldpaudit.extras.several.judging import PROOFS as PROOFS_OF_A_NODE
from ldpaudit.extras.several.person import estimators as person
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.checks.listing import CHECKS
from ldpaudit.result import stated

ALPHA = 0.05
ROOT = Path(error_budget.__file__).parent
SPENDERS = (
    *(epsilon_bounds, strongest, guesses, instance_loss, mean_loss, renyi, attacks.scoring),
    *(bags, observational, synthetic, person),
)
COUNTS = ("clopper_pearson_lower", "clopper_pearson_upper", "trials_lower", "trials_upper")
PRIMITIVES = (*COUNTS, "log_odds_ratio_lower", "shift_lower", "mean_lower", "mean_upper")
BY_FISHER = {"columns in short", "3 columns × 2 releases"}
"""Sums of independent bounds, which are asked for at every level (Fisher 1932)."""


def events(name: str, values: Any, *further: Any) -> Iterator[tuple[object, float]]:
    """Yield what each count of a call may err by, and its error probability.

    An upper bound of a count is the lower one of the others: both err at once.
    """
    if name not in COUNTS:
        alpha = further[1] if name == "shift_lower" else further[0]
        number = np.size(values[..., 0, 0]) if name.startswith("log_odds") else 1
        yield (name, np.asarray(values).tobytes(), alpha), alpha * number
        return
    upper = name.endswith("upper")
    for count, n in zip(*map(np.ravel, np.broadcast_arrays(values, further[0])), strict=True):
        yield (int(n - count if upper else count), int(n), further[1]), float(further[1])


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> dict[object, float]:
    """Return what bounds spend from now on, by event."""
    found = dict[object, float]()

    def recording(name: str, counted: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*given: Any) -> Any:
            found.update(events(name, *given))
            return counted(*given)

        return recorded

    for module in SPENDERS:
        for name in PRIMITIVES:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, recording(name, getattr(module, name)))
    return found


@pytest.mark.parametrize(
    "world",
    [one for one in (*WORLDS, *PERSONS, *OTHERS) if one.name not in BY_FISHER],
    ids=lambda world: world.name,
)
def test_what_a_bound_unites_has_at_most_its_error(
    world: World, spent: dict[object, float]
) -> None:
    bound = world.draw(np.random.default_rng(1))
    spent.clear()
    bound(ALPHA)
    assert math.fsum(spent.values()) <= ALPHA * (1 + 1e-9)
    if world in WORLDS:
        least = strongest.ODDS_RATIO if "selected" in world.name else 0.9
        assert math.fsum(spent.values()) >= least * ALPHA * (1 - 1e-9)


@pytest.mark.parametrize("shares", [{"a": 0.9, "b": 0.2}, {"a": 1.5}, {"a": 1.0, "b": 0.0}])
def test_a_split_of_more_than_the_whole_is_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at most 1 together"):
        Split(shares)


def test_a_split_gives_each_part_its_share() -> None:
    split = Split({"a": 0.5, "b": 0.25})
    assert (split.of(0.1, "a"), split["b"], list(split), len(split)) == (0.05, 0.25, ["a", "b"], 2)


def threshold(fails: Callable[[float], bool]) -> float:
    """Return the largest p-value that fails, 0 where none does."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return low


@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_the_check_of_the_claim_shares_its_error_among_all_proofs(
    lattice: bool, changed: bool
) -> None:
    """The p-value of noise shared with others counts as the half of its bound that it is."""
    asked = dict[str, float]()

    def bound(name: str) -> Callable[[float], float]:
        return lambda alpha: asked.setdefault(name, alpha) * 0.0

    ids = [stated.INSIDER, stated.SUBGROUPS, stated.SHARED_NOISE, *[stated.LATTICE] * lattice]
    bounds = {name: bound(name) for name in ids}

    def answer(blind: float, with_others: float) -> bool:
        made = [
            p_value(stated.FEATURE_BLIND_TEST, blind),
            p_value(stated.SHARED_WITH_OTHERS, with_others),
            *[p_value(stated.CHANGED_ROWS, 1.0)] * changed,
        ]
        found = Evidence({one.id: one for one in made}, {}, bounds)
        draft = CHECKS["claimed-epsilon"].draft("claimed-epsilon", case(found))
        assert draft is not None
        return draft.fails(ALPHA)

    answer(1.0, 1.0)
    whole = ALPHA * (error_budget.CHANGED_ROWS if changed else 1.0)
    split = PROOFS_OF_NUMBERS if lattice else PROOFS
    assert set(asked) == set(ids)
    blind = threshold(lambda value: answer(value, 1.0))
    assert math.fsum([*asked.values(), blind]) == pytest.approx(whole)
    assert blind == pytest.approx(split.of(whole, "feature-blind"))
    seen = threshold(lambda value: answer(1.0, value))
    assert seen == pytest.approx(SHARED_NOISE.of(asked[stated.SHARED_NOISE], "seen"))


def test_a_nodes_proofs_have_all_of_its_error() -> None:
    assert math.fsum(PROOFS_OF_A_NODE.values()) == pytest.approx(1.0)
    assert math.fsum(person.ADDED.values()) == pytest.approx(1.0)


def factors(module: Path) -> Iterator[str]:
    """Yield where a number, or a constant of the module's own, multiplies an error probability."""
    text = module.read_text("utf-8")
    if not re.search(r"(alpha|level|confidence\)) [*/]|[*/] \(*(alpha|level|1 - )", text):
        return
    tree = ast.parse(text)
    shared = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == error_budget.__name__
        for name in node.names
    }

    def own(node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.Sub) and (own(node.left) or own(node.right))
        constant = isinstance(node, ast.Name) and node.id.isupper() and node.id not in shared
        return constant or (isinstance(node, ast.Constant) and isinstance(node.value, float))

    def error(node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp):
            left = isinstance(node.op, ast.Sub) and ast.unparse(node).endswith("confidence")
            return left or error(node.left) or error(node.right)
        return isinstance(node, ast.Name) and node.id in ("alpha", "level")

    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            sides = [(node.right, node.left)]
            if isinstance(node.op, ast.Mult):
                sides.append((node.left, node.right))
            if any(own(factor) and error(other) for factor, other in sides):
                yield f"{module.name}:{node.lineno}: {ast.unparse(node)}"


def test_no_module_has_a_factor_of_the_error_of_its_own() -> None:
    folders = ROOT, Path(attacks.__file__).parent
    modules = sorted({path for folder in folders for path in folder.rglob("*.py")})
    assert len(modules) > 200
    assert [where for module in modules for where in factors(module)] == []
