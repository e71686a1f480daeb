"""The work of ``selftest``: plant releases, audit each as ``run`` does, count."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

import ldpaudit
from ldpaudit.api import available_threads
from ldpaudit.commands.selftest.planting import Setting
from ldpaudit.commands.selftest.request import SelftestRequest
from ldpaudit.commands.selftest.result import Selftest
from ldpaudit.commands.selftest.trial import Outcome, outcome, planned
from ldpaudit.errors import OutputError
from ldpaudit.work.memory import Scratch
from ldpaudit.work.progress import Progress, Stop
from ldpaudit.work.tasks import processes


def selftest(request: SelftestRequest, progress: Progress) -> Selftest:
    """Plant releases, audit them, and say whether this installation works as documented.

    Ctrl-C ends it early: what is done by then is counted.

    Raises
    ------
    InputError
        If an option is out of range.
    OutputError
        If the folder of finished releases cannot be made.
    """
    request.check()
    usual = None if request.thorough else 600.0
    seconds = usual if request.minutes is None else 60 * request.minutes
    start, stop = time.perf_counter(), Stop.after(seconds)
    every, kept = planned(request.thorough, request.seed), _kept(request)
    done = {one.setting: one for one in _read(kept) if one.setting in set(every)}
    progress.step(f"auditing {len(every):,} planted releases")
    with stop.on_signals():
        stop.running = True
        for one in _outcomes([setting for setting in every if setting not in done], request):
            done[one.setting] = one
            if kept is not None:
                with kept.open("a", encoding="utf-8") as lines:
                    lines.write(f"\n{one.model_dump_json()}")
            progress.advance(len(done), len(every))
            if stop.due():
                break
    outcomes = [done[setting] for setting in every if setting in done]
    spent = time.perf_counter() - start
    about = {"thorough": request.thorough, "seconds": spent}
    return Selftest.of(outcomes, len(every), request.seed, **about)


def _outcomes(left: list[Setting], request: SelftestRequest) -> Iterator[Outcome]:
    """Yield the outcome of each release as it is done."""
    workers = min(request.threads or available_threads(), max(1, len(left)))
    with Scratch() as scratch, processes(workers, 1, scratch.folder) as pool:
        for number, answer in pool.answers(outcome, left, request.seed):
            broken = Outcome(setting=left[number], verdict="error", reason=answer.reason)
            yield answer.content or broken


def _kept(request: SelftestRequest) -> Path | None:
    """Return the file of finished releases: those of this seed, plan and version."""
    if request.resume is None:
        return None
    try:
        request.resume.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder cannot be made ({type(error).__name__}).") from None
    plan = "thorough" if request.thorough else "quick"
    return request.resume / f"{plan}-{request.seed}-{ldpaudit.__version__}.jsonl"


def _read(kept: Path | None) -> Iterator[Outcome]:
    """Read finished releases; one whose line a kill cut short is audited again."""
    if kept is not None and kept.exists():
        for line in kept.read_text(encoding="utf-8", errors="replace").split("\n"):
            with suppress(ValidationError):
                yield Outcome.model_validate_json(line)
