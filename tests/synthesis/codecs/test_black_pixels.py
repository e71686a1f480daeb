from pathlib import Path

import numpy as np
import pyarrow as pa

from ldpaudit.synthesis import load_generator, save_generator
from ldpaudit.synthesis.codecs.black_pixels import BLACK, BlackPixels
from ldpaudit.synthesis.gan.generator import ConditionalGan


def faint(rng: np.random.Generator, rows: int, pixels: int = 5) -> np.ndarray:
    """Return images that are black nowhere."""
    return rng.uniform(-0.99, 1.0, (rows, pixels)).astype(np.float32)


def test_each_pixel_of_each_class_is_black_as_often_as_in_training() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([[0.0, 0.1, 0.5, 0.9, 1.0], [1.0, 0.9, 0.5, 0.1, 0.0]])
    true = [np.where(np.arange(1000)[:, None] < 1000 * p, BLACK, 0.5) for p in shares]
    blacks = BlackPixels.fit([t.astype(np.float32) for t in true], [faint(rng, 4000)] * 2)
    labels = np.repeat([0, 1], 4000).astype(np.int32)
    images = faint(rng, 8000)
    before = images.copy()
    after = blacks.cut(images, labels)
    for y in (0, 1):
        # Of 4,000 against 4,000 draws a share is off by 0.06 with probability below 1e-6.
        found = (after[labels == y] == BLACK).mean(axis=0)
        assert np.abs(found - shares[y]).max() < 0.06
        assert (found[shares[y] == 0] == 0).all()
        assert (found[shares[y] == 1] == 1).all()
    lit = after != BLACK
    assert np.array_equal(after[lit], before[lit])
    # What is cut is fainter than what is not.
    assert before[:4000, 2][~lit[:4000, 2]].max() < before[:4000, 2][lit[:4000, 2]].min()


def test_images_without_an_exact_black_are_left_as_they_are() -> None:
    rng = np.random.default_rng(1)
    blacks = BlackPixels.fit([faint(rng, 100)], [faint(rng, 100)])
    images = faint(rng, 50)
    assert np.array_equal(blacks.cut(images.copy(), np.zeros(50, dtype=np.int32)), images)


def test_pixels_that_are_black_already_count() -> None:
    rng = np.random.default_rng(2)
    true, made = faint(rng, 1000, 1), faint(rng, 1000, 1)
    true[:200], made[:400] = BLACK, BLACK
    images = made.copy()
    after = BlackPixels.fit([true], [made]).cut(images.copy(), np.zeros(1000, dtype=np.int32))
    assert np.array_equal(after, images)


def test_a_trained_generator_lights_no_pixel_that_is_always_black(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 300).astype(np.int32)
    # A bright square within a black frame, its grey values many.
    pixels = np.zeros((300, 8, 8), dtype=np.float32)
    pixels[labels == 0, 2:6, 2:4] = 0.5 + 0.5 * rng.random((int((labels == 0).sum()), 4, 2))
    pixels[labels == 1, 2:6, 4:6] = 0.5 + 0.5 * rng.random((int((labels == 1).sum()), 4, 2))
    column = pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 64)
    made = ConditionalGan(steps=100, batch=30)
    made.fit(pa.table({"image": column}), labels, 2, rng=np.random.default_rng(4), device="cpu")
    again = load_generator(save_generator(made, tmp_path / "images.pt"))
    asked = np.repeat([0, 1], 50).astype(np.int32)
    for one in (made, again):
        sample = one.sample(asked, np.random.default_rng(5))["image"].combine_chunks()
        drawn = sample.flatten().to_numpy().reshape(-1, 8, 8)
        for y in (0, 1):
            never = (pixels[labels == y] == 0).all(axis=0)
            assert (drawn[asked == y][:, never] == 0).all()
            assert drawn[asked == y].max() > 0.25
