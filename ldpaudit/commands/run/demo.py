"""``ldpaudit demo``: an honest release and one that leaks more than it declares, both audited."""

import os
from collections import ChainMap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from ldpaudit.api import unwritten_result
from ldpaudit.commands.outputs import ReportOutputs
from ldpaudit.commands.requests import RunRequest
from ldpaudit.commands.run.work import said_of
from ldpaudit.commands.shell import tell
from ldpaudit.errors import OutputError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.randomness import child_generator
from ldpaudit.release import Declaration
from ldpaudit.reports import render
from ldpaudit.result import AuditResult
from ldpaudit.terminal import progress_on_terminal, say, words_only
from ldpaudit.work.documents import as_json
from ldpaudit.work.files import WholeFiles, write_all
from ldpaudit.work.interruption import last_words
from ldpaudit.work.memory import Scratch
from ldpaudit.work.tasks import processes

if TYPE_CHECKING:
    import pyarrow as pa

CLAIMED_EPSILON: Final = 1.0
# ε of the honest release and of the other.
MADE_WITH: Final = (1.0, 3.0)
# A result, and the contents of its files: a process that may be killed writes none.
_Audited: TypeAlias = tuple[AuditResult, dict[Path, str]]


def run_demo(folder: Path, seed: int) -> int:
    """Write the two releases of the demo, audit both and print the verdicts; return the status.

    0 where the honest release passes and the dishonest one fails, as they should; else 1.
    LdpAuditError if the files cannot be written, or an audit could not run.
    """
    files = write_demo(folder, seed)
    jobs = [(path, files.truth) for path in (files.honest, files.dishonest)]
    with last_words(lambda: "Interrupted; the releases are written, and no report on them."):
        results, texts = zip(*_audited(jobs), strict=True)
        write_all(dict(ChainMap(*texts)), last=True)
    as_meant = [result.verdict for result in results] == ["pass", "fail"]
    with words_only():
        for (release, truth), made_with, result in zip(jobs, MADE_WITH, results, strict=True):
            say(f"\n{release.name}: declares ε = 1 and was made with ε = {made_with:g}")
            say(f"$ ldpaudit run {release} --truth {truth}")
            tell(said_of(result, quiet=False))
            ReportOutputs().or_beside(str(release), "audit").announce()
        page = ReportOutputs().or_beside(str(files.dishonest), "audit").html
        say(f"\n{_LAST[as_meant]}\nOpen {page} in a browser.")
    return 0 if as_meant else 1


_LAST: Final = {
    True: "The honest release passes, and the dishonest one is caught, as it should be.",
    False: "These verdicts are not the usual ones: chance does that with some seeds (--seed).",
}


def _audited(jobs: list[tuple[Path, Path]]) -> list[_Audited]:
    """Audit releases, each in a process of its own: two take hardly longer than one."""
    threads = max(1, (os.cpu_count() or 1) // len(jobs))
    with (
        progress_on_terminal(quiet=False) as progress,
        Scratch() as scratch,
        processes(len(jobs), threads, scratch.folder) as pool,
    ):
        progress.step("auditing both releases, which takes about a quarter of a minute")
        return [*pool.map(_audit, jobs, shared=threads)]


def _audit(job: tuple[Path, Path], threads: int) -> _Audited:
    release, truth = job
    request = RunRequest(
        release=(str(release),), truth=str(truth), threads=threads, command="ldpaudit demo"
    )
    with unwritten_result(str(release), request) as result:
        texts = {"json": as_json(result.model_dump()), "html": render(result, "html")}
    places = ReportOutputs().or_beside(str(release), "audit").asked
    return result, {place: texts[name] for name, place in places.items()}


class DemoFiles(NamedTuple):
    """The demonstration's files: two releases, and the true labels of both."""

    honest: Path
    dishonest: Path
    truth: Path


def demo_tables(seed: int) -> "tuple[pa.Table, pa.Table, pa.Table]":
    """Return the two releases and the truth, made of the embedded sample.

    Both releases declare randomized response with ε = 1; the second was made with ε = 3.
    """
    import pyarrow as pa

    from ldpaudit.datasets.sample import CLASSES, LABEL, affairs

    features, labels = affairs()
    # The survey is sorted by the answer, so the order of its rows would tell every one.
    order = child_generator(seed, "demo", "order").permutation(len(labels))
    features, labels = features.iloc[order], labels[order]
    codes = np.array([CLASSES.index(label) for label in labels], dtype=np.int32)
    honest, dishonest = (
        _release(features, codes, epsilon, child_generator(seed, "demo", name))
        for name, epsilon in zip(("honest", "dishonest"), MADE_WITH, strict=True)
    )
    return honest, dishonest, pa.table({LABEL: labels})


def write_demo(folder: Path, seed: int) -> DemoFiles:
    """Write the demonstration's files into a folder, which is made if needed."""
    from ldpaudit.datasets.writing import write_table

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder cannot be made ({type(error).__name__}).") from None
    names = ("honest.parquet", "dishonest.parquet", "truth.parquet")
    paths = [folder / name for name in names]
    with WholeFiles() as files:
        for path, table in zip(paths, demo_tables(seed), strict=True):
            write_table(table, files.add(path))
    return DemoFiles(*paths)


def _release(features: Any, codes: Any, epsilon: float, rng: np.random.Generator) -> "pa.Table":
    import pyarrow as pa

    from ldpaudit.datasets import declare
    from ldpaudit.datasets.sample import CLASSES, LABEL

    released = RandomizedResponse.from_epsilon(CLASSES, epsilon).sample(codes, rng)
    table = pa.Table.from_pandas(features, preserve_index=False).replace_schema_metadata(None)
    table = table.append_column(LABEL, pa.array([CLASSES[code] for code in released]))
    claim = RandomizedResponse.from_epsilon(CLASSES, CLAIMED_EPSILON)
    parameters = {"classes": list(CLASSES), "epsilon": CLAIMED_EPSILON}
    return declare(table, Declaration(claim.name, parameters), LABEL)
