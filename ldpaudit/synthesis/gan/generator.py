"""A conditional generative adversarial network for tables and for square images."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from ldpaudit.device import need_torch, torch_device
from ldpaudit.errors import InputError
from ldpaudit.randomness import integer_seed
from ldpaudit.release import Float32Array, IntArray
from ldpaudit.synthesis.codecs.encoded import split_rows
from ldpaudit.synthesis.codecs.image import ImageCodec, image_side
from ldpaudit.synthesis.codecs.table import TableCodec
from ldpaudit.synthesis.gan.batches import check_class_sizes, held_out_rows, small_class_warning
from ldpaudit.synthesis.interface import Generator, TrainedOn, Training, check_labels, not_fitted

if TYPE_CHECKING:
    from ldpaudit.synthesis.gan.calibration import Calibration
    from ldpaudit.synthesis.gan.networks import NetworkPair
    from ldpaudit.synthesis.gan.training import TrainingPlan, TrainingRecord

Architecture = Literal["auto", "dense", "convolutional"]


class ConditionalGan(Generator):
    """Learns P(x | y) by a generator that a critic cannot tell from the data.

    Parameters
    ----------
    trained_on : {"public", "private"}
        Whose rows it will be fitted on; goes into the declaration.
    network : {"auto", "dense", "convolutional"}
        ``"auto"``: convolutional for one list column of square images, else dense.
    steps, seconds, batch, learning_rate : optional
        At most so many steps and seconds, rows of a batch, and Adam's step.

    Notes
    -----
    A table's generator is calibrated after training, so that each column has the marginal law of
    its class's training rows; an image's, so that each pixel is exactly black at least as often as
    in the class's training images.

    A tenth of each class (at least 5 rows) is held out: training stops when generated rows come no
    nearer to it, and keeps the generator that was nearest.

    References
    ----------
    Mirza & Osindero (2014); hinge loss, spectral norms, projection: Miyato et al. (2018).
    """

    name = "gan"

    def __init__(
        self,
        *,
        trained_on: TrainedOn = "private",
        network: Architecture = "auto",
        steps: int | None = None,
        seconds: float | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
    ) -> None:
        need_torch("The generator 'gan'")
        super().__init__(trained_on)
        self.network = network
        given = {"steps": steps, "seconds": seconds, "batch": batch, "learning_rate": learning_rate}
        self.limits = {key: value for key, value in given.items() if value is not None}
        for key, value in self.limits.items():
            if not value > 0:
                raise InputError(f"The {key!r} parameter must be positive. Got {value} instead.")
        self.record: TrainingRecord | None = None
        self._classes = 0
        self._codec: TableCodec | ImageCodec | None = None
        self._pair: NetworkPair | None = None
        self._calibration: Calibration | None = None
        self._device = "cpu"

    def _learn(self, training: Training) -> None:
        from ldpaudit.synthesis.closeness import SlicedDistance
        from ldpaudit.synthesis.gan.adversarial import train
        from ldpaudit.synthesis.gan.networks import build_networks

        table, codes, classes = training.table, training.codes, training.classes
        check_class_sizes(codes, classes)
        seed = integer_seed(training.rng)
        draws = np.random.default_rng(seed)
        codec = self._fitted_codec(table)
        rows = _encoded(codec, table, draws)
        place = torch_device(training.device)
        pair = build_networks(codec, classes, integer_seed(draws))
        held_out = held_out_rows(codes, classes, draws)
        distance = SlicedDistance.to(rows[held_out], codes[held_out], classes, pair.codes, draws)
        plan = self._plan(codec)
        record = train(
            pair,
            rows[~held_out],
            codes[~held_out],
            plan,
            distance,
            rng=draws,
            seed=integer_seed(draws),
            device=place,
            progress=training.progress,
        )
        self._calibration = _calibration(codec, pair, rows, codes, classes, draws, place)
        self.warnings = (
            *small_class_warning(codes[~held_out], classes, plan.batch),
            *_out_of_time(record.stopped, plan.seconds),
        )
        self.record, self._seed, self._device = record, seed, place
        self._rows, self._classes = table.num_rows, classes
        self._codec, self._pair = codec, pair

    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        """Draw one row for each label; see :class:`ldpaudit.synthesis.interface.Generator`."""
        from ldpaudit.synthesis.gan.calibration import generate

        if self._codec is None or self._pair is None or self._calibration is None:
            raise not_fitted()
        codes = check_labels(labels, self._classes)
        made = generate(self._pair, self._calibration, codes, integer_seed(rng), self._device)
        if isinstance(self._codec, ImageCodec):
            return self._codec.decode(made)
        return self._codec.decode(
            split_rows(made, self._codec.numbers, self._codec.cardinalities), rng
        )

    def _kind(self) -> Mapping[str, Any]:
        if self._codec is None:
            raise not_fitted()
        return {"network": "convolutional" if isinstance(self._codec, ImageCodec) else "dense"}

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`from_state` needs, as tensors and plain values."""
        from ldpaudit.synthesis.codecs.state import codec_state

        if self._codec is None or self._pair is None or self._calibration is None:
            raise not_fitted()
        return {
            "trained_on": self.trained_on,
            "seed": self._seed,
            "rows": self._rows,
            "classes": self._classes,
            "codec": codec_state(self._codec),
            "calibration": self._calibration.state(),
            "weights": {k: v.cpu() for k, v in self._pair.generator.state_dict().items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "ConditionalGan":
        """Rebuild a fitted generator, on the CPU."""
        from ldpaudit.synthesis.codecs.state import codec_from_state
        from ldpaudit.synthesis.gan.calibration import Calibration
        from ldpaudit.synthesis.gan.networks import build_networks

        gan = cls(trained_on=state["trained_on"])
        gan._seed, gan._rows = state["seed"], int(state["rows"])
        gan._classes = int(state["classes"])
        gan._codec = codec_from_state(state["codec"])
        gan._calibration = Calibration.from_state(state["calibration"])
        gan._pair = build_networks(gan._codec, gan._classes, 0)
        gan._pair.generator.load_state_dict(state["weights"])
        gan._pair.generator.eval()
        return gan

    def _fitted_codec(self, table: pa.Table) -> TableCodec | ImageCodec:
        convolutional = self.network == "convolutional"
        if convolutional or (self.network == "auto" and image_side(table) is not None):
            return ImageCodec.fit(table)
        return TableCodec.fit(table)

    def _plan(self, codec: TableCodec | ImageCodec) -> "TrainingPlan":
        from ldpaudit.synthesis.gan.training import TrainingPlan

        if isinstance(codec, ImageCodec):
            plan = TrainingPlan(steps=3000, seconds=600.0, batch=64, learning_rate=2e-4)
        else:
            plan = TrainingPlan(steps=2500, seconds=300.0, batch=300, learning_rate=5e-4)
        return replace(plan, **self.limits)  # type: ignore[arg-type]


def _out_of_time(stopped: str, seconds: float) -> tuple[str, ...]:
    if stopped != "time":
        return ()
    return (
        f"Training stopped after {seconds:.0f} seconds, before it was finished; the same seed may "
        f"give another generator.",
    )


def _encoded(
    codec: TableCodec | ImageCodec, table: pa.Table, rng: np.random.Generator
) -> Float32Array:
    if isinstance(codec, ImageCodec):
        return codec.encode(table)
    return codec.encode(table, rng).flat()


def _calibration(
    codec: TableCodec | ImageCodec,
    pair: "NetworkPair",
    rows: Float32Array,
    codes: IntArray,
    classes: int,
    rng: np.random.Generator,
    device: str,
) -> "Calibration":
    from ldpaudit.synthesis.gan.calibration import Calibration

    seed = integer_seed(rng)
    if isinstance(codec, ImageCodec):
        return Calibration.of_images(pair, rows, codes, classes, seed, device)
    return Calibration.fit(pair, rows, codes, classes, codec.cardinalities, seed, device)
