"""What to do after a verdict: at most three sentences, the most important first."""

# The sentences are the rows of ``advice.toml``; here are the facts by which a row is chosen, and
# the order of the steps. Causes are guesses for the person who fixes the release code, not
# findings: the verdict depends on none of them.

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from ldpaudit.judging import fits
from ldpaudit.judging.checks.bounds_of_others import above_the_claim, audit_of
from ldpaudit.judging.checks.claimed_epsilon import (
    COLUMNS_IN_DOUBT,
    IN_DOUBT,
    LATER_STAGES,
    POWER_UNKNOWN,
)
from ldpaudit.judging.checks.columns import named
from ldpaudit.judging.checks.interface import Case
from ldpaudit.judging.checks.listing import audit_behind
from ldpaudit.judging.checks.noise import OWN_ERROR
from ldpaudit.judging.checks.reading import by_number
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.policy.sections import RevealSection
from ldpaudit.mechanisms.capabilities import StagedLabel
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.result import Check, Decision, holding_up, stated
from ldpaudit.result.numbers import number, rows
from ldpaudit.result.stated import (
    DECIDED,
    EXCESS,
    EXCESS_WITH_TRUTH,
    INSIDER,
    LATTICE,
    ONE_LABEL,
    ORDERED,
    READ_OFF,
    ROWS_NEEDED,
    ROWS_WITH_TRUTH,
    SUBGROUPS,
    TRUTH_INSIDE,
)

TABLE: Final[Mapping[str, Any]] = tomllib.loads(
    (files(__package__) / "advice.toml").read_text(encoding="utf-8")
)
TEXTS: Final[Mapping[str, str]] = TABLE["texts"]
ADVISE, DECLARE = TEXTS["advise"], TEXTS["declare"]
PUBLISH: Final = TEXTS["publish"].format_map(TEXTS)
CLAIM_CHECKS: Final = (
    *("claimed-epsilon", "claimed-channel", "rare-classes", "feature-noise"),
    "guessable-seed",
)
"""The checks whose violation refutes the claim."""
OF_THE_CODE: Final = (*CLAIM_CHECKS, "shared-noise")
"""The checks that only a fault in the release code fails, or chance."""
_REFUTING: Final = TABLE["groups"]["claim"]
MOST: Final = 3
_RARE, _CERTAIN, _MOST_ROWS_ADVISED = 0.01, 1e-4, 1e9
_AS_CLAIMED = 0.05
"""An ε that differs from the claimed one by this share of it is no other ε."""
_DOUBTS = ("selected", "changed_rows", "unknown_columns")


def advice_step(policy: Policy, claim: Mechanism | None = None) -> str:
    """Return the step for a release whose true labels are in a file of their own.

    ``claim`` where one column is released: numbers on a range are read as numbers by their range
    alone.
    """
    name = policy.name or ("ldpaudit:default" if policy.sha256 is None else "")
    command = f"{ADVISE}ldpaudit advise RELEASE --truth TRUTH"
    stated = {} if claim is None else claim.declaration()
    if {"low", "high"} <= stated.keys():
        command += f" --labels {_range(stated)}"
    if name == "ldpaudit:default":
        return command
    return f"{command} --policy {name if name.startswith('ldpaudit:') else 'POLICY'}"


def with_advice(steps: list[str], advice: str | None, most: int) -> tuple[str, ...]:
    """Return at most so many steps, the last of which is the advice, where there is one."""
    own = [step for step in dict.fromkeys(steps) if not step.startswith(ADVISE)]
    return tuple(own[:most]) if advice is None else (*own[: most - 1], advice)


def one_in(p_value: float) -> int:
    """Return the n of "one honest release in n", rounded down."""
    return max(math.floor(1 / p_value), 1)


