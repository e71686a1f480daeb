"""Who is in which release, and what changed."""

from collections.abc import Iterator

import numpy as np

from ldpaudit.audits.person.answers import Answers
from ldpaudit.datasets.same_features import same_features
from ldpaudit.result import Estimate, Note


def people_estimates(seen: Answers) -> Iterator[Estimate]:
    """Return how many people are in the releases, and how many changed."""
    releases, people = seen.releases, len(seen.releases.rows)
    how = "rows joined on their ids" if releases.by_id else "rows in the same order"
    yield _count("person.people", "People in any of the releases", people, people, how)
    everywhere = len(releases.in_all)
    yield _count("person.people_in_all", "People in all releases", everywhere, people, how)
    if seen.knows_truth:
        inside = len(seen.releases.in_all)
        title = "People in all releases whose true label stayed the same"
        yield _count("person.unchanged", title, inside - seen.changed, inside, "true labels")
    changed = _changed_features(seen)
    if changed is not None:
        yield changed


def people_notes(seen: Answers) -> Iterator[Note]:
    """Return what the join found, in words."""
    releases = seen.releases
    if not releases.by_id:
        text = (
            "No id column was named (--id): row 1 of each release is taken to be the same person, "
            "row 2 the next, and so on."
        )
        yield Note.warning("person", text)
    if releases.repeated:
        text = (
            f"{_words(releases.repeated)} have an id that repeats within a release. They are left "
            "out where releases are compared; each release's own audit counts them."
        )
        yield Note.info("person", text)
    inside = len(releases.in_all)
    missing = len(releases.rows) - inside
    if missing:
        text = (
            f"{_words(missing)} are not in every release; bounds of all releases together are of "
            "the others."
        )
        yield Note.info("person", text)


def _words(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _count(name: str, title: str, count: int, of: int, method: str) -> Estimate:
    return Estimate.exact(name, title, count, unit="rows", n=of, count=count, method=method)


def _changed_features(seen: Answers) -> Estimate | None:
    """Return the share of people whose features changed from one release to the next."""
    changed = total = 0
    for one, two in seen.neighbours:
        people = seen.releases.in_both(one, two)
        rows = seen.releases.rows[people]
        pair = seen.contexts[one].release, seen.contexts[two].release
        same = same_features(*pair, rows[:, one], rows[:, two])
        if same is not None:
            changed, total = changed + int(np.sum(~same)), total + len(people)
    if not total:
        return None
    return Estimate.estimated(
        "person.changed_features",
        "Rows with other features than in the release before",
        changed / total,
        unit="proportion",
        n=total,
        count=changed,
        method="columns of the same name compared, from each release to the next",
        assumptions=("a category that most people keep is the same one in both releases",),
    )
