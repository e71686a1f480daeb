"""What the page does: the same as the commands, with the same refusals at the form's fields."""

import io
import json
import re
from pathlib import Path

import pytest
from opened import HERE, OPTIONS

from ldpaudit.cli import commands
from ldpaudit.cli.parameters import parameters_of
from ldpaudit.extras.web.curves import curves_of
from ldpaudit.extras.web.drafts import DECLARATION, Draft
from ldpaudit.extras.web.forms import field_of, fields_of, plain_number, words_of
from ldpaudit.extras.web.jobs import Job
from ldpaudit.extras.web.kinds import left_out
from ldpaudit.surfaces import spelt


def error_of(answer):
    """Return the refusal that a page shows."""
    found = re.search(r'class="error"[^>]*>.*?</strong> (.*?)(?: <a|</)', answer.text, re.DOTALL)
    return "" if found is None else found[1].strip()


def test_an_audit_is_the_same_by_page_and_by_command(page, release, tmp_path, command):
    form = page.post("audit", {"release": release[0], "truth": release[1]})
    assert "The file declares" in form.text
    assert 'value="label" checked' in form.text
    shown = page.finished(page.post(str(form.url), label="label"))
    assert "Publish: no" in shown.text
    assert "ldpaudit run release.parquet --truth=truth.parquet" in shown.text
    job = re.search(r"job/([^/]+)/page", str(shown.url))[1]
    by_page = json.loads(page.get(f"job/{job}/file/json").content)
    out = tmp_path / "by-command.json"
    command("run", release[0], "--truth", release[1], "--json", out)
    by_command = json.loads(out.read_text())
    for one in (by_page, by_command):
        one.pop("date")
        one["run"].pop("command")
        one["run"].pop("seconds")
        for audit in one["audits"]:
            audit.pop("seconds")
    assert by_page == by_command
    public = page.get(f"job/{job}/file/public").text
    assert "do not publish" in public or "Publish: no" in public
    listed = page.get().text
    assert "Audit of release.parquet" in listed
    assert "publish: no" in listed


def keyed_text_files(folder, command):
    """Return a release and its true labels as CSV, with what lies next to them."""
    rows = "".join(f"{i % 7},{'no' if i % 3 else 'yes'}\n" for i in range(300))
    (folder / "data.csv").write_text(f"x,label\n{rows}")
    words = ("-o", folder / "r.csv", "--secret", folder / "t.csv", "--label", "label")
    status, _, _ = command(
        "privatize", folder / "data.csv", *words, "--mechanism", "rr", "--epsilon", "1"
    )
    assert status == 0
    return [folder / f"{name}{end}" for name in ("r.csv", "t.csv") for end in ("", DECLARATION)]


@pytest.mark.parametrize("how", ["at once", "the key later", "with the release"])
def test_the_key_next_to_a_text_file_is_found(how, page, tmp_path, command):
    release, declared, truth, key = keyed_text_files(tmp_path, command)
    places = {"release": [release, declared], "truth": [truth]}
    if how != "the key later":
        places["truth" if how == "at once" else "release"].append(key)

    def sent(place, places, **values):
        files = [(r, (p.name, p.read_bytes())) for r, own in places.items() for p in own]
        return page.client.post(place, files=files, data=values, headers={"Origin": HERE})

    form = sent(str(page.get("audit").url), places)
    assert "The file declares" in form.text
    if how == "the key later":
        shown = page.finished(page.post(str(form.url), label="label"))
        assert "no key is next to the file of true labels" in shown.text
        form = sent(str(form.url), {"truth": [key]}, label="label")
    shown = page.finished(page.post(str(form.url), label="label"))
    assert "Proven" in shown.text
    assert json.loads(key.read_text())["secret"]["key"] not in shown.text


