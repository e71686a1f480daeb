"""Parts of other packages that are broken: one line each, and other commands work."""

import json
import re
import shutil
import sys

import numpy as np
import pyarrow as pa
import pytest

from ldpaudit import plugins
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.added import reader_of
from ldpaudit.datasets.formats.read_back import check_read_back
from ldpaudit.datasets.formats.tables import MemoryTable
from ldpaudit.errors import InputError
from ldpaudit.extras.release.synthesis.factory import (
    GENERATORS,
    generator,
    load_generator,
    save_generator,
)
from ldpaudit.generators import BUILT_IN

MECHANISM = ("--mechanism", "randomized-response", "--epsilon", 1.0)
# Of trees nothing of another package is used.
KINDS = sorted({*plugins.GROUPS} - {"receipt", "tree"})
GENERATED = ("--mechanism", "double-rr", "--lambda", 0.5, "--generator")


def _use(kind, data):
    """Return the words of a command that uses a part called ``broken``."""
    odd = data.with_suffix(".odd")
    shutil.copy(data, odd)
    out = data.with_name("out.parquet")
    claim = (*MECHANISM, "--only", "mechanism")
    return {
        "command": ("broken",),
        "reader": ("run", odd, *claim),
        "format": ("run", data, *claim, "--format", f"broken={data.with_suffix('.txt')}"),
        "generator": (
            *("privatize", data, "-o", out, "--mechanism", "double-rr", "--lambda", 0.5),
            *("--generator", "broken"),
        ),
        "audit": ("run", data, *MECHANISM, "--only", "broken"),
        "attack": ("run", data, "--truth", data, *MECHANISM, "--only", "label-inference"),
        "mechanism": ("mechanism", "describe", "broken", "--epsilon", 1, "--classes", "a,b"),
    }[kind]


