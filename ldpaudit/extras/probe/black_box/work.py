"""The work of a black-box audit: sample, choose an event, test it on fresh outputs."""

# Outputs are drawn, and events counted, in processes: the randomizer is the user's own code and
# runs with the rights of who starts the audit. A call that does not return is ended.

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from ldpaudit.doors import (
    InputError,
    NoProgress,
    Progress,
    Scratch,
    available_threads,
    child_generator,
    clopper_pearson_lower,
    processes,
    refuse,
)
from ldpaudit.error_budget import Split
from ldpaudit.estimators.epsilon.guesses import GuessCounts, detectable_epsilon, epsilon_lower
from ldpaudit.estimators.intervals.binomial import clopper_pearson_upper
from ldpaudit.extras.probe.black_box.events import (
    Event,
    Goal,
    PairChoice,
    choose_events,
    delta_event,
)
from ldpaudit.extras.probe.black_box.outputs import (
    NUMERIC,
    OutputForm,
    OutputTable,
    as_outputs,
    joined,
    joined_columns,
)
from ldpaudit.extras.probe.black_box.request import FEWEST_SAMPLES, BlackBoxRequest
from ldpaudit.extras.probe.black_box.result import (
    BlackBoxAudit,
    Claimed,
    DeltaBound,
    EpsilonBound,
    PairFound,
    Power,
    Value,
    Witness,
)
from ldpaudit.extras.probe.sequential import anytime_epsilon, detectable_at_any_time, refutes
from ldpaudit.plugins import load_object, where
from ldpaudit.result import Verdict

# Outputs of one call, at most.
_CHUNK = 20_000
# Where a claim is judged by a bound of ε and one of δ.
_BOUNDS: Final = Split({"epsilon": 0.9, "delta": 0.1})
_PROBE = 500
_TRAINING_SHARE, _TRAINING = 0.1, 20_000
# Of few samples: an event of single values needs fewer.
_OF_SINGLE, _OF_SEVERAL = 3, 2
# The first of several parts in which a claim is tested that may be refuted early, and their growth.
_FIRST_PART, _GROWTH = 500, 1.5
_MOST_ENTRIES = 50_000_000
_MOST_WORKERS = 8


@dataclass(frozen=True)
class DrawTask:
    """n outputs of one input (``chosen``) to be drawn, and counted where there are ``events``.

    ``key`` names the generator's child; ``used`` are the inputs whose features the events need
    (None: all). Outputs that do not have the ``form`` on which events were chosen are left out.
    """

    chosen: int
    n: int
    seed: int
    key: tuple[str, ...]
    events: tuple[Event, ...] = ()
    used: tuple[int, ...] | None = None
    form: OutputForm | None = None


_Draw: TypeAlias = Callable[[Sequence[DrawTask]], list[Any]]


@dataclass(frozen=True)
class Randomizer:
    """Where a randomizer is imported from, its feature function (or empty), and its inputs."""

    function: str
    features: str
    inputs: tuple[Any, ...]
    path: tuple[str, ...]

    @cached_property
    def _loaded(self) -> list[Callable[..., Any]]:
        functions = []
        for name, path in ((self.function, self.path), (self.features, ())):
            if name:
                found: Any = load_object(name, path, "function", "FUNCTION")
                must = f"{name!r} must be a function; it is of type {type(found).__name__}."
                refuse(not callable(found), must)
                functions.append(found)
        return functions

    def draw(self, task: DrawTask) -> OutputTable:
        """Draw outputs; return them, or their features for every input next to one another."""
        (function, *features), n = self._loaded, task.n
        rng = child_generator(task.seed, "black-box", *task.key)
        returned = _guarded(function, "function", self.inputs[task.chosen], n, rng)
        if features:
            # Lists of reports come as a table, so that a feature function can take its columns.
            outputs = returned if isinstance(returned, np.ndarray) else as_outputs(returned, n)
            every = range(len(self.inputs))
            blocks = {
                i: as_outputs(_guarded(features[0], "feature function", outputs, self.inputs[i]), n)
                for i in (every if task.used is None else task.used)
            }
            empty = np.zeros_like(next(iter(blocks.values())))
            returned = joined_columns([blocks.get(i, empty) for i in every])
            if task.form is None:
                return returned
        return as_outputs(returned, n) if task.form is None else task.form.read(returned, n)


