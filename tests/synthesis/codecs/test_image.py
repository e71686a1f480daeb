import numpy as np
import pyarrow as pa
import pytest

from ldpaudit.errors import InputError
from ldpaudit.synthesis.codecs.image import ImageCodec, image_side


def images(kind: pa.DataType, rows: int = 20, width: int = 64) -> pa.Table:
    pixels = np.random.default_rng(0).integers(-2, 3, rows * width)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width)
    return pa.table({"image": pa.ListArray.from_arrays(offsets, pa.array(pixels)).cast(kind)})


@pytest.mark.parametrize("inner", [pa.int8(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, lambda inner: pa.list_(inner, 64)])
def test_round_trip_is_exact_where_pixels_have_few_values(kind: object, inner: pa.DataType) -> None:
    table = images(kind(inner))  # type: ignore[operator]
    codec = ImageCodec.fit(table)
    pixels = codec.encode(table)
    assert (pixels.min(), pixels.max()) == (-1, 1)
    assert codec.decode(pixels).equals(table)


def test_only_one_column_of_square_images_is_one() -> None:
    square = images(pa.list_(pa.float32()))
    assert image_side(square) == 8
    assert image_side(images(pa.list_(pa.float32()), width=65)) is None
    assert image_side(images(pa.list_(pa.float32()), width=49)) is None
    assert image_side(square.append_column("x", pa.array(range(20)))) is None
    assert image_side(pa.table({"x": [1.0, 2.0]})) is None
    assert image_side(pa.table({"x": pa.array([None, [1.0] * 64])})) is None
    with pytest.raises(InputError, match="one column of lists"):
        ImageCodec.fit(pa.table({"x": [1.0, 2.0]}))