def test_files_of_one_name_keep_what_lies_next_to_each(tmp_path):
    draft = Draft("audit", tmp_path)
    end = DECLARATION
    names = ["a.csv", f"a.csv{end}", "b.csv", "a.csv", f"a.csv{end}", f"{'long' * 30}.csv"]
    names += [f"{'long' * 30}.csv{end}"]
    draft.keep("release", [(n, io.BytesIO(b"%d" % i)) for i, n in enumerate(names)])
    kept = draft.files["release"]
    assert [(tmp_path / name).read_bytes() for name in kept] == [b"%d" % i for i in range(7)]
    assert [kept[1], kept[4], kept[6]] == [f"{kept[i]}{end}" for i in (0, 3, 5)]
    assert draft.words("release") == [kept[i] for i in (0, 2, 3, 5)]
    draft.keep("release", [(f"b.csv{end}", io.BytesIO(b"x"))])
    assert draft.files["release"] == [*kept, f"{kept[2]}{end}"]


def test_a_stored_result_is_opened_and_compared(page, release, tmp_path, command):
    out = tmp_path / "a.json"
    command("run", release[0], "--truth", release[1], "--only", "mechanism", "--json", out)
    shown = page.finished(page.post("stored", {"result": out}))
    assert "Publish: no" in shown.text
    other = tmp_path / "b.json"
    other.write_bytes(out.read_bytes())
    form = page.client.post(
        f"{page.get('compare').url}",
        files=[("inputs", (path.name, path.read_bytes())) for path in (out, other)],
        headers={"Origin": HERE},
    )
    compared = page.finished(page.post(str(form.url)))
    assert "Comparison" in compared.text or "compared" in compared.text
    text = tmp_path / "text.json"
    text.write_text("no result")
    refused = page.finished(page.post("stored", {"result": text}))
    assert error_of(refused).startswith("The file must be an ldpaudit result")


def test_refusals_are_those_of_the_command_and_lose_nothing(page, release, tmp_path, command):
    form = page.post("audit", {"release": release[0], "truth": release[1]})
    place = str(form.url)
    answer = page.finished(
        page.post(place, label="label", epsilon="-1,5", slices="x0", timeout="-9")
    )
    _, _, told = command("run", release[0], "--truth", release[1], "--timeout", "-9")
    told = told.splitlines()[-1].removeprefix("ldpaudit: ")
    assert error_of(answer) == spelt(told, "page")
    assert "“Seconds to spend at most” must be" in error_of(answer)
    assert 'name="epsilon" value="-1,5"' in answer.text
    assert re.search(
        r'id="f-timeout"[^>]*aria-invalid="true" aria-describedby="error"', answer.text
    )
    assert 'name="timeout" value="-9"' in answer.text
    assert ">x0</textarea>" in answer.text
    assert "release.parquet" in answer.text
    assert "truth.parquet" in answer.text
    wrong = tmp_path / "wrong.parquet"
    wrong.write_bytes(b"nothing")
    answer = page.post(place, {"release": wrong}, epsilon="2")
    assert "wrong.parquet" in error_of(answer)
    assert 'name="epsilon" value="2"' in answer.text
    assert "truth.parquet" in answer.text
    answer = page.post(place, {"release": release[0]}, epsilon="2", without="truth")
    assert error_of(answer) == ""
    assert "truth.parquet" not in answer.text
    assert "rows" in answer.text


def test_true_labels_that_do_not_fit_and_none_at_all(page, release, tmp_path):
    few = tmp_path / "few.csv"
    few.write_text("label\n0\n1\n")
    place = str(page.post("audit", {"release": release[0], "truth": few}).url)
    answer = page.finished(page.post(place, label="label"))
    assert re.search(r'id="file-truth"[^>]*aria-invalid', answer.text)
    assert error_of(answer).endswith("as many rows as the release: 2 against 1200.")
    answer = page.finished(page.post(place, label="label", without="truth"))
    assert "Seen by the auditor" in answer.text
    assert "the release alone" in answer.text


def test_two_years_are_audited_together(page, release):
    two = [
        ("release", (name, release[0].read_bytes())) for name in ("2025.parquet", "2026.parquet")
    ]
    form = page.client.post(f"{page.get('audit').url}", files=two, headers={"Origin": HERE})
    shown = page.finished(page.post(str(form.url), label="label"))
    assert "2025.parquet and 1 more" in page.get().text
    assert "2026.parquet" in shown.text


def test_no_file_at_all(page):
    assert "Choose a file first" in page.post("audit").text
    assert page.get("audit/nothing").status_code == 404


