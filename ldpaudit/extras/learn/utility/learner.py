"""What a user of a release would train: a model of the true label, corrected for the mechanism."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from ldpaudit.device import DeviceName, torch_device
from ldpaudit.doors import (
    AuditContext,
    Channel,
    FeatureTable,
    FloatArray,
    InputError,
    IntArray,
    Mechanism,
    NoisyFeatures,
    Plan,
    Release,
    SyntheticFeatures,
    aligned_channel,
    family,
    from_declaration,
    refuse,
)
from ldpaudit.extras.learn.corrections import (
    Noise,
    debiased_labels,
    double_targets,
    label_targets,
    unbiased_values,
)
from ldpaudit.extras.learn.utility import LearnerKind
from ldpaudit.extras.learn.utility.companions import OtherColumns, Way, row_likelihood
from ldpaudit.mechanisms import ExplicitChannel
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.models.encoding import BoostingMatrix, DesignMatrix, pixels
from ldpaudit.release import Float32Array

Matrix = Callable[[FeatureTable], Float32Array]  # Makes a matrix of rows.
Model = Callable[[FeatureTable], FloatArray]  # P(output) of rows, float64 of shape (t, m).

_TRUE: Final = "the true labels"
_RAW: Final = "released labels taken at their word: no correction is known for the mechanism"
_FORWARD: Final = "log-loss through the declared channel"
_STRATA: Final = "log-loss through the declared channels of the strata"
_AVERAGED: Final = "log-loss through the average of the strata's declared channels"
_UNBIASED: Final = "unbiased log-loss of double randomized response, with its synthetic rows"
_FIRST_TERM: Final = (
    "the first term of the unbiased log-loss of double randomized response, which does better on "
    "rows held out than the whole loss"
)
_LABEL_ONLY: Final = (
    "log-loss through the label's channel; synthetic rows taken for real ones, since the synthetic "
    "table is not given (--synthetic)"
)
_SQUARED: Final = "squared loss, unbiased under the declared mechanism"
_NO_INVERSE: Final = "squared loss of the released number, whose bias cannot be undone"
_NO_GAIN: Final = "squared loss of the released number: undoing its bias would add more error"
_IWP: Final = "inverse-Weierstrass loss of the declared mechanism"
_PENALTY: Final = 1.0
# Of boosted trees.
_ROUNDS: Final = 100
# Parts of a release, each of which judges the losses on rows that they did not see.
_PARTS: Final = 3
# The least probability in a loss on other rows.
_LEAST: Final = 1e-6
# Batches that a convolutional network is trained on; at least 3 and at most 30 epochs.
_IMAGE_BATCHES: Final = 1_500
_IWP_LOSSES: Final = ("quadratic", "exponential", "log")
_IWP_SETTINGS: Final = {"ridge": 0.01, "epochs": 3, "average": True}
_IWP_RADIUS: Final = 5.0
# The ball is so small that a step's slope has at most this error, in units of its variance.
_IWP_ERROR: Final = 0.03
_LARGEST_STEP: Final = 0.05
# How much of the constant answer is tried; and the size of soft labels from which it is.
_SHRINKAGES: Final = np.linspace(0.0, 1.0, 11)
_HEAVY: Final = 3.0


@dataclass(frozen=True)
class LossCorrection:
    """How the loss takes the mechanism into account; ``words`` say it to people."""

    noise: Noise | None
    name: Any
    words: str
    likelihood: FloatArray | None = None
    """P(released | y) of each row, where rows have channels of their own."""


def correction_for(release: Release) -> LossCorrection:
    """Return the correction of a loss of classes that fits the declared mechanism."""
    # The claim's labels must be those of the release (InputError).
    claim = from_declaration(release.declaration, release.classes)
    double, strata = claim.offers(SyntheticFeatures), claim.offers(LabelByStratum)
    if double is not None and release.synthetic is not None:
        stated = {**double.declaration(), "classes": list(release.classes)}
        ordered = family(double.name).from_parameters(stated, ()).offers(SyntheticFeatures)
        return LossCorrection(ordered, "unbiased", _UNBIASED)
    likelihood, words = None, _FORWARD if double is None else _LABEL_ONLY
    if strata is not None and release.strata is not None:
        shares = np.bincount(release.strata.codes, minlength=release.strata.count) / len(release)
        likelihood, words = row_likelihood(release, claim), _STRATA
        claim = ExplicitChannel(strata.averaged(shares))
    channel = aligned_channel(AuditContext(release, claim, Plan(seed=0)))
    if channel is None and likelihood is None:
        return LossCorrection(None, None, _RAW)
    return LossCorrection(channel, "forward", words, likelihood)


def bias_correction(claim: Mechanism, released: FloatArray, columns: int) -> LossCorrection:
    """Return the correction of a squared loss that fits a mechanism on numbers.

    Undoing a bias adds variance. A linear model with p ``columns`` on n rows averages over rows:
    the variance of its labels enters its error p/n times, their squared bias whole. So a bias is
    undone where that lowers the sum, at the mechanism's exact bias and variance of the
    ``released`` labels, float64 of shape (n,).
    """
    claim = claim.after_rounding
    try:
        debiased_labels(released, claim)
    except InputError:
        return LossCorrection(None, None, _NO_INVERSE)
    errors, channel = label_errors(claim), claim.channel
    if channel is not None and errors is not None and not errors.unbiased:
        added = channel.matrix @ unbiased_values(channel) ** 2 - errors.labels**2 - errors.variance
        gain, order = errors.bias**2 - columns / len(released) * added, np.argsort(errors.labels)
        if np.interp(released, errors.labels[order], gain[order]).mean() <= 0:
            return LossCorrection(None, None, _NO_GAIN)
    return LossCorrection(claim, "unbiased", _SQUARED)


def _constant(release: Release, correction: LossCorrection) -> FloatArray | None:
    """Return the classes' shares that the released labels imply, (k,), None without a channel."""
    noise = correction.noise
    double = (
        None if noise is None or isinstance(noise, Channel) else noise.offers(SyntheticFeatures)
    )
    channel = double.label_channel if double is not None else noise
    if not isinstance(channel, Channel) or correction.likelihood is not None:
        return None
    try:
        targets = label_targets(release.released, channel).mean(axis=0)
    except InputError:  # It has no inverse.
        return None
    shares = np.clip(targets, 1e-6, None)
    return np.asarray(shares / shares.sum())


