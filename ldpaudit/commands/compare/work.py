"""The work of ``compare``: read, check that the data are the same, audit, train, subtract.

Guesses and scores of single rows stay here; the comparison holds counts, estimates and bounds.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import ldpaudit
from ldpaudit.api import cluster_of, plan_of, policy_of, seed_of
from ldpaudit.audits.interface import HeldOutGuesses, Plan
from ldpaudit.commands.compare.differences import Side, all_differences, attack_scores
from ldpaudit.commands.compare.inputs import (
    Input,
    ReleaseInput,
    fingerprints,
    pairable,
    read_inputs,
)
from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.commands.compare.sentences import remark, sentences
from ldpaudit.commands.utility.learner import Learner
from ldpaudit.commands.utility.scores import utility
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.datasets.groups import read_slices
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.pipeline.audit import audit, run_info
from ldpaudit.randomness import child_generator
from ldpaudit.result import Note
from ldpaudit.result.comparison import Comparison, Fingerprint
from ldpaudit.work.memory import Scratch
from ldpaudit.work.progress import NoProgress, Progress, Stop, Watched
from ldpaudit.work.tasks import Tasks, Threads

_AUDIT = "comparison"
_MISMATCH = (
    "The data differ, and the comparison was forced: differences may come from the data rather "
    "than from the mechanisms, and no row was paired."
)
_STORED = (
    "A stored result holds no row, so its differences are not paired: their intervals are wider "
    "than those of releases that are audited together."
)
_ORDER = (
    "Whether the rows are in the same order could not be seen from the features; pairing takes it "
    "for granted."
)
_ONE_SIDED = (
    "These attacks ran on some of the releases only: {}. The strongest is chosen among those that "
    "ran on each; why one was left out is said for each release."
)


@unchanged()
def compare(request: CompareRequest, progress: Progress | None = None) -> Comparison:
    """Compare releases of the same data."""
    start, progress = time.perf_counter(), progress or NoProgress()
    request.check()
    request = replace(request, stop=request.stop or Stop.after(request.timeout))
    policy = policy_of(request)
    confidence = (policy or default_policy()).audit.confidence
    inputs = read_inputs(request, progress)
    prints = fingerprints(request, inputs)
    read = [item for item in inputs if isinstance(item, ReleaseInput)]
    # One seed, so that all releases have the same halves; groups of the first hold the same people.
    seed = seed_of(request, next(filter(None, (item.release.sha256 for item in read)), None))
    plan = plan_of(
        request, seed, read_slices(read[0].path, request.slices, request) if read else ()
    )
    plans = [_plan_for(item, request, plan) for item in inputs]
    jobs, sides, notes = [*zip(inputs, prints, plans, strict=True)], list[Side](), [*_notes(prints)]
    with Scratch() as scratch, cluster_of(request, scratch, progress) as cluster:
        tasks: Tasks = cluster or Threads(1)
        shared = _Shared(request, policy, confidence, progress)
        for side, more in tasks.map(
            _side, jobs, shared=shared if cluster is None else shared.sent()
        ):
            sides.append(side)
            notes += more
            if cluster is not None:
                progress.step(f"{len(sides)} of {len(inputs)} audited")
    progress.step("differences")
    results = tuple(side.result for side in sides)
    ran = [set(attack_scores(result)) for result in results]
    if missing := sorted(ran[0].union(*ran) - ran[0].intersection(*ran)):
        notes.append(Note.info(_AUDIT, _ONE_SIDED.format(", ".join(missing))))
    names = {print_.letter: print_.name for print_ in prints}
    differences = tuple(
        d.model_copy(update={"a_name": names[d.a], "b_name": names[d.b]})
        for d in all_differences(sides, confidence)
    )
    texts = sentences([*zip(names.values(), results, strict=True)], differences, confidence)
    return Comparison(
        ldpaudit_version=ldpaudit.__version__,
        sentence=" ".join(texts),
        sentences=texts,
        remark=remark(differences, confidence),
        confidence=confidence,
        fingerprints=prints,
        releases=results,
        differences=differences,
        notes=tuple(notes),
        run=run_info(
            *(plan, request.command, time.perf_counter() - start, policy),
            tuple(dict.fromkeys(part for one in results for part in one.run.plugins)),
        ),
    )


@dataclass(frozen=True)
class _Shared:
    """What all audits share; ``until``: the end for other machines, in seconds of the epoch."""

    request: CompareRequest
    policy: Policy | None
    confidence: float
    progress: Progress
    until: float | None = None

    def sent(self) -> "_Shared":
        """Return it for other processes."""
        deadline = self.request.stop.deadline if self.request.stop else None
        until = None if deadline is None else time.time() + deadline - time.monotonic()
        request = replace(self.request, cluster=None, progress=None, stop=None)
        return replace(self, request=request, progress=NoProgress(), until=until)

    @property
    def stop(self) -> Stop | None:
        """The end of the time, on this machine's clock."""
        if self.until is None:
            return self.request.stop
        return Stop(time.monotonic() + self.until - time.time(), self.request.timeout)


def _plan_for(item: Input, request: CompareRequest, plan: Plan) -> Plan:
    """Return the plan of a release: one of other people has its own groups."""
    if not isinstance(item, ReleaseInput):
        return plan
    if all(len(column.codes) == len(item.release) for column in plan.slices):
        return plan
    return replace(plan, slices=read_slices(item.path, request.slices, request))


def _side(job: tuple[Input, Fingerprint, Plan], shared: _Shared) -> tuple[Side, list[Note]]:
    """Audit a release and train a model on it; a stored result is taken as it is."""
    (item, print_, plan), request, notes = job, shared.request, list[Note]()
    if not isinstance(item, ReleaseInput):
        return Side(item.letter, item.result, None, None, pairable(print_)), notes
    guesses, score = HeldOutGuesses(), None
    try:
        result = audit(
            item.release,
            plan,
            shared.policy,
            only=request.only,
            skip=request.skip,
            progress=Watched(shared.progress, name=item.release.name),
            command=request.command,
            notes=item.notes,
            guesses=guesses,
            stop=shared.stop,
        )
    except InputError as error:
        raise InputError(f"{item.release.name}: {error}") from None
    if (column := item.column) is not None:
        shared.progress.step(f"{print_.name}: training a model")
        try:
            learner = Learner(request.model, request.device, beside=column.beside)
            rng = child_generator(plan.seed, "compare", "utility")
            score = utility(column.release, column.test, learner, shared.confidence, rng)
            notes += [Note.warning(_AUDIT, f"{print_.name}: {w}") for w in score.warnings]
            found = {one.id: one for one in (score.estimate, *score.beside)}
            others = (one for one in result.estimates if one.id not in found)
            result = result.model_copy(update={"estimates": (*others, *found.values())})
        except (InputError, InsufficientDataError) as error:
            text = f"No model was trained on {print_.name}: {error}"
            notes.append(Note.warning(_AUDIT, text))
    return Side(item.letter, result, guesses, score, pairable(print_)), notes


def _notes(prints: tuple[Fingerprint, ...]) -> Iterator[Note]:
    if any(print_.mismatch for print_ in prints):
        yield Note.warning(_AUDIT, _MISMATCH)
    if any(print_.source == "result" for print_ in prints):
        yield Note.info(_AUDIT, _STORED)
    unsure = [p for p in prints[1:] if pairable(p) and p.shared_rows is None]
    if unsure and prints[0].source == "data":
        yield Note.warning(_AUDIT, _ORDER)
