"""Where the result and the page of a command go."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from releases import table

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
def test_the_default_places(source, folder, stem):
    outputs = Outputs().or_beside(source, "audit")
    assert outputs.json == Path(folder) / f"{stem}.audit.json"
    assert outputs.html == Path(folder) / f"{stem}.audit.html"


def test_one_place_asked_for_is_the_only_one():
    outputs = Outputs(json=Path("x.json")).or_beside("r.parquet", "audit")
    assert outputs.given() == (Path("x.json"),)


def test_other_formats_come_with_the_result_and_the_page(tmp_path):
    outputs = ReportOutputs(sarif=tmp_path / "s").or_beside("r.parquet", "audit")
    assert [path.name for path in outputs.given()] == ["r.audit.html", "r.audit.json", "s"]


def test_one_format_goes_to_standard_output(tmp_path):
    outputs = ReportOutputs(junit=STREAM, markdown=tmp_path / "m").or_beside("r.parquet", "audit")
    outputs.check()
    assert (outputs.streamed, outputs.given()) == ("junit", (tmp_path / "m",))
    made = {name: (lambda name=name: name) for name in ("json", "html", "junit", "markdown")}
    assert outputs.write(made) == "junit"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("m", "markdown")]
    with pytest.raises(OutputError, match="--json and --junit both go to standard output"):
        ReportOutputs(json=STREAM, junit=STREAM).check()


def test_what_is_wrong_with_a_place(tmp_path):
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


def test_no_part_of_what_is_read_is_overwritten(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    part = folder / "part-0.parquet"
    part.touch()
    for read, word in ((folder, "A folder is read"), (folder / "*.parquet", "is an input")):
        with pytest.raises(OutputError, match=word):
            Outputs(json=part).check([read])
        Outputs(json=tmp_path / "part-0.json").check([read])


def test_only_what_is_asked_for_is_made(tmp_path):
    def page():
        raise AssertionError

    Outputs(json=tmp_path / "x").write({"json": lambda: "{}", "html": page})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "{}")]


Command = Callable[..., tuple[int, str, str]]
POLICY = 'schema = 1\n[audit]\nmin_rows = 100\n\n[checks.claimed-epsilon]\nlevel = "error"\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    release, _ = table(rows=300)
    pq.write_table(release, tmp_path / "r.parquet")
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "policy.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stored(here, command):
    words = ("run", "r.parquet", "--only", "mechanism", "--policy", "ci/policy.toml")
    status, _, err = command(*words, "--json", "r.json")
    assert status == 3, err
    return here / "r.json"


def test_a_stream_holds_one_format_and_nothing_else(here, command):
    words = ("run", "r.parquet", "--only", "mechanism", "--policy", "ci/policy.toml")
    status, out, err = command(*words, "--json", "-", "--sarif", "r.sarif", "--junit", "r.xml")
    assert (status, json.loads(out)["verdict"]) == (3, "inconclusive")
    assert "Publish: not yet." in err
    assert {path.name for path in here.iterdir()} == {"r.parquet", "ci", "r.sarif", "r.xml"}
    (run,) = json.loads((here / "r.sarif").read_text())["runs"]
    assert run["invocations"][0]["exitCode"] == 3
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "ci/policy.toml"
    assert place["region"]["startLine"] == 5


def test_github_is_told_where_it_runs_the_command(here, command, monkeypatch):
    summary = here / "summary.md"
    summary.write_text("before")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    words = ("run", "r.parquet", "--only", "mechanism", "--policy", "ci/policy.toml", "--quiet")
    words = (*words, "--json", "r.json")
    status, out, err = command(*words)
    assert (status, err) == (3, "")
    assert out == "::warning title=ldpaudit::Publish: not yet. Exit status 3.\n"
    assert summary.read_text() == "before\n**Publish: not yet. Exit status 3.**\n"
    summary.write_text("before")
    status, out, _ = command(*words, "--details")
    assert status == 3
    assert "\n::warning file=ci/policy.toml,line=5,title=ldpaudit%3A claimed-epsilon::" in out
    assert summary.read_text().startswith("before\n*Made without true labels")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here))  # A folder: nothing that can be written.
    assert command(*words)[0] == 3


def test_the_log_of_gitlab_holds_the_decision_alone(here, command, monkeypatch):
    monkeypatch.setenv("GITLAB_CI", "true")
    words = ("run", "r.parquet", "--only", "mechanism", "--json", "r.json")
    _, out, err = command(*words)
    assert out.splitlines()[0] == "Publish: not yet. Exit status 3."
    assert "claim" not in out + err
    assert "claim" in command(*words, "--details")[1]


def test_the_log_of_a_service_holds_no_finding_of_other_commands(here, command, monkeypatch):
    pq.write_table(table(rows=300)[1], "t.parquet")
    words = ("compare", "r.parquet", "r.parquet", "--truth", "t.parquet", "--only", "mechanism")
    assert "≥" in command(*words)[1]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    status, out, err = command(*words)
    assert (status, err) == (0, "")
    assert out.splitlines()[0].startswith("What was found is as confidential as the true labels.")
    assert "≥" not in out
    assert "Releases" in command(*words[:3], *words[5:])[1]  # Without true labels: no secret.


def test_the_public_profile_shares_the_same_of_every_command(here, command):
    run = ("run", "r.parquet", "--only", "mechanism", "--json", "a.json")
    assert command(*run, "--html", "a.html")[0] == 3
    status, out, err = command(*run[:-1], "b.json", "--html", "b.html", "--profile", "public")
    assert (status, err) == (3, "")
    assert out.startswith("Publish: not yet. The audit could not decide")
    shared = ("--json", "c.json", "--html", "c.html", "--profile", "public")
    assert command("report", "a.json", *shared)[0] == 0
    for ending in ("json", "html"):
        assert (here / f"b.{ending}").read_text() == (here / f"c.{ending}").read_text()
    found = json.loads((here / "b.json").read_text())
    assert command("compare", "a.json", "r.parquet", "--only", "mechanism", *shared)[0] == 0
    assert json.loads((here / "c.json").read_text())["releases"] == [found, found]
    assert "checks" not in found


def test_a_result_of_an_earlier_version_has_no_public_form(stored, command):
    earlier = json.loads(stored.read_text()) | {"public": None}
    stored.write_text(json.dumps(earlier))
    status, _, err = command("report", "r.json", "--profile", "public")
    assert (status, "run the audit again" in err) == (2, True), err


def test_a_stored_result_becomes_any_format(stored, command):
    folder = stored.parent
    wanted = {name: f"again.{name}" for name in ("html", "json", "sarif", "junit", "markdown")}
    words = [word for name, file in wanted.items() for word in (f"--{name}", file)]
    assert command("report", "r.json", *words, "--policy", "ci/policy.toml")[0] == 0
    assert (folder / "again.json").read_text() == stored.read_text()
    assert all((folder / file).is_file() for file in wanted.values())
    status, out, _ = command("report", "r.json", "--markdown", "-")
    assert (status, out) == (0, (folder / "again.markdown").read_text())


def test_a_result_is_placed_in_its_own_policy_only(stored, command):
    (stored.parent / "ci" / "policy.toml").write_text(POLICY + "\n")
    status, _, err = command("report", "r.json", "--sarif", "s", "--policy", "ci/policy.toml")
    assert (status, not (stored.parent / "s").exists()) == (2, True)
    assert "was not judged by the policy 'policy.toml'" in err


def test_all_or_nothing(stored, command):
    words = ("report", "r.json", "--markdown", "m.md", "--sarif", "nowhere/s.sarif")
    assert command(*words)[0] == 2
    assert not (stored.parent / "m.md").exists()


def test_a_name_of_a_column_begins_no_line_of_the_log(here, command):
    hostile = "id\n::error::x\x1b[31m##[set-output name=a]b" + "z" * 2000
    release = pq.read_table(here / "r.parquet")
    numbers = pa.array([f"person {row}" for row in range(len(release))])
    pq.write_table(release.append_column(hostile, numbers), here / "h\ny.parquet")
    words = ("h\ny.parquet", "--only", "mechanism")
    _, out, _ = command("run", *words, "--json", "h\ny.json")
    assert "⟨000A⟩::error::x⟨001B⟩[31m## [set-output" in out
    assert not any(line.startswith("::") for line in out.splitlines())
    assert max(map(len, out.splitlines())) < 1100


def test_a_variable_that_sets_no_option_is_named(here, command, monkeypatch):
    monkeypatch.setenv("LDPAUDIT_POLCY", "ci/policy.toml")
    monkeypatch.setenv("LDPAUDIT_SEED", "3")
    _, _, err = command("policy", "check", here / "ci" / "policy.toml")
    assert err == "ldpaudit: LDPAUDIT_POLCY sets no option; did you mean 'LDPAUDIT_POLICY'?\n"


def test_a_file_of_others_is_not_replaced_and_a_report_is(tmp_path):
    notes, again, empty = (tmp_path / name for name in ("notes.html", "again.json", "empty.md"))
    notes.write_text("<p>My own page")
    again.write_text('{"schema_version": 1}')
    empty.touch()
    with pytest.raises(OutputError, match=r"'notes\.html' exists, and ldpaudit did not write it"):
        Outputs(html=notes).check()
    assert notes.read_text() == "<p>My own page"
    key = tmp_path / "truth.csv.ldpaudit.json"
    key.write_text('{"by": "ldpaudit"}')
    with pytest.raises(OutputError, match="so it is left as it is"):
        Outputs(json=key).check()
    ReportOutputs(json=again, markdown=empty).check()
    # What the formats of plug-ins write is not known.
    assert ReportOutputs().replaces("mine", notes)