def test_the_noise_is_chosen_and_the_release_made(page, tmp_path, monkeypatch):
    table = tmp_path / "table.csv"
    table.write_text("x,label\n" + "".join(f"{n % 7},{'ab'[n % 3 == 0]}\n" for n in range(300)))
    monkeypatch.setattr("ldpaudit.extras.web.kinds.GRID", (0.5,))
    form = page.post("noise", {"data": table})
    assert 'name="label" value="label" checked' in form.text
    advised = page.finished(page.post(str(form.url), label="label", minutes="0,001"))
    assert "What each ε reveals" in advised.text
    place = str(advised.url)
    moved = page.client.get(f"{place}?at=0")
    assert 'aria-valuetext="ε = 0.5"' in moved.text
    assert page.client.get(f"{place}?at={'9' * 5000}").status_code == 200
    made = page.finished(page.post(f"{place}/release", epsilon="0,5"))
    assert "--epsilon=0.5" in made.text
    audit = page.post(f"{made.url}/audit")
    assert "The file declares" in audit.text
    assert page.post(f"{place}/audit").status_code == 404


def survey(place, rows=300, columns=""):
    lines = (f"{n % 7},{'ab'[n % 3 == 0]}{columns}\n" for n in range(rows))
    place.write_text("x,label\n" + "".join(lines))
    return place


REFUSALS = {
    "noise": [
        ({"minutes": "zwei"}, "minutes"),
        ({"minutes": "-1"}, "minutes"),
        ({"minutes": "0"}, "minutes"),
        ({"minutes": "1,5 Minuten"}, "minutes"),
        ({"wanted": "regression"}, "wanted"),
        ({"labels": "no range"}, "labels"),
        ({"drop": "nothing of that name"}, ""),
        ({"label": "nothing"}, ""),
    ],
    "audit": [
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "1,0,0"}, "epsilon"),
        ({"epsilon": "", "noise": "2"}, ""),
        ({"queries": "many"}, "queries"),
        ({"made_on": "today"}, "made_on"),
        ({"smoothness": "-1"}, "smoothness"),
        ({"separator": "ab"}, "separator"),
        ({"encoding": "morse"}, "encoding"),
        ({"id_column": "nothing"}, ""),
        ({"slices": "nothing"}, "slices"),
        ({"threads": "0"}, "threads"),
    ],
    "compare": [({"epsilon": "-1"}, "epsilon"), ({"queries": "many"}, "queries")],
}


@pytest.mark.parametrize(
    ("kind", "values", "field"), [(k, *one) for k, of in REFUSALS.items() for one in of]
)
def test_each_refusal_of_each_form_is_the_commands_in_words_of_the_page(
    kind, values, field, page, tmp_path
):
    table = survey(tmp_path / "table.csv")
    main = {"audit": "release", "noise": "data", "compare": "inputs"}[kind]
    form = page.post(kind, {main: table})
    if kind == "compare":
        draft = page.site._drafts[str(form.url).rsplit("/", 1)[1]]
        draft.files["inputs"] = ["table.csv", "table.csv"]
    said = {"label": "label", "epsilon": "1"} if kind != "noise" else {"label": "label"}
    answer = page.finished(page.post(str(form.url), **said | values))
    error = error_of(answer)
    assert error
    assert "Internal fault" not in error
    assert not re.search(r"--[a-z]|ldpaudit [a-z]|of the command line", error), error
    if field:
        assert re.search(rf'id="f-{field}"[^>]*aria-invalid="true"', answer.text), error
        assert f'<a href="#f-{field}">Go to the field</a>' in answer.text


def test_a_file_is_refused_before_there_is_a_job(page, release, tmp_path):
    for role, name in (("truth", "truth.csv"), ("policy", "policy.toml")):
        wrong = tmp_path / name
        wrong.write_bytes(b"\x00\x01nothing = [")
        form = page.post("audit", {"release": release[0]})
        answer = page.post(str(form.url), {role: wrong}, label="label")
        assert error_of(answer), role
    form = page.post("audit", {"release": survey(tmp_path / "table.csv")})
    draft = page.site._drafts[str(form.url).rsplit("/", 1)[1]]
    draft.found["table.csv"]["columns"] = [("x", "int64"), ("y", "string")]
    answer = page.post(str(form.url), epsilon="1")
    assert error_of(answer) == (
        "Choose the column with the sensitive answer (field “Private columns”)."
    )
    assert not page.site._jobs


