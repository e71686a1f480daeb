"""What a user of a release would train: a model of the true label, corrected for the mechanism."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from ldpaudit.commands.utility import LearnerKind
from ldpaudit.commands.utility.companions import OtherColumns, Way
from ldpaudit.commands.utility.corrections import (
    AVERAGED,
    FIRST_TERM,
    IWP,
    TRUE,
    LossCorrection,
    bias_correction,
    correction_for,
)
from ldpaudit.commands.utility.iwp import IWP_LOSSES, as_released, feature_noise, iwp_model
from ldpaudit.device import DeviceName, torch_device
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Mechanism, from_declaration
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.models.corrections import debiased_labels, double_targets
from ldpaudit.models.encoding import BoostingMatrix, DesignMatrix, is_image_table, pixels
from ldpaudit.release import (
    FeatureTable,
    Float32Array,
    FloatArray,
    IntArray,
    Release,
    ReleasedLabels,
)

# Makes a matrix of rows.
Matrix = Callable[[FeatureTable], Float32Array]
# Gives the probability of each output for rows, float64 of shape (t, m).
Model = Callable[[FeatureTable], FloatArray]

_PENALTY: Final = 1.0
# Parts of a release, each of which judges the losses on rows that they did not see.
_PARTS: Final = 3
# The least probability in a loss on other rows.
_LEAST: Final = 1e-6
_NUMERIC_LOSSES: Final = (None, "squared", "poisson")
# Batches that a convolutional network is trained on; at least 3 and at most 30 epochs.
_IMAGE_BATCHES: Final = 1_500


@dataclass(frozen=True)
class Answers:
    """What a model of classes says of t rows.

    Attributes
    ----------
    codes : int32 array of shape (t,)
        The likeliest class; −1 for an output that is no class.
    probability : float64 array of shape (t, k)
        Of each class.
    correction : LossCorrection
    """

    codes: IntArray
    probability: FloatArray
    correction: LossCorrection


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

    def classes(self, release: Release, rows: FeatureTable, rng: np.random.Generator) -> Answers:
        """Return what a model trained on a release says of t other rows.

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
        if correction.name == "unbiased" and self.model in ("logistic", "network"):
            correction = self._for_double(release, correction, rng)
        outputs = release.classes if correction.name else release.outputs
        found = self._fitted(release, correction, rng)(rows)
        if self.model == "iwp" and not self.true:
            correction = replace(correction, words=IWP)
        # An output means the class of the same name.
        places = np.array([_place(release.classes, output) for output in outputs], dtype=np.int32)
        probability = np.zeros((len(found), len(release.classes)))
        for place, shares in zip(places, found.T, strict=True):
            if place >= 0:
                probability[:, place] += shares
        codes = np.asarray(places[found.argmax(axis=1)], dtype=np.int32)
        return Answers(codes, probability, self._said(correction, release))

    def _for_double(
        self, release: Release, unbiased: LossCorrection, rng: np.random.Generator
    ) -> LossCorrection:
        """Return the loss of double RR that does better, by the unbiased log-loss of other rows.

        The unbiased loss has a large variance where λ is large. Its first term alone takes
        synthetic rows for real ones.
        """
        double = cast(Mechanism, unbiased.noise).offers(SyntheticFeatures)
        assert double is not None
        assert release.synthetic is not None
        first = LossCorrection(double.label_channel, "backward", FIRST_TERM)
        losses, synthetic = np.zeros(2), release.synthetic
        parts = rng.permutation(len(release)) % _PARTS
        drawn = rng.permutation(len(synthetic.labels)) % _PARTS
        for part in range(_PARTS):
            table = replace(
                synthetic,
                features=synthetic.features.take(np.flatnonzero(drawn != part)),
                labels=synthetic.labels[drawn != part],
            )
            others = replace(release.take(np.flatnonzero(parts != part)), synthetic=table)
            rows, kept = np.flatnonzero(parts == part), drawn == part
            try:
                targets = double_targets(release.released[rows], synthetic.labels[kept], double)
            except InputError:  # A label without synthetic rows in this part.
                return unbiased
            for place, correction in enumerate((unbiased, first)):
                model = self._fitted(others, correction, rng)
                tables = (release.features.take(rows), synthetic.features.take(kept))
                for weights, features in zip(targets, tables, strict=True):
                    log = np.log(np.clip(model(features), _LEAST, 1.0))
                    losses[place] -= (weights * log).sum()
        return (unbiased, first)[int(losses.argmin())]

    def _fitted(
        self, release: Release, correction: LossCorrection, rng: np.random.Generator
    ) -> Model:
        """Return a model trained on a release: rows to P(output), float64 of shape (t, m)."""
        if self.model == "iwp":
            return self._iwp(release, correction, rng)
        if self.model != "logistic":
            return self._learnt(release, correction, rng)
        table, asked = self._tables(release)
        if self.beside is not None and self._way(release) == "together":
            return _mixture(table, asked, self.beside)
        return _logistic(release, table, asked, correction)

    def _iwp(self, release: Release, correction: LossCorrection, rng: np.random.Generator) -> Model:
        if (correction.noise is None and not self.true) or correction.name == "unbiased":
            raise InputError("The learner 'iwp' needs a declared channel of the label.")
        table, matrix, sigma = self._iwp_table(release)
        model = iwp_model(correction.noise, sigma, table, self.loss, rng)
        model.fit(table, release.released)
        return lambda rows: np.asarray(model.predict_proba(matrix(rows)))

    def _iwp_table(self, release: Release) -> tuple[Float32Array, Matrix, float]:
        """Return the released rows as a matrix, what makes one of others, and σ of the noise."""
        sigma = feature_noise(from_declaration(release.declaration, release.classes), release)
        matrix = as_released if sigma else self.matrix(release.features)
        # True labels may come with clean features, which then have no noise.
        clean = self.true and release.features is release.original
        return matrix(release.features), matrix, 0.0 if clean else sigma

    def _learnt(
        self, release: Release, correction: LossCorrection, rng: np.random.Generator
    ) -> Model:
        from ldpaudit.learners import ReleaseClassifier

        matrix, (table, asked) = self.matrix(release.features), self._tables(release)
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
        m = len(release.classes if correction.name else release.outputs)

        def model(rows: FeatureTable) -> FloatArray:
            found = np.zeros((len(rows), m))
            found[:, learner.classes_] = learner.predict_proba(asked(rows))
            return found

        return model

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
        losses = (None, "squared", "quadratic") if self.model == "iwp" else _NUMERIC_LOSSES
        if self.loss not in losses:
            raise InputError(
                f"The loss {self.loss!r} does not belong to the learner {self.model!r} of numbers."
            )
        table, asked = self._tables(release)
        correction = LossCorrection(None, None, TRUE)
        if not self.true:
            claim = from_declaration(release.declaration, ())
            correction = bias_correction(claim, released, table.shape[1])
        if self.model == "iwp":
            return self._iwp_numbers(release, rows, correction, rng)
        loss: Any = self.loss or "squared"
        if loss == "poisson":
            words = correction.words.replace("squared loss", "Poisson loss")
            correction = replace(correction, words=words)
        learner = ReleaseRegressor(
            correction.noise,
            model="linear" if self.model == "logistic" else self.model,
            correction=correction.name,
            loss=loss,
            network=self.network(release.features),
            random_state=rng,
        )
        learner.fit(table, released)
        return learner.predict(asked(rows)), self._said(correction, release)

    def _iwp_numbers(
        self,
        release: Release,
        rows: FeatureTable,
        correction: LossCorrection,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, LossCorrection]:
        """Return a linear model's numbers; labels are scaled to [−1, 1], as its ball needs."""
        assert release.numeric is not None
        released = release.numeric.released
        noise = correction.noise if correction.name else None
        targets = released if noise is None else debiased_labels(released, noise)
        low, high = float(np.min(targets)), float(np.max(targets))
        centre, half = (high + low) / 2, max((high - low) / 2, 1e-12)
        table, matrix, sigma = self._iwp_table(release)
        model = iwp_model(None, sigma, table, "squared", rng)
        model.fit(table, (targets - centre) / half)
        words = correction.words if self.true else f"{correction.words}; {IWP}"
        found = centre + half * np.asarray(model.predict(matrix(rows)))
        return found, self._said(replace(correction, words=words), release)

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

    def _tables(self, release: Release) -> tuple[Float32Array, Matrix]:
        """Return the matrix of the released rows, and what makes one of the test rows."""
        matrix, way, beside = self.matrix(release.features), self._way(release), self.beside
        table = matrix(release.features)
        if beside is None or way in ("left out", "together"):
            return table, matrix

        def wide(rows: FeatureTable) -> Float32Array:
            return _widened(matrix(rows), beside.test_block(len(rows)))

        if way == "expanded":
            from ldpaudit.models.noisy_columns import expanded

            return expanded(table, beside.combinations.astype(np.float32)), wide
        if way == "posterior":
            return _widened(table, beside.posterior(release.features)), wide
        return _widened(table, beside.at_their_word()), wide

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


def _mixture(table: Float32Array, asked: Matrix, beside: OtherColumns) -> Model:
    """Return a logistic model of all columns that were released together."""
    from ldpaudit.models.noisy_columns import fit_mixture, prior

    assert beside.together is not None
    others = [prior(table, one, _PENALTY) for one in beside.likelihoods]
    model = fit_mixture(table, others, beside.together, beside.combinations, _PENALTY)
    return lambda rows: model.predict(_widened(asked(rows), beside.test_block(len(rows))))


def _logistic(
    release: Release, table: Float32Array, asked: Matrix, correction: LossCorrection
) -> Model:
    """Return a ridge-penalised logistic model, fitted in single precision.

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

    noise = correction.noise
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
    return lambda rows: np.asarray(model.predict(asked(rows)), dtype=np.float64)


def _place(classes: tuple[Any, ...], output: Any) -> int:
    return classes.index(output) if output in classes else -1


def _filled(design: DesignMatrix | BoostingMatrix) -> Matrix:
    def matrix(features: FeatureTable) -> Float32Array:
        table = design.transform(features)
        # Of a release without features only the labels' shares can be learnt.
        return table if table.shape[1] else np.zeros((len(features), 1), dtype=np.float32)

    return matrix
