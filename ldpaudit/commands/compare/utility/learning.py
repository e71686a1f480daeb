"""What a user of a release would train: a model of the true label, corrected for the mechanism."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.commands.compare.reading import ReleaseInput
from ldpaudit.commands.compare.request import Model
from ldpaudit.encoding import BoostingMatrix, DesignMatrix
from ldpaudit.errors import InputError
from ldpaudit.learners.noise_model import Noise
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.response.double_rr import DoubleRR
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IntArray

_RAW: Final = "released labels taken at their word: no correction is known for the mechanism"
_FORWARD: Final = "log-loss through the declared channel"
_UNBIASED: Final = "unbiased log-loss of double randomized response, with its synthetic rows"
_LABEL_ONLY: Final = (
    "log-loss through the label's channel; synthetic rows taken for real ones, since the synthetic "
    "table is not given (--synthetic)"
)


@dataclass(frozen=True)
class Correction:
    """How a learner is told of the mechanism.

    Attributes
    ----------
    noise : Channel, DoubleRR or None
    name : {"forward", "unbiased"} or None
    words : str
        For people.
    """

    noise: Noise | None
    name: Any
    words: str


def correction_for(item: ReleaseInput) -> Correction:
    """Return the correction that fits the declared mechanism.

    Raises
    ------
    InputError
        If the claim's labels are not those of the release.
    """
    release = item.release
    claim = from_declaration(release.declaration, release.classes)
    if isinstance(claim, DoubleRR) and release.synthetic is not None:
        return Correction(DoubleRR(release.classes, claim.noise), "unbiased", _UNBIASED)
    channel = aligned_channel(AuditContext(release, claim, Plan(seed=0)))
    if channel is None:
        return Correction(None, None, _RAW)
    words = _LABEL_ONLY if isinstance(claim, DoubleRR) else _FORWARD
    return Correction(channel, "forward", words)


def predicted_classes(item: ReleaseInput, model: Model, rng: np.random.Generator) -> IntArray:
    """Return the class that a model trained on the release predicts for each test row.

    Parameters
    ----------
    item : ReleaseInput
        With test rows.
    model : {"logistic", "boosting", "network"}
    rng : numpy.random.Generator

    Returns
    -------
    int32 array of shape (t,)
        Codes into the release's classes.

    Raises
    ------
    InputError
        If the model cannot be trained under the mechanism.
    """
    assert item.test is not None
    release, correction = item.release, correction_for(item)
    outputs = release.classes if correction.name else release.outputs
    if model == "logistic":
        codes = _linear(item, correction)
    else:
        codes = _learnt(item, correction, model, rng)
    # At their word: an output stands for the class of the same name.
    places = np.array([_place(release.classes, output) for output in outputs], dtype=np.int32)
    return np.asarray(places[codes], dtype=np.int32)


def _linear(item: ReleaseInput, correction: Correction) -> IntArray:
    from ldpaudit.commands.compare.utility.linear import fit_linear

    assert item.test is not None
    release, double = item.release, None
    matrix = _Matrix.fit(release.features, "logistic")
    channel = Channel(np.eye(len(release.outputs)), release.outputs, release.outputs)
    if isinstance(correction.noise, Channel):
        channel = correction.noise
    elif isinstance(correction.noise, DoubleRR) and release.synthetic is not None:
        channel = correction.noise.label_channel
        rows = matrix.of(release.synthetic.features)
        double = correction.noise, rows, release.synthetic
    model = fit_linear(
        matrix.of(release.features), release.released, channel, correction.name, double
    )
    posterior = model.predict(matrix.of(item.test.features))
    return np.asarray(posterior.argmax(axis=1), dtype=np.int32)


def _learnt(
    item: ReleaseInput, correction: Correction, model: Model, rng: np.random.Generator
) -> IntArray:
    from ldpaudit.learners import ReleaseClassifier

    assert item.test is not None
    release = item.release
    matrix = _Matrix.fit(release.features, model)
    learner = ReleaseClassifier(
        correction.noise,
        model=model,
        correction=correction.name,
        labels="codes",
        random_state=rng,
    )
    more: dict[str, Any] = {}
    if correction.name == "unbiased" and release.synthetic is not None:
        more["synthetic"] = matrix.of(release.synthetic.features)
        more["synthetic_labels"] = release.synthetic.labels
    learner.fit(matrix.of(release.features), release.released, **more)
    return np.asarray(learner.predict(matrix.of(item.test.features)), dtype=np.int32)


def predicted_numbers(
    item: ReleaseInput, model: Model, rng: np.random.Generator
) -> tuple[FloatArray, str]:
    """Return the number that a model predicts for each test row, and how it was corrected.

    Returns
    -------
    float64 array of shape (t,), str
    """
    from ldpaudit.learners import ReleaseRegressor

    assert item.test is not None
    release = item.release
    assert release.numeric is not None
    claim = from_declaration(release.declaration, ())
    matrix = _Matrix.fit(release.features, model)
    kind: Any = "linear" if model == "logistic" else model
    learner = ReleaseRegressor(claim, model=kind, random_state=rng)
    words = "squared loss, unbiased under the declared mechanism"
    rows = matrix.of(release.features)
    try:
        learner.fit(rows, release.numeric.released)
    except InputError:
        learner = ReleaseRegressor(None, model=kind, correction=None, random_state=rng)
        learner.fit(rows, release.numeric.released)
        words = "squared loss of the released number as it is: it cannot be made unbiased"
    return learner.predict(matrix.of(item.test.features)), words


def _place(classes: tuple[Any, ...], output: Any) -> int:
    return classes.index(output) if output in classes else -1


@dataclass(frozen=True)
class _Matrix:
    """Feature tables as the learner's matrices, fitted on the release alone."""

    design: DesignMatrix | BoostingMatrix

    @classmethod
    def fit(cls, features: FeatureTable, model: Model) -> "_Matrix":
        kind = BoostingMatrix if model == "boosting" else DesignMatrix
        return cls(kind.fit(features))

    def of(self, features: FeatureTable) -> Float32Array:
        matrix = self.design.transform(features)
        # A release without features is learnt from by its labels' shares alone.
        return matrix if matrix.shape[1] else np.zeros((len(features), 1), dtype=np.float32)
