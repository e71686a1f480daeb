"""Command lines with bad words, and with files that nobody should have written."""

import bz2
import gzip
import io
import json
import lzma
import random
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from fuzz.mutations import broken, changed, document, number, one_or_other, text, toml

STORED: Final = Path(__file__).parent.parent / "result" / "stored"
NAMES: Final = (
    *("randomized-response", "rr", "double-rr", "dummy-features-rr", "rr-top-k", "rr-on-bins"),
    *("optimal-unbiased", "debiased-rr", "laplace", "discrete-laplace", "staircase", "exponential"),
    *("discrete-staircase", "gaussian-rr", "channel", "unknown", "model-based-rr", "joint-rr"),
    *("rs-fd", "frequency-oracle", "by-stratum", "label-proportions", "olh"),
)
CLASSES: Final = ("a,b", "no,yes", "1,2,3", "a,b,c,d", "0,1", '"a,b",c', "0.5,1.5", "true,false")
RANGES: Final = ("0:10:1", "0:1", "0:100:5", "-3:3:0.5", "0:4:1", "1:20:1")


@dataclass(frozen=True)
class Line:
    """A command line, and the files that it needs, by their names."""

    words: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)


def _option(rng: random.Random, name: str, value: str, often: float = 0.9) -> tuple[str, ...]:
    return (f"{name}={value}",) if rng.random() < often else ()


def _labels(rng: random.Random) -> tuple[str, ...]:
    if rng.random() < 0.5:
        return _option(rng, "--classes", one_or_other(rng, CLASSES, _list(rng), 0.8))
    return _option(rng, "--labels", one_or_other(rng, RANGES, _range(rng), 0.6))


def _list(rng: random.Random) -> str:
    return ",".join(
        text(rng) if rng.random() < 0.6 else number(rng) for _ in range(rng.randint(1, 6))
    )


def _range(rng: random.Random) -> str:
    return ":".join(number(rng) for _ in range(rng.choice((1, 2, 3, 3, 3, 4))))


def _amount(rng: random.Random) -> tuple[str, ...]:
    name = rng.choice(("--epsilon", "--epsilon", "--lambda"))
    return _option(rng, name, one_or_other(rng, ("0.3", "1", "5"), number(rng), 0.6))


def _setting(rng: random.Random) -> tuple[str, ...]:
    keys = ("clipped", "gamma", "sigma", "floor", "width", "k", "g", "hash", "radius", "round", "x")
    if rng.random() < 0.2:
        return (f"--set=protocol={rng.choice(('GRR', 'SUE', 'OUE', 'BLH', 'OLH', 'SS', 'SHE'))}",)
    return _option(rng, "--set", f"{rng.choice(keys)}={number(rng)}", 0.3)


def _prior(rng: random.Random) -> tuple[tuple[str, ...], dict[str, bytes]]:
    if rng.random() < 0.6:
        return (), {}
    rows = [
        f"{text(rng) if rng.random() < 0.2 else n},{number(rng)}" for n in range(rng.randint(0, 12))
    ]
    if rng.random() < 0.4:
        rows = [f"{n},{1 / 11}" for n in range(11)]
    content = "\n".join(["label,probability", *rows]).encode("utf-8", "replace")
    return ("--prior", "prior.csv"), {
        "prior.csv": broken(content, rng) if rng.random() < 0.4 else content
    }


def describe(rng: random.Random) -> Line:
    """``mechanism describe`` with odd names, amounts, labels, settings and priors."""
    words, files = _prior(rng)
    domains = [w for _ in range(rng.choice((0, 0, 0, 2))) for w in ("--domain", _list(rng))]
    name = one_or_other(rng, NAMES, text(rng), 0.95)
    amounts = (*_amount(rng), *_labels(rng), *_setting(rng), *words, *domains)
    return Line(("mechanism", "describe", *amounts, "--", name), files)


