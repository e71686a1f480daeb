"""The invocations of the command line whose whole results are recorded.

A line is what follows ``ldpaudit``; names of files are those of :mod:`golden.inputs`, or of what
the lines ``before`` have made.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Invocation:
    """One command line.

    Attributes
    ----------
    name : str
        Of the recording.
    line : str
        What follows ``ldpaudit``, separated by spaces.
    before : tuple of str
        Command lines that make its inputs.
    page : bool
        Whether the words of the page are recorded too.
    timed : bool
        Whether its printed lines end in seconds.
    real : bool
        Whether it reads a public table.
    """

    name: str
    line: str
    before: tuple[str, ...] = ()
    page: bool = False
    timed: bool = False
    real: bool = False


PICTURED = {"run-rr-all-audits", "run-rr-dishonest", "run-laplace", "run-double-rr"}
"""The invocations whose parts for pictures are recorded, too: they are many numbers."""
LONG = {
    "demo",  # test_demonstration.py, with the audits that decide
    "sweep-classes",  # tests/extras/choose/sweep, tests/stranger
    "sweep-numbers",  # tests/extras/choose/sweep
    "compare-numbers",  # tests/extras/compare/test_differences.py
    "compare-policy-slices",  # run-rr-slices, run-rr-claim-of-policy
    "run-staircase",  # privatize-staircase, describe-staircase, run-discrete-staircase
    "run-numbers-claimed",  # run-discrete-laplace
    "run-fertility",  # run-discrete-laplace
    "run-rr-dishonest",  # tests/stranger, tests/zoo
    "run-rr-policy",  # run-rr-claim-of-policy
    "run-rr-ints",  # run-rr-slices
    "run-laplace",  # run-discrete-laplace, tests/audits/test_numeric_inference.py
    # run-discrete-laplace, tests/extras/release/privatize/test_round_trip.py
    "run-discrete-staircase",
    "run-exponential",  # run-channel-option, tests/extras/release/privatize/test_round_trip.py
    "run-debiased-rr",  # run-rr-on-bins
    "run-rr-without-truth",  # run-numbers-without-truth, tests/stranger
    "run-rr-top-k",  # run-rr-on-bins
    "run-rr-three-words",  # run-rr-slices
    "run-rr-public-rows",  # run-rr-slices, tests/attacks
    "run-channel-file",  # run-channel-option, tests/audits/label_inference
    "run-double-rr-outsider",  # run-double-rr
    "run-optimal-unbiased",  # privatize-optimal-unbiased, run-rr-on-bins
    "run-gaussian-rr",  # privatize-gaussian-rr, describe-gaussian-rr, run-rr-all-audits
    "run-adult",  # run-diabetes130, run-skin, run-rr-slices
    "run-oracle-oue",  # run-oracle-ss, tests/audits/mechanism/test_local_reports.py
    "run-oracle-she",  # run-oracle-ss, tests/audits/mechanism/test_local_reports.py
    "compare-results",  # compare-three-with-test, tests/extras/compare
    "mechanism-audit-unary",  # mechanism-audit-grr, tests/extras/probe/black_box
    "mechanism-audit-leaky",  # mechanism-audit-grr, tests/extras/probe/black_box
    "mechanism-audit-noisy",  # mechanism-audit-grr, tests/extras/probe/black_box
}
"""The recordings of which `make test` needs no run: where else their paths are taken."""


def _made(rest: str, table: str = "pairs", to: str = "r") -> str:
    return f"privatize {table}.parquet -o {to}.parquet --experimental --seed 3 --mechanism {rest}"


def _run(name: str, options: str, *made: str, real: bool = False) -> Invocation:
    line = options if options.startswith("run ") else f"run r.parquet {options}".rstrip()
    return Invocation(f"run-{name}", line, made, real=real)


RR, TRUTH = "randomized-response --epsilon 1", "--truth pairs.parquet"
CLAIM = "--only mechanism --only power"
GUESS = "--only mechanism --only label-inference --only power"
NUMBERS = "--only mechanism --only numeric-inference --only power"
BAGS = "--truth bag_truth.parquet"
REPORTS = "--truth report_truth.parquet"
WEEKS = "--truth weeks.parquet"
GRID = "--labels 0:10:1 --epsilon 1"
SYNTHETIC = "--synthetic public.parquet"
DOUBLE = f"double-rr --lambda 0.5 {SYNTHETIC}"
CELLS = "model-based-rr --lambda 0.5 --floor 0.05 --public cells_public.parquet"
GAUSSIAN = "gaussian-rr --epsilon 1 --drop town --radius 3 --project --sigma 2 --delta 1e-5"

RUNS = (
    _run("rr-all-audits", TRUTH, _made(RR)),
    _run("rr-without-truth", "", _made(RR)),
    _run("rr-three-words", f"--truth words.parquet {GUESS}", _made(RR, "words")),
    _run("rr-ints", f"--truth ints.parquet {GUESS}", _made(RR, "ints")),
    _run(
        "rr-options",
        f"run words.parquet --mechanism rr --lambda 0.4 --truth words.parquet {CLAIM}",
    ),
    _run("rr-dishonest", "run lying.parquet --truth pairs.parquet --skip instance-loss"),
    _run(
        "csv-joined",
        f"run ids.csv --mechanism rr --epsilon 2 --truth ids_truth.csv --id who {CLAIM}",
    ),
    _run(
        "truth-column", f"run told.parquet --truth-column copy --mechanism rr --lambda 0.1 {CLAIM}"
    ),
    _run(
        "rr-policy",
        f"{TRUTH} --seed 11 --policy policy.toml",
        _made("randomized-response --epsilon 2"),
    ),
    _run("rr-claim-of-policy", f"{TRUTH} {CLAIM} --policy claim.toml", _made(RR)),
    _run("rr-slices", f"{TRUTH} {GUESS} --slice town", _made(RR)),
    _run("rr-public-rows", f"{TRUTH} {GUESS} --public public.parquet", _made(RR)),
    _run(
        "rr-neighbours",
        f"{TRUTH} --only mechanism --only instance-loss --queries 100 --neighbors 20 --metric raw",
        _made(RR),
    ),
    _run("unknown", f"run pairs.parquet --mechanism unknown {GUESS}"),
    _run(
        "unknown-with-truth", f"run held.parquet --mechanism unknown --truth held.parquet {CLAIM}"
    ),
    _run("channel-file", f"{TRUTH} {GUESS}", _made("channel --channel lopsided.csv")),
    _run(
        "channel-option",
        f"run pairs.parquet {TRUTH} --channel lopsided.csv {CLAIM}",
    ),
    _run(
        "rr-top-k",
        f"--truth words.parquet {GUESS}",
        _made("rr-top-k --epsilon 1 --prior prior.csv", "words"),
    ),
    _run(
        "model-based-rr-posterior",
        "--truth cells.parquet --public-posterior posterior.csv --canaries canaries.csv "
        "--only mechanism --only observational --only power",
        _made(CELLS, "cells"),
    ),
    _run(
        "model-based-rr-public",
        "--truth cells.parquet --public cells_public.parquet --only observational",
        _made(CELLS, "cells"),
    ),
    _run(
        "double-rr",
        f"{TRUTH} --original pairs.parquet {SYNTHETIC} --held-out held.parquet",
        _made(DOUBLE),
    ),
    _run("double-rr-outsider", f"{TRUTH} {SYNTHETIC} {GUESS}", _made(DOUBLE)),
    _run("dummy-features-rr", f"{TRUTH} {GUESS}", _made("dummy-features-rr --epsilon 1")),
    _run("gaussian-rr", f"{TRUTH} {GUESS}", _made(GAUSSIAN)),
    *(
        _run(
            name,
            f"{WEEKS} {NUMBERS}",
            _made(f"{name} {GRID} {options}", "weeks"),
        )
        for name, options in {
            "rr-on-bins": "--prior weeks.csv",
            "optimal-unbiased": "--private-prior 0.3 --loss squared",
            "debiased-rr": "",
            "discrete-laplace": "--clip",
            "discrete-staircase": "",
            "exponential": "",
        }.items()
    ),
    _run(
        "laplace",
        f"{WEEKS} --skip renyi",
        _made("laplace --labels 0:10 --epsilon 1", "weeks"),
    ),
    _run(
        "numbers-claimed",
        f"run weeks.parquet {WEEKS} --mechanism discrete-laplace {GRID} {NUMBERS}",
    ),
    _run(
        "staircase",
        f"{WEEKS} {NUMBERS}",
        _made("staircase --labels 0:10 --epsilon 2", "weeks"),
    ),
    _run(
        "numbers-without-truth",
        NUMBERS,
        _made(f"discrete-laplace {GRID}", "weeks"),
    ),
    _run("label-proportions", f"run shares.parquet {BAGS} --only aggregates --only mechanism"),
    _run("label-proportions-noise", f"run sums.parquet {BAGS}"),
    _run("label-proportions-without-truth", "run sums.parquet"),
    *(
        _run(f"oracle-{name}", f"run {name}.parquet {REPORTS} {CLAIM}")
        for name in ("grr", "ss", "she", "olh")
    ),
    _run("oracle-oue", f"run oue.parquet {REPORTS} {GUESS}"),
    _run("oracle-without-truth", f"run oue.parquet {CLAIM}"),
)

REAL = tuple(
    _run(name, f"--label {label} --truth {name}.parquet {only}", _made(f"{made} --label {label}",
         name), real=True)
    for name, label, made, only in (
        ("adult", "income", RR, GUESS),
        ("diabetes130", "readmitted", RR, "--only instance-loss --only renyi"),
        ("skin", "label", "randomized-response --lambda 0.3", "--only renyi"),
        ("fertility", "work", "discrete-laplace --labels 0:52:1 --epsilon 1", NUMBERS),
    )
)  # fmt: skip

FILES = "--json c.json --html c.html --only mechanism --only label-inference --only power"
COMPARISONS = tuple(
    Invocation(f"compare-{name}", f"compare {line}", made, page=name == "rr-double")
    for name, line, made in (
        (
            "rr-double",
            f"r.parquet d.parquet {TRUTH} --original pairs.parquet {SYNTHETIC} {FILES}",
            (_made(RR), _made(DOUBLE, to="d")),
        ),
        (
            "three-with-test",
            f"a.parquet b.parquet c.parquet {TRUTH} --test held.parquet "
            "--json c.json --html c.html --only mechanism",
            tuple(_made(f"rr --epsilon {e}", to=to) for to, e in (("a", 1), ("b", 2), ("c", 0.3))),
        ),
        (
            "numbers",
            f"r.parquet e.parquet {WEEKS} --test weeks_test.parquet --json c.json --html c.html "
            f"{NUMBERS}",
            (
                _made(f"discrete-laplace {GRID} --clip", "weeks"),
                _made(f"exponential {GRID}", "weeks", "e"),
            ),
        ),
        (
            "results",
            "r.audit.json s.audit.json --json c.json --html c.html",
            tuple(
                line
                for to, e in (("r", 1), ("s", 3))
                for line in (
                    _made(f"randomized-response --epsilon {e}", to=to),
                    f"run {to}.parquet {TRUTH} {GUESS}",
                )
            ),
        ),
        (
            "policy-slices",
            f"r.parquet s.parquet {TRUTH} --slice town --policy claim.toml {FILES}",
            (_made(RR), _made("randomized-response --epsilon 0.2", to="s")),
        ),
    )
)

ONE = "--json s.json --html s.html --processes 1 --threads 1 --only mechanism"
SWEEPS = (
    Invocation(
        "sweep-classes",
        "sweep pairs.parquet --mechanism rr --mechanism double-rr --mechanism dummy-features-rr "
        f"--lambda 0.2,0.8 {SYNTHETIC} --test held.parquet {ONE} --only label-inference",
        page=True,
    ),
    Invocation(
        "sweep-numbers",
        "sweep weeks.parquet --mechanism discrete-laplace --mechanism rr-on-bins --epsilon 1,3 "
        f"--labels 0:10:1 --policy claim.toml --repeats 2 {ONE}",
    ),
)

DESCRIBED = {
    **dict.fromkeys(("randomized-response", "double-rr", "dummy-features-rr"), "--classes no,yes"),
    "rr-top-k": "--classes no,perhaps,yes --prior prior.csv",
    "model-based-rr": "--classes a,b,c --set floor=0.05",
    "gaussian-rr": "--classes no,yes --set radius=1 --set feature-epsilon=1 "
    "--set feature-delta=1e-5",
    "rr-on-bins": "--labels 0:10:1 --prior weeks.csv --loss absolute",
    "optimal-unbiased": "--labels 0:10:1 --prior weeks.csv",
    "debiased-rr": "--labels 0:5:1",
    "laplace": "--labels 0:10",
    "discrete-laplace": "--labels 0:10:1 --set clipped=true",
    "staircase": "--labels 0:10 --set gamma=0.3",
    "discrete-staircase": "--labels 0:10:1",
    "exponential": "--labels 0:10:1",
}
MECHANISMS = (
    *(
        Invocation(f"describe-{one}", f"mechanism describe {one} --epsilon 1 --json m.json {more}")
        for one, more in DESCRIBED.items()
    ),
    *(
        Invocation(f"mechanism-{name}", f"mechanism {line} --json m.json", timed="design" in name)
        for name, line in (
            ("channel", "channel channel.csv"),
            ("channel-prior", "channel lopsided.csv --html m.html"),
            ("design", "design --labels 0:10:1 --epsilon 1 --prior weeks.csv"),
            ("design-loss", "design --labels 0:10:1 --epsilon 2 --prior weeks.csv --loss poisson"),
            ("compose", "compose rr:epsilon=1,times=3 rr:lambda=0.5 --classes a,b,c"),
            ("compose-noise", "compose laplace:epsilon=1 laplace:epsilon=0.5 --labels 0:1"),
            *(
                (f"audit-{name}", f"audit client.py:{name} --samples 6000 --epsilon 1 {more}")
                for name, more in {
                    "grr": "--inputs 0,1,4",
                    "unary": "--inputs 0,4 --delta 0.01",
                    "leaky": "--inputs 0,1",
                    "noisy": "--inputs 0,1 --confidence 0.9",
                }.items()
            ),
        )
    ),
)  # fmt: skip

RELEASES = tuple(
    Invocation(f"privatize-{name}", _made(options, table))
    for name, options, table in (
        ("rr", RR, "words"),
        ("rr-top-k", "rr-top-k --epsilon 1.5 --private-prior 0.5", "words"),
        ("model-based-rr", CELLS, "cells"),
        ("double-rr", DOUBLE, "pairs"),
        ("dummy-features-rr", f"dummy-features-rr --epsilon 1 {SYNTHETIC}", "pairs"),
        ("gaussian-rr", GAUSSIAN, "pairs"),
        ("channel", "channel --channel lopsided.csv", "pairs"),
        ("laplace", "laplace --labels 0:10 --epsilon 1 --clip", "weeks"),
        *(
            (name, f"{name} {GRID}", "weeks")
            for name in ("rr-on-bins", "optimal-unbiased", "debiased-rr", "discrete-laplace",
                         "staircase", "discrete-staircase", "exponential")
        ),
        ("mixture", "double-rr --epsilon 1 --generator mixture --generator-data public.parquet "
         "--synthetic-out sample.parquet --synthetic-rows 50", "pairs"),
    )
)  # fmt: skip

OTHERS = (
    Invocation(
        "report",
        "report r.audit.json --html again.html",
        (_made(RR), f"run r.parquet {TRUTH} {GUESS}"),
        page=True,
    ),
    Invocation("demo", "demo --folder ."),
    Invocation("policy-check", "policy check policy.toml"),
    *(
        Invocation(f"explain-{check}", f"policy explain {check}")
        for check in ("claimed-epsilon", "instance-loss-exceedance", "renyi-epsilon")
    ),
)

REFUSED = tuple(
    Invocation(f"refused-{name}", line, made)
    for name, line, made in (
        ("no-file", "run nothing.parquet", ()),
        ("label", "run pairs.parquet --label lable", ()),
        ("mechanism", "run pairs.parquet --mechanism randomised-response --epsilon 1", ()),
        ("epsilon", "run pairs.parquet --mechanism rr --epsilon -1", ()),
        ("both-noises", "run pairs.parquet --mechanism rr --epsilon 1 --lambda 0.9", ()),
        ("audit", f"run r.parquet {TRUTH} --only mechanisms", (_made(RR),)),
        ("rows", "run r.parquet --truth held.parquet", (_made(RR),)),
        ("labels-option", "run r.parquet --labels 10:0", (_made(RR),)),
        ("bad-policy", "run r.parquet --policy bad.toml", (_made(RR),)),
        ("policy-check", "policy check bad.toml", ()),
        ("explain", "policy explain claimed-epsilom", ()),
        ("command", "compose", ()),
        ("option", "run pairs.parquet --truht pairs.parquet", ()),
        ("channel", "mechanism channel bad_channel.csv", ()),
        ("describe", "mechanism describe rr --classes no,yes", ()),
        ("design", "mechanism design --labels 0:9:1 --epsilon 1 --private-prior 0.5", ()),
        ("compose", "mechanism compose rr:epsilom=1 --classes a,b", ()),
        ("audit-function", "mechanism audit client.py:olh --inputs 0,1", ()),
        ("compare-rows", "compare r.parquet held.parquet", (_made(RR),)),
        ("sweep", "sweep pairs.parquet --mechanism model-based-rr --epsilon 1", ()),
        ("privatize-lambda", _made("randomized-response --lambda 0"), ()),
        ("privatize-copy", _made(RR, "told"), ()),
        ("report", "report policy.toml", ()),
    )
)

INVOCATIONS = (
    *RUNS, *REAL, *COMPARISONS, *SWEEPS, *MECHANISMS, *RELEASES, *OTHERS, *REFUSED
)  # fmt: skip
