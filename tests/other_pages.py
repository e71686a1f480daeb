"""Pages of everything but ``run``: of two recorded releases side by side, and of mechanisms."""

from collections.abc import Callable

from golden.results import recorded

from ldpaudit.extras.choose.mechanism.analysis import analyse
from ldpaudit.extras.compare.comparison import Comparison, Difference, Fingerprint
from ldpaudit.extras.compare.page import render_comparison
from ldpaudit.extras.compare.sentences import sentences
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace
from ldpaudit.result import Estimate

FILES = {"run-rr-all-audits": "a_release_of_2026.parquet", "run-double-rr": "another_one.parquet"}


def comparison() -> Comparison:
    """Return two recorded results side by side, with a difference of each headline."""
    results = tuple(map(recorded, FILES))
    prints = tuple(
        Fingerprint(
            letter=letter,
            source="result",
            name=name,
            sha256=None,
            rows=result.release.rows,
            classes=result.release.classes,
            features=result.release.features,
            truth=True,
        )
        for letter, name, result in zip("AB", FILES.values(), results, strict=True)
    )
    ids = ("attack.best.accuracy", "attack.best.advantage")
    made = [Estimate.interval(i, i, -0.1, (-0.2, -0.05), 0.99, unit="proportion") for i in ids]
    differences = tuple(
        Difference.between(("A", "B"), estimate, simultaneous=True, paired=False)
        for estimate in made
    )
    texts = sentences([*zip(FILES.values(), results, strict=True)], differences, 0.95)
    return Comparison(
        ldpaudit_version="0",
        sentence=" ".join(texts),
        sentences=texts,
        confidence=0.95,
        fingerprints=prints,
        releases=results,
        differences=differences,
        run=results[0].run,
    )


PAGES: dict[str, Callable[[], str]] = {
    "comparison": lambda: render_comparison(comparison()),
    "finite": lambda: analyse(RandomizedResponse.from_epsilon(("a", "b"), 1.0)).page(),
    "numeric": lambda: analyse(DiscreteLaplace(LabelRange(0, 4, 1), 1.0)).page(),
}
