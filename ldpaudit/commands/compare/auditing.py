"""Auditing each release of a comparison in the same way, its guesses kept for pairing."""

from dataclasses import dataclass, replace

from ldpaudit.api import available_threads
from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.audits.interface import DEFAULT_BUDGET, Plan
from ldpaudit.commands.compare.reading import Input, ReleaseInput
from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.datasets.beside.slices import Slices, read_slices
from ldpaudit.errors import InputError
from ldpaudit.pipeline import run_audit
from ldpaudit.policy import Policy, load_policy
from ldpaudit.progress import Progress
from ldpaudit.result import AuditResult


@dataclass(frozen=True)
class Audited:
    """A release's result, and while the comparison lasts, which guesses were right.

    ``guesses`` is None for a stored result.
    """

    letter: str
    result: AuditResult
    guesses: HeldOutGuesses | None = None


def plan_of(request: CompareRequest, inputs: tuple[Input, ...]) -> Plan:
    """Return the plan of all audits: one seed, so that all releases have the same halves."""
    return Plan(
        seed=_seed(request, inputs),
        queries=request.queries,
        neighbors=request.neighbors,
        threads=request.threads or available_threads(),
        device=request.device,
        show_class_names=request.show_class_names,
        budget=DEFAULT_BUDGET if request.budget is None else request.budget,
        slices=_slices(request, inputs),
    )


def _slices(request: CompareRequest, inputs: tuple[Input, ...]) -> tuple[Slices, ...]:
    """Return the groups of the first release: each holds the same people in all releases."""
    first = next((item for item in inputs if isinstance(item, ReleaseInput)), None)
    return () if first is None else read_slices(first.path, request.slices)


def _plan_for(item: ReleaseInput, request: CompareRequest, plan: Plan) -> Plan:
    """Return the plan for a release; one of other people has groups of its own."""
    if all(len(column.codes) == len(item.release) for column in plan.slices):
        return plan
    return replace(plan, slices=read_slices(item.path, request.slices))


def policy_of(request: CompareRequest) -> Policy | None:
    """Return the policy of all audits, None for the default one."""
    return None if request.policy is None else load_policy(request.policy)


def audit_input(
    item: Input, request: CompareRequest, plan: Plan, policy: Policy | None, progress: Progress
) -> Audited:
    """Return the result of an input, audited here where it is a release."""
    if not isinstance(item, ReleaseInput):
        return Audited(item.letter, item.result)
    guesses = HeldOutGuesses()
    try:
        result = run_audit(
            item.release,
            _plan_for(item, request, plan),
            policy,
            only=request.only,
            skip=request.skip,
            progress=_Lettered(progress, item.letter),
            command=request.command,
            notes=item.notes,
            guesses=guesses,
        )
    except InputError as error:
        raise InputError(f"{item.letter}: {error}") from None
    return Audited(item.letter, result, guesses)


def _seed(request: CompareRequest, inputs: tuple[Input, ...]) -> int:
    if request.seed is not None:
        return request.seed
    for item in inputs:
        if isinstance(item, ReleaseInput) and item.release.sha256:
            return int(item.release.sha256[:12], 16)
    return 0


class _Lettered:
    """Progress that says which release is being audited."""

    def __init__(self, progress: Progress, letter: str) -> None:
        self._progress, self._letter = progress, letter

    def step(self, text: str) -> None:
        self._progress.step(f"{self._letter}: {text}")

    def advance(self, done: int, total: int) -> None:
        self._progress.advance(done, total)
