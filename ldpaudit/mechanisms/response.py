"""Mechanisms that keep a label or draw another: randomized response and its relatives; matrices."""

# k-ary randomized response has two parametrisations. ε form: keep the label with probability
# e^ε/(e^ε + k − 1), else one of the k − 1 others. λ form: keep it with probability 1 − λ, else draw
# uniformly from all k labels. The two agree with ε = log(1 + k(1 − λ)/λ) and λ = k/(k − 1 + e^ε).
# For two labels the probability of a flip is λ/2.

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from ldpaudit.errors import InputError, refuse
from ldpaudit.mechanisms.channel import Channel, step_rows
from ldpaudit.mechanisms.exact_sampling import Randomness, randomized_response
from ldpaudit.mechanisms.finite import (
    Family,
    FiniteMechanism,
    Made,
    check_codes,
    noise_on,
)
from ldpaudit.mechanisms.interface import (
    CLASSES,
    PRIOR,
    RESPONSE,
    SYNTHETIC,
    Mechanism,
    Proposal,
    Traits,
)
from ldpaudit.mechanisms.label_range import Loss
from ldpaudit.mechanisms.parameters import (
    Parameter,
    check_classes,
    check_epsilon,
    check_list,
    check_prior,
    check_proportion,
    either_epsilon,
    only_known,
    real,
)
from ldpaudit.release import FloatArray, IntArray, Label
from ldpaudit.result import Estimate
from ldpaudit.work.limits import CHANNEL_CELLS

# The remark of mechanisms that do not release the features unchanged.
LABEL_ONLY: Final = "ε, δ(ε) and the Rényi curve are the label's, with its features taken as known."


def epsilon_of_lambda(noise: float, k: int) -> float:
    """Return ε = log(1 + k(1 − λ)/λ) in nats for λ in [0, 1] and k labels (∞ at λ = 0).

    References
    ----------
    Busa-Fekete et al. (2023), section 8.1; at λ = 0.01, k = 2 it is log 199 = 5.29 (the paper
    prints 5.19).

    Examples
    --------
    >>> from ldpaudit.mechanisms import epsilon_of_lambda
    >>> round(epsilon_of_lambda(0.5, 2), 6)  # log 3
    1.098612
    """
    if not 0 <= noise <= 1:
        raise InputError(f"The 'lambda' parameter must lie in [0, 1]. Got {noise!r} instead.")
    return math.inf if noise == 0 else math.log1p(k * (1 - noise) / noise)


def lambda_of_epsilon(epsilon: float, k: int) -> float:
    """Return λ = k/(k − 1 + e^ε) for ε > 0 in nats and k labels (0 at ε = ∞)."""
    if not epsilon > 0:
        raise InputError(f"The 'epsilon' parameter must be above 0. Got {epsilon!r} instead.")
    return k * math.exp(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))


def conditional_rdp_floor(alpha: float, noise: float, k: int) -> float:
    """Return a lower bound on the Rényi label-DP with conditional features at order α > 1, in nats.

    α/(α − 1) · log(1 + (1 − λ)k/λ) − log(k/λ)/(α − 1), for λ and k labels.

    Busa-Fekete et al. (2023), Theorem 7.2.
    """
    if not alpha > 1:
        raise InputError(f"The order alpha must be above 1, got {alpha}.")
    epsilon = epsilon_of_lambda(noise, k)
    if math.isinf(alpha) or noise == 0:
        return epsilon
    return max((alpha * epsilon - math.log(k / noise)) / (alpha - 1), 0.0)


class Kept(Made):
    """What keeps a label with probability 1 − λ, else draws one of all k, by closed forms."""

    classes: tuple[Label, ...]
    noise: float

    @property
    def epsilon(self) -> float:
        return epsilon_of_lambda(self.noise, len(self.classes))

    @property
    def keep_probability(self) -> float:
        """P(released = true) for every label: 1 − λ + λ/k."""
        return float(1 - self.noise + self.noise / len(self.classes))

    @cached_property
    def compared(self) -> Channel:
        """The law of two labels' outputs: the one, the other, any third one."""
        return step_rows(self.epsilon, 1 - self.noise)

    def parametrisations(self) -> dict[str, float]:
        return super().parametrisations() | {"lambda": float(self.noise)}

    def conditional_rdp_floor(self, alpha: float) -> float | None:
        if self.traits.features in ("unchanged", "noisy"):
            return None
        return conditional_rdp_floor(alpha, self.noise, len(self.classes))


