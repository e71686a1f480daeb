"""Parts of other packages: none takes a built-in one's place; those that took part are named."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from releases import written

import ldpaudit
from ldpaudit import plugins
from ldpaudit.attacks import available_attacks, built_in_attacks, create_attack
from ldpaudit.attacks.interface import Knowledge
from ldpaudit.audits.listing import BUILT_IN, built_in_audits
from ldpaudit.errors import AttackError, InputError, LdpAuditError
from ldpaudit.mechanisms import registry
from ldpaudit.mechanisms.listing import ORDER, SHORT
from ldpaudit.pipeline.audit import available_audits
from ldpaudit.plugins import GROUPS, ours
from ldpaudit.reports import FORMATS, render

CODE = """
import os
from dataclasses import replace
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import Estimate, Finding

class Mild:
    id = "mild"
    number = "mild.share"

    def unavailable(self, context):
        return None

    def run(self, context):
        share = Estimate.exact(self.number, "Share", 0.0, unit="nats")
        return Finding(estimates=(share,), bounds={})

class Absent(Mild):
    def unavailable(self, context):
        return "it says so"

class Sly(Mild):
    id = "sly"
    number = "mechanism.epsilon_lower"

class Leaving(Mild):
    def run(self, context):
        raise SystemExit(0)

class LeavingEarly(Mild):
    def unavailable(self, context):
        raise SystemExit(1)

class WithoutRun:
    id = "mild"

    def unavailable(self, context):
        return None

class WithoutParameter(Mild):
    def unavailable(self):
        return None

class InNumbers(Mild):
    def unavailable(self, context):
        return 5

class NoFinding(Mild):
    def run(self, context):
        return {}

class Twofold(Mild):
    def run(self, context):
        return Finding(estimates=2 * super().run(context).estimates)

class Unnamed(Mild):
    number = "share"

class Moving(Mild):
    def run(self, context):
        os.chdir(os.sep)
        return super().run(context)

class Writing(Mild):
    def run(self, context):
        context.release.truth[:] = 0

class WritingFeatures(Mild):
    def run(self, context):
        context.release.features.numeric[:] = 0

class Guesses:
    name, title, needs = "guesses", "Guesses", frozenset()
    uses_release, learns_from_asked, most_rows = True, False, None

    def __init__(self, knowledge):
        pass

    def fit(self, release, rng):
        return self

    def posterior(self, release):
        return None

class GuessesAndLeaves(Guesses):
    def fit(self, release, rng):
        raise SystemExit(0)

class GuessesAndWrites(Guesses):
    def fit(self, release, rng):
        release.released[:] = 0

class GuessesFromTheMoon(Guesses):
    needs = frozenset({"moon"})

def leaves(**_):
    raise SystemExit(0)

def fails(**_):
    raise ValueError("a cell")

def wanders(**parameters):
    os.chdir(os.sep)
    return RandomizedResponse.channel(**parameters)

def row(name, channel):
    traits = replace(RandomizedResponse.traits, name=name)
    new = {"traits": traits, "channel": channel, "describe": lambda _: name, "kind": None}
    return replace(RandomizedResponse, **new)

Departing = row("departing", leaves)
Faulty = row("faulty", fails)
Wandering = row("wandering", wanders)

