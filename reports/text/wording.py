"""Words of the page that belong to no number: verdicts, kinds, names of audits, the glossary."""

import math
from collections.abc import Iterable
from typing import Final

from ldpaudit.result import (
    AuditRecord,
    AuditResult,
    BeforeNoise,
    Check,
    Decision,
    Family,
    PlugIn,
    RunInfo,
    readable,
)
from ldpaudit.result.answers import VERDICTS
from ldpaudit.result.harmless import name, shown
from ldpaudit.result.numbers import fold, percent
from ldpaudit.result.sentence import WARNING, Sentence

PUBLISH: Final[dict[Decision, str]] = {
    "publish": "yes",
    "not yet": "not yet",
    "do not publish": "no",
}
"""The answer to "publish?"."""


PROVEN: Final = "Proven"
"""The headline where the noise was drawn again and every label is as drawn."""
WAIVED: Final = f"{VERDICTS['fail']}, waived"
"""The headline where a violation stands that somebody answers for; the exit status is 0."""


def headline(result: AuditResult) -> str:
    """Return the verdict in two words; a waived violation stays one."""
    grave = any(check.waived and check.level == "error" for check in every_check(result))
    if result.verdict == "pass" and result.sentence.startswith(PROVEN):
        return PROVEN
    return WAIVED if grave and result.verdict == "pass" else VERDICTS[result.verdict]


def truth_given(result: AuditResult) -> str:
    """Return whether the true labels were given."""
    return "given" if result.release.truth else "not given"


_LISTED: Final = 6
"""Columns that are named."""
_KNOWN: Final = {"truth": "as in the true table", "named": "named", "declared": "declared"}


def before_words(before: BeforeNoise) -> str:
    """Return how many columns are known to be from before the noise, how, and which are not."""
    by = {how: len(getattr(before, how)) for how in _KNOWN}
    known, others = sum(by.values()), before.unknown
    total = known + len(others)
    if not total:
        return "no columns"
    how = ", ".join(f"{count} {_KNOWN[how]}" for how, count in by.items() if count)
    text = f"{known} of {total} columns known" + (f" ({how})" if how else "")
    if not others:
        return text
    more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
    return f"{text}; not known: {', '.join(map(name, others[:_LISTED]))}{more}"


def every_check(result: AuditResult) -> tuple[Check, ...]:
    """Return the checks of a result, and of its columns and releases."""
    return tuple(c for one in (result, *result.parts.values()) for c in one.checks)


def publish_answer(result: AuditResult) -> str:
    """Return the answer to "publish?", and whether a waiver is behind it."""
    waived = result.decision == "publish" and any(c.waived for c in every_check(result))
    return f"{PUBLISH[result.decision]}{', by waiver' if waived else ''}"


def publish_line(result: AuditResult) -> str:
    """Return the line that every command prints of a release: whether to publish it."""
    return f"Publish: {publish_answer(result)}."


def power_line(sentence: Sentence) -> str:
    """Return what a verdict's sentence says of the power, as a sentence of its own; or nothing."""
    power = sentence.power.removeprefix("but ")
    return f"{power[:1].upper()}{power[1:]}." if power else ""


def warning_lines(sentence: Sentence) -> tuple[tuple[str, str], ...]:
    """Return what the warning of a verdict's sentence is called, and what it says; or nothing."""
    if not sentence.warning:
        return ()
    called = f"{WARNING} {sentence.where}".rstrip()
    return ((f"{called}.", f"{sentence.warning[:1].upper()}{sentence.warning[1:]}."),)


def waiver_line(check: Check) -> str:
    """Return who answers for a violation, why and until when; nothing where it is not waived."""
    if check.waiver is None:
        return "waived" if check.waived else ""
    by, reason = shown(check.waiver.approved_by), shown(check.waiver.reason)
    return f"waived until {check.waiver.expires} by {by}: {reason}"


def policy_words(run: RunInfo) -> str:
    """Return which policy judged: its name, and the digest of a file."""
    digest = f"SHA-256 {shown(run.policy_sha256[:12])}…" if run.policy_sha256 else ""
    named = shown(run.policy or "", 120)
    return f"{named} ({digest})" if named and digest else named or digest or "built in"


