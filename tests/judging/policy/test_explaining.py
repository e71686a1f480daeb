import pytest

from ldpaudit.errors import PolicyError
from ldpaudit.judging.policy import check_names, explain, preset_names
from ldpaudit.judging.policy.explaining import SECTIONS, WORDS, check_keys, keys
from ldpaudit.judging.policy.sections import ChecksSection, keys_of, section_in


def test_every_key_and_every_check_has_words_and_no_other_has() -> None:
    assert set(WORDS["checks"]) == set(check_names())
    stated = {f"{name}.{key}" for name, section in SECTIONS.items() for key in keys_of(section)}
    assert set(keys()) == {"schema", "extends"} | stated == set(WORDS["keys"])
    every = {
        f"{check}.{key}"
        for check, field in keys_of(ChecksSection).items()
        for key in keys_of(section_in(field.annotation))
    }
    assert {name for name, words in check_keys().items() if words} == every
    assert set(WORDS["check-keys"]) <= every | {"level"}


@pytest.mark.parametrize(
    "name",
    [
        *check_names(),
        *preset_names(),
        *SECTIONS,
        *WORDS["rules"],
        "audit.confidence",
        "checks.identifiers.max",
    ],
)
def test_everything_is_explained_by_its_name(name: str) -> None:
    assert explain(name).startswith(name.removeprefix("checks."))


def test_a_key_is_found_without_its_section() -> None:
    assert explain("confidence").startswith("audit.confidence: ")
    assert len(explain("level").splitlines()) == len(check_names())


def test_without_a_name_everything_is_listed() -> None:
    text = explain()
    for name in (*check_names(), *keys(), *preset_names(), *WORDS["rules"]):
        assert f"  {name}: " in text


def test_another_word_is_refused_with_the_nearest() -> None:
    with pytest.raises(PolicyError, match="did you mean 'claimed-epsilon'"):
        explain("claimed-epsilom")
    with pytest.raises(PolicyError, match="lists all there is"):
        explain("zzzz")
