import pytest

from ldpaudit.errors import PolicyError
from ldpaudit.judging.policy import PRESETS, check_names, explain
from ldpaudit.judging.policy.explaining import CHECKS, RULES, SECTIONS, check_keys, keys
from ldpaudit.judging.policy.sections import keys_of


def test_every_key_and_every_check_has_words() -> None:
    assert set(CHECKS) == set(check_names())
    stated = {f"{name}.{key}" for name, section in SECTIONS.items() for key in keys_of(section)}
    assert set(keys()) == {"schema", "extends"} | stated
    every = {**CHECKS, **keys(), **check_keys(), **RULES}
    assert all(len(words or "") > 10 and words.endswith((".", "?")) for words in every.values())


@pytest.mark.parametrize(
    "name",
    [
        *check_names(),
        *PRESETS,
        *SECTIONS,
        *RULES,
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
    for name in (*check_names(), *keys(), *PRESETS, *RULES):
        assert f"  {name}: " in text


def test_another_word_is_refused_with_the_nearest() -> None:
    with pytest.raises(PolicyError, match="did you mean 'claimed-epsilon'"):
        explain("claimed-epsilom")
    with pytest.raises(PolicyError, match="lists all there is"):
        explain("zzzz")
