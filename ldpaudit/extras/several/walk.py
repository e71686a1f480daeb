"""Auditing a tree of a person's answers: every part first, then the node itself."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ldpaudit.audits.interface import Execution, collected
from ldpaudit.audits.running import run_audits
from ldpaudit.doors import (
    AuditContext,
    AuditResult,
    Finding,
    InputError,
    Note,
    Release,
    child_generator,
)
from ldpaudit.extras.several.files import FileColumns
from ldpaudit.extras.several.judging import NodeCase, judge_node, shared
from ldpaudit.extras.several.nodes import Node, claim_info, node_of, tree_info, with_replays
from ldpaudit.extras.several.person.audit import person_parts
from ldpaudit.extras.several.person.noise import noise_between_files, odd_words
from ldpaudit.extras.several.public import public_facts_of
from ldpaudit.extras.several.strata import OF_COLUMNS, audit_leaf
from ldpaudit.extras.several.words import Words, called_release
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.waivers import unused_waivers
from ldpaudit.pipeline.audit import (
    advisable,
    chosen_audits,
    judged_fields,
    pinned,
    run_info,
)
from ldpaudit.pipeline.described import claim_of
from ldpaudit.pipeline.terms import Terms
from ldpaudit.receipt.found import Replay
from ldpaudit.result import AuditRecord, merged

OF_TREES: Final[Mapping[str, str]] = {"person": "ldpaudit.extras.several.person.audit:AUDIT"}
"""The audits of several columns or releases of the same people together, places by id."""
_NOT_JOINT: Final = "the released columns do not follow the joint mechanism that is declared"
_SHARED: Final = (
    "the noise of one column goes along with another's{}, so they were not drawn as declared"
)
_NEITHER: Final = "answers of the releases are neither all new nor all remembered, as declared"


@dataclass(frozen=True)
class AnswersTree:
    """Several answers of the same people, as :func:`ldpaudit.pipeline.audit.audit` takes them."""

    node: Node

    @classmethod
    def of(cls, released: Release | FileColumns) -> "AnswersTree":
        """Return the tree of one file."""
        return cls(node_of(released))

    @property
    def leaves(self) -> tuple[Release, ...]:
        """Each private column of each release in it."""
        return self.node.leaves

    def with_replays(self, replays: Sequence[Replay | None]) -> "AnswersTree":
        """Return the tree with what drawing the noise of each of its releases again found."""
        return AnswersTree(with_replays(self.node, replays))

    def audit(self, terms: Terms, run: Execution, notes: tuple[Note, ...]) -> AuditResult:
        """Audit every part and the tree itself, and judge them by the policy.

        The policy's error probability is shared in equal parts among all nodes, the time that is
        left among the columns.
        """
        node = self.node
        if node.kind == "column":
            return audit_leaf(terms, node, terms.policy.of_all(), run, notes)
        chosen = chosen_audits(terms.only, terms.skip, {**OF_COLUMNS, **OF_TREES})
        if chosen.keys() <= OF_TREES.keys():
            what = "releases" if node.kind == "releases" else "columns"
            raise InputError(f"The {what} need an audit, too: add one, such as --only mechanism.")
        share = shared(terms.policy, node.size)
        of_columns = replace(
            terms,
            plan=pinned(terms.plan, share),
            only={*terms.only} - OF_TREES.keys(),
            skip={*terms.skip} - OF_TREES.keys(),
        )
        audits = {name: place for name, place in OF_TREES.items() if name in chosen}
        return _Walk(of_columns, share, audits).result(node, run, notes)[0]


@dataclass(frozen=True)
class _Walk:
    """What is the same at all nodes."""

    terms: Terms
    """As for the columns: without the audits of nodes."""
    share: Policy
    """The policy with a node's share of the error probability."""
    audits: Mapping[str, str]
    """The audits of nodes with parts, places by id."""

    def result(
        self, node: Node, run: Execution, notes: tuple[Note, ...] = ()
    ) -> tuple[AuditResult, Finding]:
        """Return the result of a node, which holds those of its parts, and what was found."""
        start = time.perf_counter()
        claim = self.terms.policy.claim
        if claim is not None:
            one = node.kind == "columns" or node.key.startswith("release")
            claim = claim.of(everything=not node.key, one_release=one)
        policy = self.share.model_copy(update={"claim": claim})
        if node.kind == "column":
            return audit_leaf(self.terms, node, policy.of_all(), run), Finding()
        found = []
        for place, part in enumerate(node.parts):
            run.progress.remark(f"{_called(part)}:")
            with run.stop.share(len(node.parts) - place):
                found.append(self.result(part, run))
        parts, findings = tuple(r for r, _ in found), [f for _, f in found]
        records, finding = self._together(node, findings, run)
        case = _case(node, policy, records, Evidence.collect([finding]))
        judgement = judge_node(case, parts, sha256=node.sha256, today=self.terms.today)
        unused, parts = unused_waivers(parts, judgement.notes)
        terms, seconds = self.terms, time.perf_counter() - start
        result = AuditResult(
            release=tree_info(node),
            mechanism=claim_info(node, node.joint, node.epsilon),
            notes=(*notes, *finding.notes, *unused),
            audits=records,
            run=run_info(terms.plan, terms.command, seconds, terms.policy),
            public=public_facts_of(node, parts, terms.policy, terms.today),
            labels=parts[: len(node.columns)],
            releases=parts[len(node.columns) :],
            **judged_fields(terms.today, finding, judgement),
        )
        return result, finding

    def _together(
        self, node: Node, parts: Sequence[Finding], run: Execution
    ) -> tuple[tuple[AuditRecord, ...], Finding]:
        """Return what the audits of a node itself found, and whether they ran."""
        if node.files is not None:
            d, names = len(node.columns), [f"column {one.leaves[-1].label}" for one in node.columns]
            rng = child_generator(self.terms.plan.seed, "person", "draws")
            found = person_parts(
                dict(zip(names, parts[:d], strict=True)),
                parts[d:],
                noise_between_files(node.files, rng, self.terms.plan.confidence),
                node.epsilon,
                self.terms.plan.confidence,
                adds_up=node.adds_up,
            )
            return (), collected(found)
        leaf = node.leaves[0 if node.kind == "columns" else -1]
        run = replace(run, guesses=None)
        context = AuditContext(leaf, claim_of(leaf), self.terms.plan, node.related, run=run)
        records, findings, _ = run_audits(self.audits, context)
        context.progress.phases(())
        return records, merged(findings)


