"""Several answers of each person, over columns or releases: claimed ε, its bound, shared noise."""

# With true labels the answers' own bounds are added up, where their noise is independent and not
# refuted; all answers as one code are bounded however their noise goes together. Without true
# labels columns are bounded by the release alone, and releases each by itself.

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf, prod
from typing import Any, Final

import numpy as np

from ldpaudit.audits.assumptions.rows import Counted
from ldpaudit.audits.assumptions.without_truth import evidence_of as evidence_alone
from ldpaudit.audits.before import before
from ldpaudit.audits.interface import BuiltIn, Part
from ldpaudit.audits.mechanism.evidence import outsider_evidence
from ldpaudit.doors import (
    AuditContext,
    Channel,
    Estimate,
    Finding,
    FloatArray,
    IntArray,
    Note,
    Release,
    from_declaration,
)
from ldpaudit.error_budget import Split
from ldpaudit.estimators.epsilon.power import WANTED_POWER, worth_looking_for
from ldpaudit.estimators.epsilon.release_only import ReleaseOnlyEvidence
from ldpaudit.estimators.epsilon.strongest import (
    PILOT_SHARE,
    BoundEvidence,
    epsilon_evidence,
    presumed_channel,
)
from ldpaudit.extras.several.files import Noise
from ldpaudit.extras.several.person.answers import EPSILON, Answers
from ldpaudit.extras.several.person.estimators import (
    AnswersEvidence,
    column_codes,
    columns_evidence,
    detectable_excess,
    releases_evidence,
    sum_lower,
)
from ldpaudit.extras.several.person.guessing import guess_curve, votes
from ldpaudit.extras.several.person.noise import columns_noise, noise_finding, releases_noise
from ldpaudit.extras.several.reading import same_features
from ldpaudit.extras.several.related import Companions, OverReleases
from ldpaudit.release import ReleasedLabels, label_table
from ldpaudit.result import AtLevel, Bound, Details
from ldpaudit.result.stated import (
    FEATURE_BLIND,
    INDEPENDENT,
    NOT_DERIVED,
    PERSON_EXCESS,
    PERSON_LOWER,
    PERSON_NOISE,
)

# The bound of a release that was simulated as claimed.
AS_CLAIMED: Final = "person.epsilon_lower.as_claimed"
RELEASE_ONLY: Final = "person.release_only_epsilon_lower"
# The p-value of the test of independent draws from which the columns' bounds are not added up, and
# that of fresh noise from which the releases' bounds are not.
REFUTED_COLUMNS, _REFUTED_RELEASES = 0.05, 0.001
FEWEST: Final = 40  # People with a label that did not change, for a bound of all releases.
# From the release alone: the columns' bounds added up, and all columns as one label.
_ALONE: Final = Split({"added": 0.7, "one label": 1 - 0.7})
_MOST_VALUES: Final = 16
UNCHANGED: Final = "of a person whose true label is the same in all releases"
OWN_DRAWS: Final = "the columns of a row were drawn independently of each other"
_OWN_NOISE: Final = "given the true labels, each release drew noise of its own"
_ONE: Final = "all answers as one (or those of two columns), however their noise goes together"
_ADDED: Final = (
    "added up: their evidence is independent, and together they may miss as often as one (Fisher's "
    "method)"
)
_ADDED_RELEASES: Final = (
    "one event of each release, counted for one label and for the others, and added up"
)
_CLAIMS: Final[Mapping[Noise, tuple[str, str]]] = {
    "fresh": (
        "ε of all releases together if each draws its answers again",
        "the largest log-ratio of each release for two labels, added up over the releases: each "
        f"draws noise of its own; {UNCHANGED}",
    ),
    "remembered": (
        "ε of all releases together if answers stay the same",
        "that of one release: the same answer is given again, and reveals nothing new; "
        f"{UNCHANGED}",
    ),
}
_BY_ORDER: Final = (
    "No id column was named (--id): row 1 of each release is taken to be the same person, row 2 "
    "the next, and so on."
)
_REPEATED: Final = (
    "has",
    "have",
    "an id that repeats within a release. They are left out where releases are compared; each "
    "release's own audit counts them.",
)
_MISSING: Final = (
    "is",
    "are",
    "not in every release; bounds of all releases together are of the others.",
)
_NO_TRUTH: Final = (
    "Without true labels (--truth) ε of all releases together is not bounded from below; each "
    "release is bounded by itself."
)


