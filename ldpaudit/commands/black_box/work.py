"""The work of a black-box audit: sample, choose an event, test it on fresh outputs."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ldpaudit.api import available_threads
from ldpaudit.commands.black_box.drawing import DrawTask, Randomizer, drawn
from ldpaudit.commands.black_box.estimators.events import (
    Event,
    Goal,
    PairChoice,
    choose_events,
    delta_event,
)
from ldpaudit.commands.black_box.estimators.outputs import OutputForm, OutputTable, joined
from ldpaudit.commands.black_box.request import FEWEST_SAMPLES, BlackBoxRequest, Claim
from ldpaudit.commands.black_box.result import (
    BlackBoxAudit,
    Claimed,
    DeltaBound,
    EpsilonBound,
    PairFound,
    Power,
    Value,
    Witness,
)
from ldpaudit.errors import InputError
from ldpaudit.estimators.epsilon.guesses import (
    GuessCounts,
    delta_lower,
    detectable_epsilon,
    epsilon_lower,
)
from ldpaudit.randomness import child_generator
from ldpaudit.result import Verdict
from ldpaudit.work.memory import Scratch
from ldpaudit.work.progress import NoProgress, Progress
from ldpaudit.work.tasks import processes

CHUNK = 20_000
"""Outputs of one call, at most."""
EPSILON_SHARE, DELTA_SHARE = 0.9, 0.1
"""Of the error probability, where a claim is judged by a bound of ε and one of δ."""
_PROBE = 500
_TRAINING_SHARE, _TRAINING = 0.1, 20_000
_MOST_ENTRIES = 50_000_000
_MOST_WORKERS = 8
_Draw: TypeAlias = Callable[[Sequence[DrawTask]], list[Any]]


def audit_black_box(request: BlackBoxRequest, progress: Progress | None = None) -> BlackBoxAudit:
    """Audit a randomizer by its outputs alone.

    Parameters
    ----------
    request : BlackBoxRequest
    progress : Progress, optional

    Returns
    -------
    BlackBoxAudit
        With one bound at the full level: pair, event and thresholds are chosen on other outputs.

    Raises
    ------
    InputError
        If the function cannot be imported, raises, hangs, ends its process, returns anything but n
        outputs, or repeats its noise in every call.
    """
    progress = progress or NoProgress()
    path = (*request.path, str(Path.cwd()))
    randomizer = Randomizer(request.function, request.features, request.inputs, path)
    most, seconds = _processes(request), request.timeout
    with Scratch() as scratch, processes(most, 1, scratch.folder, seconds=seconds) as pool:
        progress.step("trying the function")
        draw = partial(drawn, pool, randomizer, progress=progress)
        widths = _probe(draw, request)
        training = _training_size(request, widths)
        progress.step("sampling, to choose an event")
        tables = _samples(draw, request, training)
        candidates = 2 * (request.samples - training)
        progress.step("choosing an event")
        goal = Goal(candidates, 1 - request.confidence, request.claim.delta)
        rng = child_generator(request.seed, "black-box", "choice")
        choices = choose_events(tables, goal, rng)
        events = _events(choices[0], tables, request.claim)
        progress.step("testing the event on fresh outputs")
        form = OutputForm.of(tables[0])
        counts = _test(draw, request, choices[0], events, (candidates, form))
    return _outcome(request, choices, events, counts, _opaque(tables, choices[0], request))


def _processes(request: BlackBoxRequest) -> int:
    wanted = request.processes or min(available_threads(), _MOST_WORKERS)
    return max(min(wanted, 2 * request.samples // CHUNK + 1), 1)


def _probe(draw: _Draw, request: BlackBoxRequest) -> int:
    """Draw a few outputs of each input twice; return how many entries of 8 bytes one takes."""
    firsts: list[OutputTable] = []
    for i in range(len(request.inputs)):  # One by one: each call may answer with 256 MiB.
        keys = [("probe", str(i), str(call)) for call in range(2)]
        tasks = [DrawTask(i, _PROBE, request.seed, key) for key in keys]
        one, other = draw(tasks)
        if one.shape == other.shape and (one == other).all() and not (one == one[0]).all():
            raise InputError(
                "The function must draw from the generator that it is given; two calls with "
                "different generators returned the same outputs, so its noise is used again."
            )
        firsts += [one[:1].copy(), other[:1].copy()]
    kept = joined(firsts)
    return max(int(kept.shape[1]), kept.nbytes // len(kept) // 8)


def _training_size(request: BlackBoxRequest, width: int) -> int:
    n = request.samples
    wanted = min(n // 2, max(int(n * _TRAINING_SHARE), _TRAINING))
    fit = _MOST_ENTRIES // (width * len(request.inputs))
    if 2 * fit < FEWEST_SAMPLES // 2:
        raise InputError(
            f"The function's outputs are too large: one takes {8 * width:,} bytes, and "
            f"{FEWEST_SAMPLES // 2} of each of {len(request.inputs)} inputs are needed."
        )
    return max(min(wanted, fit), FEWEST_SAMPLES // 2)


def _samples(draw: _Draw, request: BlackBoxRequest, n: int) -> list[OutputTable]:
    tasks = [
        DrawTask(i, size, request.seed, ("training", str(i), str(number)))
        for i in range(len(request.inputs))
        for number, size in enumerate(_chunks(n))
    ]
    parts = draw(tasks)
    tables = [
        joined([table for task, table in zip(tasks, parts, strict=True) if task.chosen == i])
        for i in range(len(request.inputs))
    ]
    whole = joined(tables)
    whole = OutputForm.of(whole).conform(whole)
    return [whole[start : start + n] for start in range(0, len(whole), n)]


def _chunks(n: int) -> Iterator[int]:
    return (min(CHUNK, n - start) for start in range(0, n, CHUNK))


def _events(choice: PairChoice, tables: Sequence[OutputTable], claim: Claim) -> tuple[Event, ...]:
    if claim.epsilon is None:
        return (choice.event,)
    return choice.event, delta_event(choice, tables, claim.epsilon)


def _test(
    draw: _Draw,
    request: BlackBoxRequest,
    choice: PairChoice,
    events: tuple[Event, ...],
    sizes: tuple[int, OutputForm],
) -> list[GuessCounts]:
    """Draw candidates whose inputs are chosen by fair coins, and count the events' guesses."""
    candidates, form = sizes
    rng = child_generator(request.seed, "black-box", "coins")
    firsts = int(rng.binomial(candidates, 0.5))
    used = _used_inputs(choice, form.width, len(request.inputs)) if request.features else None
    tasks = [
        DrawTask(i, size, request.seed, ("test", str(i), str(number)), events, used, form)
        for i, n in ((choice.first, firsts), (choice.second, candidates - firsts))
        for number, size in enumerate(_chunks(n))
    ]
    guesses = np.array(draw(tasks), dtype=np.int64)  # (tasks, events, 2 guesses)
    is_first = np.array([task.chosen == choice.first for task in tasks])
    first, second = guesses[is_first].sum(axis=0), guesses[~is_first].sum(axis=0)
    return [
        GuessCounts(candidates, int(a[0] + b[1]), int(a[1] + b[0]), event.sides)
        for event, a, b in zip(events, first, second, strict=True)
    ]


