"""The work of ``compare``: read, check that the data are the same, audit, train, subtract.

Guesses and scores of single rows stay here; the comparison holds counts, estimates and bounds.
"""

import time
from dataclasses import dataclass, replace

import ldpaudit
from ldpaudit.api import cluster_of, plan_of, policy_of, seed_of
from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.audits.interface import Plan
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
from ldpaudit.commands.utility.scores import Utility, utility
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.datasets.groups import read_slices
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.pipeline.audit import audit, run_info
from ldpaudit.randomness import child_generator
from ldpaudit.result import AuditResult, Note
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


@unchanged()
def compare(request: CompareRequest, progress: Progress | None = None) -> Comparison:
    """Compare releases of the same data.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input, the policy or the options.
    """
    start = time.perf_counter()
    request.check()
    request = replace(request, stop=request.stop or Stop.after(request.timeout))
    progress = progress or NoProgress()
    policy = policy_of(request)
    inputs = read_inputs(request, progress)
    prints = fingerprints(request, inputs)
    plan = shared_plan(request, inputs)
    sides, notes = [], list(_notes(prints))
    confidence = (policy or default_policy()).audit.confidence
    plans = [plan_for(item, request, plan) for item in inputs]
    jobs = [*zip(inputs, prints, plans, strict=True)]
    with Scratch() as scratch, cluster_of(request, scratch, progress) as cluster:
        tasks: Tasks = cluster or Threads(1)
        shared = _Shared(request, policy, progress)
        shared = shared if cluster is None else shared.sent()
        for side, more in tasks.map(_side, jobs, shared=shared):
            sides.append(side)
            notes += more
            if cluster is not None:
                progress.step(f"{len(sides)} of {len(inputs)} audited")
    progress.step("differences")
    notes += _one_sided([side.result for side in sides])
    names = {print_.letter: print_.name for print_ in prints}
    differences = tuple(
        d.model_copy(update={"a_name": names[d.a], "b_name": names[d.b]})
        for d in all_differences(sides, confidence)
    )
    results = tuple(side.result for side in sides)
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
    """What the audits of all releases share."""

    request: CompareRequest
    policy: Policy | None
    progress: Progress
    until: float | None = None
    """When the time is over, for other machines: seconds of the epoch."""

    @property
    def confidence(self) -> float:
        return (self.policy or default_policy()).audit.confidence

    def sent(self) -> "_Shared":
        """Return it for other processes."""
        deadline = self.request.stop.deadline if self.request.stop else None
        until = None if deadline is None else time.time() + deadline - time.monotonic()
        request = replace(self.request, cluster=None, progress=None, stop=None)
        return _Shared(request, self.policy, NoProgress(), until)

    def received(self) -> CompareRequest:
        """Return the request, with the end of the time on this machine's clock."""
        if self.until is None:
            return self.request
        deadline = time.monotonic() + self.until - time.time()
        return replace(self.request, stop=Stop(deadline, self.request.timeout))


def _side(job: tuple[Input, Fingerprint, Plan], shared: _Shared) -> tuple[Side, list[Note]]:
    (item, print_, plan), request, progress = job, shared.received(), shared.progress
    result, guesses = audited(item, request, plan, shared.policy, progress)
    score, notes = None, list[Note]()
    if isinstance(item, ReleaseInput) and item.test is not None:
        progress.step(f"{print_.name}: training a model")
        try:
            several = item.several
            beside = None if several is None else several.beside
            learner = Learner(request.model, request.device, beside=beside)
            rng = child_generator(plan.seed, "compare", "utility")
            column = item if several is None else several
            test = item.test if several is None else several.test
            score = utility(column.release, test, learner, shared.confidence, rng)
            notes += [Note.warning(_AUDIT, f"{print_.name}: {w}") for w in score.warnings]
        except (InputError, InsufficientDataError) as error:
            text = f"No model was trained on {print_.name}: {error}"
            notes.append(Note.warning(_AUDIT, text))
    result = _with_utility(result, score)
    return Side(item.letter, result, guesses, score, pairable(print_)), notes


def _with_utility(result: AuditResult, score: Utility | None) -> AuditResult:
    if score is None:
        return result
    found = (score.estimate, *score.beside)
    others = (e for e in result.estimates if e.id not in {one.id for one in found})
    return result.model_copy(update={"estimates": (*others, *found)})


def _notes(prints: tuple[Fingerprint, ...]) -> list[Note]:
    notes = []
    if any(print_.mismatch for print_ in prints):
        notes.append(Note.warning(_AUDIT, _MISMATCH))
    if any(print_.source == "result" for print_ in prints):
        notes.append(Note.info(_AUDIT, _STORED))
    unsure = [p for p in prints[1:] if pairable(p) and p.shared_rows is None]
    if unsure and prints[0].source == "data":
        notes.append(Note.warning(_AUDIT, _ORDER))
    return notes


def _one_sided(results: list[AuditResult]) -> list[Note]:
    """Name attacks that ran on some releases only: the strongest is one that ran on the release."""
    ran = [set(attack_scores(result)) for result in results]
    every = ran[0].union(*ran[1:])
    missing = sorted(every - ran[0].intersection(*ran[1:]))
    if not missing:
        return []
    text = (
        f"These attacks ran on some of the releases only: {', '.join(missing)}. The strongest is "
        "chosen among those that ran on each; why one was left out is said for each release."
    )
    return [Note.info(_AUDIT, text)]


def shared_plan(request: CompareRequest, inputs: tuple[Input, ...]) -> Plan:
    """Return the plan of all audits: one seed, so that all releases have the same halves."""
    releases = [item for item in inputs if isinstance(item, ReleaseInput)]
    seed = seed_of(request, next(filter(None, (item.release.sha256 for item in releases)), None))
    # The groups of the first release hold the same people in all.
    slices = read_slices(releases[0].path, request.slices, request) if releases else ()
    return plan_of(request, seed, slices)


def plan_for(item: Input, request: CompareRequest, plan: Plan) -> Plan:
    """Return the plan for a release; a release of other people has its own groups."""
    if not isinstance(item, ReleaseInput):
        return plan
    if all(len(column.codes) == len(item.release) for column in plan.slices):
        return plan
    return replace(plan, slices=read_slices(item.path, request.slices, request))


def audited(
    item: Input, request: CompareRequest, plan: Plan, policy: Policy | None, progress: Progress
) -> tuple[AuditResult, HeldOutGuesses | None]:
    """Return the result of an input; of a release, which is audited here, also its guesses."""
    if not isinstance(item, ReleaseInput):
        return item.result, None
    guesses = HeldOutGuesses()
    try:
        result = audit(
            item.release,
            plan,
            policy,
            only=request.only,
            skip=request.skip,
            progress=Watched(progress, name=item.release.name),
            command=request.command,
            notes=item.notes,
            guesses=guesses,
            stop=request.stop,
        )
    except InputError as error:
        raise InputError(f"{item.release.name}: {error}") from None
    return result, guesses
