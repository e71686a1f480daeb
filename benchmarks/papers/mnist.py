"""MNIST 0 against 9 under double randomized response: figures 3 and 4 of TDR."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.planted import zero_or_nine
from benchmarks.runner import DATA, Array, Rng, Rows, case, draw, heads
from ldpaudit.attacks.interface import conditioned
from ldpaudit.estimators.discriminators import Kind, fit_discriminator
from ldpaudit.estimators.renyi import Scores, bounds_on, renyi_points, split_scores
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.extras.kinds.synthetic.knowing import by_discriminator, original_share
from ldpaudit.learners import ReleaseClassifier
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.response import DummyFeaturesRR
from ldpaudit.models.network import NetworkOptions
from ldpaudit.release import FeatureTable, SyntheticTable
from ldpaudit.synthesis import generator, load_generator, save_generator

SEED, TABLE_ROWS = 20230723, 6000
ORDERS = (1.5, 2.0, 3.0, 5.0)
OWN = "its own critic, in-sample"


class Images(NamedTuple):
    """Training and test images, float32 of shape (n, 784) in [0, 1]; labels 0 for 0, 1 for 9."""

    x: Array
    y: Array
    test_x: Array
    test_y: Array


def prepared(data: Path, rows: int, kind: str, file: str, device: Any) -> tuple[Images, Any, str]:
    """Return images, a generator that is trained on them or read from its file, and the device."""
    import torch

    torch.set_num_threads(1)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    parts = [
        part[: rows or None] for name in ("train", "test") for part in zero_or_nine(data, name)
    ]
    images = Images(*parts)
    if file and Path(file).exists():
        return images, load_generator(Path(file)), device
    # Steps and not the clock end the training, however busy the machine is.
    made: Any = generator(
        kind, trained_on="private", **({"seconds": 3600.0} if kind == "gan" else {})
    )
    column = pa.FixedSizeListArray.from_arrays(pa.array(images.x.ravel()), 784)
    rng = np.random.default_rng(SEED)
    made.fit(pa.table({"image": column}), images.y, 2, rng=rng, device=device)
    if file:
        save_generator(made, Path(file))
    return images, made, device


def generated(made: Any, labels: Array, rng: Rng) -> Array:
    """Return one synthetic image for each label, float32 of shape (m, 784)."""
    column = made.sample(labels.astype(np.int32), rng)["image"].combine_chunks()
    return np.asarray(column.flatten(), dtype=np.float32).reshape(len(labels), -1)


def as_features(x: Array) -> FeatureTable:
    """Return images as a table of one list column."""
    return FeatureTable(x, np.empty((len(x), 0), dtype=np.int32), (), 1)


def right(posterior: Array, truth: Array) -> float:
    """Return the share of rows whose likeliest label is the true one."""
    return float(np.mean(posterior.argmax(axis=1) == truth))


def crossed(fit: Callable[[Array], Any], x: Array, halves: Array) -> Array:
    """Return P(y | x̃) of each row by a model of the other half, shape (n, 2)."""
    answers = np.empty((len(x), 2))
    for half in (0, 1):
        model = fit(np.flatnonzero(halves != half))
        answers[halves == half] = model.predict_proba(x[halves == half])
    return answers


def measured(images: Images, made: Any, noise: float, network: NetworkOptions) -> dict[str, float]:
    """Release at one λ by both mechanisms, learn, attack."""
    start, rng = time.process_time(), np.random.default_rng([SEED, round(1e6 * noise)])
    halves, truth = rng.permutation(len(images.y)) % 2, images.y
    plain: Any = RandomizedResponse((0, 1), noise)
    double: Any = DoubleRR((0, 1), noise)
    labels = plain.sample(truth, rng)
    table_labels = np.arange(min(TABLE_ROWS, len(truth)), dtype=np.int32) % 2
    table = generated(made, table_labels, rng)
    drawn = double.sample(truth, table_labels, rng)
    x = np.where((drawn.synthetic_rows >= 0)[:, None], table[drawn.synthetic_rows], images.x)

    def learner(
        mechanism: Any, correction: Any, rows: Array, released: Array, **more: Any
    ) -> Callable[[Array], Any]:
        given: Any = {"model": "network", "correction": correction, "labels": "codes"}
        made: Any = ReleaseClassifier(mechanism, network=network, **given)
        return lambda some: clone(made).fit(rows[some], released[some], **more)

    beside = {"synthetic": table, "synthetic_labels": table_labels}
    # Backward corrects for the label's noise alone: under double RR the paper's "first term".
    fits = {
        "RR": (learner(plain, "backward", images.x, labels), images.x),
        "first term": (learner(plain, "backward", x, drawn.labels), x),
        "double": (learner(double, "unbiased", x, drawn.labels, **beside), x),
    }
    found = {
        "λ": noise,
        "flip": noise / 2,
        "released label alone": float(np.mean(drawn.labels == truth)),
    }
    for name, (fit, rows) in fits.items():
        model = fit(np.arange(len(truth)))
        found[f"{name} attack"] = right(model.predict_proba(rows), truth)
        found[f"{name} test"] = right(model.predict_proba(images.test_x), images.test_y)
    found["RR cross"] = right(crossed(fits["RR"][0], images.x, halves), truth)
    posterior = crossed(fits["double"][0], x, halves)
    found["double cross"] = right(posterior, truth)
    others = generated(made, table_labels, rng)
    linear = fit_discriminator(others, x, "logistic", rng=rng)
    originals = {"+ features": np.array(1 - noise)}
    originals["+ generator, linear"] = by_discriminator(linear, noise)(as_features(x))
    for name, known in (("+ generator, network", others), ("+ table", table)):
        held = SyntheticTable(as_features(known), table_labels)
        share = original_share(as_features(x), held, noise, 2, rng)
        originals[name] = share(as_features(x))
    for name, original in originals.items():
        # P(y | x̃, ỹ) ∝ T[y, ỹ] (w η_y(x̃) + (1 − w)/2), w the chance of an original row.
        weight = np.broadcast_to(np.asarray(original), len(posterior))[:, None]
        own = plain.channel.matrix.T[drawn.labels]
        informed = conditioned(weight * posterior + (1 - weight) / 2, own)
        found[name] = right(informed, truth)
    return found | {
        "1 − λ/2": 1 - noise / 2,
        "1 − λ²/2": 1 - noise**2 / 2,
        "s": time.process_time() - start,
    }


ACCURACIES = [f"{way} {what}" for way in ("RR", "double") for what in ("attack", "cross", "test")]
ACCURACIES += ["first term attack", "first term test", "1 − λ/2"]
ATTACKERS = ["released label alone", "+ features", "+ generator, network", "+ generator, linear"]
ATTACKERS += ["+ table", "1 − λ²/2"]


@case(rows=160, noises=(0.4,), kind="mixture", epochs=1)
def papers_tdr_figure_3(
    noises: tuple[float, ...] = (0.1, 0.2, 1 / 3, 0.4, 2 / 3, 0.8),
    rows: int = 0,
    kind: str = "gan",
    epochs: int = 3,
    file: str = "",
    device: str = "auto",
    svg: str = "",
    data: Path = DATA,
) -> Rows:
    """Figure 3 of TDR: label inference and test accuracy on MNIST 0 against 9 over λ.

    A convolutional network is trained on each release with an unbiased loss. Its label-inference
    accuracy is the share of released rows whose true label it predicts from the released features
    alone, in-sample as published; beside it the same cross-fitted, and what attackers reach who
    also look at the released label or know the generator. λ is the chance that a coordinate is
    replaced; for two labels the label then flips with chance λ/2. The paper calls λ a "label
    flipping probability" as well: 2/3 and 0.8 are 1/3 and 0.4 where it is read so. ``--file`` keeps
    the generator.
    """
    images, made, device = prepared(data, rows, kind, file, device)
    network = NetworkOptions("convolutional", epochs=epochs, batch_size=256, device=device)
    points = [measured(images, made, noise, network) for noise in noises]
    yield "Models of the released rows, attacking by the features alone (h(x̃) against y):"
    yield heads("λ|.3f", "flip|.3f", *(f"{name}|.2%" for name in ACCURACIES), "s|.0f")
    for p in points:
        yield p["λ"], p["flip"], *(p[name] for name in ACCURACIES), p["s"]
    yield "Double RR: attackers who look at the released label as well (cross-fitted):"
    yield heads("λ|.3f", *(f"{name}|.2%" for name in ATTACKERS))
    for p in points:
        yield p["λ"], *(p[name] for name in ATTACKERS)
    yield "Judged by the published learner, which drops the loss's second term (that is kept):"
    yield heads("published", "reading of λ", "measured", "holds")
    for reading, scale in (("replacement", 1.0), ("flip", 2.0)):
        meant = [p for p in points if p["λ"] <= 0.4 * scale + 1e-9]
        strong = [p for p in meant if p["λ"] >= scale / 3 - 1e-9]
        if not strong:
            continue
        claims = [("RR attack high for all λ ≤ 0.4 (> 95 %)", [min(p["RR attack"] for p in meant)])]
        tests = [min(p[f"{name} test"] for p in strong) for name in ("first term", "double")]
        claims.append(("double RR test accuracy > 95 % for λ ≥ 1/3", tests))
        for p in meant:
            if abs(p["λ"] - 0.4 * scale) < 1e-9:
                attack = [p["first term attack"], p["double attack"]]
                claims.append(("double RR attack below 65 % at λ = 0.4", attack))
        for words, found in claims:
            holds = found[0] < 0.65 if "below" in words else found[0] > 0.95
            shown = f"{found[0]:.2%}" + "".join(f" ({value:.2%})" for value in found[1:])
            yield words, reading, shown, "yes" if holds else "no"
    attacks = ("RR attack", "first term attack", "double attack", *ATTACKERS[:1], *ATTACKERS[3:5])
    panels = [
        (title, "λ (chance of a replacement)", "accuracy in %", {
            name: (noises, [100 * p[name] for p in points]) for name in names})
        for title, names in (
            ("Label inference on released rows", attacks),
            ("Test images", ("RR test", "first term test", "double test")),
        )
    ]  # fmt: skip
    draw(svg, panels, y=(50, 100))


class Divergence(NamedTuple):
    """D_α of true from synthetic images of one label, by one discriminator, for every order."""

    label: int
    kind: str
    auc: float
    points: Any
    lower: tuple[float, ...] | None
    """None where the images judged are those that were learnt from: nothing is certified then."""


def divergence(images: Images, made: Any, label: int, kind: Kind | None, device: str) -> Divergence:
    """Return the divergence of one label; without a kind by the generator's own critic.

    Training images fit the discriminator. Test images judge it: neither it nor the generator has
    seen them, so their rows are independent of both, as a certified bound needs. Each bound has the
    error 0.05/4: the largest over two labels and two discriminators holds at 95 %.
    """
    rng = np.random.default_rng([SEED, label])
    true = rng.permutation(images.x[images.y == label])
    fake = generated(made, np.full(2 * len(true), label), rng)
    lower: tuple[float, ...] | None = None
    if kind is None:
        import torch

        critic = made._pair.critic.cpu().eval()
        with torch.no_grad():
            parts = [
                critic(torch.from_numpy(2 * x - 1), torch.full((len(x),), label)).numpy()
                for x in (true, fake)
            ]
        score, is_true = np.concatenate(parts)[:, None], np.arange(3 * len(true)) < len(true)
        model: Any = LogisticRegression(class_weight="balanced").fit(score, is_true)
        odds = model.decision_function(score)
        judged = Scores(odds[is_true], odds[~is_true])
    else:
        q = len(fake) // 2
        model = fit_discriminator(true, fake[:q], kind, rng=rng, device=device)
        unseen = images.test_x[images.test_y == label]
        scores = Scores(model.log_ratio(unseen), model.log_ratio(fake[q:]))
        tuning, judged = split_scores(scores, rng=rng)
        lower = tuple(bound.at(0.05 / 4) for bound in bounds_on(tuning, judged, ORDERS))
    both = np.concatenate([judged.p, judged.q])
    area = float(roc_auc_score(np.arange(len(both)) < len(judged.p), both))
    return Divergence(label, kind or OWN, area, renyi_points(judged, ORDERS), lower)


@case(rows=300, kind="mixture", kinds=("logistic",))
def papers_tdr_figure_4(
    noises: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0),
    kinds: tuple[str, ...] = ("network", "logistic"),
    rows: int = 0,
    kind: str = "gan",
    file: str = "",
    device: str = "auto",
    svg: str = "",
    data: Path = DATA,
) -> Rows:
    """Figure 4 of TDR: ε of double randomized response with conditional features over λ.

    Theorem 7.1 with the divergence Δ(α) of true from synthetic images put in, the larger of the two
    labels', beside Theorem 7.2's floor, which no release of the label at that λ can go below. Δ is
    bounded from below, and estimated where the rows allow it, by discriminators judged on test
    images; and, as published, by the critic that the generator was trained against, on the images
    that it was trained on. That needs a generator that is trained in this run: a file holds none.
    """
    images, made, device = prepared(data, rows, kind, file, device)
    asked: list[Any] = [*kinds, *([None] if getattr(made, "record", None) else [])]
    found = [divergence(images, made, label, one, device) for one in asked for label in (0, 1)]
    orders = [f"α = {order:g}" for order in ORDERS]
    yield "D_α of true from synthetic images in nats: estimate (effective rows; lower bound)"
    yield heads("discriminator", "digit", "AUC|.3f", *orders)
    for one in found:
        cells = []
        for i, point in enumerate(one.points):
            bound = "" if one.lower is None else f"; ≥ {one.lower[i]:.2f}"
            mark = "" if point.supported else " unsupported"
            cells.append(f"{point.value:.2f}{mark} ({point.effective_rows:.0f}{bound})")
        yield one.kind, 9 * one.label, one.auc, *cells
    least = np.max([one.lower for one in found if one.lower is not None], axis=0)
    own, of_critic = dict[float, float](), [one for one in found if one.kind == OWN]
    for i, order in enumerate(ORDERS):
        # Of orders that the rows of both labels support.
        if of_critic and all(one.points[i].supported for one in of_critic):
            own[order] = max([*own.values(), *(one.points[i].value for one in of_critic)])

    def upper(noise: float, delta: float) -> float:
        return float(DoubleRR((0, 1), noise).conditional_epsilon(delta))

    def floor(noise: float, order: float) -> float:
        return float(DummyFeaturesRR((0, 1), noise).conditional_rdp_floor(order) or 0.0)

    yield "ε in nats: what Theorem 7.1 gives at least (certified bound on Δ) / with the own"
    yield "critic's Δ̂ (estimated) / Theorem 7.2's floor (exact)"
    yield heads("λ", "label alone|.2f", *orders)
    for noise in noises:
        cells = []
        for order, delta in zip(ORDERS, least, strict=True):
            guess = f"{upper(noise, own[order]):.2f}" if order in own else "–"
            cells.append(f"{upper(noise, delta):.2f} / {guess} / {floor(noise, order):.2f}")
        yield noise, DoubleRR((0, 1), noise).epsilon, *cells
    yield heads("published", "measured")
    words = f"Δ(2) is at least {least[1]:.2f}: no less than {upper(0.4, least[1]):.2f} at λ = 0.4"
    if 2.0 in own:
        words += f"; by its own critic Δ̂(2) = {own[2.0]:.2f}, ε = {upper(0.4, own[2.0]):.2f}"
    yield "ε is finite, not trivial even for small λ, and falls as λ grows", words
    yield "with the label alone randomized nothing is guaranteed", "∞ (Theorem 6.1)"
    places, lines = np.linspace(0.02, 1.0, 50), dict[str, Any]()
    for order, delta in zip(ORDERS, least, strict=True):
        lines[f"Theorem 7.1, at least, α = {order:g}"] = (places, [upper(n, delta) for n in places])
        if order in own:
            guesses = [upper(n, own[order]) for n in places]
            lines[f"Theorem 7.1, own critic's Δ̂, α = {order:g}"] = (places, guesses)
    for order in (ORDERS[0], ORDERS[-1]):
        lines[f"floor of Theorem 7.2, α = {order:g}"] = (places, [floor(n, order) for n in places])
    draw(svg, [("Double RR on MNIST 0 against 9", "λ", "ε in nats", lines)], y=(0, 18))