def next_steps(decision: Decision, case: Case, checks: Sequence[Check]) -> tuple[str, ...]:
    """Return what to do now, first about the gravest of the checks, as answered and waived."""
    waived = [check for check in checks if check.waived]
    if decision == "publish" and waived:
        refuted = any(check.id in CLAIM_CHECKS and check.level == "error" for check in waived)
        expires = min(check.waiver.expires for check in waived if check.waiver)
        first = TEXTS["say_waived" if refuted else "keep_waiver"]
        return first, TEXTS["fix_before"].format(expires=expires), TEXTS["not_again"]
    if decision == "publish":
        return tuple(_to_publish(case, checks))[:MOST]
    grave, facts = holding_up(checks), facts_of(case, checks)
    steps = _after_failure if decision == "do not publish" else _to_decide
    found = list(steps(case, facts, grave))
    decides = case.by_strata or any(check.level == "error" for check in checks)
    if decision == "not yet" and not decides:
        found.append(TEXTS["no_check"])
    found = found or [TEXTS["read_on"]]
    open_ones = [check for check in grave if check.level == "error"]
    advice = (
        advice_step(case.policy, case.claim) if case.circumstances.advisable and open_ones else None
    )
    return with_advice(found, advice, MOST)


# What a claim about numbers on a range states, and the command line can.
_OF_RANGE: Final = {"epsilon", "low", "high", "step", "clipped"}


def _claim_options(claim: Mechanism) -> str:
    """Return the options that state a claim; empty where it takes more than options."""
    if claim.traits.whole and "epsilon" in claim.traits.stated_by:
        return f" --mechanism {claim.name} --epsilon {claim.epsilon:.12g}"
    stated = claim.declaration()
    if not {"epsilon", "low", "high"} <= stated.keys() <= _OF_RANGE:
        return ""
    clip = ":clip" if stated.get("clipped") else ""
    options = f"epsilon={claim.epsilon:.12g}:labels={_range(stated)}{clip}"
    return f" --mechanism {claim.name}:{options}"


def _range(stated: Mapping[str, Any]) -> str:
    """Return a range as the command line takes it."""
    parts = [stated[one] for one in ("low", "high", "step") if stated.get(one) is not None]
    return ":".join(f"{part:.12g}" for part in parts)


def _to_publish(case: Case, checks: Sequence[Check]) -> Iterator[str]:
    ordered, claim = case.evidence.estimates.get(ORDERED), case.claim
    if ordered is not None and ordered.value:
        yield f"{TEXTS['shuffle']} {TEXTS['then']}"
    elif case.circumstances.declared:
        yield PUBLISH
    elif claim.epsilon is None:
        yield TEXTS["publish"].format(declaration="")
    else:
        yield DECLARE + TEXTS["declare_command"].format(options=_claim_options(claim))
    yield TEXTS["not_again"]
    if not case.circumstances.truth:
        yield TEXTS["look_closer"]
    for check in checks:
        if check.verdict == "inconclusive":  # And only warns.
            for step in said(case, facts_of(case, checks), check):
                yield f"{TEXTS['still_open']} {step}"


def _after_failure(case: Case, facts: Mapping[str, Any], grave: Sequence[Check]) -> Iterator[str]:
    """Yield the causes of each violation, and to fix the code where it is the code's fault."""
    failed = [check for check in grave if (check.level, check.verdict) == ("error", "fail")]
    found = list(dict.fromkeys(step for check in failed for step in said(case, facts, check)))
    faults = [c for c in failed if c.id in OF_THE_CODE and c.confidence is not None]
    if faults:
        chance = all(check.may_be_chance for check in faults)
        found = [*found[: MOST - 1], TEXTS["chance" if chance else "fix"]]
    yield from found
    for check in grave:
        if check.level == "warn":
            yield from said(case, facts, check)


def _to_decide(case: Case, facts: Mapping[str, Any], grave: Sequence[Check]) -> Iterator[str]:
    circumstances = case.circumstances
    if circumstances.stopped:
        yield TEXTS["to_the_end"]
    unclear = [check for check in grave if check.verdict == "inconclusive"]
    warned = [check for check in grave if check.level == "warn"]
    # More rows of a release that is not as declared would help nobody.
    certain = [check for check in warned if check.verdict == "fail" and _is_certain(check)]
    if any(facts_about(case, check).get("weak") for check in unclear):
        for check in certain:
            yield next(said(case, facts, check))
        warned = [check for check in warned if check not in certain]
    for check in unclear:
        if not circumstances.stopped:
            yield from said(case, facts, check)
    if circumstances.holds_truth:
        yield TEXTS["without_truth"]
    for check in warned:
        step = next(said(case, facts, check))
        if check.p_value is not None and check.may_be_chance:
            step += f" {TEXTS['may_be_chance'].format(one_in=one_in(check.p_value))}"
        yield step
    if any(check.id != "private-columns" for check in (*certain, *warned)):
        yield TEXTS["accepted"]


