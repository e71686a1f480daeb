"""Rare classes in a release: who is counted, and what is said of them."""

import numpy as np
import pyarrow as pa
import pytest
from worlds import by_stratum, feature_table

import ldpaudit
from ldpaudit.audits.interface import AuditContext, Plan, collected
from ldpaudit.audits.mechanism.hidden import rare_parts
from ldpaudit.mechanisms import Mechanism, RandomizedResponse, UnknownMechanism
from ldpaudit.release import Release, ReleasedLabels, TrueLabels

NAMES = ("no", "yes", "HIV")


def released(
    people: int, epsilon: float = 1.0, *, one_group: bool = False, claim: Mechanism | None = None
) -> AuditContext:
    """Return 3,000 rows, those of so many people with HIV in the clear and in their order."""
    rng, n = np.random.default_rng(0), 3000
    made = RandomizedResponse.from_epsilon(NAMES, epsilon)
    truth = rng.integers(0, 2, n).astype(np.int32)
    truth[:people] = 2
    labels = made.sample(truth, rng)
    labels[:people] = 2
    groups = np.arange(n)
    if one_group:
        groups[:people] = 0
    release = Release(
        features=feature_table(np.ones((n, 1))),
        released=ReleasedLabels(labels),
        outputs=NAMES,
        classes=NAMES,
        truth=TrueLabels(truth),
        groups=groups if one_group else None,
    )
    return AuditContext(release, claim or made, Plan(seed=1))


@pytest.mark.parametrize(
    ("people", "epsilon", "words"),
    [
        (9, 0.1, "9 of the 9 people of class HIV were released unchanged, which the claim allows "
         "once in 10,000 times."),
        (8, 1.0, "8 of the 8 people of class HIV were released unchanged, which the claim allows "
         "once in 82 times."),
    ],
)  # fmt: skip
def test_people_in_the_clear_are_named_with_the_odds(
    people: int, epsilon: float, words: str
) -> None:
    found = collected(rare_parts(released(people, epsilon)))
    assert [note.text for note in found.notes] == [words]
    assert found.estimates[0].value < 0.013
    assert (found.estimates[0].title + ".", found.estimates[0].unit) == (words, "p-value")


def test_what_too_few_people_cannot_show_is_said() -> None:
    found = collected(rare_parts(released(3)))
    assert found.estimates == ()
    assert found.notes[0].text == (
        "Too few people have class HIV: even if the labels of all 3 people were released "
        "unchanged, that would happen once in 5 times under the claim, so a full disclosure of "
        "this class could not be noticed."
    )


def test_groups_are_one_person_and_large_classes_and_unknown_mechanisms_left_out() -> None:
    for context in (
        released(9, one_group=True),
        released(51),
        released(9, claim=UnknownMechanism()),
    ):
        assert not collected(rare_parts(context)).estimates


def test_a_rare_class_is_held_against_the_channel_of_its_stratum() -> None:
    rng, n, claimed = np.random.default_rng(0), 1500, (1.0, 0.3)
    truth, region = rng.integers(0, 2, n).astype(np.int32), rng.integers(0, 2, n)
    truth[:9], region[:9] = 2, 1
    drawn = [RandomizedResponse.from_epsilon(NAMES, e).sample(truth, rng) for e in claimed]
    labels = np.where(region == 0, *drawn)
    labels[:9] = 2
    columns = {
        "x": rng.normal(size=n),
        "region": np.array(["north", "south"])[region],
        "a": np.array(NAMES)[labels],
    }
    table = by_stratum(pa.table(columns), NAMES, {"north": claimed[0], "south": claimed[1]})
    result = ldpaudit.audit(
        table, truth=np.array(NAMES)[truth], rng=0, only=("mechanism",), threads=1
    )
    north, south = result.strata
    assert north.check("rare-classes") is None
    assert result.check("rare-classes") is None
    check = south.check("rare-classes")
    assert check.verdict == "fail"
    assert "9 of the 9 people of class HIV were released unchanged" in check.reason
    assert result.verdict == "fail"
