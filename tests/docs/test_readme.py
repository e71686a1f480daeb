"""README runs as printed, in a folder with the examples and what ``make demo`` leaves."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from docs.blocks import ROOT, blocks, commands, prepare, run_page, unlike

from ldpaudit.commands.run.work import write_demo


def test_every_command_of_the_readme_runs_as_printed(tmp_path: Path) -> None:
    prepare(tmp_path)
    for path in write_demo(tmp_path / "ldpaudit-demo", seed=20260101):
        pq.write_table(pq.read_table(path).slice(0, 900), path)  # Fewer rows: quicker.
    run_page((ROOT / "README.md").read_text(), tmp_path)


PAGE = """
<!-- first: echo hidden -->
```console
$ echo one \\
    two
one … two
$ ls nowhere  # exit status 2
```

- indented

  ```python
  x = 1
  ```

<!-- not run: needs a cluster -->
```console
$ rm -r /
```
"""


def test_blocks_are_read_as_meant(tmp_path: Path) -> None:
    first, second, third = blocks(PAGE)
    assert first.first == ("echo hidden",)
    assert next(command.words for command in commands(first.text)) == ("echo", "one", "two")
    assert (second.language, second.text) == ("python", "x = 1\n")
    assert third.not_run == "needs a cluster"
    names: dict[str, object] = {}
    run_page(PAGE, tmp_path, names)
    assert names["x"] == 1
    for wrong in ("```console\n$ echo one\ntwo\n```", "```console\n$ ls nowhere\n```"):
        with pytest.raises(AssertionError):
            run_page(wrong, tmp_path)


def test_words_are_compared_in_order() -> None:
    assert unlike("ε = 1.5: No violation … found", "No big violation\nwas found: 7") == ""
    assert unlike("found violation", "violation found") == "violation"
