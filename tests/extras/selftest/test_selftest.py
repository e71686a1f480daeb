"""``ldpaudit selftest``: the plan, the figures, the command."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy.stats import beta, binom

import ldpaudit
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.audits.label_inference import runs
from ldpaudit.cli import app
from ldpaudit.cli.schemas import schema_of
from ldpaudit.commands.outputs import Outputs
from ldpaudit.errors import InputError, OutputError
from ldpaudit.estimators.epsilon.strongest import BoundEvidence
from ldpaudit.extras.selftest import planting, work
from ldpaudit.extras.selftest import work as trial
from ldpaudit.extras.selftest.planting import HONEST, LEAKS, OF_CLASSES, OF_NUMBERS, Setting
from ldpaudit.extras.selftest.request import SelftestRequest
from ldpaudit.extras.selftest.work import (
    ATTACKED_ROWS,
    CHANCE,
    Outcome,
    attacked,
    best_accuracy,
    figure,
    figures,
    judged,
    outcome,
    planned,
    planted,
    posterior,
    selftest,
)
from ldpaudit.mechanisms.response import Response
from ldpaudit.pipeline import audit as one_audit
from ldpaudit.work.progress import NoProgress


def ended(kind, verdict, *failed, number=0, **known):
    setting = Setting(number, kind, "randomized-response", 2, 3000, 1.0, 2.0)
    facts = {"held": {"mechanism.epsilon_lower": True}, "power": 0.5, "true_epsilon": 3.0}
    return Outcome(setting=setting, verdict=verdict, failed=failed, **facts | known)


def sound(honest=20, leaking=22):
    kinds = [*LEAKS, *LEAKS][:leaking]
    found = [ended(kind, "fail", *LEAKS[kind].found_by, number=i) for i, kind in enumerate(kinds)]
    return [*(ended("as declared", "pass", number=i) for i in range(honest)), *found]


def result_of(outcomes):
    return judged(outcomes, planned=len(outcomes), seed=1, thorough=False, seconds=1.0)


@pytest.mark.parametrize("thorough", [False, True])
def test_the_plan_has_every_mechanism_and_kind(thorough):
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


def test_a_release_depends_on_the_seed_and_its_number_alone():
    first = next(one for one in planned(False, 5) if one.kind == "as declared")
    assert planted(first, 5).table.equals(planted(first, 5).table)
    assert not planted(first, 5).table.equals(planted(first, 6).table)


@pytest.mark.parametrize("name", [*OF_CLASSES, *OF_NUMBERS])
@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_release_declares_what_was_done(name, kind):
    release = planted(Setting(1, kind, name, 4, 120, 1.0), 1)
    assert release.table.num_rows == release.truth.num_rows == 120
    assert release.epsilon == pytest.approx(Setting(1, kind, name, 4, 120, 1.0).made_with().epsilon)
    content = json.loads(release.table.schema.metadata[b"ldpaudit"])
    assert content["mechanism"]["name"] == name


@pytest.mark.parametrize("name", ["randomized-response", "laplace"])
@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_releases_features_do_not_tell_its_labels(name, kind):
    made = planted(Setting(1, kind, name, 4, 600, 1.0), SEED)
    given = {"truth": made.truth, "only": ("assumptions",), "threads": 1, "rng": 1}
    assert ldpaudit.audit(made.table, **given).check("features-reveal-label").verdict == "pass"


@pytest.mark.parametrize("kind", LEAKS)
def test_a_leak_gives_away_more_than_it_declares(kind):
    for name in LEAKS[kind].mechanisms:
        release = planted(Setting(1, kind, name, 4, 120, 1.0, 0.7), 1)
        assert release.epsilon > 1.3, name


def held(count, n, stated=0.05, side="at most"):
    return figure("x", "", [True] * count + [False] * (n - count), stated, side)


def test_the_true_epsilon_of_labels_kept_by_class_is_that_of_their_channel():
    way = planting._by_class(lambda _: np.array([0.95, 0.6, 0.7]))
    # The largest ratio within an output: the last class itself, and the first one as it.
    assert way.epsilon(None) == pytest.approx(math.log(0.7 / 0.025))


def test_figures_are_held_against_what_is_documented():
    alarms = held(8, 30)
    assert alarms.p_value == pytest.approx(binom.sf(7, 30, 0.05))
    interval = (beta.ppf(0.025, 8, 23), beta.ppf(0.975, 9, 22))
    assert ((alarms.low, alarms.high), alarms.finding) == (pytest.approx(interval), "refuted")
    assert (held(5, 30).finding, held(0, 3).finding) == ("as documented", "too few")
    assert held(1, 7, 0.95, "at least").finding == "refuted"
    assert held(0, 0, 0.95, "at least").finding == "too few"


def test_a_good_installation_is_seldom_refuted():
    for n in (7, 30, 1000):
        refuted = (k for k in range(n + 1) if held(k, n).finding == "refuted")
        assert sum(binom.pmf(count, n, 0.05) for count in refuted) <= CHANCE
    # Seven of twenty refute a figure alone, and not as one of several with a share of the chance.
    accusing = [ended("as declared", "fail", "claimed-epsilon", number=i) for i in range(7)]
    shared = {one.id: one for one in figures([*accusing, *sound(13)])}["false_alarms"]
    assert (shared.count, shared.n) == (7, 20)
    assert (shared.finding, held(7, 20).finding) == ("as documented", "refuted")


def test_the_sentence_and_the_exit_status_follow_the_figures():
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


def test_leaks_count_that_the_audit_says_it_would_find():
    weak = ended("some rows without noise", "pass", power=2.5)
    missed = ended("some rows without noise", "pass", power=1.9)
    beside = ended("a copy of the label", "pass", true_epsilon=math.inf)
    promised = {f.id: f for f in figures([weak, missed, beside])}["found.promised"]
    assert (promised.count, promised.n) == (0, 1)


def test_no_attack_beats_the_best_one():
    assert posterior(4).sum(axis=1) == pytest.approx(1)
    assert best_accuracy(2, 0.5) < best_accuracy(2, 3.0) <= 1
    # Sees no features: keeps the released label, or says the commonest.
    assert best_accuracy(10, 3.0) > math.exp(3) / (math.exp(3) + 9)
    assert attacked(Setting(0, "as declared", "randomized-response", 2, ATTACKED_ROWS, 1.0))


def test_options_out_of_range_are_refused():
    for options in ({"minutes": 0.0}, {"threads": 0}, {"seed": -1}):
        with pytest.raises(InputError):
            SelftestRequest(**options).check()


@pytest.fixture
def small(monkeypatch):
    """A plan of few releases, of which each outcome is known."""
    asked = []

    def known(setting, _):
        asked.append(setting)
        failed = LEAKS[setting.kind].found_by if setting.kind in LEAKS else ()
        one = ended(setting.kind, "fail" if failed else "pass", *failed)
        return one.model_copy(update={"setting": setting})

    monkeypatch.setattr(work, "outcome", known)  # with one thread, nothing is pickled
    return asked


def test_the_command_writes_its_result(small, tmp_path):
    place = tmp_path / "selftest.json"
    with pytest.raises(SystemExit) as ending:
        app()(["selftest", "--threads", "1", "--json", str(place)])
    assert ending.value.code == 0
    Outputs(json=place).check()  # A later run may replace it.
    stored = json.loads(place.read_text(encoding="utf-8"))
    assert stored["verdict"] == "pass"
    assert len(stored["releases"]) == stored["planned"] == len(small)
    assert sum(row["n"] for row in stored["rows"] if row["group"] == "rows") == len(small)
    import jsonschema

    jsonschema.validate(stored, json.loads(schema_of("selftest")))


def test_finished_releases_are_kept(small, tmp_path):
    request = SelftestRequest(threads=1, resume=tmp_path, minutes=1e-9)
    first = selftest(request, NoProgress())
    assert (len(first.releases), first.verdict) == (1, "inconclusive")
    again = selftest(SelftestRequest(threads=1, resume=tmp_path), NoProgress())
    assert len(again.releases) == again.planned == len(small)
    assert first.releases[0] in again.releases


def test_a_line_that_a_kill_cut_short_is_audited_again(small, tmp_path):
    request = SelftestRequest(threads=1, resume=tmp_path)
    first = selftest(request, NoProgress())
    (kept,) = tmp_path.iterdir()
    kept.write_text(kept.read_text()[:-9])
    small.clear()
    assert (selftest(request, NoProgress()).releases, len(small)) == (first.releases, 1)
    small.clear()
    assert selftest(request, NoProgress()).releases == first.releases
    assert not small


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        selftest(SelftestRequest(resume=tmp_path / "file"), NoProgress())


SEED = 7
SOUND = Setting(0, "sorted by a feature", "randomized-response", 2, 500, 1.0)
LEAKING = dataclasses.replace(SOUND, kind="some rows without noise", rows=2500, excess=2.0)


def outcomes(setting, times=4):
    """Audit so many releases of a setting, by the audits that decide these."""
    numbered = [dataclasses.replace(setting, number=number) for number in range(times)]
    return [outcome(one, SEED) for one in numbered]


@pytest.fixture
def no_seeds(monkeypatch):
    monkeypatch.setattr(trial, "DECIDING", ("assumptions", "mechanism"))


def found(results, name):
    return {one.id: one for one in figures(results)}[name]


@pytest.fixture
def bound_is_zero(monkeypatch):
    _bounds_are(monkeypatch, lambda epsilon: 0.0 * epsilon)


@pytest.fixture
def bound_is_too_high(monkeypatch):
    _bounds_are(monkeypatch, lambda epsilon: 1.5 * epsilon)


def _bounds_are(monkeypatch, changed):
    strongest = BoundEvidence.bound

    def broken(self, alpha):
        bound = strongest(self, alpha)
        return dataclasses.replace(bound, epsilon=changed(bound.epsilon))

    monkeypatch.setattr(BoundEvidence, "bound", broken)


@pytest.mark.usefixtures("no_seeds")
def test_a_sound_installation_is_not_refuted():
    results = [*outcomes(SOUND), *outcomes(LEAKING)]
    # A bound misses the truth in one of twenty releases at most: all of four in one of 160,000.
    assert found(results, "missed.mechanism.epsilon_lower").finding == "as documented"
    assert found(results, "false_alarms").finding == "as documented"
    assert found(results, "found.noise").finding == "as documented"


@pytest.mark.usefixtures("no_seeds")
@pytest.mark.usefixtures("bound_is_zero")
def test_a_bound_that_is_always_zero_finds_nothing():
    assert found(outcomes(LEAKING), "found.noise").finding == "refuted"


@pytest.mark.usefixtures("no_seeds")
@pytest.mark.usefixtures("bound_is_too_high")
def test_a_bound_that_is_too_high_misses_the_truth_and_accuses():
    results = outcomes(SOUND)
    assert found(results, "missed.mechanism.epsilon_lower").finding == "refuted"
    assert found(results, "false_alarms").finding == "refuted"


@pytest.mark.usefixtures("no_seeds")
def test_a_randomizer_that_returns_the_truth_is_noticed(monkeypatch):
    monkeypatch.setattr(Response, "sample", lambda self, labels, rng=None: labels)
    assert found(outcomes(SOUND), "false_alarms").finding == "refuted"


@pytest.mark.usefixtures("no_seeds")
def test_an_audit_that_cannot_run_is_noticed(monkeypatch):
    def broken(*_, **__):
        raise OSError("/home/somebody/libfaiss.so: undefined symbol")

    monkeypatch.setattr(one_audit, "label_counts", broken)
    results = outcomes(SOUND, 1)
    assert (found(results, "faults").finding, results[0].reason) == ("refuted", "OSError")


@pytest.mark.usefixtures("no_seeds")
@pytest.mark.validate
def test_an_attack_that_peeks_at_true_labels_is_noticed(monkeypatch):
    def peeking(self, asked):
        if asked.truth is None:
            return np.full((len(asked), 4), 0.25)
        # Some are wrong: what is certified by fewer than ten wrong guesses is not shown.
        return np.eye(4)[(asked.truth + (np.arange(len(asked)) % 12 == 0)) % 4]

    monkeypatch.setattr(runs, "without_truth", lambda asked: asked)
    monkeypatch.setattr(ModelAttack, "posterior", peeking)
    attacked = dataclasses.replace(SOUND, kind="as declared", classes=4, rows=1400)
    assert found(outcomes(attacked), "missed.attack.best.accuracy").finding == "refuted"


@pytest.mark.validate
def test_this_installation_works_as_documented():
    # By chance it is refuted in one of 10,000.
    tested = selftest(SelftestRequest(seed=SEED), NoProgress())
    assert tested.verdict == "pass", tested.sentence
    again = selftest(SelftestRequest(seed=SEED, threads=1, minutes=0.2), NoProgress())
    kept = {(one.setting.kind, one.setting.number): one for one in tested.releases}
    for one in again.releases:
        same = kept[one.setting.kind, one.setting.number]
        assert one.model_copy(update={"seconds": same.seconds}) == same


def test_rows_of_the_table_name_the_sizes_that_they_stand_for():
    outcomes = [ended("as declared", "pass", number=i) for i in range(2)]
    sizes = [replaced.name for replaced in result_of(outcomes).rows if replaced.group == "rows"]
    assert sizes == ["2,500 to 9,999"]
