"""Several releases of the same people: audited as a whole, from Python and the command line."""

import hashlib
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from extras.several.several_releases import Years, years

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.extras.selftest.planting import keep_chance, replaced
from ldpaudit.extras.several.person.answers import Answers
from ldpaudit.result import AuditResult

ONLY = ("mechanism", "person", "power")


@cache
def _made(noise="fresh", **options):
    return years(noise, **options)


def _audited(made, *, truth=True, **options):
    given = list(made.truths) if truth else None
    known = {"id_column": "person", "only": ONLY, "truth": given, "drop": ["age", "region"]}
    return ldpaudit.audit(list(made.tables), **known | options)


@cache
def _result(noise, answers, truth):
    return _audited(_made(noise), truth=truth, answers=answers)


def _verdict(result, check):
    found = result.check(check)
    return found.verdict


def _found(result):
    return next(n.text for n in result.notes if n.audit == "person" and "oise" in n.text[:12])


def test_fresh_noise_adds_up():
    result = _result("fresh", "fresh", True)
    assert (len(result.releases), result["person.epsilon"].value) == (2, pytest.approx(2))
    assert 1.4 < result["person.epsilon_lower"].value < 2.2
    assert result["person.min_detectable_excess"].value < 1
    assert _verdict(result, "claimed-epsilon") == "pass"
    assert _verdict(result, "claimed-channel") == "pass"
    assert "looks fresh" in _found(result)
    assert "2 releases together" in result.sentence
    assert not any("No id column was named" in note.text for note in result.notes)


def test_remembered_noise_stays():
    result = _result("remembered", "remembered", True)
    assert result["person.epsilon"].value == pytest.approx(1)
    assert 0.6 < result["person.epsilon_lower"].value < 1.2
    assert _verdict(result, "claimed-epsilon") == "pass"
    assert "looks remembered" in _found(result)


def test_a_label_that_changed_and_came_back_may_have_a_new_answer():
    result = _audited(_made("remembered", releases=3, changing=0.3), answers="remembered")
    assert result["person.remembered_noise"].value == 1
    assert _verdict(result, "claimed-channel") == "pass"


def _with_a_gap(answers):
    """Return three years, of which half of the people skip the second, with their own answers."""
    made = _made("remembered", releases=3, changing=0.0)
    last, truth = made.tables[2], made.truths[2]
    away = np.array([int(one[1:]) % 2 == 0 for one in last["person"].to_pylist()])
    if answers == "drawn again":
        keep = keep_chance(1.0, 2)
        true = np.asarray(truth["label"] == "yes", dtype=np.int32)
        rng = np.random.default_rng(5)
        drawn = np.array(["no", "yes"])[replaced(true, 2, rng.random(len(true)) < keep, rng)]
        label = pa.array(np.where(away, drawn, last["label"].to_numpy()))
        last = last.set_column(last.column_names.index("label"), last.schema.field("label"), label)
    here = ~np.array([int(one[1:]) % 2 == 0 for one in made.tables[1]["person"].to_pylist()])
    tables = made.tables[0], made.tables[1].filter(pa.array(here)), last
    second = made.truths[1][here].reset_index(drop=True)
    return Years(tables, (made.truths[0], second, truth))


def test_who_skips_a_release_keeps_the_remembered_answer():
    result = _audited(_with_a_gap("kept"), answers="remembered")
    assert result["person.remembered_noise"].value == 1
    assert (_verdict(result, "claimed-channel"), result.verdict) == ("pass", "pass")
    assert "looks remembered" in _found(result)


def test_an_answer_that_is_drawn_again_after_a_skipped_release_is_found():
    result = _audited(_with_a_gap("drawn again"), answers="remembered")
    assert (_verdict(result, "claimed-channel"), result.verdict) == ("fail", "fail")
    assert any("Some answers are remembered" in note.text for note in result.notes)
    assert 0.5 < result["person.remembered_share"].value < 0.85  # Two of three pairs keep it.


def test_each_person_is_compared_with_the_latest_earlier_release_that_has_them():
    rows = np.array([[0, 0, 0], [1, -1, 1], [-1, 1, 2], [2, -1, -1], [-1, -1, 3]])
    answers = SimpleNamespace(rows=rows, contexts=(None,) * 3)
    found = Answers.successive.func(answers)
    assert [(a, b, people.tolist()) for a, b, people in found] == [
        (0, 1, [0]),
        (0, 2, [1]),
        (1, 2, [0, 2]),
    ]


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("noise", ["fresh", "remembered"])
def test_without_a_claim_the_noise_is_found_out(noise, truth):
    result = _result(noise, None, truth)
    assert f"looks {noise}" in _found(result)
    assert result["person.epsilon_if_fresh"].value == pytest.approx(2)
    assert result["person.epsilon_if_remembered"].value == pytest.approx(1)
    assert _verdict(result, "claimed-epsilon") == "pass"


@pytest.mark.parametrize(
    ("noise", "answers", "truth"),
    [
        ("remembered", "fresh", True),
        ("remembered", "fresh", False),
        ("fresh", "remembered", True),
        ("reused", "fresh", True),
        ("reused", None, True),
    ],
)
def test_noise_that_is_not_as_claimed_is_found(noise, answers, truth):
    result = _result(noise, answers, truth)
    assert (_verdict(result, "claimed-channel"), result.verdict) == ("fail", "fail")


def test_fresh_noise_that_is_called_remembered_exceeds_its_claim():
    result = _result("fresh", "remembered", True)
    assert result["person.epsilon_lower"].value > result["person.epsilon"].value


def test_more_noise_than_claimed_is_found_in_all_together():
    result = _audited(
        _made(n=2_500, epsilon=2.0, claim=1.0), answers="fresh", only=("person", "mechanism")
    )
    assert _verdict(result, "claimed-epsilon") == "fail"
    assert result["person.epsilon_lower"].value > 2