def test_noise_is_drawn_once_for_the_columns_of_a_table(page, tmp_path, monkeypatch):
    monkeypatch.setattr("ldpaudit.extras.web.kinds.GRID", (0.5,))
    table = survey(tmp_path / "table.csv")
    places = []
    for _ in range(2):  # The second form has the same table, uploaded again.
        form = page.post("noise", {"data": table})
        places.append(str(page.finished(page.post(str(form.url), minutes="0,001")).url))
    first = page.finished(page.post(f"{places[0]}/release", epsilon="0,5"))
    job = next(one for one in page.site._jobs.values() if "release" in one.downloads)
    drawn = job.file("release").read_bytes()
    for place in places:
        again = page.finished(page.post(f"{place}/release", epsilon="1"))
        assert str(again.url).partition("?")[0] == str(first.url).partition("?")[0]
        assert "was drawn already" in again.text
    assert job.file("release").read_bytes() == drawn
    assert sum("release" in one.downloads for one in page.site._jobs.values()) == 1
    other = page.finished(page.post(f"{places[0]}/release", epsilon="0,5", deleted="1"))
    assert str(other.url) != str(first.url)
    assert not job.file("release").exists()
    assert "was deleted" in page.client.get(str(first.url)).text


def test_a_page_has_one_number_for_what_is_advised():
    number = {"value": 0.75, "low": 0.7, "high": 0.8, "unit": "proportion", "n": 800}
    best = {"epsilon": 1.0, "leakage": {"advice.accuracy": number}, "utility": None}
    points = [
        {
            "value": e,
            "attack.best.accuracy": {"value": 0.78},
            "attack.features-only.accuracy": {"value": 0.71},
        }
        for e in (0.5, 1.0)
    ]
    curves = curves_of({"points": points}, {"recommendations": [best]}, None)
    line = next(one for one in curves.lines if one.key == "guessed")
    assert line.shares == (0.78, 0.75)
    assert line.reference_at(curves.at) == "70.0 % to 80.0 %, on 800 rows"
    assert line.reference_at(0) == ""


def test_what_is_advised_without_curves_says_why(page, tmp_path, monkeypatch):
    form = page.post("noise", {"data": survey(tmp_path / "table.csv")})
    monkeypatch.setattr(
        "ldpaudit.extras.web.kinds.Maker._sweep", lambda *_: ["sweep", "nothing.csv", "--epsilon=1"]
    )
    advised = page.finished(page.post(str(form.url), minutes="0,001"))
    assert "There are no curves over ε: " in advised.text
    assert "Draw the noise" in advised.text
    assert re.search(r"ε = [\d.]+, as advised", advised.text)


def test_columns_to_leave_out_are_named_with_the_reason_and_so_are_remarks(
    page, tmp_path, monkeypatch
):
    monkeypatch.setattr("ldpaudit.extras.web.kinds.GRID", (0.5,))
    table = tmp_path / "table.csv"
    lines = (f"P{n:04d},{n % 7},{'ab'[n % 3 == 0]}\n" for n in range(300))
    table.write_text("person,x,label\n" + "".join(lines))
    form = page.post("noise", {"data": table})
    advised = page.finished(page.post(str(form.url), minutes="0,001"))
    assert "Why leave out <bdi>person</bdi>: they may lead back to a person" in advised.text
    assert "limits neither ε nor what attackers learn" in advised.text
    assert not re.search(r"--[a-z]", advised.text.partition("The same in a terminal")[0])


def test_columns_to_leave_out_whose_names_are_not_stored_are_counted():
    groups = [{"columns": 2, "reason": "these"}, {"columns": 1, "reason": "that"}]
    command = "ldpaudit privatize t.csv --drop a --drop='b c' --drop d"
    advice = {"dropped": groups, "recommendations": [{"command": command}]}
    assert left_out(advice) == [("a, b c", "these"), ("d", "that")]
    nothing = [("2 columns", "these"), ("1 column", "that")]
    assert left_out(advice | {"recommendations": []}) == nothing
    assert left_out({}) == []