WRONG = [
    *((kind, "no_such_module:X", "there is no module 'no_such_module'") for kind in KINDS),
    *((kind, "broken_parts:NOTHING", "cannot be loaded") for kind in KINDS),
    ("command", "broken_parts:BROKEN", "cannot be loaded"),
    ("command", "broken_parts:Raising", "must be a ldpaudit.doors.Command. Got ABCMeta instead."),
    ("command", "broken_parts:RAISING", "failed: RuntimeError at line"),
    ("command", "broken_parts:LEAVING", "failed: SystemExit at line"),
    ("command", "broken_parts:UNSTATED", "The parameter 'value' of the plug-in"),
    ("command", "broken_parts:OTHER", "calls itself 'other'"),
    ("command", "broken_parts:GROUP", "calls itself 'no.broken'"),
    ("command", "broken_parts:WITHIN", "must be a command of its own"),
    ("command", "broken_parts:NUMBER", "calls itself ''"),
    ("command", "broken_parts:SAYS_RAISING", "failed: RuntimeError at line"),
    ("command", "broken_parts:SAYS_HALF", "failed: RuntimeError at line"),
    ("command", "broken_parts:SAYS_LEAVING", "failed: SystemExit at line"),
    ("command", "broken_parts:SAYS_NOTHING", "(command) prints must be lines"),
    ("command", "broken_parts:SAYS_NUMBERS", "Got int instead."),
    ("command", "broken_parts:SAYS_NO_TABLE", "Got tuple instead."),
    ("command", "broken_parts:SAYS_A_TEXT", "Got str instead."),
    ("command", "broken_parts:FINDS_NOTHING", "must return a ldpaudit.doors.Told. Got NoneType"),
    ("reader", "broken_parts:RAISING", "must be a ldpaudit.doors.Reader. Got Command instead."),
    ("reader", "broken_parts:READS_RAISING", "failed: RuntimeError at line"),
    ("reader", "broken_parts:READS_LEAVING", "failed: SystemExit at line"),
    ("reader", "broken_parts:READS_NONSENSE", "must return a pyarrow.Table. Got int instead."),
    ("reader", "broken_parts:READS_INVALID", "(reader) failed: ArrowInvalid"),
    ("reader", "broken_parts:STREAMS_UNEQUAL", "(reader) streamed other columns"),
    ("reader", "broken_parts:STREAMS_RAISING", "failed: RuntimeError at line"),
    ("reader", "broken_parts:STREAMS_NONSENSE", "must stream a pyarrow.RecordBatchReader"),
    ("reader", "broken_parts:STREAMS_NOTHING", "must have a function that reads"),
    ("reader", "broken_parts:READS_TWICE", "'broken' (reader): Every column must have a name of"),
    ("reader", "broken_parts:STREAMS_TWICE", "'broken' (reader): Every column must have a name"),
    ("reader", "broken_parts:READS_REFUSING", "'broken' (reader): Three labels are too many."),
    ("format", "broken_parts:RENDERS_REFUSING", "'broken' (format): Three labels are too many."),
    ("generator", "broken_parts:Refusing", "'broken' (generator): Three labels are too many."),
    ("command", "broken_parts:NO_FILE", "'broken' (command): A file could not be used: No such"),
    ("command", "broken_parts:RETURNS_NONSENSE", "returned the exit status 7; it must be one of"),
    (
        "command",
        "broken_parts:RETURNS_TEXT",
        "must return an exit status (0, 1, 3) or None. Got str",
    ),
    (
        "command",
        "broken_parts:RETURNS_TRUE",
        "must return an exit status (0, 1, 3) or None. Got bool",
    ),
    ("command", "broken_parts:ENDS_BY_7", "returned the exit status 7; it must be one of 0, 1, 3."),
    ("audit", "broken_parts:NoRun", "must have the methods unavailable and run"),
    ("audit", "broken_parts:RefusingAudit", "'broken' (audit): Three labels are too many."),
    ("reader", "broken_parts:READS_ALL", "must be a tuple of texts such as '.avro'"),
    ("reader", "broken_parts:READS_TEXT", "must be a tuple of texts such as '.avro'"),
    ("format", "broken_parts:RAISING", "must be a ldpaudit.doors.Format. Got Command instead."),
    ("format", "broken_parts:RENDERS_RAISING", "failed: RuntimeError at line"),
    ("format", "broken_parts:RENDERS_LEAVING", "failed: SystemExit at line"),
    ("format", "broken_parts:RENDERS_NEVER", "(format) renders with must be a function"),
    ("format", "broken_parts:RENDERS_NONSENSE", "must return text. Got int instead."),
    ("format", "broken_parts:RENDERS_BAD_TEXT", "text that is no Unicode"),
    ("generator", "broken_parts:RAISING", "must be a class that derives from"),
    ("generator", "broken_parts:Raising", "failed: RuntimeError at line"),
    ("generator", "broken_parts:Abstract", "failed: TypeError"),
    ("generator", "broken_parts:Nonsense", "must return a table. Got int instead."),
    ("generator", "broken_parts:Fewer", "rows. Got 0 instead."),
    ("generator", "broken_parts:Other", "with the columns and types of the table"),
    ("generator", "broken_parts:Infinite", "a table of finite numbers; column 1 holds infinite"),
    ("generator", "broken_parts:Empty", "values in every column; column 1 holds none"),
    ("generator", "shuffled_columns:ShuffledColumns", "calls itself 'shuffled-columns'"),
    ("audit", "broken_parts:Audit", "failed: RuntimeError at line"),
    ("audit", "broken_parts:NoFinding", "must return a Finding"),
    ("audit", "broken_parts:RAISING", "calls itself None"),
    ("audit", "broken_parts:NoNumber", "(the 'value' of its Estimate: a number of the result must"),
    ("audit", "broken_parts:NoLevel", "(the 'level' of its Estimate: input should be less than 1)"),
    ("audit", "broken_parts:OwnModel", "failed: ValidationError at line"),
    ("audit", "broken_parts:NoMemory", "'broken' (audit): This needs more memory than there is"),
    ("mechanism", "broken_parts:BARE_PARAMETERS", "ldpaudit.doors.Parameter. Got str in it."),
    ("mechanism", "broken_parts:LISTED_PARAMETERS", "ldpaudit.doors.Parameter. Got list instead."),
    ("mechanism", "broken_parts:BareParameters", "ldpaudit.doors.Parameter. Got str in it."),
    ("mechanism", "broken_parts:NO_FUNCTION", "The 'channel' of the plug-in 'broken' (mechanism)"),
    ("mechanism", "broken_parts:CHECKS_NEVER", "parameter 'epsilon' of the plug-in 'broken' (mech"),
    ("mechanism", "broken_parts:MORE_OUTPUTS", "releases 1 value that nobody declared; list"),
    ("mechanism", "broken_parts:NUMBERS_OF_TEXT", "(mechanism) must be numbers."),
    ("mechanism", "broken_parts:RAISING", "is not a mechanism with traits"),
    ("mechanism", "broken_parts:NO_CHANNEL", "must be a ldpaudit.doors.Channel. Got int instead."),
    ("mechanism", "broken_parts:BARE_ROWS", "must be a ldpaudit.doors.Channel. Got ndarray"),
    ("mechanism", "broken_parts:HALF_ROWS", "'broken' (mechanism): Each row of a channel must sum"),
    ("mechanism", "broken_parts:BY_CHANCE", "is another one each time it is built"),
    ("mechanism", "broken_parts:TURNED", "The classes of the channel of the plug-in 'broken'"),
    ("mechanism", "broken_parts:REFUSING", "'broken' (mechanism): Three labels are too many."),
    ("mechanism", "broken_parts:RAISING_ROWS", "failed: RuntimeError at line"),
    ("mechanism", "broken_parts:LEAVING_ROWS", "failed: SystemExit at line"),
    ("mechanism", "broken_parts:Lacking", "'broken' (mechanism) failed: AttributeError at line"),
    ("mechanism", "broken_parts:REMARKS_A_TEXT", "must be a tuple of texts. Got str instead."),
    ("mechanism", "broken_parts:SAYS_NO_TEXT", "must be a text. Got NoneType instead."),
    ("mechanism", "broken_parts:SAYS_EMPTY_TEXT", "must be a text. Got an empty one instead."),
]


