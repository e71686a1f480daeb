"""The set-ups for pipelines are valid, and their scripts do what they should."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ci.programs import REFUSING, WRITING

from ldpaudit import cli
from ldpaudit.cli.commands import run
from ldpaudit.cli.parameters import parameters_of

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
GITLAB = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def check(schema, file):
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    from check_jsonschema import main
    from click.testing import CliRunner

    ran = CliRunner().invoke(main, ["--builtin-schema", f"vendor.{schema}", str(file)])
    assert ran.exit_code == 0, ran.output


@pytest.mark.parametrize(
    ("schema", "file"), [("github-actions", "action.yml"), ("gitlab-ci", "ci/gitlab.yml")]
)
def test_it_is_valid(schema, file):
    check(schema, ROOT / file)


EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("schema", "name"),
    [("github-workflows", "github-workflow.yml"), ("gitlab-ci", "gitlab-ci.yml")],
)
def test_the_examples_are_valid(schema, name):
    check(schema, EXAMPLES / name)


def test_the_examples_fit_the_set_ups():
    def example(name):
        return yaml.safe_load((EXAMPLES / name).read_text())

    job = example("github-workflow.yml")["jobs"]["audit"]
    assert set(job["steps"][-1]["with"]) <= set(ACTION["inputs"])
    (repository,) = example("pre-commit-config.yaml")["repos"]
    assert [hook["id"] for hook in repository["hooks"]] == [hook["id"] for hook in HOOKS]
    assert example("gitlab-ci.yml")["audit"]["extends"] in GITLAB


def test_the_page_shows_the_examples():
    shown = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
    files = [path for path in EXAMPLES.iterdir() if path.suffix in (".yml", ".yaml")]
    assert sorted(shown) == sorted(path.read_text() for path in files)


def step(name, **inputs):
    """Return a step's script and environment, with the action's inputs filled in."""
    (found,) = [one for one in ACTION["runs"]["steps"] if one["name"] == name]
    known = {key: str(value.get("default", "")) for key, value in ACTION["inputs"].items()}
    known |= {"github.action_path": str(ROOT)}
    known |= {key.replace("_", "-"): value for key, value in inputs.items()}

    def filled(text):
        return re.sub(r"\$\{\{ (?:inputs\.)?(\S+) \}\}", lambda m: known[m[1]], text)

    # Nothing that a user gives is part of a script, where it would be run.
    assert "${{" not in found["run"]
    return found["run"], {key: filled(value) for key, value in found.get("env", {}).items()}


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        ({}, str(ROOT)),
        ({"version": "1.2.3"}, "ldpaudit==1.2.3"),
        ({"version": "1.2.3", "extras": "[networks]"}, "ldpaudit[networks]==1.2.3"),
        ({"torch_index": "file:///w"}, f"--extra-index-url file:///w {ROOT}"),
    ],
)
def test_the_action_installs(inputs, asked, script, installed):
    ran = script(*step("Install ldpaudit", **inputs))
    assert ran.returncode == 0, ran.stderr
    assert installed() == f"--disable-pip-version-check {asked}\n"


def test_the_action_audits(script, checkout):
    text, given = step(
        "Audit the release",
        release="release.parquet",
        truth="truth.parquet",
        policy="gate.toml",
        options="--seed 3\n--quiet",
    )
    output, summary = checkout / "output", checkout / "summary"
    summary.touch()
    for module in ("json", "pip"):  # A file of the repository that is called like a module.
        (checkout / f"{module}.py").write_text("raise SystemExit('taken for the module')")
    on_github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    ran = script(text, given | on_github | {"GITHUB_OUTPUT": str(output), "RUNNER_TEMP": "temp"})
    assert ran.returncode == 3, ran.stderr  # Without the audit of the power.
    assert output.read_text() == "verdict=inconclusive\ndecision=not yet\nreports=temp/ldpaudit\n"
    assert summary.read_text() == "\n**Publish: not yet. Exit status 3.**\n"
    assert ran.stdout == "::warning title=ldpaudit::Publish: not yet. Exit status 3.\n"
    made = {path.name for path in (checkout / "temp" / "ldpaudit").iterdir()}
    assert made == {f"audit.{ending}" for ending in ("html", "json", "sarif", "xml", "md")}
    assert json.loads((checkout / "temp/ldpaudit/audit.json").read_text())["run"]["seed"] == 3


def test_the_action_shows_no_details_of_the_public_profile(script, checkout):
    text, given = step(
        "Audit the release", release="release.parquet", profile="public", details="true"
    )
    output, summary = checkout / "output", checkout / "summary"
    summary.touch()
    on_github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    ran = script(text, given | on_github | {"GITHUB_OUTPUT": str(output), "RUNNER_TEMP": "temp"})
    assert ran.returncode == 3, ran.stderr
    assert "decision=not yet\n" in output.read_text()
    assert "\n## Privacy audit of" in summary.read_text()
    assert "claimed-epsilon" not in ran.stdout
    kept = json.loads((checkout / "temp/ldpaudit/audit.json").read_text())
    assert kept["access"].startswith("For everybody")
    assert "checks" not in kept


def test_the_action_fails_where_nothing_could_be_audited(script, checkout):
    text, given = step("Audit the release", release="nothing.parquet")
    output = checkout / "output"
    given |= {"GITHUB_OUTPUT": str(output), "RUNNER_TEMP": "temp"}
    ran = script(text, given, REFUSING)
    assert ran.returncode == 2, ran.stderr
    assert not output.exists()


def test_the_job_for_gitlab(script, checkout, installed):
    job = GITLAB[".ldpaudit"]
    given = {key: str(value) for key, value in job["variables"].items()}
    given |= {"LDPAUDIT_TRUTH": "truth.parquet", "LDPAUDIT_POLICY": ""}
    ran = script("\n".join([*job["before_script"], *job["script"]]), given, WRITING)
    assert ran.returncode == 0, ran.stderr
    assert (checkout / "called").read_text() == "run release.parquet truth.parquet\n"
    twins = {p.long.removeprefix("--").upper() for p in parameters_of(run)}
    assert {key.removeprefix("LDPAUDIT_") for key in given if key.startswith("LDPAUDIT_")} <= twins
    assert installed().split() == ["--disable-pip-version-check", "ldpaudit"]
    assert job["artifacts"]["access"] == "developer"
    promised = {*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]}
    assert promised <= {path.name for path in checkout.iterdir()}


def test_the_hooks_are_commands_that_there_are(monkeypatch):
    for hook in HOOKS:
        words = hook["entry"].split()
        monkeypatch.setattr(sys, "argv", [*words, "--help"])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 0


def test_hooks_run(script, checkout, tmp_path):
    """Pre-commit runs them; what they need is here already and is not installed again."""
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    (hooks / ".pre-commit-hooks.yaml").write_text(text.replace("python", "system"))
    (checkout / "ldpaudit.toml").write_text('schema = 1\nextends = "ldpaudit:default"\n')
    (checkout / "bad.ldpaudit.toml").write_text("schema = 1\n[checks.claimed]\n")
    git = "git -c user.name=n -c user.email=e@example.org"
    for folder in (hooks, checkout):
        made = f"cd {folder} && git init -q && git add -A && {git} commit -qm all"
        assert script(made, {}).returncode == 0
    given = {"PRE_COMMIT_HOME": str(tmp_path / "cache")}
    tried = f"{sys.executable} -m pre_commit try-repo {hooks} ldpaudit-policy --files"
    good = script(f"{tried} ldpaudit.toml gate.toml", given)
    assert good.returncode == 0, good.stdout
    bad = script(f"{tried} ldpaudit.toml bad.ldpaudit.toml", given)
    assert bad.returncode == 1
    assert "bad.ldpaudit.toml, line 2: Unknown key" in bad.stdout


def test_the_image_is_small_and_without_root():
    hadolint = shutil.which("hadolint")
    if hadolint:
        ran = subprocess.run(
            [hadolint, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert 'ENTRYPOINT ["ldpaudit"]' in last
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert "pip install" not in last
    assert not re.search(r"https?://", DOCKERFILE)


KEPT = {"ldpaudit", "pyproject.toml", "setup.py", "docs/ldpaudit.1", "README.md", "LICENSE"}


def test_what_the_image_is_built_from_is_copied():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = {line[1:] for line in ignored if line.startswith("!")}
    assert ignored[0] == "*"
    assert all((ROOT / name).exists() for name in copied)
    linked = {path.resolve().name for path in (ROOT / "ldpaudit").iterdir() if path.is_symlink()}
    assert linked | KEPT == copied


CPU = "EXTRAS=[networks]\nTORCH_INDEX=file:///w"


@pytest.mark.parametrize(
    ("given", "asked"),
    [("EXTRAS=", "/source"), (CPU, "--extra-index-url file:///w /source[networks]")],
)
def test_the_image_installs(given, asked, script):
    lines = DOCKERFILE.replace("\\\n", "").splitlines()
    (line,) = [one.removeprefix("RUN ") for one in lines if one.startswith("RUN pip install")]
    ran = script(f'pip() {{ echo "$@"; }}\n{given}\n{line}', {})
    assert ran.stdout.splitlines() == [f"install {asked}", "uninstall --yes pip"], ran.stderr
