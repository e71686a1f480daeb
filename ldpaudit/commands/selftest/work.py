"""The work of ``selftest``: plant releases, audit each as ``run`` does, count."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import ldpaudit
from ldpaudit.api import available_threads
from ldpaudit.commands.selftest.plan import QUICK, THOROUGH, settings
from ldpaudit.commands.selftest.planted import Setting
from ldpaudit.commands.selftest.request import SelftestRequest
from ldpaudit.commands.selftest.result import Selftest
from ldpaudit.commands.selftest.trial import Outcome, failed, outcome
from ldpaudit.running.finished import Finished
from ldpaudit.running.progress import Progress
from ldpaudit.running.stopping import Stop
from ldpaudit.tasks.processes import Processes

_AUDITOR: Final = "ldpaudit.commands.selftest.work:auditor"


def selftest(request: SelftestRequest, progress: Progress) -> Selftest:
    """Plant releases, audit them, and say whether this installation works as documented.

    Ctrl-C ends it early: what is done by then is counted.

    Raises
    ------
    InputError
        If an option is out of range.
    """
    request.check()
    start, stop = time.perf_counter(), Stop.after(request.seconds)
    every = settings(THOROUGH if request.thorough else QUICK, request.seed)
    finished = _finished(request)
    done = {place: kept for place, one in enumerate(every) if (kept := _kept(finished, one))}
    left = [place for place in range(len(every)) if place not in done]
    progress.step(f"auditing {len(every):,} planted releases")
    with stop.on_signals():
        stop.running = True
        for place, result in _outcomes(every, left, request):
            done[place] = result
            finished.put(_key(every[place]), result.stored())
            progress.advance(len(done), len(every))
            if stop.due():
                break
    outcomes = tuple(done[place] for place in sorted(done))
    spent = time.perf_counter() - start
    return Selftest(outcomes, len(every), request.seed, request.thorough, spent)


def _outcomes(
    every: Sequence[Setting], left: Sequence[int], request: SelftestRequest
) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcome of each release that is left, with its place, as it is done."""
    workers = min(request.threads or available_threads(), max(1, len(left)))
    if workers == 1:
        yield from ((place, outcome(every[place], request.seed)) for place in left)
        return
    with Processes(_AUDITOR, request.seed, most=workers) as processes:
        for number, answer in processes.run([every[place] for place in left]):
            place = left[number]
            yield place, answer.content or failed(every[place], answer.reason)


def auditor(seed: int) -> Callable[[Setting], Outcome]:
    """Return what plants and audits a release in a process of its own."""
    return lambda setting: outcome(setting, seed)


def _finished(request: SelftestRequest) -> Finished:
    """Return where finished releases are kept: those of this seed, plan and version."""
    if request.resume is None:
        return Finished()
    plan = "thorough" if request.thorough else "quick"
    return Finished(Path(request.resume) / f"{plan}-{request.seed}-{ldpaudit.__version__}")


def _key(setting: Setting) -> str:
    return f"{setting.kind}/{setting.number}"


def _kept(finished: Finished, setting: Setting) -> Outcome | None:
    kept: Any = finished.get(_key(setting))
    return None if kept is None else Outcome.again(kept)