class Response(Kept, FiniteMechanism):
    """Randomized response over ``classes`` with noise λ."""

    def exact_estimates(self) -> Iterator[Estimate]:
        yield Estimate.exact(
            "mechanism.lambda",
            "λ, the probability of drawing the label again",
            self.noise,
            unit="proportion",
            method="λ form: the probability of drawing the label again, uniformly from all labels",
            reference="Busa-Fekete et al. (2023), section 8.1: λ = k/(k − 1 + e^ε)",
        )
        yield Estimate.exact(
            "mechanism.keep_probability",
            "Probability that the released label is the true one",
            self.keep_probability,
            unit="proportion",
            method="ε form: the probability that the released label is the true one",
            reference="Ghazi et al. (2021): e^ε/(e^ε + k − 1)",
        )
        if len(self.classes) == 2:
            yield Estimate.exact(
                "mechanism.binary_flip",
                "Probability of a flip, λ/2",
                self.noise / 2,
                unit="proportion",
                method="the probability that the released label is the other one, λ/2",
            )

    def sample(self, labels: IntArray, rng: Randomness = None) -> IntArray:
        codes = check_codes(labels, len(self.classes))
        return randomized_response(codes, self.noise, len(self.classes), rng)


class ResponseFamily(Family):
    """Families of randomized response: stated by ``lambda``, ``epsilon`` or both, which agree."""

    if TYPE_CHECKING:

        def __call__(self, *values: Any, **named: Any) -> Response:
            """Build a mechanism from its labels and λ in [0, 1], and further parameters."""

    def from_epsilon(self, classes: Sequence[Label], epsilon: float) -> Response:
        """Build the one on some labels at ε > 0 in nats."""
        return self(tuple(classes), lambda_of_epsilon(epsilon, len(classes)))

    def from_parameters(
        self, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> Mechanism:
        only_known(parameters, {"epsilon", *(p.name for p in self.parameters)}, self.traits.name)
        k = len(check_classes(parameters.get("classes") or classes))
        stated = {key: value for key, value in parameters.items() if key != "epsilon"}
        return super().from_parameters(stated | {"lambda": _noise(parameters, k)}, classes)


def _noise(parameters: Mapping[str, Any], k: int) -> float:
    epsilon = either_epsilon(
        parameters,
        "lambda",
        lambda noise: epsilon_of_lambda(noise, k),
        "Randomized response",
        f" on {k} labels",
    )
    noise = real(parameters, "lambda")
    return lambda_of_epsilon(epsilon, k) if noise is None else noise


def response_channel(classes: tuple[Label, ...], noise: float, **_: Any) -> Channel:
    """Return (1 − λ)I + (λ/k)11ᵀ."""
    k = len(classes)
    return Channel((1 - noise) * np.eye(k) + noise / k, classes, classes)


def described(m: Response) -> str:
    """Return both parametrisations of randomized response in words."""
    return (
        f"randomized response on {len(m.classes)} labels: λ = {m.noise:.6g}, ε = {m.epsilon:.6g} "
        f"nats, released label true with probability {m.keep_probability:.6g}"
    )


RESPONSE_PARAMETERS: Final = (
    Parameter("classes", check_classes),
    Parameter("lambda", partial(check_proportion, "lambda"), "noise"),
)
RandomizedResponse: Final[ResponseFamily] = ResponseFamily(
    traits=Traits(
        name="randomized-response",
        title="randomized response",
        labels="classes",
        outputs="labels",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=RESPONSE,
        stated_by=("epsilon", "lambda"),
        whole=True,
        needs=frozenset(),
    ),
    parameters=RESPONSE_PARAMETERS,
    channel=response_channel,
    describe=described,
    kind=Response,
    designs={"": lambda p: Proposal(RandomizedResponse.from_epsilon(p.labels.classes, p.epsilon))},
)
"""Randomized response: ``RandomizedResponse(classes, noise)`` with λ in [0, 1], the probability of
drawing the label anew, uniformly from all k; or ``RandomizedResponse.from_epsilon(classes, ε)``."""


DummyFeaturesRR: Final = ResponseFamily(
    traits=replace(
        RandomizedResponse.traits,
        name="dummy-features-rr",
        title="randomized response with dummy features",
        features="withheld",
        options=(*RESPONSE, *SYNTHETIC),
    ),
    parameters=RESPONSE_PARAMETERS,
    channel=response_channel,
    describe=lambda m: described(m) + ", released without its features",
    kind=Response,
    remarks=(LABEL_ONLY,),
)
"""Randomized response on the label with dummy features: useless for learning, a floor with which to
compare mechanisms that release features (Busa-Fekete et al. 2023, Mechanism 3)."""


class _KeptResponse(FiniteMechanism):
    """RR-Top-k, with its exact ε."""

    @property
    def epsilon(self) -> float:
        return float(self.budget) if len(self.kept) > 1 else 0.0

    def parametrisations(self) -> dict[str, float]:
        return super().parametrisations() | {"lambda": noise_on(len(self.kept), self.epsilon)}

    def worst_rows(self) -> Sequence[int]:
        """Return two kept labels and another one."""
        kept = [self.classes.index(label) for label in self.kept[:2]]
        others = [y for y, label in enumerate(self.classes) if label not in self.kept]
        return kept + others[:1]


def _stay(m: int, budget: float) -> float:
    return 1 / (1 + (m - 1) * math.exp(-budget))


def _kept_channel(classes: tuple[Label, ...], kept: tuple[Label, ...], budget: float) -> Channel:
    stay = _stay(len(kept), budget)
    matrix = np.full((len(classes), len(kept)), 1 / len(kept))
    for y, label in enumerate(classes):
        if label in kept:
            matrix[y] = math.exp(-budget) * stay
            matrix[y, kept.index(label)] = stay
    return Channel(matrix, classes, kept)


def _check_kept(classes: tuple[Label, ...], kept: tuple[Label, ...], **_: Any) -> None:
    if not kept or len(set(kept)) < len(kept):
        raise InputError("There must be at least one kept label, and no label twice.")
    if not set(kept) <= set(classes):
        raise InputError("The kept labels must be among the mechanism's labels.")


def _best_kept(
    classes: tuple[Label, ...],
    prior: FloatArray,
    epsilon: float,
    loss: Loss = "squared",  # noqa: ARG001
) -> FiniteMechanism:
    """Keep the number of most likely labels that makes the released label most often true."""
    # Ghazi et al. (2021), Algorithm 3 (RRWithPrior): m maximises e^ε/(e^ε + m − 1) times the
    # probability of the m most likely labels. Ties go to the smaller m and the earlier label.
    labels = check_classes(classes)
    probabilities = check_prior(prior, len(labels))
    order = np.argsort(-probabilities, kind="stable")
    others = np.arange(len(labels))
    hit = np.cumsum(probabilities[order]) / (1 + others * math.exp(-check_epsilon(epsilon)))
    kept = sorted(order[: int(np.argmax(hit)) + 1])
    made: FiniteMechanism = RandomizedResponseTopK(labels, tuple(labels[y] for y in kept), epsilon)
    return made


RandomizedResponseTopK: Final[Family] = Family(
    traits=replace(
        RandomizedResponse.traits,
        name="rr-top-k",
        title="RR-Top-k",
        options=("epsilon", *CLASSES, *PRIOR),
        stated_by=("epsilon",),
        whole=False,
        needs=frozenset({"prior"}),
    ),
    parameters=(
        Parameter("classes", check_classes),
        Parameter("kept", partial(check_list, "kept labels")),
        Parameter("epsilon", check_epsilon, "budget"),
    ),
    channel=_kept_channel,
    describe=lambda m: (
        f"randomized response on {len(m.kept)} kept labels of {len(m.classes)}: budget "
        f"{m.budget:.6g} nats, ε = {m.epsilon:.6g} nats, a kept label stays with "
        f"probability {_stay(len(m.kept), m.budget):.6g}"
    ),
    kind=_KeptResponse,
    check=_check_kept,
    best=_best_kept,
    designs={"with prior": lambda p: Proposal(_best_kept(p.labels.classes, p.prior, p.epsilon))},
)
"""Randomized response over some kept labels; any other label becomes a random kept one.

A kept label stays with probability e^ε/(e^ε + m − 1) and becomes each other kept label with
probability 1/(e^ε + m − 1), m the number of kept labels; a label that is not kept becomes each kept
one with probability 1/m. Ghazi et al. (2021), Algorithms 2 and 3; Ghazi et al. (2023), appendix G.
"""


def _matrix(value: Any) -> FloatArray:
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("A channel's matrix must be a rectangle of numbers.") from None
    refuse(matrix.size > CHANNEL_CELLS, f"A channel has at most {CHANNEL_CELLS:,} probabilities.")
    return matrix


def _read_matrix(parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Mapping[str, Any]:
    """Check that there is a matrix; its outputs are by default the classes."""
    only_known(parameters, {"classes", "outputs", "matrix"}, "channel")
    if "matrix" not in parameters:
        raise InputError("A declared channel must give its matrix.")
    rows = check_list("classes", parameters.get("classes") or classes)
    outputs = check_list("outputs", parameters.get("outputs") or rows)
    return {**parameters, "classes": rows, "outputs": outputs}


def _described(mechanism: Any) -> str:
    channel = mechanism.channel
    what = f"a declared channel of {len(channel.classes)} labels and {len(channel.outputs)} outputs"
    if not (kept := len(channel.unperturbed)):
        return f"{what}, ε = {channel.epsilon:.6g} nats"
    return (
        f"{what}: ε is infinite, since {kept} label{' is' if kept == 1 else 's are'} unperturbed; "
        f"among the other labels ε = {channel.epsilon_of_others:.6g} nats"
    )


CHANNEL: Final = Family(
    traits=replace(
        RandomizedResponse.traits,
        name="channel",
        title="the declared channel",
        options=("channel",),
        stated_by=(),
        whole=False,
        needs=frozenset({"matrix"}),
    ),
    parameters=(Parameter("classes"), Parameter("outputs"), Parameter("matrix", _matrix)),
    channel=lambda classes, outputs, matrix: Channel(matrix, classes, outputs),
    describe=_described,
    check=lambda classes, outputs, matrix: Channel(matrix, classes, outputs),
    read=_read_matrix,
    tolerance=1e-12,
)
"""A label channel declared entry by entry."""


class ExplicitChannel(FiniteMechanism):
    """A label channel given as it is.

    Parameters
    ----------
    channel : Channel
        The probability of each output for each true label.

    Examples
    --------
    >>> import numpy as np
    >>> from ldpaudit.mechanisms import Channel, ExplicitChannel
    >>> matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> round(ExplicitChannel(Channel(matrix, (0, 1), (0, 1))).epsilon, 6)
    1.098612
    """

    traits = CHANNEL.traits

    def __init__(self, channel: Channel) -> None:
        values = {"classes": channel.classes, "outputs": channel.outputs, "matrix": channel.matrix}
        super().__init__(CHANNEL, values)


@dataclass(frozen=True)
class UnknownMechanism(Mechanism):
    """The mechanism where nothing is claimed: no ε, no channel."""

    traits = replace(
        RandomizedResponse.traits,
        name="unknown",
        title="an unknown mechanism",
        outputs="unknown",
        features="unknown",
        options=(),
        stated_by=(),
    )
    epsilon = None
    channel = None
    description = "an undeclared mechanism"

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[str, Any],  # noqa: ARG003
        classes: tuple[Label, ...],  # noqa: ARG003
    ) -> Self:
        return cls()