def test_jobs_of_one_file_are_told_apart_and_a_stopped_one_says_so(page, release):
    form = page.post("audit", {"release": release[0]})
    page.finished(page.post(str(form.url), epsilon="1"))
    page.finished(page.post(str(form.url), epsilon="2"))
    one, other = page.site._jobs.values()
    assert one.about != other.about
    assert re.fullmatch(r"label, ε = 1, \d\d:\d\d", one.about)
    assert one.about in page.get().text


def test_two_audits_in_one_minute_are_told_apart(page, release, monkeypatch):
    monkeypatch.setattr("ldpaudit.extras.web.kinds.time.strftime", lambda _: "09:00")
    form = page.post("audit", {"release": release[0]})
    for _ in range(3):
        page.finished(page.post(str(form.url), epsilon="1"))
    listed = [job.about for job in page.site._jobs.values()]
    assert listed == [f"label, ε = 1, 09:00{more}" for more in ("", " (2)", " (3)")]
    assert all(about in page.get().text for about in listed)


@pytest.mark.parametrize(
    ("decision", "listed"),
    [
        ("not yet", "stopped before the end: no answer"),
        ("publish", "stopped before the end: no answer"),
        ("do not publish", "stopped before the end: publish: no"),
    ],
)
def test_a_stopped_audit_is_not_listed_as_not_yet(page, release, monkeypatch, decision, listed):
    form = page.post("audit", {"release": release[0]})
    monkeypatch.setattr(Job, "stored", lambda *_: {"decision": decision})
    steps = Job._steps

    async def stopped(job):
        job.asked = 1
        return await steps(job)

    monkeypatch.setattr(Job, "_steps", stopped)
    page.finished(page.post(str(form.url), epsilon="1"))
    (job,) = page.site._jobs.values()
    assert job.answer == listed
    assert listed in page.get().text
    assert "not yet" not in page.get().text


def test_a_removed_file_leaves_nothing_of_what_was_found_in_it(page, release):
    form = page.post("audit", {"release": release[0], "truth": release[1]})
    (draft,) = page.site._drafts.values()
    assert draft.found.keys() == {path.name for path in release}
    page.finished(page.post(str(form.url), epsilon="1", without="truth"))
    assert draft.found.keys() == {release[0].name}
    answer = page.post(str(form.url), epsilon="1", without="release")
    assert draft.found == {}
    assert error_of(answer) == "Choose a file first."


def test_several_years_ask_at_once_who_a_row_is(page, release):
    draft_of = page.post("audit", {"release": release[0]})
    assert "Which column names the person?" not in draft_of.text
    draft = page.site._drafts[str(draft_of.url).rsplit("/", 1)[1]]
    draft.files["release"] *= 2
    text = page.client.get(str(draft_of.url)).text
    assert text.index("Which column names the person?") < text.index("More options")
    assert text.count('id="f-id_column"') == 1
    # The question has to be answered; that there is no such column is an answer, too.
    assert '<select id="f-id_column" name="id_column" required>' in text
    assert '<option value=" ">none: ' in text
    draft.values["id_column"] = [" "]
    fields = fields_of(OPTIONS["run"])
    assert not any(word.startswith("--id") for word in words_of(fields, draft))


def test_steps_on_a_page_lead_to_the_field_that_they_name(page, release):
    form = page.post("audit", {"release": release[0]})
    answer = page.finished(page.post(str(form.url), label="label"))
    # Columns in doubt first: without an answer to that no further audit decides, and whoever drops
    # one audits again anyway. What was left out of this audit comes after.
    steps = re.search(r'<ol class="steps">.*?</ol>', answer.text, re.DOTALL)[0]
    links = re.findall(rf'<a href="{re.escape(form.url.path)}#((?:f|file)-[a-z_]+)">', steps)
    assert links.index("f-drop") < links.index("f-only")
    assert links.index("f-before") < links.index("f-only")
    assert "<kbd data-option" not in answer.text
    assert "--" not in re.sub(r"<(code|style|pre|svg).*?</\1>", "", answer.text, flags=re.DOTALL)


