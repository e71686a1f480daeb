"""Drafts of killed runs: the next run removes them, and nothing else."""

import os
from pathlib import Path

import pytest

from ldpaudit.files import drafts
from ldpaudit.files.drafts import draft_of, hold, open_draft, remove_left_over
from ldpaudit.files.writing import write_whole


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "release.parquet"


def left_over(target: Path, *, former: bool = False) -> Path:
    """Write what a killed run leaves: nobody holds its lock."""
    draft = draft_of(target, former=former)
    os.close(open_draft(draft, 0o600))
    return draft


def test_a_draft_that_nobody_writes_is_removed_and_one_in_use_stays(target: Path) -> None:
    dead, alive = left_over(target), draft_of(target)
    descriptor = open_draft(alive, 0o600)
    write_whole(target, "new")
    assert not dead.exists()
    assert alive.exists()
    os.close(descriptor)
    remove_left_over(target.parent)
    assert not alive.exists()
    assert target.read_text() == "new"


def test_what_was_at_a_target_stays_until_that_target_is_replaced(target: Path) -> None:
    """It may be all that a killed run left of a file."""
    kept = left_over(target, former=True)
    write_whole(target.with_name("other"), "new")
    assert kept.exists()
    write_whole(target, "new")
    assert not kept.exists()


def test_nothing_else_is_removed(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = target.parent
    names = (".notes.tmp", ".ldpaudit-0.tmp", ".ldpaudit-0123456789abcdeg.tmp", "x.tmp")
    for name in names:
        (folder / name).write_text("of somebody else")
    draft_of(target).mkdir()
    os.mkfifo(draft_of(target))
    (folder / "precious").write_text("of somebody else")
    draft_of(target).symlink_to(folder / "precious")
    before = sorted(folder.iterdir())
    remove_left_over(folder)
    assert sorted(folder.iterdir()) == before
    other = left_over(target)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    remove_left_over(folder)
    assert other.exists(), "another user's"
    monkeypatch.undo()
    monkeypatch.setattr(drafts, "hold", lambda *_, **__: False)
    remove_left_over(folder)
    assert other.exists(), "where there are no locks, nobody knows"


def test_a_draft_that_is_taken_for_a_left_over_is_made_again(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run may come between the making of a draft and its lock."""
    real, removed = hold, []

    def late(descriptor: int, *, wait: bool = False) -> bool:
        if wait and not removed:
            removed.append(draft)
            draft.unlink()
        return real(descriptor, wait=wait)

    draft = draft_of(target)
    monkeypatch.setattr(drafts, "hold", late)
    os.close(open_draft(draft, 0o600))
    assert removed
    assert draft.exists()