def test_a_policys_claim_is_about_all_releases(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('schema = 1\nextends = "ldpaudit:default"\n[claim]\nepsilon = 1.5\n')
    result = _audited(_made(), truth=False, answers="fresh", policy=policy)
    assert result.verdict == "fail"
    assert "ε = 2 is declared over 2 releases" in result.sentence


def test_votes_are_scored_beside_their_references():
    made = _made(releases=4, changing=0.0)
    only = {"only": ("person", "mechanism"), "drop": ["region"]}
    result = _audited(made, answers="fresh", **only)
    assert result["attack.vote-with-features.accuracy"].value > 0.6
    scores = {name: result[f"attack.{name}.accuracy"].value for name in ("vote", "released-label")}
    assert scores["vote"] > scores["released-label"] + 0.05
    curve = result.curve("person.accuracy_by_releases")
    assert curve.value[-1] > curve.value[0]
    assert curve.kind == result["attack.vote.accuracy"].kind
    exact = result.curve("person.best_guess")
    assert len(exact.x) == 4


def test_people_are_counted():
    result = _audited(_made(leaving=4), truth=False)
    everywhere, anywhere = result["person.people_in_all"], result["person.people"]
    missing = round(anywhere.value - everywhere.value)
    assert 0 < missing < 10
    assert any(f"{missing} people are not in every release" in n.text for n in result.notes)


def test_a_result_is_stored_whole_and_holds_no_id(tmp_path):
    result = _result("fresh", None, True)
    path = tmp_path / "result.json"
    assert result.to_json(path) is None
    text = path.read_text(encoding="utf-8")
    assert AuditResult.from_json(text) == result
    known = {one for table in _made().tables for one in table["person"].to_pylist()}
    assert not any(f'"{one}"' in text for one in known)
    assert "person" not in json.loads(text)


def test_the_command_names_files_in_their_order(tmp_path, command):
    releases, truths = _made().written(tmp_path)
    named = [part for truth in truths for part in ("--truth", truth)]
    only = [part for name in ONLY for part in ("--only", name)]
    words = (*named, *only, "--drop", "age", "--drop", "region", "--answers", "fresh")
    status, out, _ = command("run", *releases, "--id", "person", *words)
    assert status == 0
    assert (tmp_path / "y2.releases.html").is_file()
    assert "looks fresh" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truth": [1, 2, 3]}, "once for each release"),
        ({"slices": ["region"]}, "slices= is about a single release"),
        ({"answers": "remembered", "other": True}, "only be remembered"),
        ({"id_column": "nobody"}, "Release 1:"),
        ({"answers": "always"}, "must be 'fresh' or 'remembered'"),
        ({"only": ["person"]}, "need an audit, too"),
    ],
)
def test_bad_input_is_said_in_one_line(options, message):
    made = _made()
    tables = list(made.tables)
    if options.pop("other", False):
        tables[1] = _made(epsilon=2.0).tables[1]
    with pytest.raises(InputError, match=message):
        ldpaudit.audit(tables, **{"id_column": "person", **options})


@pytest.mark.filterwarnings("ignore:Few people")
@pytest.mark.parametrize("answers", ["fresh", "remembered"])
def test_noise_on_numbers_claims_what_is_declared(answers):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"person": np.arange(300), "label": rng.integers(0, 40, 300)})
    drawn = [
        ldpaudit.privatize(table[["label"]], "laplace", epsilon=1.0, labels="0:40")
        for _ in range(2)
    ]
    years = [one.assign(person=table["person"]) for one in drawn]
    for year, one in zip(years, drawn, strict=True):
        year.attrs = one.attrs
    known = {"id_column": "person", "only": ["mechanism", "person"], "answers": answers}
    result = ldpaudit.audit(years, truth=table, **known)
    assert result["person.epsilon"].value == pytest.approx(2 if answers == "fresh" else 1)


def test_one_release_takes_one_truth(tmp_path):
    releases, truths = _made().written(tmp_path)
    with pytest.raises(InputError, match="given once for one release"):
        ldpaudit.audit(releases[0], truth=tuple(truths), id_column="person")
    with pytest.raises(InputError, match="named once"):
        ldpaudit.audit([releases[0], releases[0]], id_column="person")


def test_a_waiver_of_the_last_release_is_none_of_all_together(tmp_path):
    releases, truths = _made("reused").written(tmp_path)

    def audited(file):
        policy = tmp_path / "policy.toml"
        lines = ["schema = 1", 'extends = "ldpaudit:default"', "[checks.guessable-seed]"]
        lines += ['level = "off"']  # Its audit is left out.
        for check in ("claimed-epsilon", "claimed-channel"):
            lines += ["[[waivers]]", f'check = "{check}"', f'release_sha256 = "{file}"']
            lines += ['reason = "r"', 'approved_by = "a"', "expires = 2999-12-31"]
        policy.write_text("\n".join(lines))
        known = {"id_column": "person", "only": ONLY, "truth": truths, "drop": ["age", "region"]}
        return ldpaudit.audit(releases, policy=str(policy), **known)

    digest = hashlib.sha256(Path(releases[-1]).read_bytes()).hexdigest()
    alone = audited(digest)
    assert (alone.releases[-1].release.sha256, alone.verdict) == (digest, "fail")
    together = audited(alone.release.sha256 or "")
    assert together.verdict == "pass"
    assert together.sentence.startswith("Violation found, waived until")


def test_one_answer_drawn_anew_refutes_remembered_ones_of_few_people():
    result = _audited(_made("fresh", leaving=1_180), answers="remembered")
    assert _verdict(result, "claimed-channel") == "fail"
    assert "--answers remembered" in result.next_steps[0]
