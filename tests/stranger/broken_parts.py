"""Parts of another package, each broken in its own way."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pyarrow import DictionaryArray, RecordBatchReader, array, csv, float64, int8, table

from ldpaudit.doors import (
    EXIT,
    Channel,
    Command,
    Estimate,
    Family,
    FeatureDependentLabel,
    Finding,
    Format,
    Frozen,
    Generator,
    InputError,
    Option,
    Outputs,
    Parameter,
    Reader,
    Stored,
    Told,
    Traits,
    carry_out,
    check_classes,
    check_epsilon,
)

ROWS = [*range(4, 100)]


def raising(*_, **__):
    raise RuntimeError("SECRET")


def leaving(*_, **__):
    sys.exit(0)


def nonsense(*_, **__):
    return 3


def refusing(*_, **__):
    raise InputError("Three labels are too many.")


def unstated(value):
    "Do nothing."


class Raising(Generator):
    name = "broken"
    _learn = sample = state = raising
    from_state = raising


class Nonsense(Raising):
    def _learn(self, *_):
        pass

    sample = nonsense


class Fewer(Nonsense):
    def sample(self, labels, rng):
        return table({"x": []})


class Other(Nonsense):
    def sample(self, labels, rng):
        return table({"x": labels})


class Infinite(Nonsense):
    """Draws rows of the table it was fitted on, a number of which is infinite."""

    drawn = float("inf")

    def _learn(self, fitted, *_):
        self.place = next(i for i, kind in enumerate(fitted.schema.types) if kind == float64())
        self.fitted = fitted

    def sample(self, labels, rng):
        rows = self.fitted.take(array(np.arange(len(labels)) % len(self.fitted)))
        name = rows.column_names[self.place]
        return rows.set_column(self.place, name, array(np.full(len(labels), self.drawn)))


class Empty(Infinite):
    """Draws rows of the table it was fitted on, without one column."""

    drawn = float("nan")


class Warned(Nonsense):
    def _learn(self, *_):
        self.warnings = "One sentence."


class Refusing(Nonsense):
    sample = refusing


class Unstorable(Nonsense):
    def state(self):
        return {"own": object()}


class StrangeKeys(Nonsense):
    def state(self):
        return {("a", "pair"): 1}


class Lost(Nonsense):
    def state(self):
        return {}

    from_state = nonsense


class Abstract(Generator):
    name = "broken"


class Audit:
    id = "broken"

    def unavailable(self, context):
        return None

    run = raising


class NoRun(Audit):
    run = None


class RefusingAudit(Audit):
    run = refusing


class NoFinding(Audit):
    run = nonsense


class NoNumber(Audit):
    def run(self, context):
        return Finding(estimates=(Estimate.estimated("broken.v", "V", float("nan")),))


class NoLevel(Audit):
    def run(self, context):
        return Finding(estimates=(Estimate.lower_bound("broken.v", "V", 0.3, level=2),))


class SECRET(Frozen):
    value: int


class OwnModel(Audit):
    def run(self, context):
        return SECRET(value="SECRET")


class MoreThanClaimed(Audit):
    def run(self, context):
        bound = Estimate.lower_bound("broken.v", "V", 9.0, 0.95, unit="nats", axis="epsilon")
        return Finding(estimates=(bound,))


class NoMemory(Audit):
    def run(self, context):
        return np.ones(10**16)


def named(function, name="broken"):
    def broken():
        return function()

    broken.__name__ = name
    return Command(broken)


unstated.__name__ = "broken"
COMMANDS = {
    "raising": named(raising),
    "leaving": named(leaving),
    "unstated": Command(unstated),
    "other": named(raising, "other"),
    "group": Command(unstated, group="no"),
    "within": Command(named(raising).function, within="run --predictions"),
    "number": Command(3),
}
RAISING, LEAVING, UNSTATED, OTHER, GROUP, WITHIN, NUMBER = COMMANDS.values()


@dataclass
class Asked:
    pass


class Says(Told):
    def __init__(self, words):
        self.words = words

    def said(self, *, quiet):
        return self.words()


def carried(found, status=None):
    """Return a command whose work finds this, and which returns this status."""

    def broken(json: Annotated[Path | None, Option("The result.")] = None):
        "Say it."
        carry_out(lambda *_: found, Asked(), Outputs(json))
        return status

    return Command(broken)


def halfway():
    yield "a line"
    raise RuntimeError("SECRET")


class Stores(Stored):
    line: str = "a line"

    def said(self, *, quiet):
        yield self.line


class StoresHalf(Stores):
    stored = raising


SAYS_AND_FAILS = carried(Stores(), EXIT["fail"])
SAYS_AND_7 = carried(Stores(), 7)
SAYS_AND_TRUE = carried(Stores(), True)
STORES_HALF = carried(StoresHalf())
SAYS_RAISING = carried(Says(raising))
SAYS_HALF = carried(Says(halfway))
SAYS_LEAVING = carried(Says(leaving))
SAYS_NOTHING = carried(Says(lambda: None))
SAYS_NUMBERS = carried(Says(lambda: [3]))
SAYS_NO_TABLE = carried(Says(lambda: [("title", ("a", "b"), [("only one",)])]))
SAYS_A_TEXT = carried(Says(lambda: "SECRET"))
FINDS_NOTHING = carried(None)
READS_RAISING = Reader((".odd",), raising)
READS_LEAVING = Reader((".odd",), leaving)
READS_NONSENSE = Reader((".odd",), nonsense)


def shrinking(path, columns):
    """Stream a row less than the last time."""
    size = ROWS.pop()
    rows = table({"x": range(2 * size), "label": ["a", "b"] * size})
    rows = rows.select(columns or rows.column_names)
    return RecordBatchReader.from_batches(rows.schema, rows.to_batches())


def unequal(path, columns):
    """Stream pieces with other columns than the first one has."""
    rows = table({"x": [1, 2], "label": ["a", "b"]}).select(columns or ["x", "label"])
    pieces = (*rows.to_batches(), *table({"SECRET": [3]}).to_batches())
    return RecordBatchReader.from_batches(rows.schema, iter(pieces))


def invalid(path):
    """Read a column with codes of no category."""
    codes = array([0, 99] * 50, int8())
    return table({"label": DictionaryArray.from_arrays(codes, array(["a", "b"]), safe=False)})


READS_INVALID = Reader((".odd",), invalid)
STREAMS_UNEQUAL = Reader((".odd",), stream=unequal)
STREAMS_RAISING = Reader((".odd",), stream=raising)
STREAMS_NONSENSE = Reader((".odd",), stream=nonsense)
STREAMS_ALL = Reader((".odd",), stream=lambda path, _: shrinking(path, None))
STREAMS_LESS = Reader((".odd",), stream=shrinking)
STREAMS_NOTHING = Reader((".odd",))
READS_ALL = Reader(("",), nonsense)
READS_TEXT = Reader(".odd", nonsense)
WRITES_RAISING = Reader((".odd",), nonsense, raising)
WRITES_NOTHING = Reader((".odd",), nonsense, nonsense)
WRITES_NEVER = Reader((".odd",), nonsense)


def written_otherwise(change, reads=csv.read_csv):
    """Return a reader that writes another table than the one it is given."""
    return Reader((".odd",), reads, lambda rows, path: csv.write_csv(change(rows), path))


WRITES_FEWER = written_otherwise(lambda rows: rows.slice(1))
WRITES_TURNED = written_otherwise(lambda rows: rows.take(array(range(len(rows) - 1, -1, -1))))
WRITES_RENAMED = written_otherwise(
    lambda rows: rows.rename_columns([*map(str.upper, rows.schema.names)])
)
WRITES_UNREADABLE = written_otherwise(lambda rows: rows, raising)
READS_TWICE = Reader((".odd",), lambda _: table([[1], [2]], names=["x", "x"]))
STREAMS_TWICE = Reader((".odd",), stream=lambda *_: READS_TWICE.read(0).to_reader())
READS_REFUSING = Reader((".odd",), refusing)
RENDERS_REFUSING = Format(refusing)
READS_PARQUET = Reader((".parquet", ".odd"), nonsense)
RENDERS_RAISING = Format(raising)
RENDERS_LEAVING = Format(leaving)
RENDERS_NEVER = Format("text")
RENDERS_NONSENSE = Format(nonsense)
RENDERS_BAD_TEXT = Format(lambda *_: "\ud800")
RETURNS_FAIL = named(lambda: EXIT["fail"])
RETURNS_NONSENSE = named(lambda: 7)
RETURNS_TEXT = named(lambda: "done")
RETURNS_TRUE = named(lambda: True)
RETURNS_NUMPY = named(lambda: np.int64(EXIT["inconclusive"]))
RETURNS_NOTHING = named(lambda: None)


def ends_by(status):
    raise typer.Exit(status)


ENDS_BY_1 = named(lambda: ends_by(1))
ENDS_BY_7 = named(lambda: ends_by(7))
NO_FILE = named(lambda: Path("SECRET", "file").read_bytes())
STORES_RAISING = Command(named(raising).function, stored=raising)
STORES_NONSENSE = Command(named(raising).function, stored=nonsense)


def mechanism(
    channel=lambda rows, classes: Channel(rows, classes, classes),
    says="noise",
    remarks=(),
    outputs="labels",
):
    """Return a family of randomized response whose channel is made by a function of the matrix."""

    def built(classes, stated):
        rows = np.exp(stated * np.eye(len(classes)))
        return channel(rows / rows.sum(axis=1, keepdims=True), classes)

    return Family(
        traits=Traits(
            name="broken",
            title="broken response",
            labels="classes",
            outputs=outputs,
            label_depends_on_features=False,
            features="unchanged",
            rows="independent",
            options=("epsilon", "classes", "labels"),
            stated_by=("epsilon",),
            whole=True,
            needs=frozenset(),
        ),
        parameters=(
            Parameter("classes", check_classes),
            Parameter("epsilon", check_epsilon, "stated"),
        ),
        channel=built,
        describe=lambda _: says,
        remarks=remarks,
    )


def squared(rows, power=2.0):
    return rows**power / (rows**power).sum(axis=1, keepdims=True)


def by_chance(rows, classes):
    drawn = np.random.default_rng().dirichlet(np.ones(len(classes)), len(classes))
    return Channel(drawn, classes, classes)


NO_CHANNEL = mechanism(nonsense)
LESS_NOISE = mechanism(lambda rows, classes: Channel(squared(rows), classes, classes))
MORE_NOISE = mechanism(lambda rows, classes: Channel(squared(rows, 0.5), classes, classes))
BARE_ROWS = mechanism(lambda rows, _: rows)
HALF_ROWS = mechanism(lambda rows, classes: Channel(rows / 2, classes, classes))
BY_CHANCE = mechanism(by_chance)
TURNED = mechanism(lambda rows, classes: Channel(rows, classes[::-1], classes))
REFUSING = mechanism(refusing)
RAISING_ROWS = mechanism(raising)
LEAVING_ROWS = mechanism(leaving)
SAYS_NO_TEXT = mechanism(says=None)
GOOD = mechanism()
BARE_PARAMETERS = replace(GOOD, parameters=("classes", "epsilon"))
LISTED_PARAMETERS = replace(GOOD, parameters=[*GOOD.parameters])
CHECKS_NEVER = replace(GOOD, parameters=(Parameter("classes"), Parameter("epsilon", "positive")))
NO_FUNCTION = replace(GOOD, channel=None)
NUMBERS_OF_TEXT = mechanism(outputs="numbers")


def more_outputs(rows, classes):
    rows = np.hstack([rows, rows[:, :1]])
    return Channel(rows / rows.sum(axis=1, keepdims=True), classes, (*classes, "SECRET"))


MORE_OUTPUTS = mechanism(more_outputs)
REMARKS_A_TEXT = mechanism(remarks="One sentence.")
SAYS_EMPTY_TEXT = mechanism(says=" ")


def drawing(draw):
    """Return a class of mechanisms that look at features, and draw labels by a function."""

    @dataclass(frozen=True)
    class Drawing(FeatureDependentLabel):
        traits = replace(NO_CHANNEL.traits, label_depends_on_features=True)
        declared = NO_CHANNEL.parameters
        classes: tuple
        stated: float
        channel = None
        description = "labels drawn by a function"

        @property
        def epsilon(self):
            return self.stated

        def sample_rows(self, labels, features, rng=None):
            return draw(labels)

    return Drawing


class BareParameters(drawing(None)):
    declared = ("classes", "epsilon")


class Lacking(drawing(None)):
    @property
    def channel(self):
        return self.lacking


DRAWS_WELL = drawing(lambda labels: labels.copy())
DRAWS_NOTHING = drawing(lambda _: None)
DRAWS_FEWER = drawing(lambda labels: labels[1:])
DRAWS_HALVES = drawing(lambda labels: labels / 2)
DRAWS_MORE = drawing(lambda labels: labels + 1)
DRAWS_LESS = drawing(lambda labels: labels - 1)
DRAWS_RAISING = drawing(raising)