@pytest.mark.parametrize(("kind", "place", "part"), WRONG)
def test_a_broken_part_is_one_line_and_stops_nothing_else(broken, command, data, kind, place, part):
    broken(kind, {"broken": place})
    words = _use(kind, data)
    before = {*data.parent.iterdir()}
    status, said = command(*words)
    if kind == "attack":  # An attack that cannot be loaded is left out, with a warning.
        assert status in (0, 3), said
        assert "'broken'" in said
        return
    lines = [line for line in said.splitlines() if not line.endswith("…")]
    assert (status, len(lines)) == (2, 1), said
    assert "'broken'" in lines[0]
    assert part in lines[0]
    assert "SECRET" not in said
    assert {*data.parent.iterdir()} == before
    unlike = ("run", data, *MECHANISM, "--only", "power") if kind == "command" else ("--version",)
    status, said = command(*unlike)
    assert status in (0, 3), said
    assert "'broken'" not in said


@pytest.mark.parametrize(
    ("place", "part"), [(place, part) for kind, place, part in WRONG if kind == "mechanism"]
)
def test_a_broken_mechanism_releases_and_audits_nothing(broken, command, data, place, part):
    broken("mechanism", {"broken": place})
    before = {*data.parent.iterdir()}
    claim = ("--mechanism", "broken", "--epsilon", 1.0)
    out = ("-o", data.with_name("out.parquet"), "--classes", "no,perhaps,yes")
    for words in (("privatize", data, *out, *claim), ("run", data, *claim)):
        status, said = command(*words)
        lines = [line for line in said.splitlines() if not line.endswith("…")]
        assert (status, len(lines)) == (2, 1), said
        assert part in lines[0]
        assert "SECRET" not in said
        assert {*data.parent.iterdir()} == before


