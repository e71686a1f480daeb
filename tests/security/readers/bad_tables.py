"""Bad tables, made at random: every format, every kind of damage, for every command.

``python tests/security/readers/bad_tables.py 5000 --seed 1`` tries so many, and prints what came
of them.
The cases are carried out in children (:mod:`fronts`), so a crash or a hang counts as a fault.
"""

import argparse
import collections
import gzip
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from security.readers.fronts import Outcome, here, in_child

BATCH = 40
"""Cases in one child."""
FORMATS = ("parquet", "csv", "csv.gz", "tsv", "jsonl", "feather", "arrow", "xlsx", "npz", "svm")
NAMES = (
    "label",
    "x",
    "",
    " ",
    "x,y",
    'a"b',
    "a\nb",
    "x;y",
    "\x00",
    "\u202e",
    "=1+1",
    "label ",
    "ä",
)
ZONES = ("UTC", "Europe/Nowhere", "+25:00", "", "Local")
RR = {"name": "randomized-response", "classes": ["A", "B"], "epsilon": 1.0}


def any_column(rng, n, depth=0):
    """Return a column of some type, with missing and extreme values."""
    choice = COLUMNS[rng.integers(len(COLUMNS))]
    column = choice(rng, n, depth)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if n and rng.random() < 0.3:
        mask = pa.array(rng.random(n) < rng.choice([0.05, 1.0]))
        try:
            column = pa.compute.if_else(mask, pa.scalar(None, column.type), column)
        except (pa.ArrowException, TypeError):
            return column
    return column


def _integers(rng, n, _):
    kind = np.dtype(rng.choice(["i1", "u1", "i2", "i4", "u4", "i8", "u8"]))
    ends = np.iinfo(kind)
    return pa.array(rng.choice(np.array([ends.min, 0, 1, ends.max], dtype=kind), n))


def _floats(rng, n, _):
    kind = str(rng.choice(["f2", "f4", "f8"]))
    values = [0.0, -0.0, 1.5, np.nan, np.inf, -np.inf, 5e-324, 1.7e308, 1e15]
    with np.errstate(over="ignore"):
        return pa.array(rng.choice(values, n).astype(kind))


def _texts(rng, n, _):
    words = ["", "A", "B", "NaN", "true", "1", "01", "é", "\u202e", "a\nb", "=x", '"', "z" * 5000]
    kind = (pa.string(), pa.large_string(), pa.string_view())[rng.integers(3)]
    return pa.array([words[i] for i in rng.integers(0, len(words), n)], kind)


def _bytes(rng, n, _):
    found = pa.array([bytes(rng.integers(0, 256, 3, dtype=np.uint8)) for _ in range(n)])
    return found.view(pa.string()) if rng.random() < 0.3 else found


def _fixed_bytes(rng, n, _):
    return pa.array([bytes(rng.integers(0, 2, 3, dtype=np.uint8)) for _ in range(n)], pa.binary(3))


def _times(rng, n, _):
    units = ("s", "ms", "us", "ns")
    kinds = [pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")]
    kinds += [
        pa.timestamp(u, None if rng.random() < 0.5 else str(rng.choice(ZONES))) for u in units
    ]
    kinds += [pa.duration(u) for u in units]
    kind = kinds[rng.integers(len(kinds))]
    wide = kind.bit_width == 64
    ends = (-(2**62), 2**62) if wide else (-(2**30), 2**30)
    numbers = rng.choice([0, 1, 86_400_000, 3_000_000, *ends], n)
    return pa.array(numbers.astype("i8" if wide else "i4")).view(kind)


def _decimals(rng, n, _):
    from decimal import Decimal

    kind = (
        pa.decimal256(70, 2) if rng.random() < 0.5 else pa.decimal128(38, int(rng.integers(0, 9)))
    )
    return pa.array([Decimal(int(i)) for i in rng.integers(-9, 9, n)], kind)


def _booleans(rng, n, _):
    return pa.array(rng.random(n) < 0.5)


def _classes(rng, n, _):
    return pa.array(rng.choice(["A", "B"], n))


def _dictionary(rng, n, depth):
    values = any_column(rng, 5, depth + 1)
    codes = pa.array(rng.integers(0, 5, n).astype(np.int32), mask=rng.random(n) < 0.1)
    try:
        return pa.DictionaryArray.from_arrays(codes, values)
    except pa.ArrowException:
        return codes


def _lists(rng, n, depth):
    if depth > 3:
        return _integers(rng, n, depth)
    lengths = rng.integers(0, 3, n) if rng.random() < 0.5 else np.full(n, 2)
    inner = any_column(rng, int(lengths.sum()), depth + 1)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, inner)


def _structures(rng, n, depth):
    if depth > 3:
        return _texts(rng, n, depth)
    parts = [any_column(rng, n, depth + 1) for _ in range(rng.integers(1, 3))]
    return pa.StructArray.from_arrays(parts, [f"f{i}" for i in range(len(parts))])


def _nothing(_, n, __):
    return pa.nulls(n)


def _same(rng, n, depth):
    return any_column(rng, 1, depth).take(pa.array(np.zeros(n, dtype=np.int64)))