def _case(
    node: Node, policy: Policy, records: tuple[AuditRecord, ...], evidence: Evidence
) -> NodeCase:
    case = NodeCase(
        policy,
        words_of(node),
        node.epsilon,
        evidence,
        prior_epsilon=node.prior_epsilon,
        records=records,
        boundable=node.kind == "columns" or any(one.knows_truth for one in node.columns or (node,)),
        declared=node.declared,
        audited=len(node.names),
        replays=() if node.noise == "remembered" else node.replays,
    )
    if node.kind == "columns":
        joint = node.drawn_jointly
        odd = _NOT_JOINT if joint else _SHARED.format("")
        each = all(map(advisable, node.leaves))
        return replace(case, odd=odd, assumes_draws=not joint, advisable=each)
    if node.kind == "person":
        return replace(case, odd=_SHARED.format(" of another release"))
    odd = odd_words([*evidence.estimates.values()], node.noise)
    return replace(case, odd=odd or _NEITHER, audited=1)


def words_of(node: Node) -> Words:
    """Return what a node and its parts are called."""
    d, t = len(node.names), len(node.releases or node.leaves)
    names = tuple(one.label for one in node.leaves)
    if node.kind == "columns":
        together, extent = f"the {d} columns together", f"over {d} columns"
        return Words("column", together, names, extent, jointly=node.drawn_jointly)
    files = tuple(one.name for one in node.releases)
    if node.kind == "releases":
        return Words("release", f"the {t} releases together", files, f"over {t} releases")
    columns = tuple(f"column {one.leaves[-1].label} over the releases" for one in node.columns)
    releases = tuple(called_release(place, name) for place, name in enumerate(files, 1))
    called = f"the {d} column{'s' * (d > 1)} over {t} releases together"
    extent = f"over {t} releases of {d} columns"
    return Words("release", called, (), extent, (*columns, *releases))


def _called(part: Node) -> str:
    """Return what a part is called while it is audited, such as "Column vote"."""
    if part.kind == "releases":
        return f"Column {part.leaves[-1].label} over the releases"
    if part.key.startswith("column"):
        return f"Column {part.leaves[0].label}"
    return part.key.replace("-", " ").capitalize()