def test_less_noise_than_asked_for_is_not_released(broken, command, data):
    out = data.with_name("out.parquet")
    words = ("privatize", data, "-o", out, "--mechanism", "broken", "--epsilon", 1.0)
    broken("mechanism", {"broken": "broken_parts:LESS_NOISE"})
    before = {*data.parent.iterdir()}
    status, said = command(*words)
    assert status == 2, said
    assert "The mechanism 'broken' has ε = 2 where ε = 1 was asked for" in said
    assert {*data.parent.iterdir()} == before


def test_more_noise_than_asked_for_is_released(broken, command, data):
    out = data.with_name("out.parquet")
    broken("mechanism", {"broken": "broken_parts:MORE_NOISE"})
    status, said = command("privatize", data, "-o", out, "--mechanism", "broken", "--epsilon", 1.0)
    assert status == 0, said
    assert out.exists()


def test_a_bound_above_the_claim_is_not_passed_over(broken, command, data):
    release, truth = data.with_name("r.parquet"), ("--truth", data)
    words = ("-o", release, *MECHANISM, "--experimental", "--seed", 4)
    assert command("privatize", data, *words)[0] == 0
    broken("audit", {"broken": "broken_parts:MoreThanClaimed"})
    own = ("--only", "mechanism", "--only", "power")
    status, said = command("run", release, *truth, *own, "--only", "broken")
    assert (status, "Publish: not yet." in said) == (3, True), said
    assert "the audit broken, which is not one of ldpaudit's own, certifies ε = 9" in said


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("DRAWS_NOTHING", "of whole numbers of shape (500,). Got NoneType instead."),
        ("DRAWS_FEWER", "of whole numbers of shape (500,). Got int32 of shape (499,) instead."),
        ("DRAWS_HALVES", "of whole numbers of shape (500,). Got float64 of shape (500,) instead."),
        ("DRAWS_MORE", "'broken' draws must be positions of its 3 outputs, from 0."),
        ("DRAWS_LESS", "'broken' draws must be positions of its 3 outputs, from 0."),
        ("DRAWS_RAISING", "The plug-in 'broken' (mechanism) failed: RuntimeError at line"),
    ],
)
def test_what_a_mechanism_cannot_have_drawn_is_not_released(broken, command, data, place, part):
    out = data.with_name("out.parquet")
    words = ("privatize", data, "-o", out, "--mechanism", "broken", "--epsilon", 1.0)
    broken("mechanism", {"broken": f"broken_parts:{place}"})
    before = {*data.parent.iterdir()}
    status, said = command(*words)
    lines = [line for line in said.splitlines() if not line.endswith("…")]
    assert (status, len(lines)) == (2, 1), said
    assert part in lines[0]
    assert {*data.parent.iterdir()} == before


def test_what_a_mechanism_draws_is_released(broken, command, data):
    broken("mechanism", {"broken": "broken_parts:DRAWS_WELL"})
    out = ("-o", data.with_name("out.parquet"))
    status, said = command("privatize", data, *out, "--mechanism", "broken", "--epsilon", 1.0)
    assert status == 0, said


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"attack"}))
def test_a_part_that_is_registered_twice_is_refused(broken, command, data, kind):
    good = {
        "command": "broken_parts:RAISING",
        "reader": "broken_parts:READS_RAISING",
        "format": "broken_parts:RENDERS_RAISING",
        "generator": "broken_parts:Raising",
        "audit": "broken_parts:Audit",
        "mechanism": "strange_responses:CYCLIC",
    }[kind]
    for name in ("broken", "broken-again"):
        broken(kind, {"broken": good}, name)
    status, said = command(*_use(kind, data))
    lines = [line for line in said.splitlines() if not line.endswith("…")]
    assert (status, len(lines)) == (2, 1), said
    twice = "registered 2 times, by the packages broken, broken-again; uninstall all but one."
    assert twice in lines[0]