def _unavailable(context: AuditContext) -> str | None:
    related = context.related
    if isinstance(related, OverReleases):
        return None
    if not isinstance(related, Companions):
        return "the release has one private column"
    bags = any(column.bags is not None for column in related.file.columns)
    return "labels were released in bags, not row by row" if bags else None


def _parts(context: AuditContext) -> Iterator[Part]:
    answers = Answers.of(context)
    yield from _of_columns(answers) if answers.joined is None else _of_releases(answers)


AUDIT: Final = BuiltIn("person", _parts, _unavailable, needs=("labels", "rows"))


def _of_columns(answers: Answers) -> Iterator[Part]:
    epsilon, reason = answers.epsilon(None), answers.refusal()
    if answers.joint is not None and epsilon is not None:
        added = "the columns' ε added up" if answers.independent else "the exact joint channel"
        yield _exact(EPSILON, "Claimed ε of all columns together", epsilon, added)
    if reason is not None:
        yield _not_bounded(answers, reason)
        return
    p_value, noise = columns_noise(answers, answers.context.rng("person", "draws"))
    adds_up = p_value is None or p_value > REFUTED_COLUMNS
    yield noise
    if answers.knows_truth:
        yield from _bounds(answers, epsilon, adds_up=adds_up)
    else:
        yield from _alone(answers, adds_up=adds_up and answers.independent)


def _of_releases(answers: Answers) -> Iterator[Part]:
    context, reason = answers.context, answers.refusal()
    context.progress.step("comparing the noise of the releases")
    noise, epsilon = releases_noise(answers), answers.epsilon(answers.noise)
    yield from _people(answers)
    if answers.noise is not None and epsilon is not None:
        title = f"Claimed ε of all releases together, {answers.noise} noise"
        yield _exact(EPSILON, title, epsilon, _CLAIMS[answers.noise][1])
    for kind, (title, how) in _CLAIMS.items():
        value = answers.epsilon(kind)
        if value is not None:
            yield _exact(f"{EPSILON}_if_{kind}", title, value, how)
    yield from guess_curve(answers)
    yield noise_finding(answers, noise)
    if not answers.knows_truth:
        yield Note.info("person", _NO_TRUTH)
        return
    if reason is None and len(answers.bounded) < FEWEST:
        reason = f"fewer than {FEWEST} people are in all of them with a label that did not change"
    if reason is None:
        fresh = noise.looks == "fresh" or (answers.noise == "fresh" and noise.looks == "unclear")
        refuted = noise.p_values.get("fresh")
        adds_up = fresh and (refuted is None or refuted > _REFUTED_RELEASES)
        yield from _bounds(answers, epsilon, adds_up=adds_up)
    else:
        yield _not_bounded(answers, reason)
    if not context.out_of_time():
        context.progress.step("guessing labels by vote over the releases")
        yield from votes(answers, once=noise.looks == "remembered")


def _exact(name: str, title: str, value: float, method: str) -> Estimate:
    return Estimate.exact(name, title, value, axis="epsilon", unit="nats", method=method)


def _not_bounded(answers: Answers, reason: str) -> Note:
    return Note.warning("person", f"The {answers.kind} together were not bounded: {reason}.")


def _people(answers: Answers) -> Iterator[Part]:
    """Yield how many people are in the releases, how many changed, and what the join found."""
    releases, people, inside = answers.joined, len(answers.rows), answers.people()
    assert releases is not None
    how = "rows joined on their ids" if releases.by_id else "rows in the same order"
    counts = [
        ("people", "People in any of the releases", people, people, how),
        ("people_in_all", "People in all releases", len(inside), people, how),
    ]
    if answers.knows_truth:
        truth = answers.truth[inside]
        same = int((truth == truth[:, :1]).all(axis=1).sum())
        title = "People in all releases whose true label stayed the same"
        counts.append(("unchanged", title, same, len(inside), "true labels"))
    for name, title, count, n, method in counts:
        shown: Details = {"unit": "people", "n": n, "count": count, "method": method}
        yield Estimate.exact(f"person.{name}", title, count, **shown)
    changed = total = 0
    for one, two in answers.neighbours:
        rows = answers.rows[answers.people((one, two))]
        pair = answers.contexts[one].release, answers.contexts[two].release
        kept = same_features(*pair, rows[:, one], rows[:, two])
        if kept is not None:
            changed, total = changed + int(np.sum(~kept)), total + len(rows)
    if total:
        yield Estimate.estimated(
            "person.changed_features",
            "Share of people whose features changed since the release before",
            changed / total,
            unit="proportion",
            n=total,
            count=changed,
            method="columns of the same name compared, from each release to the next",
            assumptions=("a category that most people keep is the same one in both releases",),
        )
    repeated, missing = releases.repeated, people - len(inside)
    if not releases.by_id:
        yield Note.warning("person", _BY_ORDER)
    if repeated:
        yield Note.info("person", _counted_people(repeated, *_REPEATED))
    if missing:
        yield Note.info("person", _counted_people(missing, *_MISSING))