def plugin_words(plugins: Iterable[PlugIn]) -> str:
    """Return the parts of others that took part, each with its package or its file."""
    return ", ".join(f"{part.kind} {name(part.name)}{_origin(part)}" for part in plugins)


def _origin(part: PlugIn) -> str:
    if part.package:
        return f" of {name(part.package)} {name(part.version or '')}".rstrip()
    return f" (file with SHA-256 {name(part.sha256)})" if part.sha256 else ""


def plugins_of(result: AuditResult) -> tuple[PlugIn, ...]:
    """Return the parts of others that took part in the audit of a whole, or of a part of it."""
    every = (one for part in (result, *result.parts.values()) for one in part.run.plugins)
    return tuple(dict.fromkeys(every))


def correction_lines(result: AuditResult) -> tuple[str, ...]:
    """Return how the checks of each level share the error probability, in a line each."""
    return tuple(_correction(family) for family in result.families)


def _correction(family: Family) -> str:
    confidence = percent(family.confidence)
    if family.checks == 1:
        return f"1 check of level {family.level}, at {confidence} confidence"
    checks = f"{family.checks} checks of level {family.level}"
    if family.correction == "none":
        return f"no correction for {checks}: {confidence} confidence for each alone"
    return f"{family.correction.capitalize()} over {checks}: {confidence} confidence for all"


MARKS: Final = {
    "exact": "computed from the declared mechanism alone; no data, no uncertainty",
    "lower": "certified lower bound: the truth is at least this, at the given confidence",
    "upper": "certified upper bound: the truth is at most this, at the given confidence",
    "interval": "certified interval: the truth lies within it, at the given confidence",
    "estimated": "estimated: holds under the assumptions printed with it, which are not tested",
}

AUDITS: Final = {
    "mechanism": "Mechanism",
    "instance-loss": "Instance-based loss",
    "label-inference": "Label inference",
    "renyi": "Rényi divergence",
    "synthetic": "Synthetic features",
    "numeric-inference": "Numeric labels",
    "observational": "True against re-drawn labels",
    "aggregates": "Aggregates of labels",
    "columns": "Columns",
    "companions": "What companion columns reveal",
    "person": "Everything of a person",
    "power": "Power",
    "policy": "Policy",
    "comparison": "Comparison",
    "reading": "Reading",
}

SOURCES: Final = {
    "file": "in the released file",
    "options": "by an option of the command",
    "policy": "by the policy",
    "api": "by the calling program",
    None: "not at all",
}

WORDS: Final = (
    (
        "ε (epsilon)",
        "How much a released label may reveal: it shifts the odds between two true labels at most "
        "e^ε-fold. 0 reveals nothing, 1 allows 2.72-fold, ∞ is no limit.",
    ),
    ("nat", "The unit of ε and of losses: one nat is odds shifted 2.72-fold, two are 7.39-fold."),
    ("claim", "What the release promises: a mechanism and its ε."),
    (
        "audit",
        "An attempt to refute the claim from data. Tests can refute; only a receipt, the key of "
        "the noise, can prove.",
    ),
    (
        "exact",
        "Computed from the claimed mechanism alone, without data.",
    ),
    (
        "certified",
        "A bound that is wrong in at most 5 % of audits (at 95 %), if its assumptions hold.",
    ),
    ("estimated", "A number that needs a further assumption, printed with it and not tested."),
    (
        "features alone",
        "What somebody guesses who knows a person’s other columns but has no release.",
    ),
    (
        "loss (ν)",
        "How far features and released label shift the odds of one person’s label, in nats.",
    ),
    ("power", "How surely the audit finds a violation of a given size."),
)
"""Ten words that a reader of the page needs, in plain English."""