@pytest.mark.parametrize(
    ("place", "status"),
    [("RETURNS_FAIL", 1), ("RETURNS_NUMPY", 3), ("RETURNS_NOTHING", 0), ("ENDS_BY_1", 1)],
)
def test_what_a_command_returns_is_its_exit_status(broken, command, place, status):
    broken("command", {"broken": f"broken_parts:{place}"})
    assert command("broken") == (status, "")


@pytest.mark.parametrize(
    ("place", "status"), [("SAYS_AND_FAILS", 1), ("SAYS_AND_7", 2), ("SAYS_AND_TRUE", 2)]
)
def test_an_answer_is_given_once_its_status_is_one(broken, command, tmp_path, place, status):
    broken("command", {"broken": f"broken_parts:{place}"})
    file = tmp_path / "o.json"
    found, said = command("broken", "--json", file)
    assert found == status, said
    assert ("a line" in said, file.exists()) == (status == 1, status == 1)
    assert len(said.splitlines()) == (2 if status == 1 else 1)


def test_what_an_answer_cannot_be_written_names_the_command(broken, command, tmp_path):
    broken("command", {"broken": "broken_parts:STORES_HALF"})
    status, said = command("broken", "--json", tmp_path / "o.json")
    assert (status, len(said.splitlines())) == (2, 1), said
    assert "The plug-in 'broken' (command) failed: RuntimeError at line" in said
    assert not [*tmp_path.iterdir()]


def test_a_warning_of_a_generator_is_a_text(broken, installed):
    broken("generator", {"broken": "broken_parts:Warned"})
    labels = np.repeat(np.arange(2, dtype=np.int32), 30)
    rows = pa.table({"x": labels})
    fitted = generator("broken").fit(rows, labels, 2, rng=np.random.default_rng(1))
    assert fitted.warnings == ("One sentence.",)


@pytest.mark.parametrize("name", ["run", "sweep", "policy", "policy.check", "mechanism.describe"])
def test_a_command_takes_no_name_of_ours(broken, command, name):
    broken("command", {name: "broken_parts:RAISING"})
    words = {"policy": ("policy", "--help")}.get(name, (*name.split("."), "--help"))
    status, said = command(*words)
    assert status == 0, said
    warning = (
        f"ldpaudit: The plug-in {name!r} (command) of the package 'broken' has a built-in "
        "command's name, so the built-in one is used."
    )
    assert said.count(warning) == 1, said
    assert "Usage: ldpaudit" in said


def test_built_in_readers_formats_and_generators_stay(broken, command, data):
    broken("reader", {"broken": "broken_parts:READS_PARQUET"}, "one")
    broken("format", {"html": "broken_parts:RENDERS_RAISING"}, "two")
    broken("generator", {"mixture": "broken_parts:Raising"}, "three")
    claim = (*MECHANISM, "--only", "mechanism")
    status, said = command("run", data, *claim, "--format", f"html={data.with_suffix('.page')}")
    assert (status, "has an option of its own: --html FILE." in said) == (2, True), said
    status, said = command("run", data, *claim)
    assert status in (0, 3), said
    words = (*GENERATED, "mixture", "--experimental", "--seed", 1)
    status, said = command("privatize", data, "-o", data.with_name("m.parquet"), *words)
    assert status == 0, said


@pytest.mark.parametrize(
    ("kind", "name", "place"),
    [
        ("mechanism", "randomized-response", "GOOD"),
        ("mechanism", "rr", "GOOD"),
        ("generator", "mixture", "Raising"),
        ("audit", "power", "Audit"),
        ("attack", "bayes", "RAISING"),
        ("format", "html", "RENDERS_RAISING"),
    ],
)
def test_a_name_of_ours_is_one_line(broken, command, data, kind, name, place):
    broken(kind, {name: f"broken_parts:{place}"})
    line = (
        f"ldpaudit: The plug-in {name!r} ({kind}) of the package 'broken' has a built-in {kind}'s "
        "name, so the built-in one is used."
    )
    asked = ("run", data, "--truth", data, *MECHANISM, "--only", "power", "--only", "mechanism")
    for words in (("--version",), (*asked, "--quiet")):
        status, said = command(*words)
        assert status != 2, said
        assert [one for one in said.splitlines() if "plug-in" in one] == [line]
    assert "broken_parts" not in sys.modules


