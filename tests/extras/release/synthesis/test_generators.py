import functools
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy.stats import ks_2samp

from ldpaudit.errors import (
    GeneratorDivergedError,
    InputError,
    InsufficientDataError,
    OutputError,
)
from ldpaudit.extras.release.synthesis import mixture
from ldpaudit.extras.release.synthesis.columns import Encoded
from ldpaudit.generators import VERSION
from ldpaudit.synthesis import (
    ConditionalGan,
    Generator,
    generator,
    load_generator,
    save_generator,
)
from ldpaudit.work.progress import NoProgress

FAST = {"steps": 75, "batch": 60}
OPTIONS = {"gan": FAST, "mixture": {"components": 4}}


def people(rows: int = 600, seed: int = 0) -> tuple[pa.Table, np.ndarray]:
    """A real and a whole column, holes, and a town, all of which depend on the label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows).astype(np.int32)
    real = labels * 2 + rng.standard_normal(rows)
    holes = rng.random(rows) < np.where(labels == 1, 0.4, 0.1)
    town = np.where(rng.random(rows) < np.where(labels == 1, 0.8, 0.2), "oslo", "rome")
    table = pa.table(
        {
            "age": pa.array(np.round(40 + 5 * real).astype(np.int16)),
            "real": pa.array(real, mask=holes),
            "town": pa.array(town),
        }
    )
    return table, labels


@functools.cache
def fitted(name: str, seed: int = 1, **options: object) -> Generator:
    table, labels = people()
    made = generator(name, **{**OPTIONS[name], **options})
    return made.fit(table, labels, 2, rng=np.random.default_rng(seed), device="cpu")


@pytest.fixture(params=["gan", "mixture"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_samples_have_the_schema_and_only_values_that_occur(name: str) -> None:
    table, _ = people()
    made = fitted(name)
    assert isinstance(made, Generator)
    labels = np.array([0, 1, 1] * 50, dtype=np.int32)
    sample = made.sample(labels, np.random.default_rng(0))
    assert sample.schema.equals(table.schema)
    assert sample.num_rows == 150
    assert set(sample["town"].to_pylist()) <= {"oslo", "rome"}
    assert set(sample["age"].to_pylist()) <= set(table["age"].to_pylist())
    assert made.sample(labels[:0], np.random.default_rng(0)).num_rows == 0


def test_each_class_has_its_own_law() -> None:
    sample = fitted("mixture").sample(
        np.repeat([0, 1], 4000).astype(np.int32), np.random.default_rng(0)
    )
    # Standard errors: below 0.008 for the shares, 0.02 for the means, and as much again (times 4)
    # for the 300 training rows of a class; the limits are four of them.
    for label, share, holes, mean in ((0, 0.2, 0.1, 0.0), (1, 0.8, 0.4, 2.0)):
        part = sample.slice(4000 * label, 4000)
        towns = np.array(part["town"].to_pylist()) == "oslo"
        real = part["real"]
        assert abs(towns.mean() - share) < 0.12
        assert abs(real.null_count / 4000 - holes) < 0.12
        assert abs(np.mean(real.drop_null().to_numpy()) - mean) < 0.3


def test_numbers_that_go_together_do_so_in_samples() -> None:
    rng, labels = np.random.default_rng(1), np.repeat([0, 1], 300).astype(np.int32)
    x = rng.standard_normal(600)
    ahead = np.where(labels, -x, x) + 0.1 * rng.standard_normal(600)
    made = generator("mixture", components=1)
    made.fit(pa.table({"x": x, "ahead": ahead}), labels, 2, rng=rng, device="cpu")
    sample = made.sample(np.repeat([0, 1], 1000).astype(np.int32), np.random.default_rng(0))
    for label, sign in ((0, 1), (1, -1)):
        pair = [column.to_numpy() for column in sample.slice(1000 * label, 1000).columns]
        # 0.995 in the data.
        assert sign * np.corrcoef(*pair)[0, 1] > 0.95


@pytest.mark.parametrize("rows", [4, 400])
def test_few_rows_lean_towards_independent_numbers(rows: int) -> None:
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((2 * rows, 3)) @ rng.standard_normal((3, 3))
    shares = np.repeat(np.eye(2), rows, axis=0)
    means, roots = mixture._moments(scores, shares)
    for place, part in enumerate((scores[:rows], scores[rows:])):
        covariance = np.cov(part.T, bias=True)
        wanted = covariance * np.where(np.eye(3), 1.0, rows / (rows + 3))
        assert means[place] == pytest.approx(part.mean(axis=0))
        found = roots[place] @ roots[place].T
        assert found == pytest.approx(wanted + mixture._JITTER * np.eye(3))


def test_of_many_numbers_the_factors_and_what_they_leave_over_vary_as_the_data_do() -> None:
    """Seventy numbers, ten of which ten others repeat; sixty factors, and noise for the rest."""
    rng = np.random.default_rng(3)
    numbers = rng.standard_normal((300, 70)) * np.linspace(0.5, 2.0, 70)
    numbers[:, 60:] = numbers[:, :10]
    sizes = np.zeros((300, 0), dtype=np.int32)
    rows = Encoded(numbers.astype(np.float32), sizes, ())
    fitted = mixture.ClassMixture.fit(rows, 1, 0)
    drawn, _ = fitted.sample(4_000, np.random.default_rng(4))
    assert fitted.factors.shape == (60, 70)
    # A variance of 300 rows is kept but for what leaning leaves; of 4,000 its error is 2 %.
    assert drawn.std(axis=0) == pytest.approx(numbers.std(axis=0), rel=0.12)
    assert drawn.mean(axis=0) == pytest.approx(numbers.mean(axis=0), abs=0.2)


def test_the_columns_of_a_gan_are_those_of_each_class(tmp_path: Path) -> None:
    made, (table, labels) = fitted("gan"), people()
    again = load_generator(save_generator(made, tmp_path / "gan.npz"))  # type: ignore[arg-type]
    for one in (made, again):
        sample = one.sample(np.repeat([0, 1], 4000).astype(np.int32), np.random.default_rng(0))
        far = []
        for y in (0, 1):
            true, drawn = table.filter(pa.array(labels == y)), sample.slice(4000 * y, 4000)
            for column in ("age", "real"):
                numbers = [part[column].drop_null().to_numpy() for part in (true, drawn)]
                far.append(ks_2samp(*numbers).statistic)
            for share in (
                [np.mean(np.array(part["town"]) == "oslo") for part in (true, drawn)],
                [part["real"].null_count / len(part) for part in (true, drawn)],
            ):
                far.append(abs(share[0] - share[1]))
        # Seven seeds of training give .021 to .031, and .069 to .110 without calibration.
        assert np.mean(far) < 0.05


def test_the_same_rng_gives_the_same_rows_and_leaves_torch_alone(name: str) -> None:
    before = torch.get_rng_state()
    first, third = fitted(name), fitted(name, seed=2)
    second = fitted.__wrapped__(name)
    assert torch.equal(torch.get_rng_state(), before)
    labels = np.repeat([0, 1], 40).astype(np.int32)
    rows = [g.sample(labels, np.random.default_rng(5)) for g in (first, second, third)]
    assert rows[0].equals(rows[1])
    assert not rows[0].equals(rows[2])


def test_a_file_gives_the_same_generator_back(name: str, tmp_path: Path) -> None:
    made = fitted(name)
    path = save_generator(made, tmp_path / "generator.npz")  # type: ignore[arg-type]
    assert path.stat().st_mode & 0o777 == 0o600
    again = load_generator(path)
    labels = np.repeat([0, 1], 40).astype(np.int32)
    rows = [g.sample(labels, np.random.default_rng(5)) for g in (made, again)]
    assert rows[0].equals(rows[1])
    assert again.describe() == made.describe()
    stated = {"name": name, "rows": 600, "trained_on": "private"}
    assert stated.items() <= again.describe().items()
    with pytest.raises(OutputError, match="exists already"):
        save_generator(made, path)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == [path]


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (pytest.fail, ("code in the file was run",))


def archive(**arrays: object) -> bytes:
    place = io.BytesIO()
    np.savez(place, **arrays)  # type: ignore[arg-type]
    return place.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no generator",
        pickle.dumps(Trap()),
        archive(content=np.array([Trap()], dtype=object)),
        archive(content="{"),
        archive(content='{"format": "x"}'),
        archive(x=1),
    ],
)
def test_other_files_are_refused_and_never_run(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "generator.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="must be a generator's file"):
        load_generator(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "damaged"),
        ({"name": "x"}, "damaged"),
        ({"state": {"seed": {"array": "content", "packed": True}}}, "damaged"),
        ({"version": 99}, "another version"),
    ],
)
def test_a_damaged_file_is_refused(change: dict[str, object], words: str, tmp_path: Path) -> None:
    path = tmp_path / "generator.npz"
    head = {"format": "ldpaudit-generator", "version": VERSION, "name": "mixture", "state": {}}
    path.write_bytes(archive(content=json.dumps(head | change)))
    with pytest.raises(InputError, match=words):
        load_generator(path)


@pytest.mark.parametrize(
    ("steps", "rate", "words"), [(30, 1e9, "Nothing is kept"), (10, 1e-9, "hardly nearer")]
)
def test_training_that_fails_keeps_nothing(steps: int, rate: float, words: str) -> None:
    table, labels = people()
    made = ConditionalGan(steps=steps, batch=40, learning_rate=rate)
    with pytest.raises(GeneratorDivergedError, match=words):
        made.fit(table, labels, 2, rng=np.random.default_rng(0), device="cpu")
    with pytest.raises(InputError, match="must be fitted"):
        made.sample(labels, np.random.default_rng(0))


def test_training_reports_its_progress_and_stops_in_time() -> None:
    said: list[str] = []

    class Listener(NoProgress):
        def step(self, text: str) -> None:
            said.append(text)

    table, labels = people()
    made = ConditionalGan(**{**FAST, "steps": 250}, seconds=1e-9)
    made.fit(table, labels, 2, rng=np.random.default_rng(0), progress=Listener(), device="cpu")
    assert any("200 steps, critic's loss" in text for text in said)
    assert "before it was finished" in made.warnings[-1]


def test_a_small_class_is_used_again_with_a_warning_and_a_tiny_one_refused(name: str) -> None:
    table, _ = people(200)
    labels = (np.arange(200) < 25).astype(np.int32)
    made = generator(name, **OPTIONS[name])
    made.fit(table, labels, 2, rng=np.random.default_rng(0), device="cpu")
    assert len(made.warnings) == 1
    with pytest.raises(InsufficientDataError, match="at least 20 rows of every class; 1 of 2"):
        made.fit(table, (np.arange(200) < 19).astype(np.int32), 2, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("labels", "classes", "words"),
    [
        (np.zeros(200, dtype=np.int32), 2, "1 of 2 have none"),
        (np.zeros(200, dtype=np.int32), 1, "at least 2 classes"),
        (np.full(200, 5, dtype=np.int32), 2, "must be one of 0 … 1"),
        (np.zeros(7, dtype=np.int32), 2, "200 rows, the labels 7"),
        (np.zeros(200), 2, "array of integers"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    name: str, labels: np.ndarray, classes: int, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        generator(name).fit(people(200)[0], labels, classes, rng=np.random.default_rng(0))


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(InputError, match="choose from gan, mixture"):
        generator("copula")
    with pytest.raises(InputError, match="no such option"):
        generator("gan", components=3)
    with pytest.raises(InputError, match="'public' or 'private'"):
        generator("gan", trained_on="mine")
    with pytest.raises(InputError, match="must be positive"):
        generator("gan", steps=0)
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="there is no GPU"):
            generator("gan").fit(*people(), 2, rng=np.random.default_rng(0), device="cuda")


def test_images_are_drawn_by_a_convolutional_generator(tmp_path: Path) -> None:
    """It draws each class on its side, and lights no pixel that is always black."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 300).astype(np.int32)
    # A bright square within a black frame, its grey values many: class 0 left, class 1 right.
    pixels = np.zeros((300, 8, 8), dtype=np.float32)
    for y, place in ((0, slice(2, 4)), (1, slice(4, 6))):
        grey = 0.5 + 0.5 * rng.random((int((labels == y).sum()), 4, 2))
        pixels[labels == y, 2:6, place] = grey
    table = pa.table({"image": pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 64)})
    made = ConditionalGan(steps=100, batch=30)
    made.fit(table, labels, 2, rng=np.random.default_rng(4), device="cpu")
    assert made.describe()["network"] == "convolutional"
    asked = np.repeat([0, 1], 50).astype(np.int32)
    sample = made.sample(asked, np.random.default_rng(5))
    assert sample.schema.equals(table.schema)
    again = load_generator(save_generator(made, tmp_path / "images.pt"))
    assert again.sample(asked, np.random.default_rng(5)).equals(sample)
    drawn = sample["image"].combine_chunks().flatten().to_numpy().reshape(-1, 8, 8)
    right_side = drawn[:, :, 4:].mean(axis=(1, 2)) > drawn[:, :, :4].mean(axis=(1, 2))
    assert np.mean(right_side == asked) > 0.9
    for y in (0, 1):
        never = (pixels[labels == y] == 0).all(axis=0)
        assert (drawn[asked == y][:, never] == 0).all()
        assert drawn[asked == y].max() > 0.25
        # As black as in training: 50 images against 150, shares that hardly vary.
        assert abs((drawn[asked == y] == 0).mean() - (pixels[labels == y] == 0).mean()) < 0.05
