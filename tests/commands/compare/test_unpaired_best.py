"""The strongest attacks of two stored results, one of which asked an attack the other did not."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from ldpaudit.commands.compare.differences.pairwise import _best_counted
from ldpaudit.commands.compare.side import given_release
from ldpaudit.result import Estimate, Score

WHOLE = "bayes-whole-release"


@dataclass(frozen=True)
class Stored:
    """As much of a result as is looked at."""

    estimates: tuple[Estimate, ...]

    def estimate(self, identifier: str) -> Estimate | None:
        return next((e for e in self.estimates if e.id == identifier), None)


@dataclass(frozen=True)
class OneSide:
    result: Stored


def scored_by(name: str, measure: str, **fields: Any) -> Estimate:
    score = Score(subject=name, measure=measure, row=name, column=measure)
    given = {"id": f"attack.{name}.{measure}", "section": "label-inference", "score": score}
    return Estimate.model_validate(given | fields)


def side(**right: int) -> Any:
    found = []
    for key, count in right.items():
        name = key.replace("_", "-")
        given: dict[str, Any] = {"unit": "proportion", "n": 1000, "method": "counts"}
        interval = {
            "kind": "certified",
            "level": 0.95,
            "side": "two-sided",
            "low": 0.0,
            "high": 1.0,
        }
        scored = partial(scored_by, name)
        found.append(scored("accuracy", value=count / 1000, count=count, **given, **interval))
        found.append(scored("multiplicative_advantage", value=0.5, **given, **interval))
        if name != WHOLE:
            found.append(scored("in_sample.accuracy", kind="estimated", value=0.5, **given))
    return OneSide(Stored(tuple(found)))


def test_both_asked_it() -> None:
    a, b = side(bayes=700, bayes_whole_release=750), side(bayes=800, bayes_whole_release=790)
    assert given_release(a.result) == {WHOLE}
    found = _best_counted(a, b, 0.05)
    assert found is not None
    assert abs(found.value - 0.05) < 1e-12
    assert found.low < 0.05 < found.high


def test_one_asked_it_and_it_is_not_the_strongest() -> None:
    a, b = side(bayes=760, bayes_whole_release=750), side(bayes=800)
    found = _best_counted(a, b, 0.05)
    assert found is not None
    assert abs(found.value - 0.04) < 1e-12


def test_one_asked_it_and_it_is_the_strongest() -> None:
    assert _best_counted(side(bayes=700, bayes_whole_release=750), side(bayes=800), 0.05) is None