def design(rng: random.Random) -> Line:
    """``mechanism design`` with odd ranges and budgets."""
    words, files = _prior(rng)
    if rng.random() < 0.4:
        files = {"data.csv": b"label,x\n" + b"".join(b"%d,1\n" % (n % 11) for n in range(150))}
        words = ("--data", "data.csv", "--label", "label", f"--private-prior={number(rng)}")
    labels = one_or_other(rng, ("0:10:1", "0:10"), _range(rng), 0.5)
    epsilon = one_or_other(rng, ("1", "2"), number(rng), 0.3)
    loss = ("--loss", rng.choice(("squared", "absolute", "poisson")))
    line = ("mechanism", "design", f"--labels={labels}", f"--epsilon={epsilon}", *loss, *words)
    return Line(line, files)


def compose(rng: random.Random) -> Line:
    """``mechanism compose`` of specifications and of files with declarations."""
    files, parts = {}, []
    for place in range(rng.randint(1, 3)):
        if rng.random() < 0.3:
            files[f"r{place}.csv"] = b"label,x\na,1\nb,2\n"
            files[f"r{place}.csv.ldpaudit.json"] = declaration(rng)
            parts.append(f"r{place}.csv")
            continue
        keys = ("epsilon", "epsilon", "lambda", "times", "clipped", "sigma", "k", "classes")
        settings = (f"{rng.choice(keys)}={number(rng)}" for _ in range(rng.randint(0, 3)))
        parts.append(f"{one_or_other(rng, NAMES, text(rng), 0.95)}:{','.join(settings)}")
    return Line(("mechanism", "compose", *_labels(rng), "--", *parts), files)


def channel(rng: random.Random) -> Line:
    """``mechanism channel`` of tables with odd cells, names and shapes."""
    k, m = rng.randint(2, 6), rng.randint(2, 6)
    rows = [["label", *(f"o{j}" for j in range(m))]]
    for i in range(k):
        tiny = rng.choice((0.0, 5e-324, 1e-300, 1e-20, 0.1))
        own = [tiny] * m
        own[i % m] = 1 - tiny * (m - 1)
        rows.append([f"c{i}", *map(repr, own)])
    for _ in range(rng.choice((0, 0, 1, 2))):
        row = rng.choice(rows)
        row[rng.randrange(len(row))] = number(rng) if rng.random() < 0.6 else text(rng)
    content = "\n".join(rng.choice((",", ",", ";", "\t")).join(row) for row in rows)
    whole = content.encode("utf-8", "replace")
    words, files = _prior(rng)
    mine = {"channel.csv": broken(whole, rng) if rng.random() < 0.3 else whole}
    return Line(("mechanism", "channel", "channel.csv", *words), {**files, **mine})


DECLARED: Final[tuple[dict[str, Any], ...]] = (
    {
        "version": 1,
        "label": "label",
        "mechanism": {"name": "randomized-response", "classes": ["a", "b"], "epsilon": 1.0},
        "provenance": {
            "randomness": "operating system",
            "classes": "declared",
            "epsilon": {"prior": 0.5, "labels": 0.5, "total": 1.0},
        },
    },
    {
        "version": 1,
        "label": "label",
        "mechanism": {
            "name": "channel",
            "classes": ["a", "b"],
            "outputs": ["a", "b"],
            "matrix": [[0.7, 0.3], [0.3, 0.7]],
        },
        "provenance": {"generator": {"trained_on": "public"}, "randomness": "experimental, seed 1"},
    },
    {
        "version": 2,
        "labels": [
            {"label": "label", "mechanism": {"name": "randomized-response", "lambda": 0.3}},
            {
                "label": "y",
                "by": "town",
                "mechanism": {
                    "name": "by-stratum",
                    "strata": [
                        {
                            "value": "n",
                            "mechanism": {"name": "randomized-response", "epsilon": 1.0},
                        },
                        {"value": "s", "mechanism": {"name": "randomized-response", "lambda": 0.5}},
                    ],
                },
            },
        ],
    },
    {
        "version": 2,
        "labels": [{"label": "label"}, {"label": "y"}],
        "mechanism": {"name": "rs-fd", "domains": [["a", "b"], ["c", "d"]], "epsilon": 1.0},
    },
    {
        "version": 1,
        "label": "x0",
        "mechanism": {"name": "laplace", "low": 0, "high": 10, "step": 1, "epsilon": 1.0},
    },
    {
        "version": 1,
        "label": "x0",
        "mechanism": {
            "name": "rr-on-bins",
            "low": 0,
            "high": 4,
            "step": 1,
            "epsilon": 1.0,
            "bins": [0, 2],
            "outputs": [0.5, 3.0],
        },
    },
)