def _guarded(call: Callable[..., Any], role: str, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except BaseException as error:
        raise InputError(f"The {role} must return outputs; it raised {where(error)}.") from None


def _drawn_here(task: DrawTask, randomizer: Randomizer) -> Any:
    """Do a task in this process: return the outputs, or each event's counts of guesses."""
    table = randomizer.draw(task)
    return [event.counts(table) for event in task.events] if task.events else table


def audit_black_box(request: BlackBoxRequest, progress: Progress | None = None) -> BlackBoxAudit:
    """Audit a randomizer by its outputs alone."""
    # One bound at the full level: pair, event and thresholds are chosen on other outputs.
    # InputError where the function cannot be imported, raises, hangs, ends its process, returns
    # anything but n outputs, or repeats its noise in every call.
    progress = progress or NoProgress()
    path = (*request.path, str(Path.cwd()))
    randomizer = Randomizer(request.function, request.features, request.inputs, path)
    most = request.processes or min(available_threads(), _MOST_WORKERS)
    most = max(min(most, 2 * request.samples // _CHUNK + 1), 1)
    with (
        Scratch() as scratch,
        processes(most, 1, scratch.folder, seconds=request.timeout) as pool,
    ):

        def draw(tasks: Sequence[DrawTask]) -> list[Any]:
            results: list[Any] = [None] * len(tasks)
            for done, (number, answer) in enumerate(pool.answers(_drawn_here, tasks, randomizer)):
                refuse(
                    answer.late,
                    f"The function must return within {pool.seconds:g} s; a call did not and was "
                    "ended. Raise --timeout if it is only slow.",
                )
                ended = f"it ended its process (status {answer.status})."
                wrong = f"The function must return outputs; {ended}"
                refuse(answer.reason, wrong if answer.status else answer.reason)
                results[number] = answer.content
                progress.advance(done + 1, len(tasks))
            return results

        progress.step("trying the function")
        training = _training_size(request, _probe(draw, request))
        progress.step("sampling, to choose an event")
        inputs = range(len(request.inputs))
        tasks = [
            DrawTask(i, size, request.seed, ("training", str(i), number))
            for i in inputs
            for number, size in _sizes(training)
        ]
        parts = [*zip(tasks, draw(tasks), strict=True)]
        whole = joined([joined([part for of, part in parts if of.chosen == i]) for i in inputs])
        whole = whole if whole.dtype.kind in NUMERIC else whole.astype(object)
        tables = [whole[start : start + training] for start in range(0, len(whole), training)]
        candidates = 2 * (request.samples - training)
        progress.step("choosing an event")
        goal = Goal(candidates, 1 - request.confidence, request.claim.delta)
        rng = child_generator(request.seed, "black-box", "choice")
        choices = choose_events(tables, goal, rng, () if request.features else request.inputs)
        events = [choices[0].event]
        if request.claim.epsilon is not None:
            events.append(delta_event(choices[0], tables, request.claim.epsilon))
        progress.step("testing the event on fresh outputs")
        form = OutputForm.of(tables[0])
        tested: list[list[GuessCounts]] = []
        for number, size in enumerate(_parts(candidates) if request.stop_early else [candidates]):
            part = (str(number),) if request.stop_early else ()
            found = _test(draw, request, choices[0], tuple(events), size, form, part)
            tested.append(
                [_added(*pair) for pair in zip(tested[-1], found, strict=True)] if tested else found
            )
            if request.stop_early and _refuted(tested, request):
                break
    return _outcome(request, choices, tested, candidates, _opaque(tables, choices[0], request))


def _parts(candidates: int) -> Iterator[int]:
    """Yield how many candidates each part tests: few first, then more and more."""
    size, left = _FIRST_PART, candidates
    while left > 0:
        part = left if left < 2 * size else size
        yield part
        size, left = int(size * _GROWTH), left - part


def _added(one: GuessCounts, other: GuessCounts) -> GuessCounts:
    """Return the guesses of both."""
    return GuessCounts(
        one.candidates + other.candidates,
        one.right + other.right,
        one.wrong + other.wrong,
        one.sides,
    )


def _looks(tested: Sequence[Sequence[GuessCounts]]) -> list[tuple[int, int]]:
    return [(counts[0].right, counts[0].wrong) for counts in tested]


def _refuted(tested: Sequence[Sequence[GuessCounts]], request: BlackBoxRequest) -> bool:
    """Return whether the looks so far refute the claimed ε, at its part of the error."""
    level = _BOUNDS.of(1 - request.confidence, "epsilon")
    return refutes(_looks(tested), request.claim.epsilon or 0.0, level)


def _probe(draw: _Draw, request: BlackBoxRequest) -> int:
    """Draw a few outputs of each input twice; return how many entries of 8 bytes one takes."""
    firsts: list[OutputTable] = []
    # One by one: each call may answer with 256 MiB, and of one that hangs it is known which it was.
    for i in range(len(request.inputs)):
        keys = [("probe", str(i), str(call)) for call in range(2)]
        one, other = (draw([DrawTask(i, _PROBE, request.seed, key)])[0] for key in keys)
        refuse(
            one.shape == other.shape and (one == other).all() and not (one == one[0]).all(),
            "The function must draw from the generator that it is given; two calls with "
            "different generators returned the same outputs, so its noise is used again.",
        )
        firsts += [one[:1].copy(), other[:1].copy()]
    first = joined(firsts)
    return max(int(first.shape[1]), first.nbytes // len(first) // 8)


def _training_size(request: BlackBoxRequest, width: int) -> int:
    n = request.samples
    most = n // (_OF_SINGLE if width == 1 else _OF_SEVERAL)
    wanted = min(most, max(int(n * _TRAINING_SHARE), _TRAINING))
    fit = _MOST_ENTRIES // (width * len(request.inputs))
    refuse(
        2 * fit < FEWEST_SAMPLES // 2,
        f"The function's outputs are too large: one takes {8 * width:,} bytes, and "
        f"{FEWEST_SAMPLES // 2} of each of {len(request.inputs)} inputs are needed.",
    )
    return max(min(wanted, fit), FEWEST_SAMPLES // 2)


def _sizes(n: int) -> Iterator[tuple[str, int]]:
    """Yield the number and the size of each call for n outputs."""
    for number, start in enumerate(range(0, n, _CHUNK)):
        yield str(number), min(_CHUNK, n - start)


def _test(
    draw: _Draw,
    request: BlackBoxRequest,
    choice: PairChoice,
    events: tuple[Event, ...],
    candidates: int,
    form: OutputForm,
    part: tuple[str, ...] = (),
) -> list[GuessCounts]:
    """Draw candidates whose inputs are chosen by fair coins, and count the events' guesses."""
    firsts = int(
        child_generator(request.seed, "black-box", "coins", *part).binomial(candidates, 0.5)
    )
    used = None
    if request.features:
        width = form.width // len(request.inputs)
        used = tuple(sorted({column // width for column in choice.event.score.columns})) or None
    tasks = [
        DrawTask(i, size, request.seed, ("test", str(i), *part, number), events, used, form)
        for i, n in ((choice.first, firsts), (choice.second, candidates - firsts))
        for number, size in _sizes(n)
    ]
    guesses = np.array(draw(tasks), dtype=np.int64)  # (tasks, events, 2 guesses)
    is_first = np.array([task.chosen == choice.first for task in tasks])
    first, second = guesses[is_first].sum(axis=0), guesses[~is_first].sum(axis=0)
    return [
        GuessCounts(candidates, int(a[0] + b[1]), int(a[1] + b[0]), event.sides)
        for event, a, b in zip(events, first, second, strict=True)
    ]


def _opaque(tables: Sequence[OutputTable], choice: PairChoice, request: BlackBoxRequest) -> int:
    """Count entries of discrete outputs that hardly ever repeat and that the event ignores."""
    score = choice.event.score
    if request.features or tables[0].dtype.kind == "f" or (score.tells and not score.columns):
        return 0
    rest = set(range(tables[0].shape[1])) - set(score.columns if score.tells else ())
    sample = tables[choice.first][: 4 * _PROBE]
    return sum(len(set(sample[:, column].tolist())) > len(sample) / 2 for column in rest)


def _outcome(
    request: BlackBoxRequest,
    choices: Sequence[PairChoice],
    tested: Sequence[Sequence[GuessCounts]],
    planned: int,
    opaque: int,
) -> BlackBoxAudit:
    counts = tested[-1]
    whole = counts[0].candidates == planned
    alpha, delta, claimed = 1 - request.confidence, request.claim.delta, request.claim.epsilon
    # The verdict depends on both bounds: an honest claim is refuted with probability alpha at most.
    first = alpha if claimed is None else _BOUNDS.of(alpha, "epsilon")
    bound, best = epsilon_lower(counts[0], first, delta).epsilon, choices[0]
    if request.stop_early:
        bound = anytime_epsilon(_looks(tested), first)
    verdict: Verdict = "inconclusive"
    detectable = shown = None
    if claimed is not None:
        # Where the test ended early the bound of δ, of a fixed number of outputs, would not hold.
        shift = delta_lower(counts[1], claimed, _BOUNDS.of(alpha, "delta")) if whole else 0.0
        shown = DeltaBound(value=shift, low=shift, level=request.confidence, epsilon=claimed)
        detectable = detectable_epsilon(counts[0], claimed, first, delta)
        if request.stop_early:
            detectable = detectable_at_any_time(counts[0].guesses, claimed, first)
        if bound > claimed or shift > delta:
            verdict = "fail"
        elif detectable <= claimed + request.max_excess and not opaque:
            verdict = "pass"
    plain = [
        value if isinstance(value, str | int | float | bool | list) else repr(value)
        for value in request.inputs
    ]
    pairs = []
    for one in choices:
        odds = math.log((one.counts.right + 0.5) / (one.counts.wrong + 0.5))
        found = Value(kind="estimated", value=max(odds, 0.0))
        share = Value(kind="estimated", value=one.counts.guesses / one.counts.candidates)
        inputs = [plain[one.first], plain[one.second]]
        pairs.append(PairFound(inputs=inputs, epsilon=found, guessed=share))
    right, candidates = counts[0].right, counts[0].candidates
    return BlackBoxAudit(
        verdict=verdict,
        function=request.function,
        inputs=plain,
        samples=request.samples,
        stopped_early=not whole,
        seed=request.seed,
        claim=Claimed(epsilon=claimed, delta=delta),
        epsilon_lower=EpsilonBound(
            value=bound, low=bound, level=request.confidence, n=candidates, count=right
        ),
        delta_lower=shown,
        power=Power(detectable_epsilon=detectable, max_undetected_excess=request.max_excess),
        witness=Witness(
            inputs=pairs[0].inputs,
            candidates=candidates,
            guesses=right + counts[0].wrong,
            right=right,
            event=best.event.describe(),
        ),
        pairs=pairs,
        opaque_entries=opaque,
    )


def delta_lower(counts: GuessCounts, epsilon: float, alpha: float) -> float:
    """Return the lower confidence bound of δ at a given ε, at level 1 − alpha.

    δ ≥ (a − e^ε b)·2/sides, with Clopper–Pearson bounds of a and b at alpha/2 each.
    """
    right = float(clopper_pearson_lower(counts.right, counts.candidates, alpha / 2))
    wrong = float(clopper_pearson_upper(counts.wrong, counts.candidates, alpha / 2))
    return max((right - math.exp(min(epsilon, 700.0)) * wrong) * 2 / counts.sides, 0.0)