def _is_certain(check: Check) -> bool:
    return check.id in CLAIM_CHECKS and check.p_value is not None and check.p_value <= _CERTAIN


def said(case: Case, facts: Mapping[str, Any], check: Check) -> Iterator[str]:
    """Yield the rows of the table that hold for a check that failed or is open."""
    facts = {**TEXTS, **facts, **facts_about(case, check)}
    # What was too weak is made stronger: the first step that does it is enough.
    weak, nothing = check.id == "undetected-excess", True
    for row in TABLE["failed" if check.verdict == "fail" and not weak else "open"]:
        about = row["check"] == "any" or check.id in checks_of(row)
        if about and holds(row, facts) and (nothing or not row.get("else")):
            nothing = False
            yield row["say"].format_map(facts)
            if weak or row.get("last"):
                return


def checks_of(row: Mapping[str, Any]) -> Sequence[str]:
    """Return the checks that a row is about."""
    asked: str | list[str] = row["check"]
    groups: Mapping[str, list[str]] = TABLE["groups"]
    return groups.get(asked, [asked]) if isinstance(asked, str) else asked


def holds(row: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Return whether all facts hold that a row names; one that is not there does not."""
    asked = row["when"].split(" and ") if "when" in row else ()
    return all(
        bool(facts.get(name.removeprefix("not "))) != name.startswith("not ") for name in asked
    )


def missing_audit(case: Case, check: Check) -> str | None:
    """Return the audit without whose numbers a check is open; None where all are there."""
    epsilon = case.claim.epsilon
    if check.id != "claimed-epsilon":
        audit = None if check.evidence else audit_behind(check.id)
    elif epsilon is None or math.isinf(epsilon) or above_the_claim(case) is not None:
        audit = None
    elif not _bounded(check):
        audit = "mechanism"
    else:
        audit = None if EXCESS in check.evidence else "power"
    return None if audit is None or case.circumstances.absence(audit) is None else audit


def _bounded(check: Check) -> bool:
    return bool(set(check.evidence) - {EXCESS, stated.FEATURE_BLIND_TEST})


def facts_of(case: Case, checks: Sequence[Check]) -> dict[str, Any]:
    """Return what rows may ask of a case: true or not, or a number or words to repeat."""
    estimates = case.evidence.estimates
    circumstances = case.circumstances
    claimed = case.claim.epsilon
    failed = {check.id for check in checks if check.verdict == "fail"}
    value = {name: estimate.value for name, estimate in estimates.items()}
    fit: dict[str, Any] = {}
    if (
        circumstances.counts is not None
        and circumstances.channel is not None
        and failed & set(_REFUTING)
    ):
        fit = fits.signs(circumstances.counts, circumstances.channel, circumstances.family)
    if claimed and abs((fit.get("epsilon") or math.inf) - claimed) <= _AS_CLAIMED * claimed:
        fit["fitted_epsilon"] = ""  # Nobody gave the code an ε that is nearly the claimed one.
    if circumstances.noise_step or circumstances.columns_step:
        fit.pop("slip", None)  # A formula is the same for all rows.
    elsewhere = above_the_claim(case)
    everyone = max(value.get(INSIDER, 0.0), fit.get("epsilon") or 0.0)
    return {
        **fit,
        "truth": circumstances.truth,
        "more_certified_by": "" if elsewhere is None else audit_of(elsewhere, case),
        "no_claim": claimed is None,
        "infinite_claim": claimed == math.inf,
        "seed_found": "guessable-seed" in failed,
        "epsilon_failed": "claimed-epsilon" in failed,
        # A larger ε leaves more numbers as they were, too: then it is the ε that is wrong.
        "lattice": claimed is not None and value.get(LATTICE, 0.0) > max(claimed, everyone),
        "some_leak_more": claimed is not None
        and value.get(SUBGROUPS, 0.0) > max(claimed, everyone),
        "shared_noise": value.get(stated.SHARED_NOISE_TEST, 1.0) <= _RARE,
        "by_feature": value.get(stated.FEATURE_BLIND_TEST, 1.0) <= _RARE,
        "changed_shares": value.get(stated.MARGINAL_CONSISTENCY, 1.0) <= _RARE,
        "may_clip": "clipped" in case.claim.traits.options
        and not case.claim.declaration().get("clipped"),
        "synthetic": stated.FEATURES_KEPT in value,
        "features_kept": value.get(stated.FEATURES_KEPT, 1.0) <= OWN_ERROR,
        "counted_rows": stated.COUNTED_ROWS in value,
        "noise_step": circumstances.noise_step,
        "columns_step": circumstances.columns_step,
        "changes": " ".join(circumstances.changes.values()),
        "named_as_truth": by_number(circumstances.named_as_truth),
        "experiment": "experiment" in circumstances.faults_of_making,
        "changed_by": circumstances.changed_by or "features",
        "may_be_made": circumstances.may_be_made,
        # One ε for all rows explains nothing where noise is not the same for all.
        "one_noise": not circumstances.noise_step
        or ("claimed-channel" in failed and value.get(stated.FEATURE_BLIND_TEST, 1.0) > _RARE),
        **{name: f"assumptions.{name}" in value for name in _DOUBTS},
    }


def facts_about(case: Case, check: Check) -> dict[str, Any]:
    """Return what rows may ask of a check."""
    missing, circumstances = missing_audit(case, check), case.circumstances
    audit = missing or audit_behind(check.id) or "label-inference"
    limit = check.limit
    facts = {
        "audit": audit,
        "absence": circumstances.absence(audit),
        "missing_by_only": missing is not None and circumstances.left_out.get(missing) == "--only",
        "missing_by_skip": missing is not None and circumstances.left_out.get(missing) == "--skip",
        "lacking": check.id == "features-reveal-label" or not check.evidence,
        "declared_too_much": check.confidence is None and limit is not None,
        "limit": "" if limit is None else number(limit, "down"),
        "limit_rows": "" if limit is None else rows(limit),
    }
    if check.id in TABLE["groups"]["power"]:
        facts |= _of_power(case, check, missing)
    elif check.id in TABLE["groups"]["attack"] and limit is not None:
        facts |= _of_attack(case, check, limit)
    elif check.id == "features-reveal-label":
        facts |= _of_columns(case, check)
    elif check.id == "identifiers":
        facts["leading_back"] = _leading_back(case)
    return facts


def _leading_back(case: Case) -> str:
    """Return the columns that may lead back to a person: by name where their names are known."""
    columns = [name for names in case.circumstances.concerns.values() for name in names]
    if not columns:
        return "the columns that number the rows, ids, exact dates and free text"
    return f"the column{'s' if len(columns) > 1 else ''} {named(columns)}"


def _of_power(case: Case, check: Check, missing: str | None) -> dict[str, Any]:
    """Return what would make an audit strong enough."""
    evidence, claim, audit = case.evidence, case.claim, case.policy.audit
    alpha = 1 - (check.confidence or audit.confidence)
    allowed = audit.max_undetected_excess.or_default().at(claim.epsilon or 0.0)
    given = [] if case.circumstances.truth else ["the true labels (--truth)"]
    if "public model" not in claim.traits.needs:
        given.append("public rows with labels (--public)")
    elif not case.circumstances.public_model:
        given.append("the public model that the mechanism used (--public-posterior)")
    if claim.offers(StagedLabel) is not None:
        given = ["the file with all rows that were released, in their order"]
    by_counts = _bounded(check) or not claim.traits.label_depends_on_features
    doubted = any(f"assumptions.{name}" in evidence.estimates for name in _DOUBTS)
    refuted = POWER_UNKNOWN in check.reason
    closed = check.id == "claimed-epsilon" and (doubted or refuted or missing is not None)
    more, missed = evidence.at(ROWS_NEEDED, alpha), evidence.undetected_excess(alpha)
    value = {name: estimate.value for name, estimate in evidence.estimates.items()}
    truth, by_truth = value.get(EXCESS_WITH_TRUTH, math.inf), value.get(ROWS_WITH_TRUTH)
    # A check may be open for another reason than what goes unnoticed: then no number is too large.
    if check.id == "claimed-epsilon" and missed is not None and missed <= allowed:
        missed = None
    unknown_columns = stated.UNKNOWN_COLUMNS in evidence.estimates
    # True labels would help where they show what the release alone cannot.
    rows_with_truth = _rows(case.rows, by_truth) if truth > allowed else ""
    with_truth = number(truth, "up") if math.isfinite(truth) else ""
    too_large = "" if missed is None or math.isinf(missed) else number(missed, "up", 2)
    return {
        "needs_features": "" if by_counts else " and ".join(given),
        "model_unfit": not by_counts and not given,
        "channel_refuted": refuted,
        "later_stages": check.reason.startswith(LATER_STAGES.partition("{")[0]),
        "features_in_doubt": IN_DOUBT in check.reason,
        "columns_in_doubt": COLUMNS_IN_DOUBT in check.reason or unknown_columns,
        "lacking": missing is not None and not doubted and not refuted,
        "weak": case.circumstances.truth and not closed,
        "allowed": number(allowed),
        "rows_more": _rows(0, more),
        "rows_needed": _rows(case.rows, more),
        "rows_alone": _rows(case.rows, value.get(ROWS_NEEDED)),
        "rows_with_truth": rows_with_truth,
        "with_truth": with_truth,
        "missed": too_large,
    }


def _rows(have: int, more: float | None) -> str:
    """Return so many rows and some more, in words; empty where no number of rows would do."""
    return rows(have + more) if more is not None and 0 < more < _MOST_ROWS_ADVISED else ""


def _of_attack(case: Case, check: Check, limit: float) -> dict[str, Any]:
    """Return how an interval could be made to end before the limit."""
    estimates = case.evidence.estimates
    score = estimates.get(next(iter(check.evidence), ""))
    alone = estimates.get("attack.features-only.accuracy")
    facts: dict[str, Any] = {
        "features_suffice": alone is not None and alone.value > limit,
    }
    if score is None or score.low is None or score.high is None:
        return facts
    half = score.value - score.low if score.value > limit else score.high - score.value
    gap = abs(score.value - limit)
    # The width of an interval falls with the root of the rows.
    needed = math.inf if gap <= 0 else case.rows * (1.05 * half / gap) ** 2
    if case.rows < needed < _MOST_ROWS_ADVISED:
        step = 10 ** (math.floor(math.log10(needed)) - 1)
        facts["rows_enough"] = rows(math.ceil(needed / step) * step)
    return facts | {"interval": True}


def _of_columns(case: Case, check: Check) -> dict[str, Any]:
    """Return what reveals labels: columns, the order of the rows, or the true labels themselves."""
    value = {name: case.evidence.estimates[name].value for name in check.evidence}
    section = case.policy.checks.features_reveal_label or RevealSection()
    limits = {
        DECIDED: section.max_decided,
        READ_OFF: section.max_decided,
        stated.DECIDING: 0,
        stated.LAGGED: 0,
    }
    columns = value.keys() - {
        ORDERED,
        TRUTH_INSIDE,
        ONE_LABEL,
        stated.POSITION,
        stated.CLEAR_ROWS,
    }
    return {
        "truth_inside": TRUTH_INSIDE in value,
        "one_label": value.get(ONE_LABEL, 0.0) > section.max_decided,
        "clear_rows": value.get(stated.CLEAR_ROWS, 0.0) > section.max_decided,
        "order_reveals": value.get(ORDERED, 0.0) > 0,
        "columns_reveal": any(value[one] > limits.get(one, section.max) for one in columns),
    }