def _used_inputs(choice: PairChoice, width: int, k: int) -> tuple[int, ...] | None:
    columns = choice.event.score.columns
    return tuple(sorted({column // (width // k) for column in columns})) or None


def _opaque(tables: Sequence[OutputTable], choice: PairChoice, request: BlackBoxRequest) -> int:
    """Count entries of discrete outputs that hardly ever repeat and that the event ignores."""
    score = choice.event.score
    if request.features or tables[0].dtype.kind == "f" or (score.tells and not score.columns):
        return 0
    used = score.columns if score.tells else ()
    rest = set(range(tables[0].shape[1])) - set(used)
    sample = tables[choice.first][: 4 * _PROBE]
    return sum(len(set(sample[:, column].tolist())) > len(sample) / 2 for column in rest)


def _outcome(
    request: BlackBoxRequest,
    choices: Sequence[PairChoice],
    events: tuple[Event, ...],
    counts: Sequence[GuessCounts],
    opaque: int,
) -> BlackBoxAudit:
    alpha, claim, best = 1 - request.confidence, request.claim, choices[0]
    claimed = claim.epsilon
    # The verdict depends on both bounds: an honest claim is refuted with probability alpha at most.
    first = alpha if claimed is None else EPSILON_SHARE * alpha
    second = DELTA_SHARE * alpha
    bound = epsilon_lower(counts[0], first, claim.delta).epsilon
    shift = None if claimed is None else delta_lower(counts[1], claimed, second)
    verdict: Verdict = "inconclusive"
    detectable = None
    if claimed is not None:
        detectable = detectable_epsilon(counts[0], claimed, first, claim.delta)
        if bound > claimed or (shift is not None and shift > claim.delta):
            verdict = "fail"
        elif detectable <= claimed + request.max_excess and not opaque:
            verdict = "pass"
    certified: dict[str, Any] = {"kind": "certified", "side": "lower", "level": request.confidence}
    tested = [_plain(request.inputs[i]) for i in (best.first, best.second)]
    return BlackBoxAudit(
        schema_version="1.0",
        verdict=verdict,
        function=request.function,
        inputs=[*map(_plain, request.inputs)],
        samples=request.samples,
        seed=request.seed,
        claim=Claimed(epsilon=claimed, delta=claim.delta),
        epsilon_lower=EpsilonBound(
            value=bound,
            low=bound,
            unit="nats",
            n=counts[0].candidates,
            count=counts[0].right,
            method="right guesses of which of two inputs was given, event chosen beforehand",
            assumptions=["the outputs of the function are independent and identically distributed"],
            reference="Steinke, Nasr & Jagielski (2023), Theorem 5.2",
            **certified,
        ),
        delta_lower=None
        if shift is None or claimed is None
        else DeltaBound(value=shift, low=shift, epsilon=claimed, **certified),
        power=Power(
            detectable_epsilon=detectable,
            probability=0.9,
            max_undetected_excess=request.max_excess,
        ),
        witness=Witness(
            inputs=tested,
            candidates=counts[0].candidates,
            guesses=counts[0].right + counts[0].wrong,
            right=counts[0].right,
            event=events[0].describe(),
        ),
        pairs=[_pair(request, choice) for choice in choices],
        opaque_entries=opaque,
    )


def _pair(request: BlackBoxRequest, choice: PairChoice) -> PairFound:
    counts = choice.counts
    odds = (counts.right + 0.5) / (counts.wrong + 0.5)
    values = max(math.log(odds), 0.0), counts.guesses / counts.candidates
    epsilon, guessed = (Value(kind="estimated", value=value) for value in values)
    inputs = [_plain(request.inputs[i]) for i in (choice.first, choice.second)]
    return PairFound(inputs=inputs, epsilon=epsilon, guessed=guessed)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | list) else repr(value)
