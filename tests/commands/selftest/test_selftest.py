"""``ldpaudit selftest``: the plan, the figures, the command."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import beta, binom

from ldpaudit.cli import app
from ldpaudit.commands.requests import SelftestRequest
from ldpaudit.commands.schemas import schema_of
from ldpaudit.commands.selftest import work
from ldpaudit.commands.selftest.planting import HONEST, LEAKS, OF_CLASSES, OF_NUMBERS, Setting
from ldpaudit.commands.selftest.work import (
    ATTACKED_ROWS,
    CHANCE,
    Figure,
    Outcome,
    Selftest,
    attacked,
    best_accuracy,
    figure,
    figures,
    judged,
    planned,
    planted,
    posterior,
    selftest,
)
from ldpaudit.errors import InputError, OutputError
from ldpaudit.work.progress import NoProgress


def ended(kind: str, verdict: str, *failed: str, number: int = 0, **known: Any) -> Outcome:
    setting = Setting(number, kind, "randomized-response", 2, 3000, 1.0, 2.0)
    facts = {"held": {"mechanism.epsilon_lower": True}, "power": 0.5, "true_epsilon": 3.0}
    return Outcome(setting=setting, verdict=verdict, failed=failed, **facts | known)


def sound(honest: int = 20, leaking: int = 22) -> list[Outcome]:
    kinds = [*LEAKS, *LEAKS][:leaking]
    found = [ended(kind, "fail", *LEAKS[kind].found_by, number=i) for i, kind in enumerate(kinds)]
    return [*(ended("as declared", "pass", number=i) for i in range(honest)), *found]


def result_of(outcomes: list[Outcome]) -> Selftest:
    return judged(outcomes, planned=len(outcomes), seed=1, thorough=False, seconds=1.0)


@pytest.mark.parametrize("thorough", [False, True])
def test_the_plan_has_every_mechanism_and_kind(thorough: bool) -> None:
    every = planned(thorough, 3)
    leaking = [one for one in every if one.kind in LEAKS]
    assert (len(every) - len(leaking), len(leaking)) == ((1000, 300) if thorough else (30, 21))
    assert {one.kind for one in every} == {*HONEST, *LEAKS}
    most, least = (50_000, 500) if thorough else (3000, 2500)
    assert all(500 <= one.rows <= most for one in every if one not in leaking)
    assert all(least <= one.rows <= max(most, 3500) for one in leaking)
    assert sum(map(attacked, every)) >= 5
    if thorough:
        assert {one.mechanism for one in every} == {*OF_CLASSES, *OF_NUMBERS}
        assert {one.classes for one in every} == set(range(2, 11))


def test_a_release_depends_on_the_seed_and_its_number_alone() -> None:
    first = next(one for one in planned(False, 5) if one.kind == "as declared")
    assert planted(first, 5).table.equals(planted(first, 5).table)
    assert not planted(first, 5).table.equals(planted(first, 6).table)


@pytest.mark.parametrize("name", [*OF_CLASSES, *OF_NUMBERS])
@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_release_declares_what_was_done(name: str, kind: str) -> None:
    release = planted(Setting(1, kind, name, 4, 120, 1.0), 1)
    assert release.table.num_rows == release.truth.num_rows == 120
    assert release.epsilon == pytest.approx(Setting(1, kind, name, 4, 120, 1.0).made_with().epsilon)
    content = json.loads(release.table.schema.metadata[b"ldpaudit"])
    assert content["mechanism"]["name"] == name


@pytest.mark.parametrize("kind", LEAKS)
def test_a_leak_gives_away_more_than_it_declares(kind: str) -> None:
    for name in LEAKS[kind].mechanisms:
        release = planted(Setting(1, kind, name, 4, 120, 1.0, 0.7), 1)
        assert release.epsilon > 1.3, name


def held(count: int, n: int, stated: float = 0.05, side: Any = "at most") -> Figure:
    return figure("x", "", [True] * count + [False] * (n - count), stated, side)


def test_figures_are_held_against_what_is_documented() -> None:
    alarms = held(8, 30)
    assert alarms.p_value == pytest.approx(binom.sf(7, 30, 0.05))
    interval = (beta.ppf(0.025, 8, 23), beta.ppf(0.975, 9, 22))
    assert (alarms.low, alarms.high) == pytest.approx(interval)
    assert alarms.finding == "refuted"
    assert held(5, 30).finding == "as documented"
    assert held(0, 3).finding == "too few"
    assert held(1, 7, 0.95, "at least").finding == "refuted"
    assert held(0, 0, 0.95, "at least").finding == "too few"


def test_a_good_installation_is_seldom_refuted() -> None:
    for n in (7, 30, 1000):
        refuted = (k for k in range(n + 1) if held(k, n).finding == "refuted")
        assert sum(binom.pmf(count, n, 0.05) for count in refuted) <= CHANCE
    # Seven of twenty refute a figure alone, and not as one of several with a share of the chance.
    accusing = [ended("as declared", "fail", "claimed-epsilon", number=i) for i in range(7)]
    shared = {one.id: one for one in figures([*accusing, *sound(13)])}["false_alarms"]
    assert (shared.count, shared.n) == (7, 20)
    assert (shared.finding, held(7, 20).finding) == ("as documented", "refuted")


def test_the_sentence_and_the_exit_status_follow_the_figures() -> None:
    good = result_of(sound())
    assert (good.verdict, good.sentence) == (
        "pass",
        "This installation works as documented: 20 honest releases, no violations claimed; "
        "22 leaking releases, 22 found.",
    )
    few = result_of(sound(2, 2))
    assert few.verdict == "inconclusive"
    assert "Too few" in few.sentence
    accusing = [ended("as declared", "fail", "claimed-epsilon", number=i) for i in range(20)]
    bad = result_of([*accusing, *sound(0)])
    assert bad.verdict == "fail"
    assert "honest releases in which a violation is claimed" in bad.sentence


def test_leaks_count_that_the_audit_says_it_would_find() -> None:
    weak = ended("some rows without noise", "pass", power=2.5)
    missed = ended("some rows without noise", "pass", power=1.9)
    beside = ended("a copy of the label", "pass", true_epsilon=math.inf)
    promised = {f.id: f for f in figures([weak, missed, beside])}["found.promised"]
    assert (promised.count, promised.n) == (0, 1)


def test_no_attack_beats_the_best_one() -> None:
    assert posterior(4).sum(axis=1) == pytest.approx(1)
    assert best_accuracy(2, 0.5) < best_accuracy(2, 3.0) <= 1
    # Sees no features: keeps the released label, or says the commonest.
    assert best_accuracy(10, 3.0) > math.exp(3) / (math.exp(3) + 9)
    assert attacked(Setting(0, "as declared", "randomized-response", 2, ATTACKED_ROWS, 1.0))


def test_options_out_of_range_are_refused() -> None:
    for options in ({"minutes": 0.0}, {"threads": 0}, {"seed": -1}):
        with pytest.raises(InputError):
            SelftestRequest(**options).check()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[Setting]:
    """A plan of few releases, of which each outcome is known."""
    asked: list[Setting] = []

    def known(setting: Setting, _: int) -> Outcome:
        asked.append(setting)
        failed = LEAKS[setting.kind].found_by if setting.kind in LEAKS else ()
        one = ended(setting.kind, "fail" if failed else "pass", *failed)
        return one.model_copy(update={"setting": setting})

    monkeypatch.setattr(work, "outcome", known)  # with one thread, nothing is pickled
    return asked


def test_the_command_writes_its_result(small: list[Setting], tmp_path: Path) -> None:
    place = tmp_path / "selftest.json"
    with pytest.raises(SystemExit) as ending:
        app(["selftest", "--threads", "1", "--json", str(place)])
    assert ending.value.code == 0
    stored = json.loads(place.read_text(encoding="utf-8"))
    assert stored["verdict"] == "pass"
    assert len(stored["releases"]) == stored["planned"] == len(small)
    assert sum(row["n"] for row in stored["rows"] if row["group"] == "rows") == len(small)
    import jsonschema

    jsonschema.validate(stored, json.loads(schema_of("selftest")))


def test_finished_releases_are_kept(small: list[Setting], tmp_path: Path) -> None:
    request = SelftestRequest(threads=1, resume=tmp_path, minutes=1e-9)
    first = selftest(request, NoProgress())
    assert (len(first.releases), first.verdict) == (1, "inconclusive")
    again = selftest(SelftestRequest(threads=1, resume=tmp_path), NoProgress())
    assert len(again.releases) == again.planned == len(small)
    assert first.releases[0] in again.releases


def test_a_line_that_a_kill_cut_short_is_audited_again(
    small: list[Setting], tmp_path: Path
) -> None:
    request = SelftestRequest(threads=1, resume=tmp_path)
    first = selftest(request, NoProgress())
    (kept,) = tmp_path.iterdir()
    kept.write_text(kept.read_text()[:-9])
    small.clear()
    assert selftest(request, NoProgress()).releases == first.releases
    assert len(small) == 1
    small.clear()
    assert selftest(request, NoProgress()).releases == first.releases
    assert not small


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        selftest(SelftestRequest(resume=tmp_path / "file"), NoProgress())
