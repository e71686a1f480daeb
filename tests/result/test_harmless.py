from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.result.harmless import NAME, as_identifier, brief, name, shown


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_shown_is_on_one_line_and_can_be_written(text: str) -> None:
    visible = shown(text)
    visible.encode("utf-8")
    assert not set(visible) & set("\n\r\t\x00\u202e\u2066\u2028\x7f")


def test_hidden_marks_become_visible() -> None:
    assert shown("a\u202eb") == "a⟨202E⟩b"
    assert shown("\x00") == "⟨0000⟩"
    assert shown("\ud800") == "⟨D800⟩"
    assert shown("two\r\nlines\tand tabs") == "two lines and tabs"
    assert shown("שלום <b>") == "שלום <b>"


def test_long_names_are_cut_and_say_so() -> None:
    assert name("x" * 10_000) == "x" * NAME + "… (10,000 characters)"
    assert name("x" * NAME) == "x" * NAME
    assert brief("abcdef", 4) == "abc…"
    assert brief("abcd", 4) == "abcd"


def test_ids_of_the_page() -> None:
    assert as_identifier("mechanism.epsilon_lower.one-run") == "mechanism-epsilon_lower-one-run"
