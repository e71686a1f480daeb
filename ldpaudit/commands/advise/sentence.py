"""The advice in one sentence."""

from collections.abc import Iterator, Sequence

from ldpaudit.commands.advise.closed_forms.leakage import Held
from ldpaudit.commands.advise.result import Dropped, Outcome, Recommendation
from ldpaudit.reports.text.numbers import against, as_percent, number
from ldpaudit.result import Estimate


def sentence(
    recommendations: Sequence[Recommendation],
    outcome: Outcome,
    broken: Sequence[Held],
    dropped: Sequence[Dropped],
) -> str:
    """Return what to release, or why there is nothing.

    Parameters
    ----------
    recommendations : sequence of Recommendation
    outcome : Outcome
    broken : sequence of Held
        The limits that the features alone break.
    dropped : sequence of Dropped
        The columns that are left out.
    """
    if outcome == "found":
        return _found(recommendations[0]) + _left_out(dropped)
    if outcome == "undecided":
        return "Nothing was found in the time that the policy lets pass: give more --minutes."
    if broken:
        return (
            f"Nothing in reach passes: {_beyond(broken[0])} by the features alone, and no noise on "
            "the label changes that. Do not release these features with this label."
        )
    if dropped:
        return (
            "Nothing in reach passes: the features alone give the label away, and leaving columns "
            "out leaves nothing to learn from. Do not release these features with this label."
        )
    return "Nothing in reach passes: every mechanism breaks a limit at every noise. Do not release."


def _found(best: Recommendation) -> str:
    if len(best.choices) > 1:
        parts = ", ".join(choice.candidate.words for choice in best.choices)
        return f"Release the {len(best.choices)} private columns with {parts}, in this order."
    choice = best.choices[0]
    words = f"{utility_words(choice.utility)}, {leak_words(choice.leakage)}"
    return f"Release with {choice.candidate.words}: {words}."


def _left_out(dropped: Sequence[Dropped]) -> str:
    count = sum(len(one.columns) for one in dropped)
    if not count:
        return ""
    these = "1 column" if count == 1 else f"{count} columns"
    return f" Leave out {these} that no noise makes up for (--drop)."


def utility_words(utility: Estimate) -> str:
    """Return what a release is good for, in a few words."""
    value = _shown(utility)
    words = {
        "test_accuracy": f"a model that learns from it is right in {value} of cases",
        "test_squared_error": f"a model that learns from it has a squared error of {value}",
        "share_error": f"labels' shares are off by {value}, typically",
    }
    return words.get(utility.id, f"{utility.title} {value}")


def no_use(utility: Estimate, commonest: float) -> Iterator[str]:
    """Yield a remark where what can be learnt is not shown to beat a constant guess.

    ``commonest`` is the share of the commonest label.
    """
    low = utility.value if utility.low is None else utility.low
    if utility.id == "test_accuracy" and low <= commonest:
        share = as_percent(number(commonest))
        yield (
            f"Whoever always guesses the commonest label is right in {share} of cases: a model "
            "that learns from the first recommendation is not shown to do better."
        )


def leak_words(leakage: Sequence[Estimate]) -> str:
    """Return what an attacker reaches, in a few words."""
    gain = next((one for one in leakage if one.id == "advice.advantage"), None)
    accuracy = next(one for one in leakage if one.id == "advice.accuracy")
    words = f"an attacker guesses {_shown(accuracy)} of the labels"
    return (
        words if gain is None else f"{words}, {_points(gain)} points more than without the release"
    )


def _points(estimate: Estimate) -> str:
    return as_percent(number(estimate.value)).removesuffix("\u00a0%")


def _shown(estimate: Estimate) -> str:
    text = number(estimate.value)
    return as_percent(text) if estimate.unit == "proportion" else text


def _beyond(held: Held) -> str:
    observed, most = against(held.value, held.most)
    return f"{held.limit.title}: {observed}, the policy allows {most},"
