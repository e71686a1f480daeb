"""Audits of the releases of a comparison, with their guesses for pairing."""

from collections.abc import Sequence
from dataclasses import replace

from ldpaudit.api import plan_of, seed_of
from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.audits.interface import Plan
from ldpaudit.commands.compare.reading import Input, ReleaseInput
from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.datasets.beside.slices import read_slices
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import Policy
from ldpaudit.pipeline import run_audit
from ldpaudit.result import AuditResult
from ldpaudit.running.progress import Progress


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
        result = run_audit(
            item.release,
            plan,
            policy,
            only=request.only,
            skip=request.skip,
            progress=_Named(progress, item.release.name),
            command=request.command,
            notes=item.notes,
            guesses=guesses,
            stop=request.stop,
        )
    except InputError as error:
        raise InputError(f"{item.release.name}: {error}") from None
    return result, guesses


class _Named:
    """Progress that names the release."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress, self._name = progress, name

    def step(self, text: str) -> None:
        self._progress.step(f"{self._name}: {text}")

    def advance(self, done: int, total: int) -> None:
        self._progress.advance(done, total)

    def remark(self, text: str) -> None:
        self._progress.remark(f"{self._name}: {text}")

    def phases(self, names: Sequence[str], seconds: Sequence[float]) -> None:
        self._progress.phases([f"{self._name}: {phase}" for phase in names], seconds)

    def phase(self, number: int) -> None:
        self._progress.phase(number)