COLUMNS = (
    *(_integers, _floats, _texts, _bytes, _fixed_bytes, _times, _decimals, _booleans, _classes),
    *(_dictionary, _lists, _structures, _nothing, _same),
)


def any_table(rng):
    """Return a table, mostly with a usable label, and columns of any kind."""
    n = int(rng.choice([0, 1, 2, 60, 300], p=[0.05, 0.05, 0.1, 0.5, 0.3]))
    count = int(rng.integers(0, 5))
    arrays = [any_column(rng, n) for _ in range(count)]
    names = [f"x{i}" for i in range(count)]
    if rng.random() < 0.15:
        names = [NAMES[i] for i in rng.integers(0, len(NAMES), count)]
    if rng.random() < 0.9:
        label = _classes(rng, n, 0) if rng.random() < 0.6 else any_column(rng, n)
        place = int(rng.integers(0, count + 1))
        arrays.insert(place, label)
        names.insert(place, "label")
    if rng.random() < 0.5 and n:
        arrays.append(any_column(rng, n) if rng.random() < 0.5 else pa.array(range(n)))
        names.append("id")
    return pa.Table.from_arrays(arrays, names)


def declared(rng):
    """Return what a file declares: nothing, something right, or something odd."""
    if rng.random() < 0.6:
        return None
    odd = [None, -1, 1e400, "", [], {}, "A", True, 2**70, [["A"]], "x" * 500]
    claim = {"version": 1, "label": "label", "mechanism": dict(RR)}
    while rng.random() < 0.5:
        part = claim if rng.random() < 0.4 else claim["mechanism"]
        if not isinstance(part, dict):
            break
        part[str(rng.choice(["label", "mechanism", "epsilon", "lambda", "classes", "by"]))] = odd[
            rng.integers(len(odd))
        ]
        if not isinstance(claim.get("mechanism"), dict):
            break
    return json.dumps(claim).encode()


def written(table, form, place, rng):
    """Write a table in a format as far as it can hold it; text where it cannot."""
    content = declared(rng)
    if content is not None:
        if form in ("parquet", "feather", "arrow"):
            table = table.replace_schema_metadata({b"ldpaudit": content})
        else:
            place.with_name(f"{place.name}.ldpaudit.json").write_bytes(content)
    if form == "parquet":
        pq.write_table(table, place, row_group_size=max(1, int(rng.choice([7, 1000]))))
    elif form == "feather":
        feather.write_feather(table, place)
    elif form == "arrow":
        with pa.OSFile(str(place), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
    else:
        place.write_bytes(_as_text(table, form, rng))


def _as_text(table, form, rng):
    if form in ("xlsx", "npz"):
        return _loaded(table, form)
    columns = [[_cell(value) for value in column] for column in table.columns]
    if form == "jsonl":
        rows = [
            dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)
        ]
        return "\n".join(json.dumps(row) for row in rows).encode()
    if form == "svm":
        numbers = rng.choice(
            ["1", "0", "A", "1e400", "nan"], table.num_rows, p=[0.5, 0.4, *[1 / 30] * 3]
        )
        return "\n".join(f"{n} {i % 9}:{i} 99:1" for i, n in enumerate(numbers)).encode()
    mark = "\t" if form == "tsv" else str(rng.choice([",", ",", ",", ";", "|"]))
    lines = [table.schema.names, *map(list, zip(*columns, strict=True))]
    text = "\n".join(mark.join(map(str, line)) for line in lines)
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-8"]))
    content = text.encode(encoding, errors="replace")
    return gzip.compress(content) if form.endswith("gz") else content


def _cell(value):
    try:
        found = value.as_py()
        json.dumps(found)
    except (TypeError, ValueError, OverflowError, UnicodeError, pa.ArrowException):
        return str(type(value).__name__)
    return "" if found is None else found


def _loaded(table, form):
    import io

    out = io.BytesIO()
    if form == "npz":
        arrays = {}
        for place, name in enumerate(table.schema.names):
            cells = [_cell(value) for value in table.column(place)]
            try:
                arrays[name.replace("\x00", "0") or "none"] = np.array(cells)
            except ValueError:
                arrays[name or "none"] = np.arange(table.num_rows)
        np.savez(out, **{k: v for k, v in arrays.items() if k != "file"})
        return out.getvalue()
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    columns = [[_cell(value) for value in column] for column in table.columns]
    for row in (table.schema.names, *zip(*columns, strict=True)):
        sheet.append([_in_sheet(cell) for cell in row])
    book.save(out)
    return out.getvalue()


def _in_sheet(cell):
    if isinstance(cell, str):
        return "".join(c for c in cell if c.isprintable())[:100]
    return cell if isinstance(cell, int | float | bool) else str(cell)[:50]


