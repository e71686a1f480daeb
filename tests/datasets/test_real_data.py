from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError

pytestmark = pytest.mark.real_data


def test_adult(shared_data: Path) -> None:
    path = shared_data / "adult.parquet"
    report = read_release(path, label="income")
    release = report.release
    assert len(release) == 48_842
    assert release.classes == ("<=50K", ">50K")
    assert release.released.mean() == pytest.approx(0.239, abs=5e-4)
    assert release.features.columns == 15
    assert release.features.numeric.shape[1] == 6
    assert release.features.cardinalities[-1] == 2
    hours = read_release(path, label="hours_per_week").release
    assert len(hours.classes) == 96
    assert (hours.classes[0], hours.classes[-1]) == (1, 99)


def test_adult_against_itself_is_noticed(shared_data: Path) -> None:
    path = shared_data / "adult.parquet"
    report = read_release(path, label="income", truth=path)
    assert len(report.warnings) == 1
    assert "equal the released labels" in report.warnings[0]


def test_diabetes(shared_data: Path) -> None:
    release = read_release(
        shared_data / "diabetes130.parquet",
        label="readmitted",
        id_column="encounter_id",
        drop=["patient_nbr"],
    ).release
    assert len(release) == 101_766
    assert release.classes == ("<30", ">30", "NO")
    assert release.features.columns == 47
    with pytest.raises(InputError, match="1000"):
        read_release(shared_data / "diabetes130.parquet", label="patient_nbr")


def test_military(shared_data: Path) -> None:
    release = read_release(shared_data / "military.parquet", label="gender").release
    assert len(release) == 1_414_593
    assert release.classes == ("female", "male")
    assert (release.released == 0).mean() == pytest.approx(0.1433, abs=5e-4)
    assert release.features.columns == 5
    sample = np.arange(0, len(release), 977)
    content = pq.read_table(shared_data / "military.parquet").to_pandas().iloc[sample]
    assert (release.features.take(sample).numeric[:, 1] == content["rank"]).all()
    assert (
        len(set(zip(content["branch"], release.features.categorical[sample, 1], strict=True)))
        == (release.features.cardinalities[1])
    )


def test_skin_and_fertility(shared_data: Path) -> None:
    skin = read_release(shared_data / "skin.parquet").release
    assert skin.classes == (1, 2)
    assert skin.features.numeric.shape == (245_057, 3)
    weeks = read_release(
        shared_data / "fertility.parquet", label="work", id_column="rownames"
    ).release
    assert weeks.classes == tuple(range(53))
