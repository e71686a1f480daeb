"""What a release is still good for: a learner trained on it, tested on rows held out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.device import DeviceName, torch_device
from ldpaudit.encoding import DesignMatrix
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.estimators.renyi.discriminators.discriminator import is_image
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.response.double_rr import DoubleRR
from ldpaudit.randomness import child_generator
from ldpaudit.release import FeatureTable, FloatArray, Release, SyntheticTable, joined
from ldpaudit.result import Estimate

ACCURACY: Final = "test_accuracy"
ERROR: Final = "test_mse"
_IMAGE_BATCHES: Final = 1_500
"""Batches that a convolutional network is trained on; at least 3 and at most 30 epochs."""

Design = Callable[[FeatureTable], FloatArray]


@dataclass(frozen=True)
class Learner:
    """What learns from a release, and how sure its score has to be.

    Attributes
    ----------
    kind : {"linear", "network"}
    device : str
    level : float
        Confidence of the score's interval.
    seed : int
    """

    kind: str
    device: DeviceName
    level: float
    seed: int

    def network(self, features: FeatureTable) -> Any:
        """Return the network's options: a convolutional one where rows are square images."""
        from ldpaudit.learners.network import NetworkOptions

        if self.kind != "network":
            return None
        options = NetworkOptions(device=torch_device(self.device))
        if not _is_image(features):
            return options
        epochs = int(np.clip(_IMAGE_BATCHES * options.batch_size // len(features), 3, 30))
        return replace(options, architecture="convolutional", epochs=epochs)

    def design(self, features: FeatureTable) -> Design:
        """Return what makes a matrix of rows: pixels as they are where a network sees images."""
        if self.kind == "network" and _is_image(features):
            return _pixels
        design = DesignMatrix.fit(features)

        def matrix(rows: FeatureTable) -> FloatArray:
            made = design.transform(rows).astype(np.float64)
            # A column of zeros where no feature says anything.
            return made if made.shape[1] else np.zeros((len(rows), 1))

        return matrix

    def rng(self) -> np.random.Generator:
        """Return where the learner's randomness comes from."""
        return child_generator(self.seed, "sweep", "learner")


def score_classifier(
    release: Release, mechanism: Mechanism | None, test: LabelledRows, learner: Learner
) -> tuple[Estimate, str]:
    """Return the held-out accuracy of a classifier learnt from a release, and its correction.

    Parameters
    ----------
    release : Release
    mechanism : Mechanism or None
        What the loss is corrected for; None for labels that are true.
    test : LabelledRows
        t rows with true labels, coded like the release.
    learner : Learner

    Returns
    -------
    tuple
        The accuracy with its Clopper–Pearson interval, certified for this one classifier, and the
        name of the correction.
    """
    from ldpaudit.learners import ReleaseClassifier

    synthetic = release.synthetic if isinstance(mechanism, DoubleRR) else None
    correction = "none" if mechanism is None else "unbiased" if synthetic else "forward"
    model = ReleaseClassifier(
        mechanism,
        model="network" if learner.kind == "network" else "logistic",
        correction=None if mechanism is None else correction,  # type: ignore[arg-type]
        labels="codes",
        network=learner.network(release.features),
        random_state=learner.rng(),
    )
    design = learner.design(_known(release.features, synthetic))
    extra = {} if synthetic is None else _extra(design, synthetic)
    model.fit(design(release.features), release.released, **extra)
    guesses = model.predict(design(test.features))
    assert test.labels is not None
    correct, n = int((guesses == test.labels).sum()), len(test)
    low, high = clopper_pearson(correct, n, 1 - learner.level)
    estimate = Estimate.interval(
        ACCURACY,
        "Accuracy on test rows",
        correct / n,
        (float(low), float(high)),
        learner.level,
        section="utility",
        unit="proportion",
        n=n,
        count=correct,
        method=f"{model.model} classifier, {correction} correction, on rows held out",
    )
    return estimate, correction


def score_regressor(
    release: Release, test: LabelledRows, bounds: tuple[float, float], learner: Learner
) -> tuple[Estimate, str]:
    """Return the held-out mean squared error of a regressor learnt from a release.

    It regresses on the released number, without a correction: a mechanism without bias needs none,
    and one with bias trades it for less noise on purpose.

    Parameters
    ----------
    release : Release
        With ``numeric`` labels.
    test : LabelledRows
        t rows with their true ``numbers``.
    bounds : tuple of float
        The declared range; guesses are clipped to it, so that squared errors are bounded.
    learner : Learner
    """
    from ldpaudit.learners import ReleaseRegressor

    assert release.numeric is not None
    assert test.numbers is not None
    model = ReleaseRegressor(
        None,
        model="network" if learner.kind == "network" else "linear",
        correction=None,
        network=learner.network(release.features),
        random_state=learner.rng(),
    )
    design = learner.design(release.features)
    model.fit(design(release.features), release.numeric.released)
    guesses = np.clip(model.predict(design(test.features)), *bounds)
    truth = np.clip(test.numbers, *bounds)
    return _squared_error((guesses - truth) ** 2, bounds, learner), "none"


def _squared_error(errors: FloatArray, bounds: tuple[float, float], learner: Learner) -> Estimate:
    """Return the mean of squared errors with a certified interval, half of 1 − level a side."""
    tail, most = (1 - learner.level) / 2, (bounds[1] - bounds[0]) ** 2
    low, high = (
        end(errors, tail, 0.0, most, rng=learner.rng()) for end in (mean_lower, mean_upper)
    )
    value = float(errors.mean())
    return Estimate.interval(
        ERROR,
        "Squared error on test rows",
        value,
        (min(low, value), max(high, value)),
        learner.level,
        section="utility",
        unit="squared label units",
        n=len(errors),
        method=f"{learner.kind} regressor of the released number, on rows held out",
    )


def _known(features: FeatureTable, synthetic: SyntheticTable | None) -> FeatureTable:
    return features if synthetic is None else joined(features, synthetic.features)


def _extra(design: Design, synthetic: SyntheticTable) -> dict[str, Any]:
    return {"synthetic": design(synthetic.features), "synthetic_labels": synthetic.labels}


def _is_image(features: FeatureTable) -> bool:
    return is_image(features.width, np.arange(features.width) >= features.numeric.shape[1])


def _pixels(features: FeatureTable) -> FloatArray:
    return np.nan_to_num(features.numeric).astype(np.float64)