def _counted_people(count: int, one: str, several: str, words: str) -> str:
    return f"{count:,} people {several} {words}" if count > 1 else f"1 person {one} {words}"


def evidence_of(
    answers: Answers, rng: np.random.Generator, drawn: IntArray | None = None
) -> AnswersEvidence | None:
    """Count what was released of true labels, or simulated; None where nothing can be counted."""
    if answers.joined is not None:
        return _releases_evidence(answers, rng, drawn)
    people, columns, codes = answers.bounded, [], list[BoundEvidence]()
    truth = answers.truth[people]
    released, strata = answers.released[people] if drawn is None else drawn, answers.strata[people]
    sizes = [tuple(map(len, answers.labels_of(a))) for a in range(truth.shape[1])]
    for code in np.unique(strata):
        rows = np.flatnonzero(strata == code)
        labels, outputs, first = truth[rows], released[rows], people[rows[0]]
        if answers.independent:
            columns.append(
                [
                    epsilon_evidence(
                        label_table(labels[:, a], outputs[:, a], *size),
                        _looked_for(answers, a, first),
                        rng,
                    )
                    for a, size in enumerate(sizes)
                ]
            )
        joint, channel = answers.domains, None
        if joint is not None:
            labels, outputs = answers.in_domains(labels, outputs)
            claimed = joint.channel()
            channel = None if claimed is None else worth_looking_for(claimed).matrix
        codes += column_codes(labels, outputs, sizes, channel, rng)  # type: ignore[arg-type]
    return columns_evidence(columns, codes)


def _looked_for(answers: Answers, place: int, person: int = 0) -> FloatArray | None:
    """Return the channel that the bound of an answer is designed for, in a person's stratum."""
    matrices = answers.channels_of(place)
    if matrices is None:
        return None
    matrix = np.asarray(matrices[answers.stratum_of(place)[person]])
    if answers.joint is None and answers.joined is None:
        return matrix
    return worth_looking_for(Channel(matrix, *answers.labels_of(place))).matrix


def _releases_evidence(
    answers: Answers, rng: np.random.Generator, drawn: IntArray | None
) -> AnswersEvidence | None:
    people, places = answers.bounded, range(len(answers.contexts))
    if len(people) < FEWEST:
        return None
    if answers.matrices is not None:
        channels = [_looked_for(answers, place) for place in places]
    else:
        pilot, people = np.split(rng.permutation(people), [int(PILOT_SHARE * len(people))])
        people, shape = np.sort(people), tuple(map(len, answers.labels_of(0)))
        tables = (
            label_table(answers.truth[pilot, a], answers.released[pilot, a], *shape) for a in places
        )
        channels = [presumed_channel(table) for table in tables]
    released = answers.released[people] if drawn is None else drawn
    known = [channel for channel in channels if channel is not None]
    return releases_evidence(answers.truth[people, 0], released, known, answers.noise, rng)


def _bounds(answers: Answers, limit: float | None, *, adds_up: bool) -> Iterator[Part]:
    """Yield the bounds with true labels, and the excess over the limit that they would find."""
    context, columns = answers.context, answers.joined is None
    context.progress.step(f"bounding ε of all {answers.kind} together")
    evidence = evidence_of(answers, context.rng("person", "epsilon"))
    if evidence is not None and not adds_up:
        evidence = evidence.without_sums(all_of_it=columns)
    if evidence is None:
        if not columns:
            yield _not_bounded(answers, "fewer than two classes occur among unchanged labels")
        return
    strongest, *others = _estimates(answers, evidence)
    if strongest.kind != "certified":
        yield strongest
        yield from others
        return
    yield Bound.of(strongest, evidence.epsilon)
    yield from others
    # What a release simulated as claimed would have shown.
    rng = context.rng("person", "power")
    drawn = answers.simulated(rng)
    simulated = None if drawn is None else evidence_of(answers, rng, drawn)
    if simulated is not None and not columns and not adds_up:
        simulated = simulated.without_sums()
    if simulated is not None:
        yield Bound(AS_CLAIMED, simulated.epsilon)
        called = f"all {answers.kind} together"
        yield from _power(simulated.epsilon, limit, answers.alpha, called)


