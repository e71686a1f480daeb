"""Networks for a codec's rows, and where they run."""

from ldpaudit.synthesis.codecs.image import ImageCodec
from ldpaudit.synthesis.codecs.table import TableCodec
from ldpaudit.synthesis.gan.networks import (
    DenseCritic,
    DenseGenerator,
    ImageCritic,
    ImageGenerator,
    NetworkPair,
    seeded,
)

_DENSE_UNITS = 256
_IMAGE_CHANNELS = 32


def build_networks(codec: TableCodec | ImageCodec, classes: int, seed: int) -> NetworkPair:
    """Return untrained networks for a codec's rows, with weights drawn from the seed."""

    def images() -> NetworkPair:
        assert isinstance(codec, ImageCodec)
        made = ImageGenerator(codec.side, classes, _IMAGE_CHANNELS)
        return NetworkPair(made, ImageCritic(codec.side, classes, _IMAGE_CHANNELS), 0)

    def tables() -> NetworkPair:
        assert isinstance(codec, TableCodec)
        sizes, width = codec.cardinalities, codec.numbers + sum(codec.cardinalities)
        made = DenseGenerator(codec.numbers, sizes, classes, _DENSE_UNITS)
        return NetworkPair(made, DenseCritic(width, classes, _DENSE_UNITS), sum(sizes))

    return seeded(images if isinstance(codec, ImageCodec) else tables, seed)
