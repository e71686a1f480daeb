"""How the noise of several releases goes together, as numbers of the result and in words."""

from collections.abc import Iterable, Iterator

from ldpaudit.audits.assumptions.stated import INDEPENDENT
from ldpaudit.audits.person.answers import DRAWS, Answers
from ldpaudit.audits.person.claimed import claimed_epsilon
from ldpaudit.audits.person.noise import FoundNoise, Told
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.result import Estimate, Note

_CLEAR = 0.01
_ODD = {
    "reused": "random numbers of one release were used again in another, so who compares them can "
    "undo the noise of people whose label changed",
    "fresh": "answers are declared to be drawn anew in each release, and they are not",
    "remembered": "answers are declared to be remembered, and labels that did not change have "
    "different ones",
}
AS_DECLARED = "released labels follow the declared mechanism in each release"
_TRUTH = (
    "of people with the same true label, how many were changed by noise in two releases, given how "
    "many were in each (Fisher's exact test, over all labels and of each); all pairs of releases, "
    "Bonferroni"
)
_ALONE = (
    "the answers of a person in two releases, against every joint distribution of true labels; all "
    "pairs of releases, Bonferroni"
)
_TITLES = {
    "fresh": "Noise of its own in each release (p-value)",
    "remembered": "The same answer for a label that did not change (p-value)",
    "reused": "No random numbers used again (p-value)",
}
_LOOKS: dict[Told, str] = {
    "fresh": "The noise looks fresh: each release draws its own",
    "remembered": "The noise looks remembered: a label that does not change keeps its answer",
    "partly": "Some answers are remembered, and others drawn anew",
    "reused": (
        "Random numbers were used again: noise goes together although true labels, or people, "
        "differ. Was the same seed used twice? Who compares the releases can undo the noise of "
        "people whose label changed"
    ),
    "dependent": "The noise of one release goes along with that of another, in neither usual way",
    "unclear": "These rows do not tell whether noise is fresh or remembered",
}


def noise_estimates(seen: Answers, found: FoundNoise) -> Iterator[Estimate]:
    """Return the tests of the noise, and how much of it was given twice."""
    for name in ("fresh", "remembered", "reused"):
        p_value = getattr(found, name)
        if p_value is not None:
            yield _p_value(seen, f"person.{name}_noise", _TITLES[name], p_value, found.people)
    claimed = found.as_claimed(seen.noise)
    if claimed is not None:
        noise = f"{seen.noise} noise" if seen.noise else "no random numbers used again"
        title = f"Noise of the releases goes together as declared: {noise} (p-value)"
        yield _p_value(seen, DRAWS, title, claimed, found.people)
    yield from _share(seen, found)
    if found.least is not None:
        for name, value in zip(("fresh", "remembered"), found.least, strict=True):
            yield _least(seen, name, value)


def noise_notes(seen: Answers, found: FoundNoise) -> Iterator[Note]:
    """Return in words what the noise looks like, and what that costs."""
    text = f"{_LOOKS[found.told]}{_price(seen, found)}."
    claimed = seen.noise
    odd = found.told in ("reused", "dependent", "partly")
    other = found.told in ("fresh", "remembered") and claimed not in (None, found.told)
    note = Note.warning if odd or other else Note.info
    yield note("person", text)


def odd_words(estimates: Iterable[Estimate], noise: str | None) -> str:
    """Return in words how noise goes together where it does not as claimed."""
    tests = {estimate.id: estimate.value for estimate in estimates}
    for name, text in _ODD.items():
        if name in ("reused", noise) and tests.get(f"person.{name}_noise", 1.0) <= _CLEAR:
            return text
    return ""


def _price(seen: Answers, found: FoundNoise) -> str:
    if found.told == "fresh":
        epsilon = claimed_epsilon(seen, "fresh")
        needed = ""
        if found.least is not None:
            share = f"{100 * found.least[1]:.0f} %"
            needed = f", unless at least {share} of true labels changed between two releases"
        cost = "" if epsilon is None else f", and ε adds up to {epsilon:.4g}"
        return f"{needed}{cost}"
    if found.told == "remembered":
        epsilon = claimed_epsilon(seen, "remembered")
        cost = "" if epsilon is None else f", and ε stays {epsilon:.4g}"
        return f"{cost}; who sees an answer change learns that the label did"
    return ""


def _p_value(seen: Answers, name: str, title: str, p_value: float, people: int) -> Estimate:
    kind, assumptions = seen.standing(INDEPENDENT)
    truth = seen.knows_truth
    return Estimate.upper_bound(
        name,
        title,
        max(p_value, SMALLEST_P_VALUE),
        seen.context.plan.confidence,
        kind=kind,
        n=people,
        unit="p-value",
        method=f"p-value: {_TRUTH if truth else _ALONE}",
        assumptions=assumptions if truth else (*assumptions, AS_DECLARED),
        reference="Fisher (1935)" if truth else "Clopper & Pearson (1934)",
    )


def _share(seen: Answers, found: FoundNoise) -> Iterator[Estimate]:
    if found.share is None:
        return
    value, low, high = found.share
    kind, assumptions = seen.standing(INDEPENDENT)
    name, title = "person.remembered_share", "Answers that were given twice"
    method = (
        "agreement with the release before beyond that of fresh noise, mean over neighbouring "
        "releases, Clopper–Pearson"
    )
    known = {"unit": "proportion", "n": found.people, "method": method, "kind": kind}
    known |= {"assumptions": (*assumptions, AS_DECLARED)}
    confidence = seen.context.plan.confidence
    if seen.knows_truth:
        yield Estimate.interval(name, title, value, (low, high), confidence, **known)  # type: ignore[arg-type]
    else:
        yield Estimate.lower_bound(name, title, low, confidence, **known)  # type: ignore[arg-type]


def _least(seen: Answers, noise: str, value: float) -> Estimate:
    kind, assumptions = seen.standing(INDEPENDENT)
    return Estimate.lower_bound(
        f"person.least_changed_if_{noise}",
        f"True labels that changed, at least, if noise is {noise}",
        value,
        seen.context.plan.confidence,
        unit="proportion",
        kind=kind,
        method="the least share over all joint distributions of true labels that agree with the "
        "answers in the first two releases (linear program)",
        assumptions=(*assumptions, AS_DECLARED),
        reference="Clopper & Pearson (1934)",
    )