def _shrunk_losses(found: FloatArray, constant: FloatArray, targets: FloatArray) -> FloatArray:
    """Return the log-loss by soft labels (t, k) of a model mixed with the constant answer, (s,)."""
    mixed = (1 - _SHRINKAGES[:, None, None]) * found + _SHRINKAGES[:, None, None] * constant
    return np.asarray(-(targets * np.log(np.clip(mixed, _LEAST, 1.0))).sum(axis=(1, 2)))


@dataclass(frozen=True)
class Answers:
    """What a model of classes says of t rows."""

    codes: IntArray
    """The likeliest class, int32 of shape (t,), −1 for an output that is no class."""
    probability: FloatArray
    """Of each class, float64 of shape (t, k)."""
    correction: LossCorrection


@dataclass(frozen=True)
class Learner:
    """A learner from releases."""

    model: LearnerKind
    """A network is convolutional where rows are square images."""
    device: DeviceName = "auto"
    """Where the network runs."""
    true: bool = False
    """Whether the "released" labels are the true ones, which need no correction."""
    loss: str | None = None
    """``"poisson"`` for numbers, or a loss of "iwp"; None: the usual one."""
    beside: OtherColumns | None = None
    """The other private columns of the release, which are then no features."""

    def _check_loss(self, *losses: str, kind: str) -> None:
        refuse(
            self.loss is not None and self.loss not in losses,
            f"The loss {self.loss!r} does not belong to the learner {self.model!r} of {kind}.",
        )

    def classes(self, release: Release, rows: FeatureTable, rng: np.random.Generator) -> Answers:
        """Return what a model trained on a release says of t other rows."""
        # InputError if the model cannot be trained under the mechanism.
        self._check_loss(*(_IWP_LOSSES if self.model == "iwp" else ()), kind="classes")
        correction = LossCorrection(None, None, _TRUE) if self.true else correction_for(release)
        constant, weight = None, 0.0
        if correction.name == "unbiased" and self.model in ("logistic", "network"):
            correction, weight = self._for_double(release, correction, rng)
            constant = _constant(release, correction)
        elif correction.name == "forward" and self.model in ("logistic", "network"):
            constant = _constant(release, correction)
            if constant is not None and self._heavy(correction):
                weight = self._shrinkage(release, correction, constant, rng)
        outputs = release.classes if correction.name else release.outputs
        found = self._fitted(release, correction, rng)(rows)
        if constant is not None:
            found = (1 - weight) * found + weight * constant
        if self.model == "iwp" and not self.true:
            correction = replace(correction, words=_IWP)
        # An output means the class of the same name.
        at = {label: place for place, label in enumerate(release.classes)}
        places = np.array([at.get(output, -1) for output in outputs], dtype=np.int32)
        probability = np.zeros((len(found), len(release.classes)))
        for place, shares in zip(places, found.T, strict=True):
            if place >= 0:
                probability[:, place] += shares
        codes = np.asarray(places[found.argmax(axis=1)], dtype=np.int32)
        return Answers(codes, probability, self._said(correction, release))

    def _heavy(self, correction: LossCorrection) -> bool:
        """Return whether undoing the noise makes soft labels so large that a model may fail."""
        channel = correction.noise
        if not isinstance(channel, Channel) or self.beside is not None:
            return False
        return bool(np.abs(channel.inverse).sum(axis=1).max() >= _HEAVY)

    def _shrinkage(
        self,
        release: Release,
        correction: LossCorrection,
        constant: FloatArray,
        rng: np.random.Generator,
    ) -> float:
        """Return how much of the constant answer other rows' unbiased log-loss asks for."""
        channel, parts = cast(Channel, correction.noise), rng.permutation(len(release)) % _PARTS
        losses = np.zeros(len(_SHRINKAGES))
        for part in range(_PARTS):
            model = self._fitted(release.take(np.flatnonzero(parts != part)), correction, rng)
            rows = np.flatnonzero(parts == part)
            targets = label_targets(release.released[rows], channel)
            losses += _shrunk_losses(model(release.features.take(rows)), constant, targets)
        return float(_SHRINKAGES[int(losses.argmin())])

    def _for_double(
        self, release: Release, unbiased: LossCorrection, rng: np.random.Generator
    ) -> tuple[LossCorrection, float]:
        """Return the loss of double RR that does better, by the unbiased log-loss of other rows.

        And how much of the constant answer does best, by the same.
        """
        # The unbiased loss has a large variance where λ is large. Its first term alone takes
        # synthetic rows for real ones.
        double = cast(Mechanism, unbiased.noise).offers(SyntheticFeatures)
        assert double is not None
        assert release.synthetic is not None
        first = LossCorrection(double.label_channel, "backward", _FIRST_TERM)
        constant = _constant(release, first)
        assert constant is not None
        losses, synthetic = np.zeros((2, len(_SHRINKAGES))), release.synthetic
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
                return unbiased, 0.0
            for place, correction in enumerate((unbiased, first)):
                model = self._fitted(others, correction, rng)
                tables = (release.features.take(rows), synthetic.features.take(kept))
                for weights, features in zip(targets, tables, strict=True):
                    losses[place] += _shrunk_losses(model(features), constant, weights)
        # The loss first, by the models as they are; then how far to shrink the better one.
        best = int(losses[:, 0].argmin())
        return (unbiased, first)[best], float(_SHRINKAGES[int(losses[best].argmin())])

    def _fitted(
        self, release: Release, correction: LossCorrection, rng: np.random.Generator
    ) -> Model:
        """Return a model trained on a release: rows to P(output), float64 of shape (t, m)."""
        if self.model == "iwp":
            refuse(
                (correction.noise is None and not self.true) or correction.name == "unbiased",
                "The learner 'iwp' needs a declared channel of the label.",
            )
            table, matrix, sigma = self._iwp_table(release)
            model = iwp_model(correction.noise, sigma, table, self.loss, rng)
            model.fit(table, release.released)
            return lambda rows: np.asarray(model.predict_proba(matrix(rows)))
        way, beside = self._way(release), self.beside
        table, asked = self._tables(release)
        if self.model == "logistic" and way == "together" and beside is not None:
            from ldpaudit.extras.learn.noisy_columns import fit_mixture, prior

            assert beside.together is not None
            others = [prior(table, one, _PENALTY) for one in beside.likelihoods]
            mixed = fit_mixture(table, others, beside.together, beside.combinations, _PENALTY)
            return lambda rows: mixed.predict(_widened(asked(rows), beside.test_block(len(rows))))
        known = self._rows(release, correction, table)
        if self.model == "logistic":
            fitted: Any = _logistic(known)
        else:
            from ldpaudit.extras.learn.learners import fit_model
            from ldpaudit.models.network import NetworkOptions

            network = self.network(release.features) or NetworkOptions()
            fitted = fit_model(known, self.model, _PENALTY, None, _ROUNDS, network, rng)
        return lambda rows: np.asarray(fitted.predict(asked(rows)), dtype=np.float64)

    def _rows(self, release: Release, correction: LossCorrection, table: Float32Array) -> Any:
        """Return the released rows, of a matrix that stands for them, ready for their loss."""
        from ldpaudit.extras.learn.learners import Rows

        noise, rows = correction.noise, cast(Any, table[: len(release)])
        channel = Channel(np.eye(len(release.outputs)), release.outputs, release.outputs)
        double = None if noise is None else noise.offers(SyntheticFeatures)
        if noise is not None:
            channel = cast(Channel, noise) if double is None else double.label_channel
        weights = np.ones(len(release))
        known = Rows.labelled(rows, release.released, weights, channel, correction.name)
        if correction.likelihood is not None and self.model == "logistic":
            known = replace(known, answers=correction.likelihood)
        if correction.name == "unbiased" and double is not None and release.synthetic is not None:
            more: Any = self.matrix(release.features)(release.synthetic.features)
            known = known.with_synthetic(more, release.synthetic.labels, double)
        if self._way(release) == "expanded" and self.beside is not None:
            known = known.repeated(cast(Any, table), self.beside.expanded(release.features))
        return known

    def _iwp_table(self, release: Release) -> tuple[Float32Array, Matrix, float]:
        """Return the released rows as a matrix, what makes one of others, and σ of the noise."""
        # Noise is stated in the units of the features, which are then taken as they are.
        noisy = from_declaration(release.declaration, release.classes).offers(NoisyFeatures)
        features = release.features
        if noisy is None:
            matrix = self.matrix(features)
            return matrix(features), matrix, 0.0
        refuse(
            features.categorical.shape[1] or np.isnan(features.numeric).any(),
            "Noisy features must be numbers without gaps for the learner 'iwp'.",
        )
        # True labels may come with clean features, which then have no noise.
        clean = self.true and features is release.original
        return features.numeric, lambda rows: rows.numeric, 0.0 if clean else float(noisy.sigma)

    def numbers(
        self, release: Release, rows: FeatureTable, rng: np.random.Generator
    ) -> tuple[FloatArray, LossCorrection]:
        """Return the number that a model predicts for each of t other rows, and its correction."""
        from ldpaudit.learners import ReleaseRegressor

        assert release.numeric is not None
        released, iwp = release.numeric.released, self.model == "iwp"
        self._check_loss("squared", "quadratic" if iwp else "poisson", kind="numbers")
        table, asked = self._tables(release)
        correction = LossCorrection(None, None, _TRUE)
        if not self.true:
            claim = from_declaration(release.declaration, ())
            correction = bias_correction(claim, released, table.shape[1])
        if iwp:
            return self._iwp_numbers(release, rows, correction, rng)
        if self.loss == "poisson":
            words = correction.words.replace("squared loss", "Poisson loss")
            correction = replace(correction, words=words)
        learner = ReleaseRegressor(
            correction.noise,
            model=cast(Any, "linear" if self.model == "logistic" else self.model),
            correction=correction.name,
            loss=cast(Any, self.loss or "squared"),
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
        words = correction.words if self.true else f"{correction.words}; {_IWP}"
        found = centre + half * np.asarray(model.predict(matrix(rows)))
        return found, self._said(replace(correction, words=words), release)

    def _way(self, release: Release) -> Way | None:
        """Return how the other private columns are used; None where there are none."""
        if self.beside is None:
            return None
        images = self.model == "network" and _are_images(release.features)
        if images or release.synthetic is not None:
            return "left out"
        if self.true and self.model in ("boosting", "network"):
            return "at their word"
        return self.beside.way(self.model, release.numeric is None)

    def _said(self, correction: LossCorrection, release: Release) -> LossCorrection:
        """Return the correction with what becomes of the other private columns."""
        if correction.likelihood is not None and self.model != "logistic":
            correction = replace(correction, words=_AVERAGED)
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
            from ldpaudit.extras.learn.noisy_columns import expanded

            return expanded(table, beside.combinations.astype(np.float32)), wide
        posterior = way == "posterior"
        block = beside.posterior(release.features) if posterior else beside.at_their_word()
        return _widened(table, block), wide

    def network(self, features: FeatureTable) -> Any:
        """Return the network's options: a convolutional one where rows are square images."""
        if self.model != "network":
            return None
        from ldpaudit.models.network import NetworkOptions

        options = NetworkOptions(device=torch_device(self.device))
        if not _are_images(features):
            return options
        epochs = int(np.clip(_IMAGE_BATCHES * options.batch_size // len(features), 3, 30))
        return replace(options, architecture="convolutional", epochs=epochs)

    def matrix(self, features: FeatureTable) -> Matrix:
        """Return the function to a matrix of rows, fitted on the released features alone."""
        if self.model == "network" and _are_images(features):
            return pixels
        design = (BoostingMatrix if self.model == "boosting" else DesignMatrix).fit(features)

        def matrix(rows: FeatureTable) -> Float32Array:
            table = design.transform(rows)
            # Of a release without features only the labels' shares can be learnt.
            return table if table.shape[1] else np.zeros((len(rows), 1), dtype=np.float32)

        return matrix


def _widened(table: Float32Array, block: FloatArray) -> Float32Array:
    return np.hstack([table, block.astype(np.float32)])


def _logistic(known: Any) -> Any:
    """Return a ridge-penalised logistic model, fitted in single precision."""
    # Its indicators are not standardised: rare levels then count for less, which helps on noisy
    # labels, and fewer steps are needed.
    from ldpaudit.extras.learn.logistic import TargetLoss
    from ldpaudit.models.logistic import ForwardLoss, LogitLoss, Stopping, fit_logistic

    answers = known.answers.astype(np.float32)
    loss: LogitLoss = ForwardLoss(answers) if known.forward else TargetLoss(answers)
    # Further steps move the accuracy on test rows by less than its interval's rounding.
    stopping = Stopping(iterations=300, slope=1e-5, gain=1e-8)
    return fit_logistic(known.matrix, loss, answers.shape[1], _PENALTY, None, stopping)


def iwp_model(
    noise: Any,
    sigma: float,
    matrix: Float32Array,
    loss: str | None,
    rng: np.random.Generator,
) -> Any:
    """Return an unfitted IWP-SGD model, its step and ball small enough for features and noise.

    ``noise``: what released the labels; ``sigma``: σ of the features' noise, 0 without any;
    ``matrix``: released features, of shape (n, d); ``loss``: None is quadratic, "squared" is of
    numbers in [−1, 1].
    """
    from ldpaudit.extras.learn.iwp_losses import LOSSES
    from ldpaudit.learners import IWPClassifier, IWPRegressor

    size = float((matrix.astype(np.float64) ** 2).sum(axis=1).mean())
    settings: dict[str, Any] = {**_IWP_SETTINGS, "step": min(_LARGEST_STEP, 0.5 / (1 + size))}
    settings |= {"sigma": sigma, "random_state": rng, "radius": _IWP_RADIUS}
    chosen: Any = "quadratic" if loss in (None, "squared") else loss
    if sigma > 0:
        batch = IWPClassifier.batch_size
        most = LOSSES[chosen](batch).largest_variance((_IWP_RADIUS * sigma) ** 2, batch, _IWP_ERROR)
        settings["radius"] = math.sqrt(most) / sigma
    if loss == "squared":
        return IWPRegressor(**settings)
    return IWPClassifier(noise, loss=chosen, labels="codes", **settings)


def _are_images(features: FeatureTable) -> bool:
    """Return whether rows are square images of 64 pixels or more, and no other column."""
    side = math.isqrt(features.width)
    return side * side == features.width >= 64 and not features.categorical.shape[1]