def test_two_forms_do_not_mix_and_back_shows_what_was_filled_in(page, release):
    one = page.post("audit", {"release": release[0]})
    other = page.post("audit", {"release": release[0], "truth": release[1]})
    assert one.url != other.url
    page.finished(page.post(str(one.url), epsilon="x"))
    assert error_of(page.client.get(str(other.url))) == ""
    back = page.client.get(str(one.url))
    assert 'name="epsilon" value="x"' in back.text
    assert error_of(back)


@pytest.mark.parametrize(
    ("typed", "whole", "read"),
    [
        ("0.5", False, "0.5"), ("0,5", False, "0.5"), (" 1,000.5 ", False, "1000.5"),
        ("1.000,5", False, "1000.5"), ("1,000", False, "1.000"), ("1,000", True, "1000"),
        ("1.000.000", True, "1000000"), ("-2,5", False, "-2.5"), ("1e-5", False, "1e-5"),
        ("1.2.3", False, "1.2.3"), ("one", True, "one"), ("", False, ""),
        ("12.345.678,9", False, "12345678.9"), ("1,2,3.4", False, "1,2,3.4"),
    ],
)  # fmt: skip
def test_numbers_are_read_in_english_and_in_german(typed, whole, read):
    assert plain_number(typed, whole=whole) == read


def test_a_form_has_every_option_of_the_command_but_for_those_of_the_page(tmp_path):
    fields = fields_of(parameters_of(commands.run))
    left = {one.name for one in parameters_of(commands.run)} - fields.keys()
    assert left == {
        *(
            "json",
            "html",
            "sarif",
            "junit",
            "markdown",
            "formats",
            "registry",
            "quiet",
            "_debug",
            "details",
            "profile",
        ),
        *("inconclusive", "not_yet", "exit_zero", "memory", "cluster", "cluster_without_tls"),
        "attacks",
    }
    kinds = {one.kind for one in fields.values()}
    assert kinds == {"files", "flag", "choice", "number", "lines", "text"}
    draft = Draft("audit", tmp_path)
    draft.given(["a.csv"], "release")
    draft.values = {"exact": ["1"], "metric": ["raw"], "queries": ["all"], "drop": ["b\nc: d "],
                    "neighbors": ["1.000"], "device": ["auto"], "label": ['a:"b']}  # fmt: skip
    words = words_of(fields, draft)
    assert words[0] == str(Path.cwd() / "a.csv")
    assert {*words[1:]} == {
        *("--exact", "--metric=raw", "--queries=all", "--drop=b", "--drop=c: d"),
        *("--neighbors=1000", '--label="a:""b"'),
    }


def test_the_field_that_a_refusal_is_about(tmp_path):
    fields, draft = fields_of(OPTIONS["run"]), Draft("audit", tmp_path)
    draft.given(["r.csv"], "release")
    for message, name in {
        "Invalid value for '--epsilon': it must be a number.": "epsilon",
        "The 'timeout' must be more than 0 seconds. Got -1 instead.": "timeout",
        "Use --truth-column and --id.": "truth_column",
        "The file 'r.csv' cannot be read.": "release",
        "Something else.": "",
    }.items():
        assert field_of(message, fields, draft) == name


def test_curves_of_numbers():
    def point(value, error):
        means = {"numeric.best.within_5": 0.4, "test_squared_error": error, "test_constant": 8.0}
        return {"value": value, **{name: {"value": mean} for name, mean in means.items()}}

    sweep = {"points": [point(2.0, 2.0), point(1.0, 4.0)], "reference": None}
    curves = curves_of(sweep, {"recommendations": []}, "1")
    assert (curves.epsilons, curves.at) == ((1.0, 2.0), 1)
    says, guessed, learnt = curves.lines
    assert (says.shares, guessed.shares) == (pytest.approx((0.7310586, 0.8807971)), (0.4, 0.4))
    assert learnt.shares == pytest.approx((0.5, 0.75))
    assert learnt.reference is None
