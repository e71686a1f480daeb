"""What a user of a release would train: a model of the true label, corrected for the mechanism."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from ldpaudit.commands.utility import LearnerKind
from ldpaudit.commands.utility.companions import OtherColumns, Way
from ldpaudit.commands.utility.corrections import (
    AVERAGED,
    IWP,
    LOG_LIKELIHOOD,
    TRUE,
    LossCorrection,
    bias_correction,
    correction_for,
)
from ldpaudit.commands.utility.iwp import IWP_LOSSES, as_released, feature_noise, iwp_model
from ldpaudit.device import DeviceName, torch_device
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.models.encoding import BoostingMatrix, DesignMatrix, is_image_table, pixels
from ldpaudit.release import (
    FeatureTable,
    Float32Array,
    FloatArray,
    IntArray,
    Release,
    ReleasedLabels,
)

Matrix = Callable[[FeatureTable], Float32Array]
"""Makes a matrix of rows."""

_PENALTY: Final = 1.0
_IMAGE_BATCHES: Final = 1_500
"""Batches that a convolutional network is trained on; at least 3 and at most 30 epochs."""


@dataclass(frozen=True)
class Learner:
    """A learner from releases.

    Attributes
    ----------
    model : {"logistic", "boosting", "network", "iwp"}
        A network is convolutional where rows are square images.
    device : {"auto", "cpu", "cuda"}
        Where the network runs.
    true : bool
        Whether the "released" labels are the true ones, which need no correction.
    loss : str or None
        ``"poisson"`` for numbers, a loss of :data:`IWP_LOSSES` for classes by "iwp"; None: the
        usual one.
    beside : OtherColumns or None
        The other private columns of the release, which are then no features.
    """

    model: LearnerKind
    device: DeviceName = "auto"
    true: bool = False
    loss: str | None = None
    beside: OtherColumns | None = None

    def classes(
        self, release: Release, rows: FeatureTable, rng: np.random.Generator
    ) -> tuple[IntArray, LossCorrection]:
        """Return the class that a model trained on a release predicts for each of t other rows.

        Returns
        -------
        int32 array of shape (t,), LossCorrection
            Codes into the release's classes; −1 for an output that is no class.

        Raises
        ------
        InputError
            If the model cannot be trained under the mechanism.
        """
        if self.loss is not None and (self.model != "iwp" or self.loss not in IWP_LOSSES):
            raise InputError(
                f"The loss {self.loss!r} does not belong to the learner {self.model!r} of classes."
            )
        correction = LossCorrection(None, None, TRUE) if self.true else correction_for(release)
        outputs = release.classes if correction.name else release.outputs
        if self.model == "iwp":
            codes, correction = self._iwp(release, rows, correction, rng)
            return codes, self._said(correction, release)
        correction = self._said(correction, release)
        if self.model == "logistic":
            codes = self._logistic(release, rows, correction)
        else:
            codes = self._learnt(release, rows, correction, rng)
        # An output means the class of the same name.
        places = np.array([_place(release.classes, output) for output in outputs], dtype=np.int32)
        return np.asarray(places[codes], dtype=np.int32), correction

    def _iwp(
        self,
        release: Release,
        rows: FeatureTable,
        correction: LossCorrection,
        rng: np.random.Generator,
    ) -> tuple[IntArray, LossCorrection]:
        if (correction.noise is None and not self.true) or correction.name == "unbiased":
            raise InputError("The learner 'iwp' needs a declared channel of the label.")
        sigma = feature_noise(from_declaration(release.declaration, release.classes), release)
        matrix = as_released if sigma else self.matrix(release.features)
        # True labels may come with clean features, which then have no noise.
        clean = self.true and release.features is release.original
        table = matrix(release.features)
        model = iwp_model(correction.noise, 0 if clean else sigma, table, self.loss, rng)
        model.fit(table, release.released)
        codes = np.asarray(model.predict(matrix(rows)), dtype=np.int32)
        return codes, correction if self.true else replace(correction, words=IWP)

    def _learnt(
        self,
        release: Release,
        rows: FeatureTable,
        correction: LossCorrection,
        rng: np.random.Generator,
    ) -> IntArray:
        from ldpaudit.learners import ReleaseClassifier

        matrix, (table, asked) = self.matrix(release.features), self._tables(release, rows)
        released, more = release.released, dict[str, Any]()
        if self._way(release) == "expanded":
            assert self.beside is not None
            weights = self.beside.expanded(release.features)
            released = ReleasedLabels(np.repeat(released, weights.shape[1]))
            more["sample_weight"] = weights.ravel()
        learner = ReleaseClassifier(
            correction.noise,
            model=cast(Any, self.model),
            correction=correction.name,
            labels="codes",
            network=self.network(release.features),
            random_state=rng,
        )
        if correction.name == "unbiased" and release.synthetic is not None:
            more["synthetic"] = matrix(release.synthetic.features)
            more["synthetic_labels"] = release.synthetic.labels
        learner.fit(table, released, **more)
        return np.asarray(learner.predict(asked), dtype=np.int32)

    def numbers(
        self, release: Release, rows: FeatureTable, rng: np.random.Generator
    ) -> tuple[FloatArray, LossCorrection]:
        """Return the number that a model predicts for each of other rows.

        Returns
        -------
        float64 array of shape (t,), LossCorrection
        """
        from ldpaudit.learners import ReleaseRegressor

        assert release.numeric is not None
        released = release.numeric.released
        table, asked = self._tables(release, rows)
        correction = LossCorrection(None, None, TRUE)
        if self.model == "iwp" or self.loss not in (None, "squared", "poisson"):
            what = "learner 'iwp'" if self.model == "iwp" else f"loss {self.loss!r}"
            raise InputError(f"The {what} is for classes, and these labels are numbers.")
        if not self.true:
            claim = from_declaration(release.declaration, ())
            correction = bias_correction(claim, released, table.shape[1])
        loss: Any = self.loss or "squared"
        if loss == "poisson" and correction.name:
            correction = replace(correction, words=LOG_LIKELIHOOD)
        learner = ReleaseRegressor(
            correction.noise,
            model="linear" if self.model == "logistic" else self.model,
            correction=correction.name,
            loss=loss,
            network=self.network(release.features),
            random_state=rng,
        )
        learner.fit(table, released)
        return learner.predict(asked), self._said(correction, release)

    def _way(self, release: Release) -> Way | None:
        """Return how the other private columns are used; None where there are none."""
        if self.beside is None:
            return None
        images = self.model == "network" and is_image_table(release.features)
        if images or release.synthetic is not None:
            return "left out"
        if self.true and self.model in ("boosting", "network"):
            return "at their word"
        return self.beside.way(self.model, release.numeric is None)

    def _said(self, correction: LossCorrection, release: Release) -> LossCorrection:
        """Return the correction with what becomes of the other private columns."""
        if correction.likelihood is not None and self.model != "logistic":
            correction = replace(correction, words=AVERAGED)
        way = self._way(release)
        if way is None or self.beside is None or self.true:
            return correction
        return replace(correction, words=f"{correction.words}; {self.beside.words(way)}")

    def _tables(self, release: Release, rows: FeatureTable) -> tuple[Float32Array, Float32Array]:
        """Return the matrices of the released and of the other rows."""
        matrix, way = self.matrix(release.features), self._way(release)
        table, asked = matrix(release.features), matrix(rows)
        if self.beside is None or way in ("left out", "together"):
            return table, asked
        wide = _widened(asked, self.beside.test_block(len(rows)))
        if way == "expanded":
            from ldpaudit.models.noisy_columns import expanded

            return expanded(table, self.beside.combinations.astype(np.float32)), wide
        if way == "posterior":
            return _widened(table, self.beside.posterior(release.features)), wide
        return _widened(table, self.beside.at_their_word()), wide

    def _logistic(
        self, release: Release, rows: FeatureTable, correction: LossCorrection
    ) -> IntArray:
        table, asked = self._tables(release, rows)
        if self.beside is not None and self._way(release) == "together":
            return _mixture(table, asked, self.beside)
        return _logistic(release, (table, asked), correction)

    def network(self, features: FeatureTable) -> Any:
        """Return the network's options: a convolutional one where rows are square images."""
        from ldpaudit.models.network import NetworkOptions

        if self.model != "network":
            return None
        options = NetworkOptions(device=torch_device(self.device))
        if not is_image_table(features):
            return options
        epochs = int(np.clip(_IMAGE_BATCHES * options.batch_size // len(features), 3, 30))
        return replace(options, architecture="convolutional", epochs=epochs)

    def matrix(self, features: FeatureTable) -> Matrix:
        """Return the function to a matrix of rows, fitted on the released features alone."""
        if self.model == "network" and is_image_table(features):
            return pixels
        return _filled((BoostingMatrix if self.model == "boosting" else DesignMatrix).fit(features))


def _widened(table: Float32Array, block: FloatArray) -> Float32Array:
    return np.hstack([table, block.astype(np.float32)])


def _mixture(table: Float32Array, asked: Float32Array, beside: OtherColumns) -> IntArray:
    """Return the answers of a logistic model of all columns that were released together."""
    from ldpaudit.models.noisy_columns import fit_mixture, prior

    assert beside.together is not None
    others = [prior(table, one, _PENALTY) for one in beside.likelihoods]
    model = fit_mixture(table, others, beside.together, beside.combinations, _PENALTY)
    answers = model.predict(_widened(asked, beside.test_block(len(asked))))
    return np.asarray(answers.argmax(axis=1), dtype=np.int32)


def _logistic(
    release: Release, tables: tuple[Float32Array, Float32Array], correction: LossCorrection
) -> IntArray:
    """Return the answers of a ridge-penalised logistic model, fitted in single precision.

    Its indicators are not standardised: rare levels then count for less, which helps on noisy
    labels, and fewer steps are needed.
    """
    from ldpaudit.models.learners import Rows
    from ldpaudit.models.logistic import (
        ForwardLoss,
        LogitLoss,
        Stopping,
        TargetLoss,
        fit_logistic,
    )

    noise, (table, asked) = correction.noise, tables
    channel = Channel(np.eye(len(release.outputs)), release.outputs, release.outputs)
    double = None if noise is None else noise.offers(SyntheticFeatures)
    if noise is not None:
        channel = cast(Channel, noise) if double is None else double.label_channel
    rows: Any = table
    known = Rows.labelled(rows, release.released, np.ones(len(rows)), channel, correction.name)
    if correction.likelihood is not None:
        known = replace(known, answers=correction.likelihood)
    if double is not None and release.synthetic is not None:
        matrix = _filled(DesignMatrix.fit(release.features))
        more: Any = matrix(release.synthetic.features)
        known = known.with_synthetic(more, release.synthetic.labels, double)
    answers = known.answers.astype(np.float32)
    loss: LogitLoss = ForwardLoss(answers) if known.forward else TargetLoss(answers)
    # Further steps move the accuracy on test rows by less than its interval's rounding.
    stopping = Stopping(iterations=300, slope=1e-5, gain=1e-8)
    model = fit_logistic(known.matrix, loss, answers.shape[1], _PENALTY, None, stopping)
    return np.asarray(model.predict(asked).argmax(axis=1), dtype=np.int32)


def _place(classes: tuple[Any, ...], output: Any) -> int:
    return classes.index(output) if output in classes else -1


def _filled(design: DesignMatrix | BoostingMatrix) -> Matrix:
    def matrix(features: FeatureTable) -> Float32Array:
        table = design.transform(features)
        # Of a release without features only the labels' shares can be learnt.
        return table if table.shape[1] else np.zeros((len(features), 1), dtype=np.float32)

    return matrix
