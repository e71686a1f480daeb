"""Are there columns that may lead back to a person?"""

from ldpaudit.judging.checks.interface import Answer, Case, Draft

_KINDS = {
    "columns.indices": "that number the rows",
    "columns.identifiers": "that differ in (nearly) every row",
    "columns.texts": "of free text",
    "columns.dates": "of exact dates",
}


def draft(case: Case) -> Draft | None:
    """Return the check, None where it is not asked for."""
    section, estimates = case.policy.checks.identifiers, case.evidence.estimates
    if section is None:
        return None
    ids = tuple(name for name in _KINDS if name in estimates)
    counts = {name: round(estimates[name].value) for name in ids}
    most, total = section.max, sum(counts.values())

    def test(_: float) -> Answer:
        if not ids:
            return Answer(
                "inconclusive", None, "the columns were not looked at when they were read"
            )
        if total <= most:
            return Answer("pass", float(total), "no column looks like an identifier")
        kinds = [f"{count} {_KINDS[name]}" for name, count in counts.items() if count]
        return Answer(
            "fail", float(total), f"columns may lead back to a person: {', '.join(kinds)}"
        )

    question = "Are there columns that may lead back to a person?"
    return Draft("identifiers", section.level, question, float(most), ids, test, counted=True)