def declaration(rng: random.Random) -> bytes:
    """Return a declaration with something wrong in it."""
    value = rng.choice(DECLARED)
    if rng.random() < 0.3:
        value = changed(value, random.Random(rng.random()))
        if isinstance(value, dict) and isinstance(value.get("mechanism"), dict):
            value["mechanism"]["name"] = rng.choice(NAMES)
    content = document(changed(value, rng, rng.choice((1, 1, 2, 4))))
    return broken(content, rng) if rng.random() < 0.2 else content


_ROWS: Final = "".join(
    f"{'ab'[n % 2]},{'cd'[n // 2 % 2]},{'ns'[n // 3 % 2]},{n % 11},{n * 7 % 13}\n"
    for n in range(60)
)
TABLE: Final = f"label,y,town,x0,x1\n{_ROWS}".encode()


def declared(rng: random.Random) -> Line:
    """``run`` and ``declare`` of a table beside which a bad declaration lies."""
    files = {"r.csv": TABLE, "r.csv.ldpaudit.json": declaration(rng)}
    if rng.random() < 0.3:
        return Line(("declare", "r.csv"), files)
    return Line(("run", "r.csv", "--only", "mechanism", "--json", "out.json"), files)


def claimed(rng: random.Random) -> Line:
    """``run``, ``declare`` and ``privatize`` with odd claims on the command line."""
    keys = ("epsilon", "lambda", "classes", "labels", "prior", "private-prior", "loss", "round")
    keys = (*keys, "clip", "channel", "by", "zzz")
    labels = []
    for _ in range(rng.choice((1, 1, 2))):
        parts = [f"{rng.choice(keys)}={rng.choice((number, text, _list, _range))(rng)}"]
        name = one_or_other(rng, ("label", "y", "x0"), text(rng), 0.8)
        parts = [name, one_or_other(rng, NAMES, text(rng), 0.9), *parts * rng.choice((1, 1, 0))]
        labels.append(f"--label={':'.join(parts)}")
    if rng.random() < 0.4:
        labels = [*_amount(rng), f"--mechanism={rng.choice(NAMES)}"]
        labels += _option(rng, "--labels", _range(rng), 0.3)
    command = rng.choice(("run", "declare", "privatize"))
    more = {
        "run": ("--only", "mechanism", "--json", "out.json"),
        "declare": ("-o", "out.csv"),
        "privatize": ("-o", "out.csv"),
    }
    return Line((command, *labels, *more[command], "r.csv"), {"r.csv": TABLE})


POLICY: Final[dict[str, Any]] = {
    "schema": 1,
    "extends": "ldpaudit:default",
    "claim": {"mechanism": "randomized-response", "epsilon": 1.0},
    "audit": {
        "seed": 1,
        "confidence": 0.95,
        "correction": "holm",
        "min_rows": 10,
        "max_undetected_excess": 0.5,
    },
    "checks": {
        "claimed-epsilon": {"level": "error"},
        "instance-loss-exceedance": {"level": "error", "at": "claim + 5", "max": 0.05},
        "label-inference-advantage": {"level": "warn", "max": "claim"},
        "renyi-epsilon": {"level": "warn", "alpha": 2.0, "max": 3.0},
        "identifiers": {"max": 2},
    },
    "waivers": [
        {
            "check": "claimed-epsilon",
            "release_sha256": "0" * 64,
            "reason": "r",
            "approved_by": "b",
            "expires": "2027-01-01",
        }
    ],
}


def policy(rng: random.Random) -> Line:
    """``policy check``, and ``run --policy``, of a bad policy."""
    content = toml(changed(POLICY, rng, rng.choice((1, 1, 2, 4)))).encode("utf-8", "replace")
    if rng.random() < 0.3:
        content = broken(content, rng)
    if rng.random() < 0.8:
        return Line(("policy", "check", "p.toml"), {"p.toml": content})
    words = ("run", "r.csv", "--policy", "p.toml", "--only", "mechanism", "--json", "out.json")
    return Line(words, {"p.toml": content, "r.csv": TABLE})


