"""What is said of columns and labels before and after the noise, and to whom it is shown."""

import json
import re
import time

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.audits.before_after import column_shares
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels
from ldpaudit.reports import render
from ldpaudit.reports.charts.figure import WIDE
from ldpaudit.result import AuditResult

N = 4000
NAMES = np.array(["no", "yes", "maybe"])


def audited(k=2, made=1.0, seed=0, columns=3, truth=True, **options):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, N).astype(np.int32)
    frame = pd.DataFrame({"near": codes + rng.normal(0, 0.5, N), "town": rng.choice(list("ab"), N)})
    for place in range(2, columns):
        frame[f"noise_{place}"] = rng.normal(size=N)
    released = RandomizedResponse.from_epsilon(tuple(range(k)), made).sample(codes, rng)
    frame["label"] = NAMES[released]
    known = {"truth": NAMES[codes]} if truth else {}
    chosen = {"mechanism": "rr", "epsilon": 1.0, "only": ["mechanism"]} | known | options
    return ldpaudit.audit(frame, rng=1, **chosen), codes, released


def test_counts_and_shares_are_those_of_the_file():
    result, codes, released = audited()
    counts = np.bincount(2 * codes + released, minlength=4).reshape(2, 2)
    confusion = result.confusion
    assert [(e.true, e.released) for e in confusion.entries] == [
        ("no", "no"),
        ("no", "yes"),
        ("yes", "no"),
        ("yes", "yes"),
    ]
    keep = np.e / (1 + np.e)
    for entry, count in zip(confusion.entries, counts.ravel(), strict=True):
        expected = keep if entry.true == entry.released else 1 - keep
        assert (entry.count, entry.n) == (count, counts[int(entry.true == "yes")].sum())
        assert entry.expected == pytest.approx(expected)
        assert entry.difference == pytest.approx(entry.count / entry.n - expected)
        assert entry.difference_low < 0 < entry.difference_high
    assert (confusion.level, confusion.kind, confusion.pairs) == (0.95, "certified", 4)
    shares = {one.name: one for one in result.columns.shares}
    assert list(shares) == ["near", "town", "noise_2"]
    # A threshold between N(0, 1/4) and N(1, 1/4) explains (2·Φ(1) − 1)² = 0.466; bins more.
    assert 0.46 < shares["near"].before < 0.62
    ratio = shares["near"].after / shares["near"].before
    assert ratio == pytest.approx((2 * keep - 1) ** 2, abs=0.05)
    assert max(shares[name].before for name in ("town", "noise_2")) < 0.01
    for one in shares.values():
        assert np.sum(one.before_counts) == np.sum(one.after_counts) == N
        group = result.columns.groups.index("yes")
        assert np.sum(one.before_counts, axis=0)[group] == codes.sum()
        assert np.sum(one.after_counts, axis=0)[group] == released.sum()


def test_labels_in_the_clear_differ_from_the_claim():
    result, _, _ = audited(k=3, made=9.0)
    kept = [e for e in result.confusion.entries if e.true == e.released]
    assert all(e.difference_low > 0.3 for e in kept)
    page = render(result, "html")
    assert "9 of 9 differ by more than chance allows" in page
    chart = json.dumps(result.plot("confusion").figure.specification(WIDE), ensure_ascii=False)
    assert (chart.count("▲"), chart.count("▼")) == (3, 6)
    one = result.columns.shares[0]
    assert one.after == pytest.approx(one.before, abs=0.02)


def test_without_a_claim_nothing_is_expected():
    result, _, _ = audited(mechanism=None, epsilon=None)
    assert {(e.expected, e.difference, e.difference_low) for e in result.confusion.entries} == {
        (None, None, None)
    }
    assert "claimed channel says" not in render(result, "html")


def test_without_true_labels_there_is_neither():
    result, _, _ = audited(truth=False)
    assert (result.columns, result.confusion) == (None, None)