def damaged(content, rng):
    """Return a file's bytes with one damage: cut, flipped, doubled, filled, turned."""
    if not content:
        return b"\xff"
    cut, kind = int(rng.integers(0, len(content))), int(rng.integers(0, 7))
    spoilt = bytearray(content)
    if kind == 0:
        return content[:cut]
    if kind == 1:
        for place in rng.integers(0, len(content), int(rng.integers(1, 9))):
            spoilt[place] ^= 1 << int(rng.integers(8))
        return bytes(spoilt)
    if kind == 2:
        return content[:cut] + content[max(0, cut - 50) :]
    if kind == 3:
        return content[:cut] + b"\x00" * 40 + content[cut:]
    if kind == 4:
        return b"\xef\xbb\xbf\xff\xfe"[: int(rng.integers(2, 6))] + content
    if kind == 5:
        return content[:cut] + bytes(rng.integers(0, 256, 30, dtype=np.uint8)) + content[cut + 30 :]
    return content[cut:] + content[:cut]


def commands(file, other, rng):
    """Return the words of a command that reads the table."""
    claim = ["--mechanism", "rr", "--epsilon", "1"]
    run = ["run", file, "--only", "mechanism", *(claim if rng.random() < 0.7 else [])]
    run += ["--json", "a.json"]
    beside = ["--truth", "--original", "--test", "--synthetic", "--held-out"][rng.integers(5)]
    made = ["privatize", file, "-o", f"new.{rng.choice(['parquet', 'csv', 'jsonl', 'feather'])}"]
    forms = (
        run,
        run,
        [*run, beside, other],
        [*run, "--id", "id"],
        [*run, "--truth", other, "--id", "id"],
        [*run, "--truth-column", "x0"],
        [*run, "--group", "id"],
        [*made, *claim],
        [*made, *claim],
        [*made, *claim, "--secret", "s.parquet", "--id", "id"],
        [*made, "--mechanism", "laplace", "--epsilon", "1", "--labels", "0:10"],
        ["declare", file, *claim, "--label", "label", "-o", "d." + file.partition(".")[2]],
        ["declare", file],
        ["compare", file, other, "--json", "c.json"],
        ["learn", file, "--test", other],
        [
            "sweep",
            file,
            "--mechanism",
            "rr",
            "--epsilon",
            "1",
            "--repeats",
            "1",
            "--json",
            "s.json",
        ],
        ["advise", file, "--label", "label", "--policy", "ldpaudit:default", "--minutes", "0.02"],
    )
    weights = np.array([3, 3, 2, 2, 2, 2, 2, 3, 3, 2, 2, 2, 1, 0.3, 1, 0.3, 0.2])
    return forms[rng.choice(len(forms), p=weights / weights.sum())]


def case(number, seed, folder):
    """Make the files of a case and return its words."""
    rng = np.random.default_rng((seed, number))
    names = []
    for stem in ("t", "o"):
        form = FORMATS[rng.integers(len(FORMATS))]
        place = folder / f"{stem}.{form}"
        try:
            written(any_table(rng), form, place, rng)
        except (pa.ArrowException, ValueError, TypeError, OverflowError, KeyError, OSError):
            place.write_bytes(b"label,x0\nA,1\nB,2\n" * 20)  # The format cannot hold it.
        if rng.random() < 0.35:
            place.write_bytes(damaged(place.read_bytes(), rng))
        names.append(place.name)
    return commands(names[0], names[1], rng)


def batch(numbers, seed):
    """Carry out cases one after the other in one child, which is far faster than one for each.

    Yields each case's number, words and outcome; a case that ends the child counts as well.
    """
    left = list(numbers)
    while left:
        with tempfile.TemporaryDirectory() as name:
            notes = Path(name) / "notes"
            whole = in_child(partial(_all, left, seed, notes), seconds=60 * len(left))
            done = [json.loads(line) for line in notes.read_text().splitlines()]
        for number, words, status, text, seconds in done:
            yield number, words, Outcome(status, text, seconds, 0)
        left = left[len(done) :]
        if left:
            words = ["case", str(left[0])]
            yield left.pop(0), words, Outcome(whole.status or 98, whole.text, whole.seconds, 0)


def _all(numbers, seed, notes):
    notes.touch()
    for number in numbers:
        with tempfile.TemporaryDirectory() as name:
            words, started = case(number, seed, Path(name)), time.process_time()
            status, text = here(words, Path(name))
            line = [number, words, status, text, time.process_time() - started]
        with notes.open("a") as out:
            out.write(json.dumps(line) + "\n")


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(given=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9)
    asked = parser.parse_args(given)
    started, spent, done = time.monotonic(), 0.0, 0
    seen = collections.Counter()
    faults = 0
    last = asked.first + asked.cases
    for start in range(asked.first, last, BATCH):
        if time.monotonic() - started > 60 * asked.minutes:
            break
        for number, words, outcome in batch(range(start, min(start + BATCH, last)), asked.seed):
            done, spent = done + 1, spent + outcome.seconds
            seen[f"{words[0]} {outcome.status}"] += 1
            if outcome.faulty:
                faults += 1
                end = outcome.lines[-1][:110] if outcome.lines else ""
                say(f"{number}: {outcome.faulty}: {' '.join(words)} | {end}")
    say(f"{done} cases, seed {asked.seed}: {faults} faults, {spent:.0f} s of CPU time")
    say(", ".join(f"{key}: {count}" for key, count in sorted(seen.items())))
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
