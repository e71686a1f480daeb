"""What a release's columns give away: each fault is warned of, and honest releases are not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from worlds import TURNED, gaussian_release_by

from ldpaudit import audit
from ldpaudit.audits.columns.labels import labels_of
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.datasets import declare
from ldpaudit.judging.policy import parse_policy
from ldpaudit.release import Declaration
from ldpaudit.result import AuditResult, Check

N = 2000
RNG = np.random.default_rng(3)
TRUTH = RNG.integers(0, 3, N)
ROW = np.arange(N)


def released(truth: Any, epsilon: float, seed: int, **columns: Any) -> pa.Table:
    """Return an honest release by randomized response, with further columns."""
    rng = np.random.default_rng(seed)
    n, k = len(truth), int(truth.max()) + 1
    kept = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    other = (truth + rng.integers(1, k, n)) % k
    label = np.where(rng.random(n) < kept, truth, other)
    plain = {"x": rng.normal(size=n) + truth, "town": rng.choice(["oslo", "rome"], n)}
    table = pa.table({**plain, **columns, "label": label})
    claim = {"epsilon": epsilon, "classes": list(range(k))}
    return declare(table, Declaration("randomized-response", claim), "label")


def audited(table: pa.Table | Path, truth: Any = None, **options: Any) -> AuditResult:
    """Run the cheapest audit: what columns tell is looked at whatever is chosen."""
    given = None if truth is None else pa.table({"label": truth})
    return audit(table, truth=given, rng=1, **({"only": ("assumptions",)} | options))


def check(result: AuditResult, name: str) -> Check:
    """Return one check of a result."""
    return next(check for check in result.checks if check.id == name)


REVEALING = {
    "code": TRUTH * 7.0,
    "hash": [hash((int(c), "salt")) % 1000 for c in TRUTH],
    "finer code": TRUTH * 40 + RNG.integers(0, 40, N),
    "near copy": np.where(RNG.random(N) < 0.99, TRUTH, 0),
    "text": np.array(["a", "b", "c"])[TRUTH],
    "sum with an offset": TRUTH + RNG.random(N) * 0.9,
    "plus the row's number": TRUTH + ROW,
    "row before": np.roll(TRUTH, 1),
    "two rows on": np.roll(TRUTH, -2),
}


QUICK = {
    ("near copy", True),
    ("hash", False),
    ("plus the row's number", True),
    ("row before", True),
}
"""Those that are looked for in every run of the tests; all of them at once are counted below."""


@pytest.mark.parametrize(
    ("case", "insider"),
    [
        pytest.param(case, insider, marks=() if (case, insider) in QUICK else pytest.mark.validate)
        for insider in (True, False)
        for case in REVEALING
    ],
)
def test_columns_that_tell_the_label_are_warned_of(case: str, insider: bool) -> None:
    # Without the truth, through the channel: bins of eight rows need labels that are hardly noisy.
    epsilon = 1.0 if insider else 5.0 if case == "sum with an offset" else 3.0
    table = released(TRUTH, epsilon, 1, secret=REVEALING[case])
    result = audited(table, TRUTH if insider else None)
    found = check(result, "features-reveal-label")
    assert found.verdict == "fail"
    assert found.confidence is None
    assert found.reason in result.sentence or "more check" in result.sentence
    assert result.decision != "publish"
    assert any("secret" in note.text for note in result.notes)
    assert any(note.audit == "columns" and "1 column" in note.text for note in result.notes)


def test_columns_that_tell_the_label_are_counted_without_the_truth() -> None:
    result = audited(released(TRUTH, 3.0, 1, **REVEALING))
    assert check(result, "features-reveal-label").verdict == "fail"
    told = [note.text for note in result.notes if note.audit == "columns"]
    assert [text.split(" (")[0] for text in told if " tell," in text] == ["6 columns", "2 columns"]
    assert any("number the rows: " in text or "every row: " in text for text in told), told
    assert "rows near by" in told[1]


HONEST_TRUTH = np.random.default_rng(100).integers(0, 3, N)
SORTED = np.argsort(np.array(released(TRUTH, 3.0, 1)["label"]), kind="stable")
BY_X = np.argsort(np.array(released(TRUTH, 3.0, 1)["x"]), kind="stable")
PERSON = np.repeat(RNG.permutation(N // 4), 4) * 1.0
FAMILIES = np.where(RNG.random(N) < 0.7, TRUTH[PERSON.astype(int)], TRUTH)
LABEL = {epsilon: np.array(released(TRUTH, epsilon, 2)["label"]) for epsilon in (1.0, 6.0)}
HARMLESS: dict[str, tuple[pa.Table, Any]] = {
    "honest": (released(HONEST_TRUTH, 1.0, 0), HONEST_TRUTH),
    "honest, no truth": (released(HONEST_TRUTH, 1.0, 0), None),
    # At ε = 6 a copy of the released label is right as often as a column that is warned of.
    **{
        f"copy at {epsilon}": (released(TRUTH, epsilon, 2, again=label * 7.0), None)
        for epsilon, label in LABEL.items()
    },
    "sorted by release": (released(TRUTH, 3.0, 1).take(SORTED), TRUTH[SORTED]),
    # The order says nothing that features do not.
    "sorted by a feature": (released(TRUTH, 1.0, 1).take(BY_X), TRUTH[BY_X]),
    "sorted by a feature, no truth": (released(TRUTH, 2.0, 1).take(BY_X), None),
    "people in sequence": (released(FAMILIES, 2.0, 1, x=PERSON, town=PERSON % 7), FAMILIES),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_tells_no_true_label_is_not_warned_of(case: str) -> None:
    table, truth = HARMLESS[case]
    result = audited(table, truth)
    assert check(result, "features-reveal-label").verdict == "pass"
    if case.startswith("sorted by a feature") or case == "people in sequence":
        assert not [note for note in result.notes if "Rows near each other" in note.text]
    if case.startswith("honest"):
        assert check(result, "identifiers").verdict == "pass"
        assert not [note for note in result.notes if note.audit == "columns"]
    if case.startswith("copy"):
        assert next(e.value for e in result.estimates if e.id == "columns.deciding") == 0.0


CLAIMS = RNG.choice(6, N, p=[0.8, 0.15, 0.04, 0.005, 0.003, 0.002])
WITHIN = np.concatenate([np.sort(TRUTH[: N // 2]), np.sort(TRUTH[N // 2 :])])
ORDERS = {
    "sorted in two parts": WITHIN,
    "blocks": np.repeat(RNG.integers(0, 3, N // 20), 20),
    "in turn": ROW % 3,
}
WARNED: dict[str, tuple[pa.Table, Any, str]] = {
    "flag": (released(TRUTH, 1.0, 1, secret=TRUTH == 0), TRUTH, ""),
    "rare label": (
        released((CLAIMS >= 3).astype(int), 1.0, 1, nclaims=CLAIMS),
        (CLAIMS >= 3).astype(int),
        "one column decides",
    ),
    **{
        f"{name}{'' if given else ', no truth'}": (
            released(truth, 2.0, 1),
            truth if given else None,
            "order of the rows",
        )
        for name, truth in ORDERS.items()
        for given in (True, False)
    },
}


@pytest.mark.parametrize("case", WARNED)
def test_flags_rare_labels_and_orders_are_warned_of(case: str) -> None:
    table, truth, words = WARNED[case]
    result = audited(table, truth)
    found = check(result, "features-reveal-label")
    assert found.verdict == "fail"
    assert words in found.reason
    if "order" in words:
        assert any("Shuffle the rows" in note.text for note in result.notes)


@pytest.mark.parametrize("role", ["group", "id_column"])
def test_ids_and_groups_that_tell_the_label_are_warned_of(role: str) -> None:
    """Numbers that were given class by class; the id is no feature, and yet in the file."""
    number = np.empty(N, dtype=int)
    number[np.argsort(TRUTH, kind="stable")] = ROW
    person = [f"P{i:05d}" for i in number]
    table = released(TRUTH, 1.0, 1, person=person, mine=TRUTH)
    result = audited(table, **{role: "person"}, truth_column="mine")
    assert check(result, "features-reveal-label").verdict == "fail"
    assert "it differs in" in check(result, "identifiers").reason
    assert "P00" not in result.to_json()


def test_rows_in_a_weak_order_are_not_yet_to_be_published() -> None:
    """Of three rows one repeats the label before it: too little to name, and enough to shuffle."""
    truth = TRUTH.copy()
    truth[1::3] = truth[0::3][: len(truth[1::3])]
    result = audited(released(truth, 1.0, 4), truth, only=("mechanism", "power"))
    assert check(result, "features-reveal-label").reason == "the order of the rows reveals labels"
    assert (result.verdict, result.decision) == ("pass", "not yet")
    assert result.next_steps[0].startswith("Shuffle the rows")
    shuffled = np.random.default_rng(5).permutation(truth)
    result = audited(released(shuffled, 1.0, 4), shuffled, only=("mechanism", "power"))
    assert result.decision == "publish"


IDENTIFYING = {
    "index": (ROW, "it numbers the rows"),
    "identifier": (RNG.permutation(N) + 10**6, "it differs in nearly every row"),
    "text": ([f"seen on ward {i} and sent home" for i in ROW], "it holds free text"),
    "dates": (pd.date_range("2010-01-01", periods=N).date, "it holds exact dates"),
}


def gaps(values: Any, kind: pa.DataType) -> pa.Array:
    """Return values a third of which are missing: NaN for one label, null for the others."""
    missing = np.random.default_rng(5).random(N) < 0.3
    null = missing & (TRUTH > 0)
    cells = [None if gone else value for value, gone in zip(values(missing), null, strict=True)]
    return pa.array(cells, kind, from_pandas=False)


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.float32())], ids=str)
def test_gaps_of_two_kinds_tell_labels(kind: pa.DataType) -> None:
    def values(missing: Any) -> Any:
        numbers = np.where(missing, np.nan, RNG.normal(size=N)).tolist()
        return numbers if kind == pa.float64() else [[number, 1.0] for number in numbers]

    found = check(
        audited(released(TRUTH, 1.0, 1, gap=gaps(values, kind)), TRUTH), "features-reveal-label"
    )
    assert found.verdict == "fail"


@pytest.mark.parametrize("place", [0, 4], ids=["first", "behind texts"])
def test_zeros_of_two_kinds_tell_labels_and_no_other_column_is_blamed(place: int) -> None:
    zeros = np.where(TRUTH == 1, -0.0, 0.0)
    words = {f"text {i}": [f"seen on ward {j} and sent home" for j in ROW] for i in range(place)}
    two = (TRUTH == 1).astype(int)
    result = audited(released(two, 1.0, 1, zero=zeros, **words), two)
    assert check(result, "features-reveal-label").verdict == "fail"
    told = [note.text for note in result.notes if "true label" in note.text]
    assert any("(by which gaps are NaN, or which zeros are negative) tells" in one for one in told)
    assert not [one for one in told if "read off from" in one and "(column" in one]


@pytest.mark.parametrize("case", IDENTIFYING)
def test_identifiers_are_counted(case: str) -> None:
    values, words = IDENTIFYING[case]
    result = audited(released(TRUTH, 1.0, 1, secret=values), TRUTH)
    found = check(result, "identifiers")
    assert (found.verdict, found.level, found.observed) == ("fail", "warn", 1)
    assert words in found.reason
    assert any("secret" in note.text for note in result.notes)


@pytest.mark.parametrize(
    ("section", "verdict"),
    [('level = "error"', "fail"), ('level = "warn"\nmax = 1', "inconclusive")],
)
def test_a_policy_decides_how_grave_an_identifier_is(section: str, verdict: str) -> None:
    text = f'schema = 1\nextends = "ldpaudit:default"\n[checks.identifiers]\n{section}\n'
    table = released(TRUTH, 1.0, 1, secret=ROW)
    assert audited(table, TRUTH, policy=parse_policy(text)).verdict == verdict


def test_features_that_only_together_tell_the_label_are_found_in_both_ways() -> None:
    left, right = np.random.default_rng(6).integers(0, 2, (2, N))
    truth = left ^ right
    table = released(truth, 1.0, 1, left=left, right=right)
    assert check(audited(table, truth), "features-reveal-label").verdict == "fail"
    result = audited(table, truth, only=("mechanism", "label-inference"))
    auc = result.estimate("attack.features-only.auc")
    assert auc is not None
    assert auc.value > 0.99
    assert check(result, "features-reveal-label").verdict == "fail"


def test_what_the_page_and_the_notes_say_of_columns() -> None:
    page = audited(released(TRUTH, 1.0, 1, secret=TRUTH), TRUTH).to_html()
    assert "Columns that reveal, or follow from, 98 % of the labels" in page
    assert "noise on the label protects little" in page
    values = pa.array(pd.Categorical.from_codes(TRUTH, ["u", "v", "w", "UNUSED"]))
    result = audited(released(TRUTH, 1.0, 1, kind=values), TRUTH)
    assert result.decision == "not yet"
    unused = "1 column of the file lists categories that no row has"
    assert check(result, "whole-file").reason.startswith(unused)
    few = audited(released(TRUTH, 1.0, 1).slice(0, 39), TRUTH[:39])
    assert check(few, "features-reveal-label").verdict == "inconclusive"


def test_columns_left_out_and_true_labels_are_still_in_the_file(tmp_path: Path) -> None:
    person = np.array([f"P{i:06d}" for i in np.random.default_rng(8).permutation(N)])
    table = released(TRUTH, 1.0, 4, person=person, ward=RNG.choice(["a", "b"], N))
    dropped = audited(table, TRUTH, only=("mechanism", "power"), drop=("person",))
    assert check(dropped, "identifiers").verdict == "fail"
    assert dropped.decision == "not yet"
    harmless = audited(table.drop(["person"]), TRUTH, only=("mechanism", "power"), drop=("ward",))
    assert harmless.decision == "not yet"
    assert "Remove the columns that this audit left out" in harmless.next_steps[0]
    assert harmless.next_steps[0].endswith("Then audit the new file and publish that one.")
    assert check(harmless, "whole-file").reason.startswith("1 column of the file took no part")
    whole = audited(table.drop(["person", "ward"]), TRUTH, only=("mechanism", "power"))
    assert whole.decision == "publish"
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        released(TRUTH, 1.0, 4).to_pandas().to_excel(book, sheet_name="a", index=False)
        pd.DataFrame({"really": TRUTH}).to_excel(book, sheet_name="b", index=False)
        book.sheets["b"].sheet_state = "hidden"
    for sheet in (None, "a"):
        hidden = audited(
            *(tmp_path / "two.xlsx", TRUTH),
            **{"only": ("mechanism", "power"), "sheet": sheet},
            **{"mechanism": "rr", "epsilon": 1.0},
        )
        assert hidden.decision == "not yet"
        assert "without the other sheets" in hidden.next_steps[0]
        reason = check(hidden, "whole-file").reason
        assert reason.startswith("the workbook has 1 more sheet, perhaps hidden,")
    table = released(TRUTH, 1.0, 4, really=TRUTH)
    held = audited(table, only=("mechanism", "power"), truth_column="really")
    assert (held.verdict, held.decision) == ("pass", "not yet")
    assert "holds the true labels" in check(held, "features-reveal-label").reason
    assert "Remove the column of true labels" in held.next_steps[0]


def test_what_released_labels_say_of_true_ones_follows_their_channel() -> None:
    shares = np.array([0.7, 0.2, 0.1])
    release = gaussian_release_by(TURNED, 4_000, 2, shares=tuple(shares))
    context = AuditContext(replace(release, truth=None), TURNED, Plan(seed=1))
    labels, law = labels_of(context), TURNED.label_channel.matrix
    assert labels is not None
    # Weights of released labels have as their mean the true label, whatever it is.
    assert law @ labels.weights == pytest.approx(np.eye(3), abs=1e-9)
    equal, chance = shares @ (law**2).sum(axis=1), np.square(shares @ law).sum()
    assert labels.most_equal == pytest.approx((equal - chance) / (1 - chance), abs=0.03)