def test_numbers_are_told_in_bands_and_thirds():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0, 10, N)
    frame = pd.DataFrame({"near": truth + rng.normal(0, 1, N), "far": rng.normal(size=N)})
    frame["label"] = truth + rng.laplace(0, 5, N)
    claim = {"name": "laplace", "low": 0, "high": 10, "epsilon": 2.0}
    result = ldpaudit.audit(frame, truth, claim, only=["mechanism"], rng=1)
    near, far = result.columns.shares
    # Of a variance of 100/12, a uniform error of the bins and the noise of the column are left.
    assert 0.8 < near.before < 0.9
    assert near.after == pytest.approx(near.before * (100 / 12) / (100 / 12 + 50), abs=0.03)
    assert far.before < 0.01
    assert result.columns.groups == ("lowest third", "middle third", "highest third")
    assert 9 <= len(result.confusion.entries) <= 25
    assert all(e.difference_low <= 0 <= e.difference_high for e in result.confusion.entries)
    assert sum(e.count for e in result.confusion.entries) == N


def test_of_many_pairs_those_that_differ_most_are_kept():
    rng, k = np.random.default_rng(0), 20
    codes = rng.integers(0, k, N)
    released = np.where(rng.random(N) < 0.5, codes, rng.integers(0, k, N))
    frame = pd.DataFrame({"x": rng.normal(size=N), "label": [f"v{i:02}" for i in released]})
    truth = np.array([f"v{i:02}" for i in codes])
    result = ldpaudit.audit(frame, truth, "rr", epsilon=1.0, only=["mechanism"], rng=1)
    assert (result.confusion.pairs, len(result.confusion.entries)) == (400, 100)
    assert sum(e.true == e.released for e in result.confusion.entries) == k
    assert "300 other pairs differ less from the claim" in render(result, "html")


def test_the_page_has_both_pictures_in_two_orders_for_every_reader():
    page = render(audited()[0], "html")
    for key in ("confusion", "columns-explain", "file-columns-explain"):
        figure = re.search(rf'(?s)<figure id="figure-{key}">.*?</figure>', page)[0]
        assert re.search(r'role="img" aria-labelledby="[^"]+-title [^"]+-desc"', figure)
        assert "<table>" in figure
    assert page.index('id="columns-explain"') < page.index('id="file-order"')
    text = render(audited(columns=30)[0], "html")
    assert "other columns explain less" in text


def test_pictures_are_among_those_of_a_result():
    result, _, _ = audited()
    assert "near: " in result.plot("columns-explain").figure.description
    assert result.plot("confusion").figure.table.rows[0][:2] == ("no", "no")


def test_neither_is_on_a_public_page():
    result, _, _ = audited()
    page = result.to_html(profile="public")
    content = json.loads(result.to_json(profile="public"))
    assert "confusion" not in page
    assert "columns-explain" not in page
    assert not {"columns", "confusion"} & content.keys()
    assert not {"columns", "confusion"} & content["released"].keys()


def test_results_without_them_are_read_as_before():
    result, _, _ = audited()
    stored = json.loads(result.to_json())
    del stored["columns"], stored["confusion"]
    read = AuditResult.from_json(json.dumps(stored))
    assert (read.columns, read.confusion) == (None, None)
    assert AuditResult.from_json(result.to_json()) == result


def test_a_million_rows_take_a_fraction_of_a_second():
    rng, n = np.random.default_rng(0), 1_000_000
    codes = rng.integers(0, 2, n).astype(np.int32)
    table = FeatureTable(
        rng.standard_normal((n, 14), dtype=np.float32),
        rng.integers(0, 50, (n, 6)).astype(np.int32),
        (50,) * 6,
        20,
    )
    claim = RandomizedResponse.from_epsilon(("a", "b"), 1.0)
    released = ReleasedLabels(claim.sample(codes, rng))
    names = ("a", "b")
    release = Release(table, released, names, names, truth=TrueLabels(codes))
    start = time.process_time()
    found = column_shares(AuditContext(release, claim, Plan(seed=1)))
    assert time.process_time() - start < 0.3  # 0.06 s here
    assert (found.rows, found.columns, len(found.shares)) == (20_000, 20, 20)