def test_generators_of_ours_are_known_to_the_core():
    assert {*GENERATORS} == BUILT_IN


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("READS_PARQUET", True),
        ("READS_RAISING", False),
        ("READS_TEXT", False),
        ("NOTHING", False),
    ],
)
def test_an_ending_of_ours_is_one_line(broken, command, data, place, said):
    broken("reader", {"broken": f"broken_parts:{place}"})
    line = (
        "ldpaudit: The plug-in 'broken' (reader) of the package 'broken' reads '.parquet', as a "
        "built-in reader does, so the built-in one is used."
    )
    file = data.with_suffix(".json")
    words = ("run", data, *MECHANISM, "--only", "mechanism", "--quiet", "--json", file)
    status, printed = command(*words)
    assert status in (0, 3), printed
    assert [one for one in printed.splitlines() if "plug-in" in one] == [line] * said
    # It was looked at alone, and took no part.
    parts = json.loads(file.read_text())["run"]["plugins"]
    assert "broken" not in {part["name"] for part in parts}
    assert "plug-in" not in command("--version")[1]


def test_a_stream_of_other_rows_is_refused(broken, tmp_path):
    ends = {"broken": "broken_parts:STREAMS_LESS"}
    broken("reader", ends)
    (tmp_path / "a.odd").touch()
    table = open_table(tmp_path / "a.odd")
    first = list(table.batches(["label", "x"]))
    assert [batch.schema.names for batch in first] == [["label", "x"]]
    with pytest.raises(InputError, match=r"\(reader\) streamed other rows of the file 'a.odd'"):
        list(table.batches(["x"]))


def test_a_stream_of_other_columns_is_refused(broken, tmp_path):
    broken("reader", {"broken": "broken_parts:STREAMS_ALL"})
    (tmp_path / "a.odd").touch()
    table = open_table(tmp_path / "a.odd")
    with pytest.raises(InputError, match=r"\(reader\) streamed other columns"):
        list(table.batches(["x"]))


def test_two_readers_of_one_ending_are_refused(broken, command, data):
    ends = {"one": "broken_parts:READS_RAISING", "two": "broken_parts:READS_NONSENSE"}
    broken("reader", ends)
    status, said = command(*_use("reader", data))
    assert (status, "The readers 'one' and 'two' are both for such a file" in said) == (2, True)


def test_a_reader_reads_one_file_of_this_computer(command, pipe):
    claim = (*MECHANISM, "--only", "mechanism")
    for source, part in (
        (pipe.parent / "*.pipe", "reads one file"),
        ("memory://released.pipe", "released.pipe"),
    ):
        status, said = command("run", source, *claim)
        assert (status, len(said.strip().splitlines())) == (2, 1), said
        assert part in said


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("WRITES_RAISING", "(reader) failed: RuntimeError at line"),
        ("WRITES_NOTHING", "wrote nothing to the path"),
        ("WRITES_FEWER", "(reader) does not read what it wrote: 499 of 500 rows."),
        ("WRITES_TURNED", "(reader) does not read what it wrote: other values in column 1"),
        ("WRITES_RENAMED", "(reader) does not read what it wrote: other columns."),
        ("WRITES_UNREADABLE", "What was written cannot be read. The plug-in 'broken' (reader)"),
        ("WRITES_NEVER", "cannot be written in the format of its name"),
    ],
)
def test_what_a_reader_cannot_write_is_not_written(broken, command, data, place, part):
    broken("reader", {"broken": f"broken_parts:{place}"})
    before = {*data.parent.iterdir()}
    status, said = command("privatize", data, "-o", data.with_name("new.odd"), *MECHANISM)
    lines = [line for line in said.splitlines() if not line.endswith("…")]
    assert (status, len(lines)) == (2, 1), said
    assert part in lines[0]
    assert {*data.parent.iterdir()} == before


