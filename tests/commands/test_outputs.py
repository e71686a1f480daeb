"""Where the result and the page of a command go."""

from pathlib import Path

import pytest

from ldpaudit.commands.outputs import STREAM, Outputs, ReportOutputs
from ldpaudit.errors import OutputError


@pytest.mark.parametrize(
    ("source", "folder", "stem"),
    [
        ("data/r.parquet", "data", "r"),
        ("r.csv.gz", ".", "r"),
        ("data/parts/", "data", "parts"),
        ("data/*.parquet", ".", "data"),
        ("data/part-*.csv", ".", "part-"),
        ("https://host/r.tsv", ".", "r"),
        ("stored.audit.json", ".", "stored.audit"),
    ],
)
def test_the_default_places(source: str, folder: str, stem: str) -> None:
    outputs = Outputs().or_beside(source, "audit")
    assert outputs.json == Path(folder) / f"{stem}.audit.json"
    assert outputs.html == Path(folder) / f"{stem}.audit.html"


def test_one_place_asked_for_is_the_only_one() -> None:
    outputs = Outputs(json=Path("x.json")).or_beside("r.parquet", "audit")
    assert outputs.given() == (Path("x.json"),)


def test_other_formats_come_with_the_result_and_the_page(tmp_path: Path) -> None:
    outputs = ReportOutputs(sarif=tmp_path / "s").or_beside("r.parquet", "audit")
    assert [path.name for path in outputs.given()] == ["r.audit.html", "r.audit.json", "s"]


def test_one_format_goes_to_standard_output(tmp_path: Path) -> None:
    outputs = ReportOutputs(junit=STREAM, markdown=tmp_path / "m").or_beside("r.parquet", "audit")
    outputs.check()
    assert (outputs.streamed, outputs.given()) == ("junit", (tmp_path / "m",))
    made = {name: (lambda name=name: name) for name in ("json", "html", "junit", "markdown")}
    assert outputs.write(made) == "junit"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("m", "markdown")]
    with pytest.raises(OutputError, match="--json and --junit both go to standard output"):
        ReportOutputs(json=STREAM, junit=STREAM).check()


def test_what_is_wrong_with_a_place(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("1")
    (tmp_path / "hard").hardlink_to(data)
    (tmp_path / "soft").symlink_to(data)
    wrong = {
        "data": "is an input and is not overwritten",
        "hard": "is an input and is not overwritten",
        "soft": "is an input and is not overwritten",
        ".": "is a folder",
        "nowhere/x.json": "does not exist",
    }
    for place, word in wrong.items():
        with pytest.raises(OutputError, match=word) as caught:
            Outputs(json=tmp_path / place).check([data, None])
        assert str(tmp_path) not in str(caught.value)
    with pytest.raises(OutputError, match="two files"):
        Outputs(tmp_path / "x", tmp_path / "." / "x").check()
    Outputs(tmp_path / "x", tmp_path / "y").check([data])


def test_no_part_of_what_is_read_is_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    part = folder / "part-0.parquet"
    part.touch()
    for read, word in ((folder, "folder that is read"), (folder / "*.parquet", "is an input")):
        with pytest.raises(OutputError, match=word):
            Outputs(json=part).check([read])
        Outputs(json=tmp_path / "part-0.json").check([read])


def test_only_what_is_asked_for_is_made(tmp_path: Path) -> None:
    def page() -> str:
        raise AssertionError

    Outputs(json=tmp_path / "x").write({"json": lambda: "{}", "html": page})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "{}")]
