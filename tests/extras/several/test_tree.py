"""Columns × releases: everything of a person in one call, one total, one verdict."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.errors import InputError, PolicyError
from ldpaudit.result import AuditResult

pytestmark = pytest.mark.filterwarnings("ignore:Few people")
COLUMNS = {"income": ("low", "high"), "illness": ("no", "yes", "often"), "benefit": ("no", "yes")}
# Power is left out where no verdict needs it: it takes most of the time of a small audit.
CLAIM, PERSON = ("mechanism",), ("mechanism", "person")


@cache
def files(epsilon=0.6, n=1_500, years=2, columns=tuple(COLUMNS), used=None):
    """Return yearly releases of the same people, and their true labels, which stay the same."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 2, n)
    truth = pd.DataFrame({"pid": rng.permutation(10 * n)[:n]})
    for name in columns:
        codes = np.where(rng.random(n) < 0.5, first, rng.integers(0, len(COLUMNS[name]), n))
        truth[name] = np.array(COLUMNS[name])[codes]
    stated = dict.fromkeys(columns, f"rr:epsilon={used or epsilon}")
    made = []
    for year in range(years):
        table = ldpaudit.privatize(
            truth.drop(columns="pid").assign(x=rng.normal(size=n) + first),
            stated,
            experimental=True,
            seed=year + 51,
        )
        order = rng.permutation(n)
        shuffled = table.assign(pid=truth["pid"]).iloc[order].reset_index(drop=True)
        shuffled.attrs = table.attrs
        made.append(shuffled)
    return made, truth


def audited(made, truth, **options):
    known = {"id_column": "pid", "only": CLAIM, "answers": "fresh", "drop": ["x"]}
    return ldpaudit.audit(made, truth=truth, **known | options)


def policy(folder, claim):
    path = folder / "policy.toml"
    path.write_text(f'schema = 1\nextends = "ldpaudit:default"\n[claim]\n{claim}\n')
    return str(path)


@pytest.fixture(scope="module")
def honest():
    return audited(*files(), only=PERSON)


def test_every_column_of_every_release_is_audited_in_one_call(honest):
    assert [len(release.labels) for release in honest.releases] == [3, 3]
    assert len(honest.labels) == 3
    assert all(column["person.epsilon"].value == pytest.approx(1.2) for column in honest.labels)
    assert honest.releases[0].mechanism.epsilon == pytest.approx(1.8)
    assert honest.verdict != "fail"
    assert AuditResult.from_json(honest.to_json()) == honest


def test_everything_of_a_person_adds_up(honest):
    assert honest.mechanism.epsilon == pytest.approx(3.6)
    assert honest["person.epsilon"].value == pytest.approx(3.6)
    assert {one.mechanism.declared for one in (honest, *honest.labels)} == {"file"}
    assert 2.0 < honest["person.epsilon_lower"].value < 3.6
    assert 0 < honest["person.min_detectable_excess"].value < 3.6


@pytest.mark.parametrize(
    ("claim", "verdict", "says"),
    [
        ("epsilon = 2", "fail", "the policy allows 2."),
        ("epsilon_total = 2", "fail", "the policy allows 2 in total."),
        ("epsilon_per_release = 1.5", "fail", "the policy allows 1.5 for each release"),
        ("epsilon_per_release = 1.8\nepsilon_total = 3.6", "pass", "No violation found"),
    ],
)
def test_a_policy_limits_a_release_and_all_of_them(claim, verdict, says, tmp_path):
    made, _ = files(n=300)
    result = audited(made, None, policy=policy(tmp_path, claim))
    assert (result.verdict == "fail") == (verdict == "fail")
    if verdict == "fail":
        assert says in result.sentence
        assert "less ε in all" in result.next_steps[0]
        assert f"ε = {1.8 if 'each' in says else 3.6} is declared over" in result.sentence


def test_one_release_is_held_against_its_limit_and_the_total(tmp_path):
    made, _ = files(n=300)
    given = {"id_column": "pid", "only": CLAIM}
    total = ldpaudit.audit(made[0], policy=policy(tmp_path, "epsilon_total = 1"), **given)
    assert "allows 1 in total" in total.sentence
    each = ldpaudit.audit(made[0], policy=policy(tmp_path, "epsilon_per_release = 1"), **given)
    assert "allows 1 for each release" in each.sentence


def test_lambda_goes_with_no_limit_of_epsilon(tmp_path):
    made, _ = files(n=300)
    with pytest.raises(PolicyError, match="not both"):
        audited(made, None, policy=policy(tmp_path, "lambda = 0.5\nepsilon_total = 1"))


@pytest.mark.parametrize("several", [True, False])
def test_a_column_that_was_left_out_is_never_published(several):
    made, truth = files(1.0, n=4_000)
    release = made if several else made[0]
    asked = {"label": "income", "answers": "fresh" if several else None}
    only = (*PERSON, "power") if several else (*CLAIM, "power")
    result = audited(release, truth, **asked, only=only)
    assert (result.verdict, result.decision) == ("pass", "not yet")
    assert "1 of 3 private columns was audited" in result.sentence
    assert any("every private column" in step for step in result.next_steps)