PLAN: Final[dict[str, Any]] = {
    "labels": [
        {"label": "label", "mechanism": "rr", "epsilon": 1.0, "classes": ["a", "b"]},
        {
            "label": "y",
            "by": "town",
            "mechanism": "rr",
            "strata": {"n": {"epsilon": 1.0}, "s": {"epsilon": 0.5}},
        },
        {"label": "x0", "mechanism": "laplace", "labels": "0:10:1", "epsilon": 1.0, "clip": True},
    ],
    "joint": {"mechanism": "joint-rr", "epsilon": 1.0},
}


def plan(rng: random.Random) -> Line:
    """``privatize --plan`` of a bad plan."""
    whole = changed(PLAN, rng, rng.choice((1, 1, 2, 4)))
    if isinstance(whole, dict) and rng.random() < 0.8:
        whole.pop("joint", None)
    content = toml(whole).encode("utf-8", "replace")
    files = {"r.csv": TABLE, "p.toml": broken(content, rng) if rng.random() < 0.3 else content}
    return Line(("privatize", "r.csv", "--plan", "p.toml", "-o", "out.csv"), files)


def result(rng: random.Random) -> Line:
    """``report`` of a stored result that somebody changed."""
    value = json.loads(rng.choice(sorted(STORED.glob("*.json"))).read_text(encoding="utf-8"))
    content = document(changed(value, rng, rng.choice((1, 1, 2, 4))))
    if rng.random() < 0.2:
        content = broken(content, rng)
    to = rng.choice(("--markdown", "--junit", "--sarif", "--json", "--markdown"))
    return Line(("report", "r.json", to, "out.txt"), {"r.json": content})


def grid(rng: random.Random) -> Line:
    """``sweep`` with odd grids, and over a folder with bad files."""
    words = ("sweep", "r.csv", f"--mechanism={one_or_other(rng, NAMES, text(rng), 0.8)}")
    values = rng.choice((_list, _range, number))(rng)
    amount = (f"{rng.choice(('--epsilon', '--lambda'))}={values}",)
    if rng.random() < 0.3:
        files = {"out/manifest.json": broken(b'{"format": "ldpaudit-sweep", "version": "0"}', rng)}
        return Line((*words, *amount, "--out", "out", "--resume"), {"r.csv": TABLE, **files})
    keep = number(rng) if rng.random() < 0.5 else "-1"
    return Line((*words, *amount, f"--repeats={keep}"), {"r.csv": TABLE})


def black_box(rng: random.Random) -> Line:
    """``mechanism audit`` with odd names of randomizers, inputs and amounts."""
    names = ("x:y", "os:getcwd", "m.py:f", "m.py:", ":", "m.py", "math:pi", "json:loads", "m.py:g")
    inputs = rng.choice((_list(rng), "[" * 2000, document([text(rng), 1]).decode(), "[1, NaN]"))
    options = ("--epsilon", "--delta", "--confidence", "--samples", "--timeout", "--threads")
    more = (f"{rng.choice(options)}={number(rng)}" for _ in range(rng.choice((0, 1, 2))))
    name = one_or_other(rng, names, text(rng), 0.8)
    files = {"m.py": b"def f(value, n, rng):\n    raise OSError('x')\n"}
    return Line(("mechanism", "audit", f"--inputs={inputs}", *more, "--", name), files)


_AMOUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": (
        *("seed", "projection", "queries", "neighbors", "threads", "memory"),
        *("seeds-tried", "made-on", "timeout", "separator", "decimal", "encoding", "sheet"),
    ),
    "privatize": (
        *("private-prior", "floor", "radius", "sigma", "feature-epsilon", "delta", "seed"),
        *("synthetic-rows", "separator", "decimal", "encoding"),
    ),
    "sweep": ("repeats", "test-share", "seed", "processes", "threads", "memory"),
    "advise": ("minutes", "seed", "threads", "for"),
    "compare": ("seed", "queries", "neighbors", "threads", "memory"),
}
_WHOLE: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("r.csv", "--epsilon=1", "--only=mechanism", "--json=out.json"),
    "privatize": ("r.csv", "--output=out.csv", "--mechanism=rr", "--epsilon=1"),
    "sweep": ("r.csv", "--mechanism=rr", "--epsilon=1", "--only=mechanism", "--label=nolabel"),
    "advise": ("r.csv", "--policy=ldpaudit:default", "--label=nolabel"),
    "compare": ("r.csv", "r.csv", "--only=mechanism"),
}


def amounts(rng: random.Random) -> Line:
    """Commands with odd numbers in their options."""
    command = rng.choice(tuple(_AMOUNTS))
    chosen = rng.sample(_AMOUNTS[command], rng.choice((1, 1, 2)))
    odd = (f"--{name}={rng.choice((number, number, text))(rng)}" for name in chosen)
    return Line((command, *_WHOLE[command], *odd), {"r.csv": TABLE})


_PACKING: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: _stream(content),
    "gz": lambda content: gzip.compress(content, mtime=0),
}


def _stream(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


_OF_STATISTICS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "dta": ("write_dta", {}),
    "sav": ("write_sav", {}),
    "zsav": ("write_sav", {"compress": True}),
    "xpt": ("write_xport", {}),
}
FORMATS: Final = ("csv", "jsonl", "parquet", "feather", "orc", "zip", *_PACKING, *_OF_STATISTICS)


def _in_format(form: str, rng: random.Random) -> bytes:
    """Return the table in a format; one that holds it may be broken inside of its packing."""
    content = broken(TABLE, rng) if rng.random() < 0.5 else TABLE
    if form == "csv":
        return content
    if form in _PACKING:
        return _PACKING[form](content)
    if form == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for _ in range(rng.choice((1, 1, 1, 0))):
                archive.writestr(rng.choice(("r.csv", "r.jsonl", "r.bin", "a/r.csv")), content)
        return packed.getvalue()
    frame = pd.read_csv(io.BytesIO(TABLE))
    if form in ("parquet", "feather") and rng.random() < 0.3:
        frame["x1"] = frame["x1"].astype("category")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"r.{form}"
        if form in _OF_STATISTICS:
            import pyreadstat

            name, options = _OF_STATISTICS[form]
            write = getattr(pyreadstat, name)
            labels = {} if form == "xpt" else {"variable_value_labels": {"x0": {1: "one"}}}
            write(frame.astype({"x1": int}), str(place), **options, **labels)
        elif form == "jsonl":
            frame.to_json(place, orient="records", lines=True)
        else:
            getattr(frame, f"to_{form}")(place)
        return place.read_bytes()


def table(rng: random.Random) -> Line:
    """``run``, ``privatize``, ``declare`` of a table in any format, broken or of another name."""
    form = rng.choice(FORMATS)
    content = _in_format(form, rng)
    content = broken(content, rng) if rng.random() < 0.6 else content
    content = content[: rng.randrange(len(content) + 1)] if rng.random() < 0.2 else content
    name = f"r.{form if rng.random() < 0.9 else rng.choice(FORMATS)}"
    words = ("--mechanism", "rr", "--epsilon", "1")
    lines = (
        ("run", name, *words, "--only", "mechanism", "--json", "out.json"),
        ("privatize", name, *words, "-o", f"out.{rng.choice((form, 'parquet', 'csv'))}"),
        ("declare", name, *words),
    )
    return Line(rng.choice(lines), {name: content})


KINDS: Final[Mapping[str, Callable[[random.Random], Line]]] = {
    "mechanism describe": describe,
    "mechanism design": design,
    "mechanism compose": compose,
    "channel files": channel,
    "declarations": declared,
    "claims on the command line": claimed,
    "policies": policy,
    "plans": plan,
    "stored results": result,
    "sweeps": grid,
    "black-box audits": black_box,
    "numbers in options": amounts,
    "tables in files": table,
}
"""What makes a bad command line, by the kind of input."""
