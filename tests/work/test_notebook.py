"""A bar in a notebook, nothing elsewhere, and no failure of a bar ends the work."""

import sys
import types

import pytest
from releases import written

import ldpaudit
from ldpaudit.work import notebook
from ldpaudit.work.notebook import in_notebook, notebook_progress
from ldpaudit.work.progress import NoProgress


class Bar:
    """What tqdm's bar does, remembered."""

    def __init__(self, **options):
        self.n, self.total, self.said, self.closed = 0, options["total"], [], False

    def set_description_str(self, text):
        self.text = text

    def refresh(self):
        self.said.append((self.text, self.n, self.total))

    def close(self):
        self.closed = True


@pytest.fixture
def kernel(monkeypatch):
    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    return shell


def drawing(monkeypatch, made):
    """Let tqdm be installed, with a bar of ours."""
    monkeypatch.setattr(notebook, "find_spec", lambda name: name == "tqdm" or None)
    monkeypatch.setattr(notebook, "import_module", lambda _: types.SimpleNamespace(tqdm=made))


def test_an_audit_in_a_notebook_shows_its_phases(kernel, monkeypatch, tmp_path):
    bars = []
    drawing(monkeypatch, lambda **options: bars.append(Bar(**options)) or bars[-1])
    release, _ = written(tmp_path, made=1.0, rows=300)
    ldpaudit.audit(release, only=["mechanism", "power"])
    (bar,) = bars
    assert [one for one in bar.said if " of 2: " in one[0]] == [
        ("1 of 2: mechanism", 0, 2),
        ("2 of 2: power", 1, 2),
    ]
    assert bar.closed


def test_elsewhere_nothing_is_drawn(monkeypatch):
    drawing(monkeypatch, lambda **_: pytest.fail("no notebook"))
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
    with notebook_progress(None) as progress:
        assert type(progress) is NoProgress


def test_progress_that_was_given_is_kept(kernel, monkeypatch):
    drawing(monkeypatch, lambda **_: pytest.fail("one was given"))
    given = NoProgress()
    with notebook_progress(given) as progress:
        assert progress is given


def test_without_a_library_or_with_a_broken_one_work_goes_on(kernel, monkeypatch):
    monkeypatch.setattr(notebook, "find_spec", lambda _: None)
    with notebook_progress(None) as progress:
        assert type(progress) is NoProgress

    def broken(**_):
        raise RuntimeError

    drawing(monkeypatch, broken)
    with notebook_progress(None) as progress:
        assert type(progress) is NoProgress


def test_a_bar_of_rich_is_driven_like_that_of_tqdm(kernel, monkeypatch):
    monkeypatch.setattr(notebook, "find_spec", lambda name: name == "ipywidgets" or None)
    with notebook_progress(None) as progress:
        progress.step("reading")
        progress.advance(3, 4)
        assert (progress._bar.n, progress._bar.total) == (3, 4)
        (task,) = progress._bar._bar.tasks
        assert (task.description, task.completed, task.total) == ("reading", 3, 4)
    assert progress._bar._bar.finished or not progress._bar._bar.live.is_started
