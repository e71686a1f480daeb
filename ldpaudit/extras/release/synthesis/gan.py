"""A conditional generative adversarial network for tables and for square images."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from ldpaudit.device import DeviceName, need_torch, torch_device
from ldpaudit.doors import Generator, InputError, IntArray, Progress
from ldpaudit.extras.release.synthesis.columns import Columns, Images, image_side
from ldpaudit.generators import TrainedOn, check_labels, not_fitted
from ldpaudit.randomness import integer_seed

if TYPE_CHECKING:
    from torch import nn

    from ldpaudit.extras.release.synthesis.training import Calibration, Shape

Architecture = Literal["auto", "dense", "convolutional"]


class ConditionalGan(Generator):
    """Learns P(x | y) by a generator that a critic cannot tell from the data."""

    # Pixels that are black in all training images of a class are black in its generated ones, and
    # these are as black as those on the whole.
    # Mirza & Osindero (2014); hinge loss, spectral norms, projection: Miyato et al. (2018).

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
        self.limits: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        for key, value in self.limits.items():
            if not value > 0:
                raise InputError(f"The {key!r} parameter must be positive. Got {value} instead.")
        self._classes, self._device = 0, "cpu"
        self._coder: Columns | Images | None = None
        self._generator: nn.Module | None = None
        self._calibration: Calibration | None = None

    def _learn(
        self,
        table: pa.Table,
        codes: IntArray,
        classes: int,
        rng: np.random.Generator,
        progress: Progress,
        device: DeviceName,
    ) -> None:
        from ldpaudit.extras.release.synthesis.training import (
            Calibration,
            Plan,
            calibrate,
            generate,
            networks,
            train,
        )

        seed = integer_seed(rng)
        draws = np.random.default_rng(seed)
        coder: Columns | Images
        if self.network == "convolutional" or (
            self.network == "auto" and image_side(table) is not None
        ):
            coder, plan = Images.fit(table, codes, classes), Plan(3000, 600.0, 64, 2e-4)
            rows = coder.encode(table)
        else:
            coder, plan = Columns.fit(table), Plan(2500, 300.0, 300, 5e-4)
            rows = coder.encode(table, draws).flat()
        plan, shape = plan._replace(**self.limits), _shape(coder)
        pair, place = networks(shape, classes, integer_seed(draws)), torch_device(device)
        late = train(pair, rows, codes, plan, draws, sum(shape.sizes), place, progress)
        if isinstance(coder, Images):
            asked, none = np.repeat(np.arange(classes, dtype=np.int32), 300), np.zeros((classes, 0))
            calibration = Calibration(none.astype(np.float32), none, none)
            made = generate(pair[0], asked, calibration.shifts, integer_seed(draws), place)
            coder = coder.cut_off(made.reshape(classes, -1))
        else:
            calibration = calibrate(pair[0], rows, codes, shape, integer_seed(draws), place)
        few = int((np.bincount(codes) < plan.batch // classes).sum())
        self.warnings = (
            (
                f"{few} of {classes} classes have fewer rows than their share of one batch; their "
                f"rows were used again and again, so the generator may repeat them.",
            )
            if few
            else ()
        )
        if late:
            self.warnings += (
                f"Training stopped after {plan.seconds:.0f} seconds, before it was finished; the "
                f"same seed may give another generator.",
            )
        self._seed, self._rows, self._classes = seed, table.num_rows, classes
        self._coder, self._generator, self._device = coder, pair[0], place
        self._calibration = calibration

    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        from ldpaudit.extras.release.synthesis.training import generate, split

        if self._coder is None or self._generator is None or self._calibration is None:
            raise not_fitted()
        codes, shape = check_labels(labels, self._classes), _shape(self._coder)
        seed = integer_seed(rng)
        made = generate(self._generator, codes, self._calibration.shifts, seed, self._device)
        if isinstance(self._coder, Images):
            return self._coder.decode(made, codes)
        return self._coder.decode(self._calibration.move(split(made, shape), codes), rng)

    def _kind(self) -> Mapping[str, Any]:
        return {"network": "convolutional" if isinstance(self._coder, Images) else "dense"}

    def state(self) -> dict[str, Any]:
        if self._coder is None or self._generator is None or self._calibration is None:
            raise not_fitted()
        weights = self._generator.state_dict()
        return {
            "trained_on": self.trained_on,
            "seed": self._seed,
            "rows": self._rows,
            "classes": self._classes,
            "images": isinstance(self._coder, Images),
            "coder": vars(self._coder),
            "calibration": self._calibration._asdict(),
            "weights": {name: value.cpu().numpy() for name, value in weights.items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "ConditionalGan":
        import torch

        from ldpaudit.extras.release.synthesis.training import Calibration, networks

        gan = cls(trained_on=state["trained_on"])
        gan._seed, gan._rows, gan._classes = state["seed"], state["rows"], state["classes"]
        gan._coder = (Images if state["images"] else Columns)(**state["coder"])
        gan._calibration = Calibration(**state["calibration"])
        gan._generator, _ = networks(_shape(gan._coder), gan._classes, 0)
        weights = {name: torch.from_numpy(value) for name, value in state["weights"].items()}
        gan._generator.load_state_dict(weights)
        return gan


def _shape(coder: Columns | Images) -> "Shape":
    from ldpaudit.extras.release.synthesis.training import Shape

    if isinstance(coder, Images):
        return Shape(coder.side, coder.side**2, ())
    return Shape(None, coder.quantiles.shape[1], coder.sizes)
