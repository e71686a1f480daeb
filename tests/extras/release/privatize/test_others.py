"""Tables that go along with the data must hold other rows than the private ones."""

import numpy as np
import pandas as pd
import pytest
from processes import called

import ldpaudit
from ldpaudit.errors import InputError

ROLES = [
    ("--synthetic", ("--mechanism", "double-rr", "--lambda", "0.5"), "synthetic"),
    (
        "--generator-data",
        ("--mechanism", "double-rr", "--lambda", "0.5", "--generator", "mixture"),
        "generator's",
    ),
    ("--public", ("--mechanism", "model-based-rr", "--epsilon", "1"), "public"),
]


def people(seed, rows=600):
    """Return rows of which hardly two are equal, with a label, missing values and texts."""
    rng = np.random.default_rng(seed)
    sizes = rng.normal(size=rows).round(4)
    sizes[rng.random(rows) < 0.1] = np.nan
    town = rng.choice(["zzulm", "zzoslo", None], rows)
    label = rng.choice(["ill", "well"], rows)
    return pd.DataFrame(
        {"size": sizes, "age": rng.integers(0, 90, rows), "town": town, "label": label}
    )


def few_categories(seed, rows=600):
    rng = np.random.default_rng(seed)
    columns = {name: rng.choice(["a", "b", "c"], rows) for name in ("sex", "town")}
    return pd.DataFrame(columns | {"label": rng.choice(["ill", "well"], rows)})


def mixed(seed, rows=600):
    """Return rows of categories so many that some rows occur once, in equal shares of people."""
    rng = np.random.default_rng(seed)
    columns = {f"c{i}": rng.geometric(0.4, rows) for i in range(5)}
    return pd.DataFrame(columns | {"label": rng.choice(["ill", "well"], rows)})


def privatized(data, other, tmp_path, option="--synthetic", words=ROLES[0][1]):
    data.to_csv(tmp_path / "data.csv", index=False)
    if other is not None:
        other.to_csv(tmp_path / "other.csv", index=False)
    place = tmp_path / ("data.csv" if other is None else "other.csv")
    out = tmp_path / "out.csv"
    status, printed = called(
        "privatize", tmp_path / "data.csv", "-o", out, *words, option, place, "--overwrite"
    )
    assert out.exists() == (status == 0), printed
    out.unlink(missing_ok=True)
    assert "zz" not in printed
    return status, printed


@pytest.mark.parametrize(("option", "words", "role"), ROLES)
def test_the_private_table_itself_and_its_copies_are_refused(option, words, role, tmp_path):
    data = people(1)
    for other in (None, data, data.sample(frac=1, random_state=1), data.assign(label="ill")):
        if other is not None and other["label"].nunique() == 1:
            other = other.assign(label=["ill", "well"] * 300)
        status, printed = privatized(data, other, tmp_path, option, words)
        assert status == 2, printed
        assert f"The {role} table is the private table itself, or a copy" in printed


@pytest.mark.parametrize(("option", "words", "role"), ROLES)
@pytest.mark.parametrize("part", [0.6, 1.0])
def test_most_rows_that_are_private_ones_are_refused(option, words, role, part, tmp_path):
    data, few = people(1), int(200 * part)
    other = pd.concat([data[:few], people(2, 200 - few)])
    status, printed = privatized(data, other, tmp_path, option, words)
    assert status == 2, printed
    assert f"The {role} table must hold other rows than the private table" in printed
    assert privatized(data, people(2), tmp_path, option, words)[0] == 0


def test_a_copy_of_few_categories_is_refused_and_equal_rows_are_not(tmp_path):
    data = few_categories(1)
    assert privatized(data, None, tmp_path)[0] == 2
    assert privatized(data, data, tmp_path)[0] == 2
    assert privatized(data, few_categories(2), tmp_path)[0] == 0
    assert privatized(data, few_categories(3, 150), tmp_path)[0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_people_of_one_population_are_not_accused(seed, tmp_path):
    """Some of whose rows occur once, and equal rows of others by chance."""
    assert privatized(mixed(seed), mixed(100 + seed), tmp_path)[0] == 0
    copies = mixed(seed).sample(300, random_state=1)
    assert privatized(mixed(seed), copies, tmp_path)[0] == 2


def test_a_copy_of_a_table_in_memory(tmp_path):
    data, place = people(1), tmp_path / "other.csv"
    data.to_csv(place, index=False)
    with pytest.raises(InputError, match="private table itself"):
        ldpaudit.privatize(data, "double-rr", lambda_=0.5, synthetic=str(place))