def _power(as_claimed: AtLevel, limit: float | None, alpha: float, called: str) -> Iterator[Part]:
    """Yield the excess that would be found, also as a function of its level."""
    if limit is None or not 0 < limit < inf:
        return
    excess = detectable_excess(as_claimed, limit, WANTED_POWER)
    shown = Estimate.estimated(
        PERSON_EXCESS,
        f"Smallest excess over the claim of {called} that would be found",
        excess(alpha),
        unit="nats",
        method="from a simulated release as claimed: an excess that the bound would exceed the "
        f"claim by with probability {WANTED_POWER:.0%}",
        assumptions=("the bound's standard error is that of the simulated release",),
    )
    yield Bound.of(shown, excess)


def _estimates(answers: Answers, evidence: AnswersEvidence) -> Iterator[Estimate]:
    """Yield the strongest bound, and each method's at its own level."""
    columns, alpha = answers.joined is None, answers.alpha
    added = f"the bounds of the columns' own ε, {_ADDED}" if columns else _ADDED_RELEASES
    own = (OWN_DRAWS if columns else _OWN_NOISE,) if evidence.added else ()
    ways: list[tuple[str, str, Any, str, tuple[str, ...]]] = []
    if evidence.added:
        ways.append((".added", "The answers' bounds added up", evidence.added_up, added, own))
    if evidence.codes:
        ways.append((".joint", "All answers as one", evidence.as_one, _ONE, ()))
    text = "; or ".join(words for *_, words, _ in ways)
    text += "; each has its share of the error" if len(ways) > 1 else ""
    ways = [(name, title, f, f"{words}; at its own level", a) for name, title, f, words, a in ways]
    best = ("", f"All {answers.kind} together, strongest bound", evidence.bound, text, own)
    kind, assumptions = answers.standing(FEATURE_BLIND, INDEPENDENT)
    for name, title, bound_of, words, further in (best, *ways):
        bound = bound_of(alpha)
        yield Estimate.lower_bound(
            f"{PERSON_LOWER}{name}",
            title,
            bound.epsilon,
            1 - alpha,
            kind=kind,
            axis="epsilon",
            unit="nats",
            n=bound.n,
            method=words if columns else f"{words}; {UNCHANGED}",
            assumptions=(*assumptions, *further),
            reference="Hoeffding (1956), Theorem 5; Fisher (1932), section 21.1",
        )


def _alone(answers: Answers, *, adds_up: bool) -> Iterator[Part]:
    """Yield the bound of the columns from the release alone: the largest of the strata's."""
    found = [_bound_alone(one, adds_up=adds_up) for one in answers.within_strata()]
    known = [bound for bound in found if bound is not None]
    if not known:
        return
    kind, assumptions = answers.standing(FEATURE_BLIND, INDEPENDENT, NOT_DERIVED)

    def bound(alpha: float) -> float:
        return max(one(alpha / len(known)) for one in known)

    yield Estimate.lower_bound(
        RELEASE_ONLY,
        "All columns together, the release alone",
        bound(answers.alpha),
        1 - answers.alpha,
        kind=kind,
        axis="epsilon",
        unit="nats",
        n=len(answers.rows),
        method="how unanimous groups of rows are that features find: "
        + ("of each column, added up, and " if adds_up else "")
        + "of all columns as one label where it has few values; corrected for the choice",
        assumptions=(*assumptions, *((OWN_DRAWS,) if adds_up else ())),
        reference="Reeve & Kabán (2019), Theorem 3; Hoeffding (1956), Theorem 5",
    )
    if kind == "certified":
        yield Bound(RELEASE_ONLY, bound)