def test_columns_that_were_left_out_count_in_what_is_declared(tmp_path):
    made, _ = files(n=300)
    asked = {"label": "income", "policy": policy(tmp_path, "epsilon = 2")}
    assert audited(made[0], None, **asked, answers=None).verdict != "fail"  # 3 × 0.6 = 1.8
    result = audited(made, None, **asked)
    assert result.verdict == "fail"
    assert "ε = 3.6 is declared of all 3 private columns over 2 releases" in result.sentence


def test_columns_that_were_left_out_count_once_where_answers_are_remembered(tmp_path):
    one, two = (files(n=300, columns=("income", other))[0] for other in ("illness", "benefit"))
    asked = {"label": "income", "answers": "remembered"}
    for limit, says in ((1.7, "ε = 1.8 is declared of all 3 private columns"), (1.9, "")):
        asked["policy"] = policy(tmp_path, f"epsilon = {limit}")
        result = audited([one[0], two[1]], None, **asked)
        assert says in result.sentence
        assert (result.verdict == "fail") == bool(says)


@pytest.mark.parametrize(("answers", "epsilon"), [("remembered", 1.8), ("fresh", 2.4)])
def test_the_public_claim_is_that_of_everything_where_classes_are_found_in_the_data(
    answers, epsilon
):
    made = []
    for year, other in enumerate(("illness", "benefit")):
        claim = {"mechanism": {"name": "randomized-response", "epsilon": 0.6}}
        labels = [{"label": name} | claim for name in ("income", other)]
        made.append(files(n=300, columns=("income", other))[0][year].copy())
        made[-1].attrs = {"ldpaudit": json.dumps({"version": 2, "labels": labels})}
    result = audited(made, None, answers=answers)
    assert result.mechanism.epsilon == pytest.approx(epsilon)
    assert result.public.mechanism.epsilon == pytest.approx(epsilon)


def test_remembered_answers_count_once():
    made, _ = files(n=300)
    result = audited(made, None, answers="remembered")
    assert result.mechanism.epsilon == pytest.approx(1.8)


def test_a_column_of_one_file_counts_too():
    both, _ = files(n=400)
    one, _ = files(n=400, columns=("income",))
    result = audited([both[0], one[1]], None)
    assert result.mechanism.epsilon == pytest.approx(0.6 * 4)
    assert [column.release.label for column in result.labels] == ["income"]


def test_more_than_declared_is_found_over_columns_and_years():
    columns = ("income", "benefit")
    made, truth = files(0.6, columns=columns, n=2_500, used=0.95)
    claims = [f"{name}:rr:epsilon=0.6" for name in columns]
    bare = [one.copy() for one in made]
    for one in bare:
        one.attrs = {}
    result = audited(bare, truth, label=claims, only=PERSON)
    assert result["person.epsilon_lower"].value > 2.4
    check = result.check("claimed-epsilon")
    assert check.verdict == "fail"


def test_noise_of_one_column_that_serves_another_next_year_is_found():
    rng, n = np.random.default_rng(3), 1_500
    truth = pd.DataFrame({"pid": np.arange(n)}).assign(
        a=rng.integers(0, 2, n), b=rng.integers(0, 2, n)
    )
    flips = {year: rng.random((n, 2)) < 0.3 for year in (1, 2)}
    flips[2][:, 1] = flips[1][:, 0]
    made = [
        truth.assign(a=truth["a"] ^ flips[year][:, 0], b=truth["b"] ^ flips[year][:, 1])
        for year in (1, 2)
    ]
    result = audited(
        made, truth, only=PERSON, drop=(), label=("a:rr:epsilon=0.85", "b:rr:epsilon=0.85")
    )
    assert result["person.independence"].value < 1e-6
    assert result.check("claimed-channel").verdict == "fail"
    assert "of another release" in result.sentence


def test_the_step_names_an_audit_that_exists_and_is_said_once():
    made, truth = files(n=300, columns=("income", "benefit"))
    result = audited(made, truth, only=(*CLAIM, "power"))
    (step,) = [one for one in result.next_steps if "run, too" in one]
    assert "--only person" in step
    assert not any("two of them" in one for one in result.next_steps)


def test_a_private_column_that_another_year_holds_undeclared_is_refused():
    both, truth = files(n=300)
    one, _ = files(n=300, columns=("income",))
    clear = one[1].merge(truth[["pid", "illness"]], on="pid")
    clear.attrs = one[1].attrs
    with pytest.raises(InputError, match="'illness' is private in release 1, and release 2 holds"):
        audited([both[0], clear], None)
    with pytest.raises(InputError, match="'illness' is private in release 2, and release 1 holds"):
        audited([clear, both[0]], None)


@pytest.mark.parametrize(("answers", "total"), [("remembered", 1.5), ("fresh", 2.5)])
def test_what_one_mechanism_released_counts_for_each_release_or_set_of_columns(answers, total):
    rng = np.random.default_rng(3)
    people = pd.DataFrame({name: rng.choice(["no", "yes"], 300) for name in ("a", "b", "c")})
    made = []
    for names, epsilon in ((["a", "b"], 1.0), (["a", "b"], 1.0), (["c"], 0.5)):
        joint = {"joint": "joint-rr"} if len(names) > 1 else {"mechanism": "rr"}
        table = ldpaudit.privatize(people[names], label=names, epsilon=epsilon, **joint)
        made.append(table.assign(pid=range(300)))
        made[-1].attrs = table.attrs
    result = audited(made, None, drop=(), answers=answers)
    assert result.mechanism.epsilon == pytest.approx(total)