def test_what_a_text_file_keeps_is_read_back(installed, tmp_path):
    """Types change in a text file, and nothing that is missing has a spelling of its own."""
    own, reader = reader_of("any.pipe")
    table = pa.table(
        {
            "word": pa.array(["a", "b", None, ""]).dictionary_encode(),
            "digits": ["1", "2", "3", "4"],
            "half": pa.array([0.1, None, float("nan"), 2.0], pa.float32()),
            "whole": pa.array([1.0, 2.0, 3.0, 4.0]),
            "small": pa.array([1, 2, None, 3], pa.int8()),
            "yes": [True, False, None, True],
            "day": pa.array([0, 1, 2, None], pa.date32()),
            "time": pa.array([0, 1, 2, None], pa.timestamp("us")),
            "nothing": pa.nulls(4),
        }
    )
    place = tmp_path / "any.pipe"
    reader.write(MemoryTable(table).table, place)
    check_read_back(own, reader, place, table)
    for name, other in (("word", ["a", "c", None, ""]), ("half", [0.1, 1.0, None, 2.0])):
        changed = table.set_column(table.column_names.index(name), name, pa.array(other))
        with pytest.raises(InputError, match="does not read what it wrote: other values"):
            check_read_back(own, reader, place, changed)


def test_a_format_is_asked_for_once_and_has_no_public_form(command, data):
    claim = (*MECHANISM, "--only", "mechanism")
    one = ("--format", f"check-lines={data.with_suffix('.a')}")
    two = ("--format", f"check-lines={data.with_suffix('.b')}")
    for words, part in (
        ((*one, *two), "asked for twice"),
        ((*one, "--profile", "public"), "no public form"),
        (("--format", "check-lines"), "must be given as NAME=FILE"),
        (("--format", f"check-line={data.with_suffix('.c')}"), "did you mean 'check-lines'?"),
    ):
        status, said = command("run", data, *claim, *words)
        lines = [line for line in said.splitlines() if not line.endswith("…")]
        assert (status, len(lines)) == (2, 1), said
        assert part in lines[0]
        assert not {*data.parent.iterdir()} - {data}


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("Unstorable", "(generator): The state of a generator must consist of numbers, texts"),
        ("Unstorable", "lists, dicts and arrays. Got object"),
        ("StrangeKeys", "'broken' (generator): The state of a generator must consist of numbers"),
        ("Lost", "must make a generator of its state. Got int instead."),
    ],
)
def test_what_a_generator_learnt_must_be_stored(broken, installed, tmp_path, place, part):
    broken("generator", {"broken": f"broken_parts:{place}"})
    labels = np.repeat(np.arange(2, dtype=np.int32), 30)
    fitted = generator("broken").fit(
        pa.table({"x": labels}), labels, 2, rng=np.random.default_rng()
    )
    with pytest.raises(InputError, match=re.escape(part)):
        load_generator(save_generator(fitted, tmp_path / "generator.npz"))


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("STORES_RAISING", "failed: RuntimeError at line"),
        ("STORES_NONSENSE", "must store a pydantic model"),
        ("NOTHING", "There is no schema 'broken'"),
    ],
)
def test_a_schema_of_nothing_is_one_line(broken, command, place, part):
    broken("command", {"broken": f"broken_parts:{place}"})
    status, said = command("report", "broken", "--schema")
    assert (status, part in said, len(said.splitlines())) == (2, True, 1), said
    assert command("report", "--schema")[0] == 0


def test_a_generator_is_asked_for_by_its_name(command, data, tmp_path):
    out = ("-o", tmp_path / "out.parquet")
    status, said = command("privatize", data, *out, *GENERATED, "shuffled-column")
    assert (status, "did you mean 'shuffled-columns'?" in said) == (2, True), said
