"""Input that changes while it is read: one line, exit status 2, and nothing is written."""

import os
import shutil
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from releases import table

from ldpaudit.datasets.formats.locations import Location
from ldpaudit.extras.choose.sweep import run
from ldpaudit.extras.release.privatize import work

Command = Callable[..., tuple[int, str, str]]
RR = ("--mechanism", "rr", "--epsilon", "1")
FAST = ("--only", "mechanism")
TRUE = ("--truth", "truth", *FAST, "--json", "j")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    release, truth = table(400)
    for name in ("release", "other"):
        pq.write_table(release, folder / f"{name}.parquet")
    pq.write_table(truth, folder / "truth.parquet")
    features = release.drop_columns("label").replace_schema_metadata({})
    pq.write_table(features, folder / "original.parquet")
    data = features.append_column("label", truth["label"])
    pq.write_table(data, folder / "data.parquet")
    pq.write_table(data, folder / "test.parquet")
    return folder


@pytest.fixture
def inputs(prepared, tmp_path):
    folder = tmp_path / "in"
    shutil.copytree(prepared, folder)
    (tmp_path / "out").mkdir()
    return folder


CASES = {
    "run, release": ("release", ("run", "release", *TRUE)),
    "run, truth": ("truth", ("run", "release", *TRUE)),
    "run, original": (
        "original",
        ("run", "release", "--original", "original", *TRUE),
    ),
    "declare": ("release", ("declare", "release", *RR, "--overwrite", "-o", "r")),
    "compare": ("truth", ("compare", "release", "other", *TRUE)),
    "learn": ("test", ("learn", "release", "--test", "test", "--json", "j")),
    "privatize": ("data", ("privatize", "data", *RR, "-o", "r", "--secret", "s")),
    "sweep": (
        "data",
        ("sweep", "data", *RR, *FAST, "--processes", "1", "--json", "j"),
    ),
    "advise": (
        "data",
        ("advise", "data", "--policy", "ldpaudit:default", "--minutes", "0.001", "--json", "j"),
    ),
}


def placed(words, inputs):
    """Return the words with the places of inputs and outputs."""
    known = {path.stem: str(path) for path in inputs.iterdir()}
    out = inputs.parent / "out"
    known |= {"j": str(out / "a.json"), "r": str(out / "r.parquet"), "s": str(out / "s.parquet")}
    return [known.get(word, word) for word in words]


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_changes_after_it_was_opened_is_noticed(case, inputs, command, monkeypatch):
    name, words = CASES[case]
    changing = next(path for path in inputs.iterdir() if path.stem == name)
    real, seen = Location.stamp, []

    def stamp(location):
        if location.name == changing.name:
            seen.append(location)
            if len(seen) == 2:  # After it was opened: the same bytes, but they are written again.
                changing.write_bytes(changing.read_bytes())
        return real(location)

    monkeypatch.setattr(Location, "stamp", stamp)
    status, out, err = command(*placed(words, inputs))
    assert (status, out) == (2, "")
    assert "changed while it was being read" in err.splitlines()[-1]
    assert list((inputs.parent / "out").iterdir()) == []


def replaced(path):
    """Put another file with the same bytes and time in its place, as programs do that save."""
    other, before = path.with_name("new"), path.stat()
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def turned(path):
    """Write other labels into the file, as often as those before, and set its time back."""
    before, read = path.stat(), pq.read_table(path)
    turned = read.set_column(read.schema.get_field_index("label"), "label", read["label"][::-1])
    pq.write_table(turned, path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swapped(path):
    """Write another label for each."""
    read = pq.read_table(path)
    labels = pa.array(["no" if one == "yes" else "yes" for one in read["label"].to_pylist()][:-1])
    labels = pa.concat_arrays([labels, pa.array(["yes"])])
    pq.write_table(read.set_column(read.schema.get_field_index("label"), "label", labels), path)


@pytest.mark.parametrize(
    ("change", "stamped"), [(replaced, True), (turned, True), (swapped, True), (swapped, False)]
)
def test_data_that_change_between_the_two_passes_of_privatize(
    change, stamped, inputs, command, monkeypatch
):
    """Without stamps, as on some remote disks, the counts of labels tell."""
    real = work._write

    def write(*given):
        change(inputs / "data.parquet")
        return real(*given)

    monkeypatch.setattr(work, "_write", write)
    if not stamped:
        monkeypatch.setattr(Location, "stamp", lambda _: ((0, 0),))
    out = inputs.parent / "out"
    status, _, err = command(*placed(CASES["privatize"][1], inputs))
    assert ((status, "changed while it was" in err), list(out.iterdir())) == ((2, True), [])


def test_what_a_changed_file_gave_is_not_kept(inputs, command, monkeypatch):
    """Points of a sweep are kept for later: never one of data that changed."""
    real = run.measured

    def measured(*given):
        found = real(*given)
        (inputs / "data.parquet").touch()
        return found

    monkeypatch.setattr(run, "measured", measured)
    kept = inputs.parent / "out" / "kept"
    status, _, err = command(*placed(CASES["sweep"][1], inputs), "--out", kept)
    assert (status, "changed while it was" in err) == (2, True)
    assert list((kept / "points").iterdir()) == []