def _bound_alone(answers: Answers, *, adds_up: bool) -> AtLevel | None:
    """Return the bound of columns with one channel each from the release alone; None without one.

    Groups are found by models of released labels, so what is counted of one column may depend on
    another's: each has an equal share of the error probability (Bonferroni).
    """
    found = [outsider_evidence(one) for one in answers.contexts] if adds_up else []
    columns = [one for one in found if isinstance(one, ReleaseOnlyEvidence)]
    first, sizes = answers.contexts[0], [len(one.release.outputs) for one in answers.contexts]
    as_one: ReleaseOnlyEvidence | str = ""
    if prod(sizes) <= _MOST_VALUES:
        codes = np.ravel_multi_index(tuple(one.release.released for one in answers.contexts), sizes)
        names = tuple(range(prod(sizes)))
        labels, groups = ReleasedLabels(codes.astype(np.int32)), first.release.groups
        release = Release(first.release.features, labels, names, names, groups=groups)
        every = len(answers.counted) == len(answers.rows)
        known_rows = {"rows.counted": Counted(None if every else answers.counted)}
        claim = from_declaration(None, names)
        context = first.of(release, claim=claim, memo=known_rows)
        known = before(first)
        places = range(release.features.width)
        left_out = tuple(j for j in places if j not in known) if known else ()
        as_one = evidence_alone(context, release.features.without(left_out))
    whole = as_one if isinstance(as_one, ReleaseOnlyEvidence) else None
    if not columns and whole is None:
        return None

    def bound(alpha: float) -> float:
        if whole is None:
            return sum(one.bound(alpha / len(columns)).epsilon for one in columns)
        if not columns:
            return whole.bound(alpha).epsilon
        of_each = _ALONE.of(alpha, "added") / len(columns)
        added = sum(one.bound(of_each).epsilon for one in columns)
        return max(added, whole.bound(_ALONE.of(alpha, "one label")).epsilon)

    return bound


def person_parts(
    columns: Mapping[str, Finding],
    files: Sequence[Finding],
    between: Estimate | None,
    epsilon: float | None,
    confidence: float,
    *,
    adds_up: bool,
) -> Iterator[Part]:
    """Yield ε of everything that was released of a person: as declared, and at least.

    ``columns``: what was found of each over the releases, by what it is called; ``files``: of the
    columns of each file together; ``between``: the test of noise between columns of different
    files; ``epsilon``: what is declared of everything; ``adds_up``: whether the columns' ε are
    declared to add up to it, with no column in one file alone.
    """
    if epsilon is not None:
        title = "Claimed ε of everything that was released of a person"
        method = (
            "the ε of each column over the releases, added up; of columns that one mechanism "
            "released together that of the mechanism, for each release"
        )
        yield _exact(EPSILON, title, epsilon, method)
    if between is not None:
        yield between
    behind = {
        called: bound
        for called, found in columns.items()
        for bound in found.estimates
        if bound.id == PERSON_LOWER and bound.kind == "certified" and PERSON_LOWER in found.bounds
    }
    open_ones = [called for called in columns if called not in behind]
    if open_ones:
        which = "any column" if len(open_ones) == len(columns) > 1 else ", ".join(open_ones)
        text = f"Everything of a person was not bounded in {which}: see there."
        yield Note.info("person", text)
    if not behind:
        return
    tests = [e.value for f in files for e in f.estimates if e.id == PERSON_NOISE]
    tests += [] if between is None else [between.value]
    apart = all(p_value > REFUTED_COLUMNS for p_value in tests)
    every = [columns[called].bounds for called in behind]
    bounds = {
        name: partial(_all_columns, [own[name] for own in every], apart)
        for name in (PERSON_LOWER, AS_CLAIMED)
        if all(name in own for own in every)
    }
    if AS_CLAIMED in bounds:
        yield Bound(AS_CLAIMED, bounds[AS_CLAIMED])
    assumptions = dict.fromkeys(text for e in behind.values() for text in e.assumptions)
    everything = Estimate.lower_bound(
        PERSON_LOWER,
        "Everything of a person, strongest bound",
        bounds[PERSON_LOWER](1 - confidence),
        confidence,
        kind="certified",
        axis="epsilon",
        unit="nats",
        n=min((e.n for e in behind.values() if e.n is not None), default=None),
        method=f"the bounds of the columns over the releases, {_ADDED}"
        if apart
        else "the largest bound of a column over the releases, corrected for the choice",
        assumptions=(*assumptions, *((OWN_DRAWS,) if apart else ())),
        reference="Fisher (1932), section 21.1",
    )
    yield Bound.of(everything, bounds[PERSON_LOWER])
    power = list[Part]()
    if AS_CLAIMED in bounds and adds_up and not open_ones:
        called = "everything of a person"
        power = [*_power(bounds[AS_CLAIMED], epsilon, 1 - confidence, called)]
    unknown = (
        "It is not known what excess over the claim of everything of a person would be found: the "
        "columns' bounds do not add up to it."
    )
    yield from power or [Note.info("person", unknown)]


def _all_columns(bounds: Sequence[AtLevel], apart: bool, alpha: float) -> float:
    if apart:
        return sum_lower(bounds, alpha)
    return max(bound(alpha / len(bounds)) for bound in bounds)
