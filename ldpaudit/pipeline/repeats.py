"""An audit of several releases of the same people: each release, then all of them together."""

import datetime
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from ldpaudit.audits.interface import AuditContext, Plan, Repeats
from ldpaudit.audits.listing import OF_RELEASES
from ldpaudit.audits.repeats.claimed import claimed_epsilon
from ldpaudit.audits.repeats.seen import SeenReleases
from ldpaudit.audits.repeats.told import odd_words
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.judging.whole import About, shared
from ldpaudit.mechanisms import from_declaration
from ldpaudit.pipeline.about import (
    release_words,
    repeats_info,
    repeats_mechanism_info,
    run_info,
    together_sha256,
)
from ldpaudit.pipeline.choosing import chosen_audits
from ldpaudit.pipeline.claim import pinned
from ldpaudit.pipeline.one_release import run_audit
from ldpaudit.pipeline.public import added_up, whole_facts
from ldpaudit.pipeline.vector import Running
from ldpaudit.pipeline.whole import own_findings, whole_result
from ldpaudit.result import AuditResult, Note
from ldpaudit.running.scratch import Scratch
from ldpaudit.running.stopping import Watched
from ldpaudit.tasks import Threads


def run_repeats(
    repeats: Repeats,
    plan: Plan,
    policy: Policy | None = None,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    notes: tuple[Note, ...] = (),
    running: Running | None = None,
) -> AuditResult:
    """Audit each release and all of them together, and judge them by a policy.

    The policy's error probability is shared among the releases and the whole, the budget of attacks
    and the time that is left among the releases.

    Parameters
    ----------
    repeats : Repeats
        The releases, and what is claimed of their noise.
    plan : Plan
        Where the policy pins the seed or the confidence, the policy wins.
    policy : Policy, optional
        Default: ``ldpaudit:default``. Its claim is about the whole.
    only, skip : collections of audit ids
        Which audits to run.
    notes : tuple of Note
        The warnings of the files' reader.
    running : Running, optional

    Raises
    ------
    InputError
        If a claim is not one that can be audited, or ``only``/``skip`` name no audit.
    PolicyError
        If no check of a release could run.
    """
    start, running = time.perf_counter(), running or Running()
    policy, releases = policy or default_policy(), repeats.releases.releases
    share = shared(policy, len(releases))
    chosen = chosen_audits(only, skip, OF_RELEASES)
    if chosen.keys() <= OF_RELEASES.keys():
        raise InputError("The releases need an audit, too: add one, such as --only mechanism.")
    today = running.today or datetime.datetime.now(datetime.UTC).date()
    running = replace(running, today=today)
    plan = replace(pinned(plan, share), budget=plan.budget / len(releases))
    context = _context(repeats, plan, running)
    seen = SeenReleases.of(context)
    epsilon = _claimed(seen)
    asked = [[name for name in names if name not in OF_RELEASES] for names in (only, skip)]
    parts = tuple(
        _release(repeats, place, plan, share, asked, running) for place in range(len(releases))
    )
    records, finding = own_findings(context, chosen, OF_RELEASES)
    words, bounded = release_words(repeats.releases), repeats.releases.known
    odd = odd_words(finding.estimates, repeats.noise)
    about = About(policy, "repeats", epsilon, words, records, bounded, odd)
    sha256 = together_sha256(releases)
    seconds = time.perf_counter() - start
    info = repeats_info(repeats.releases, parts, sha256)
    facts = tuple(filter(None, (part.public for part in parts)))
    shown = added_up(facts, releases, epsilon, once=repeats.noise == "remembered")
    return whole_result(
        *(about, finding, parts, "releases"),
        sha256=sha256,
        today=today,
        notes=notes,
        release=info,
        mechanism=repeats_mechanism_info(parts, repeats.noise, epsilon),
        run=run_info(plan, running.command, seconds, policy),
        public=whole_facts(
            *(info, repeats_mechanism_info(parts, repeats.noise, shown), facts, policy, today)
        ),
    )


def _context(repeats: Repeats, plan: Plan, running: Running) -> AuditContext:
    last = repeats.releases.releases[-1]
    claim = from_declaration(last.declaration, last.classes)
    return AuditContext(
        *(last, claim, plan, Watched(running.progress, running.stop)),
        finished=running.finished.within("all"),
        stop=running.stop,
        scratch=running.scratch or Scratch(),
        tasks=running.tasks or Threads(plan.threads),
        repeats=repeats,
    )


def _claimed(seen: SeenReleases) -> float | None:
    """Return the claimed ε of all releases together (InputError where the claim contradicts)."""
    if seen.asked.noise == "remembered" and not seen.alike:
        raise InputError(
            "Answers can only be remembered (--answers remembered) where all releases declare the "
            "same mechanism, with the same ε and classes. Here they do not."
        )
    return claimed_epsilon(seen, seen.asked.noise)


def _release(
    repeats: Repeats,
    place: int,
    plan: Plan,
    share: Policy,
    asked: Sequence[Collection[str]],
    running: Running,
) -> AuditResult:
    """Return the result of one release; ``asked``: its audits of ``only`` and of ``skip``."""
    number, releases = place + 1, repeats.releases.releases
    running.progress.remark(f"Release {number} of {len(releases)}:")
    within = running.finished.within(f"release-{number}")
    with running.stop.share(len(releases) - place):
        return run_audit(
            releases[place],
            plan,
            share,
            only=asked[0],
            skip=asked[1],
            **replace(running, finished=within).keywords(),
        )