class SlyBound(Sly):
    number = "sly.share"

    def run(self, context):
        return Finding(bounds={"mechanism.epsilon_lower": lambda alpha: 0.0})
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what installs a package with entry points, given as lists of lines by group."""

    def do(**lines):
        info = tmp_path / "mild_parts-1.0.dist-info"
        info.mkdir()
        (tmp_path / "mild_parts.py").write_text(CODE)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mild-parts\nVersion: 1.0\n")
        texts = (f"[ldpaudit.{group}]\n" + "\n".join(lines[group]) for group in lines)
        (info / "entry_points.txt").write_text("\n".join(texts))
        monkeypatch.syspath_prepend(str(tmp_path))
        _forget()

    yield do
    _forget()
    sys.modules.pop("mild_parts", None)


def _forget():
    importlib.invalidate_caches()
    registry.family.cache_clear()
    registry._entry_points.cache_clear()
    plugins._in_group.cache_clear()


def audited(folder, *only):
    release, truth = written(folder, rows=300)
    return ldpaudit.audit(release, truth, only=only)


def test_no_group_lets_a_built_in_part_be_replaced(install, tmp_path):
    taken = {
        "audits": BUILT_IN,
        "attacks": {*built_in_attacks(), "best"},
        "mechanisms": {*ORDER, *SHORT},
    }
    # What the others may be called is tested with a stranger's package; trees and receipts are ours
    # alone.
    others = {"commands", "formats", "generators", "readers", "receipts", "trees"}
    assert {*taken} | others == {group.removeprefix("ldpaudit.") for group in GROUPS.values()}
    install(**{group: [f"{name} = mild_parts:Mild" for name in taken[group]] for group in taken})
    assert (available_audits(), available_attacks()) == (built_in_audits(), built_in_attacks())
    assert registry.names() == ORDER
    result = audited(tmp_path, "mechanism", "power")
    refused = [note.text for note in result.notes if note.audit == "plug-ins"]
    assert len(refused) == sum(map(len, taken.values()))
    assert all("of the package 'mild-parts'" in text for text in refused)
    assert result.run.plugins == ()


@pytest.mark.parametrize(
    ("kind", "name", "module"),
    [("tree", "several", "several.trees"), ("receipt", "drawn-again", "receipt.replay")],
)
def test_what_audits_trees_and_draws_noise_again_is_of_this_package(kind, name, module, install):
    install(**{f"{kind}s": [f"{name} = mild_parts:Mild", "another = mild_parts:Mild"]})
    assert [point.module for point in ours(kind).values()] == [f"ldpaudit.extras.{module}"]


def test_what_took_part_is_named_in_every_form(install, tmp_path, command):
    install(audits=["mild = mild_parts:Mild"])
    result = audited(tmp_path, "power", "mild")
    assert [(p.kind, p.name, p.package, p.version) for p in result.run.plugins] == [
        ("audit", "mild", "mild-parts", "1.0")
    ]
    for name in set(FORMATS) - {"registry"}:  # It says what the public profile does.
        words = "mild-parts" if name == "json" else "audit mild of mild-parts 1.0"
        assert words in render(result, name), name
    (run,) = json.loads(render(result, "sarif"))["runs"]
    assert run["tool"]["extensions"][0]["version"] == "1.0"
    release, truth = tmp_path / "release.parquet", tmp_path / "truth.parquet"
    only = ("--only", "power", "--only", "mild")
    _, printed, _ = command("run", release, "--truth", truth, *only, "--json", tmp_path / "r.json")
    assert "plug-ins     parts of others took part: audit mild of mild-parts 1.0" in printed


def test_what_was_asked_and_gave_no_number_is_named_too(install, tmp_path):
    """Its code ran in the audit all the same."""
    install(audits=["mild = mild_parts:Absent"])
    result = audited(tmp_path, "power", "mild")
    assert result.audits[-1].status == "skipped"
    assert [p.name for p in result.run.plugins] == ["mild"]


@pytest.mark.parametrize("part", ["Sly", "SlyBound"])
def test_no_audit_of_others_puts_a_number_in_place_of_a_built_in_one(install, tmp_path, part):
    install(audits=[f"sly = mild_parts:{part}"])
    with pytest.raises(InputError, match=r"must call its numbers sly\.….*'mechanism.epsilon_lower"):
        audited(tmp_path, "mechanism", "power", "sly")


@pytest.mark.parametrize("place", ["no_such_module:Part", "mild_parts:Missing"])
def test_one_that_cannot_be_imported_is_one_line(install, tmp_path, place):
    install(**{g: [f"broken = {place}"] for g in ("audits", "attacks", "mechanisms")})

    def line(kind, ask):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(caught.value).startswith(f"The plug-in 'broken' ({kind}) cannot be loaded (")

    line("audit", lambda: audited(tmp_path, "power", "broken"))
    line("attack", lambda: create_attack("broken", Knowledge(None)))
    line("mechanism", lambda: registry.family("broken"))


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("Leaving", "failed: SystemExit at line"),
        ("LeavingEarly", "failed: SystemExit at line"),
        ("WithoutRun", "must have the methods unavailable and run"),
        ("WithoutParameter", "failed: TypeError"),
        ("Writing", "failed: ValueError at line"),
        ("WritingFeatures", "failed: ValueError at line"),
        ("InNumbers", "must say in words"),
        ("NoFinding", "must return a Finding"),
        ("Sly", "calls itself 'sly'"),
        ("Twofold", "must call its numbers .* 'mild.share' is the name of two"),
        ("Unnamed", "must call its numbers mild.…, each otherwise; 'share' is not"),
    ],
)
def test_an_audit_that_goes_wrong_is_named_and_ends_nothing(install, tmp_path, part, why):
    """What it writes into the release would be in the numbers of those after it."""
    install(audits=[f"mild = mild_parts:{part}"])
    with pytest.raises(LdpAuditError, match=rf"'mild'.*{why}"):
        audited(tmp_path, "mild")


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("GuessesAndLeaves", "failed: SystemExit at line"),
        ("GuessesAndWrites", "failed: ValueError at line"),
    ],
)
def test_an_attack_that_goes_wrong_is_named_and_ends_nothing(install, tmp_path, part, why):
    install(attacks=[f"guesses = mild_parts:{part}"])
    with pytest.raises(AttackError, match=rf"'guesses' {why}"):
        audited(tmp_path, "label-inference")


@pytest.mark.parametrize("part", ["GuessesFromTheMoon", "NotThere"])
def test_an_attack_that_cannot_be_made_is_warned_of(install, tmp_path, part):
    install(attacks=[f"guesses = mild_parts:{part}"])
    notes = [note for note in audited(tmp_path, "label-inference").notes if "guesses" in note.text]
    assert [note.level for note in notes] == ["warning"]


@pytest.mark.parametrize(
    ("part", "why"), [("departing", "SystemExit at line"), ("faulty", "ValueError at line")]
)
def test_a_mechanism_that_goes_wrong_is_named_and_chooses_no_exit_status(
    command, install, part, why
):
    install(mechanisms=[f"{part} = mild_parts:{part.title()}"])
    status, _, error = command("mechanism", "describe", part, "--epsilon=1", "--classes=a,b")
    assert (status, error.count("\n")) == (2, 1)
    assert f"The plug-in {part!r} (mechanism) failed: {why}" in error


def test_a_name_that_two_packages_register_is_nobodys(install, tmp_path):
    info = tmp_path / "other_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-parts\nVersion: 1.0\n")
    lines = {"audits": ["mild = mild_parts:Mild"], "attacks": ["mild = mild_parts:Guesses"]}
    lines["mechanisms"] = ["faulty = mild_parts:Faulty"]
    install(**lines)
    for group, (line,) in lines.items():
        with (info / "entry_points.txt").open("a") as points:
            points.write(f"[ldpaudit.{group}]\n{line}\n")
    _forget()
    why = "is registered 2 times, by the packages mild-parts, other-parts; uninstall all but one"
    with pytest.raises(InputError, match=rf"'mild' \(audit\) {why}"):
        audited(tmp_path, "mild")
    with pytest.raises(InputError, match=rf"'mild' \(attack\) {why}"):
        create_attack("mild", Knowledge(None))
    with pytest.raises(InputError, match=rf"'faulty' \(mechanism\) {why}"):
        registry.family("faulty")


def test_a_name_that_nothing_has_may_be_of_a_package_that_is_missing(tmp_path):
    for ask in (lambda: audited(tmp_path, "zyx"), lambda: registry.family("zyx")):
        with pytest.raises(InputError, match="One of another package is known once"):
            ask()


def test_a_part_that_changes_the_folder_moves_no_file(install, tmp_path, monkeypatch):
    install(audits=["mild = mild_parts:Moving"])
    monkeypatch.chdir(tmp_path)
    audited(tmp_path, "mild", "power")
    assert Path.cwd() == tmp_path


def test_a_mechanism_that_changes_the_folder_moves_no_file(command, install, tmp_path, monkeypatch):
    install(mechanisms=["wandering = mild_parts:Wandering"])
    monkeypatch.chdir(tmp_path)
    more = ("--epsilon=1", "--classes=a,b", "--json", "analysis.json")
    assert command("mechanism", "describe", "wandering", *more)[0] == 0
    assert (tmp_path / "analysis.json").exists()


def test_words_of_traits_that_there_are_not_are_refused():
    traits = registry.family("rr-top-k").traits
    assert traits.mistaken() == ""
    odd = replace(traits, outputs="banana", label_depends_on_features="no")
    assert odd.mistaken() == "outputs, label_depends_on_features"
    odd = replace(traits, needs=frozenset({"banana"}), stated_by=("eps",), options="all", title=3)
    assert odd.mistaken() == "title, options, stated_by, needs"
    assert replace(traits, needs=([],), outputs=[]).mistaken() == "outputs, needs"