TERMS: Final = (
    (
        "oracle",
        "An attacker who learns features and channel from other people’s true labels: about the "
        "most that can be learnt from this many rows.",
    ),
    ("votes of near rows", "A guess by what rows with similar features in the file released."),
    (
        "optimum against the claim",
        "What the best attack would reach on a release made as claimed, by a model of the labels.",
    ),
    (
        "ceiling of the claim",
        "What no attack can exceed if the claim holds and the model of the labels is right.",
    ),
    (
        "re-drawn label",
        "A label drawn from what the features say. An attacker has to tell it from the true one.",
    ),
    ("uncorrected", "A bound at its own level, without correction for choosing among several."),
    (
        "advantage",
        "What the release adds to an attack. Additive: the gain in accuracy over an attacker who "
        "sees the features alone. Multiplicative: the shift of the log-odds of the label, in nats; "
        "it can be large where the additive one is zero.",
    ),
    (
        "composition",
        "How ε adds up when several things are released of one person: columns, or years. "
        "Independent draws add up at most.",
    ),
    (
        "everything of a person",
        "All private columns in all given releases; their ε limits what all of them reveal.",
    ),
    (
        "stratum",
        "The rows that share a value of a public column, such as a region, and so a mechanism.",
    ),
    (
        "RS+FD",
        "Random sampling plus fake data: one private column of each person is released with noise, "
        "the others hold invented answers, and nobody sees which is which.",
    ),
    (
        "memoization",
        "Noise that is drawn once for a person and used again in later releases: what an attacker "
        "sees twice tells nothing new.",
    ),
    (
        "AUC",
        "The probability that an attack ranks a random person with the label above one without; "
        "0.5 is guessing.",
    ),
    (
        "ceiling",
        "The most that a release can add to an attack if the claim holds, whatever the attack: "
        "exact. The ceiling of accuracy is estimated: it depends on what the features reveal.",
    ),
    (
        "J(τ)",
        "The share of people whose instance-based loss ν is at least τ nats.",
    ),
    (
        "λ (lambda)",
        "Randomized response keeps the label with probability 1 − λ and otherwise draws one "
        "uniformly from all k labels. Not the probability of a flip, which is λ/2 for two labels.",
    ),
    (
        "TPR at 1 % FPR",
        "The share of people with the label that an attack finds while it wrongly names 1 % of "
        "the others.",
    ),
)
"""The terms of single numbers."""

GLOSSARY: Final = (*WORDS, *TERMS)

LIMITS: Final = (
    "An audit can refute a claim, never prove one: a stronger attack than those tried here may "
    "exist.",
    "People are taken to be independent draws from one population, a row each.",
    "Only the label is taken to be confidential. What the features reveal about a person is not "
    "measured.",
)


def promise(claimed: float | None, claim: str, several: bool) -> str:
    """Return what a claimed ε promises; ``claim`` is ε as it is printed."""
    if claimed is None:
        return "Nothing was claimed, so there is no claim to test."
    if math.isinf(claimed):
        return "The claim is ε = ∞: it promises nothing, so nothing could refute it."
    shifting = "a released label shifts the odds between two true labels"
    if several:
        shifting = "all that is released of a person shifts the odds between any true labels"
    return f"The claim is ε = {claim}: {shifting} at most {fold(claimed, 'up')}."


def audit_name(identifier: str) -> str:
    """Return what an audit is called; of one that has no name here, its id in words."""
    return AUDITS.get(identifier) or shown(readable(identifier), 60)


def missing(records: tuple[AuditRecord, ...], audit: str) -> str:
    """Return why a part of the report is empty."""
    record = next((r for r in records if r.id == audit), None)
    if record is None:
        return "Not measured: this audit was not asked for."
    if record.status == "ran":
        return "Not measured: the audit ran but this does not apply to the release."
    word = "was skipped" if record.status == "skipped" else "was stopped before it was done"
    reason = shown(record.reason).rstrip(".")
    return f"Not measured: the audit {word}{': ' + reason if reason else ''}."


def assumptions_of_bounds(result: AuditResult) -> str:
    """Return what the certified numbers behind the checks rest on, in one line; or nothing."""
    return "; ".join(assumed_by_bounds(result))


def assumed_by_bounds(result: AuditResult) -> tuple[str, ...]:
    """Return each assumption that the certified numbers behind the checks rest on."""
    evidence = {identifier for check in result.checks for identifier in check.evidence}
    parts = [p for p in (*result.estimates, *result.curves) if p.id in evidence]
    texts = (text for part in parts if part.kind == "certified" for text in part.assumptions)
    return tuple(shown(text) for text in dict.fromkeys(texts))
