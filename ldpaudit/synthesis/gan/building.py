"""Networks for a codec's rows, and where they run."""

import torch

from ldpaudit.errors import InputError
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
from ldpaudit.synthesis.interface import DeviceName

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


def torch_device(device: DeviceName) -> str:
    """Return the torch device to use.

    Raises
    ------
    InputError
        If ``"cuda"`` is asked for and torch sees no GPU.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("The device must be one that torch sees; there is no GPU (use auto).")
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
