"""Results as audits would give them, made up: no data behind."""

import json
import math

import pytest
import vl_convert

from ldpaudit.result import (
    AuditRecord,
    AuditResult,
    Check,
    Curve,
    Estimate,
    Histogram,
    MechanismInfo,
    Note,
    ReleaseInfo,
    RunInfo,
    Waived,
)
from ldpaudit.result.numbers import against

SMOOTHNESS = "Neighbours in the features have nearly the same class probabilities."
HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202egnp.exe\u2066\x00\ud800 "
    "</style></title></svg>]]>{{7*7}}&lt;https://evil.example/\n"
)


_DRAWN = {}


@pytest.fixture(autouse=True)
def _charts_are_not_drawn(monkeypatch):
    """Here they are, each chart once: drawing is nine tenths of the time of a page."""
    draw = vl_convert.vegalite_to_svg

    def drawn(specification, **more):
        key = json.dumps([specification, more], sort_keys=True)
        if key not in _DRAWN:
            _DRAWN[key] = draw(specification, **more)
        return _DRAWN[key]

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", drawn)


def _certified(identifier, value, **more):
    fields = {"side": "lower", "level": 0.95, "unit": "nats", "n": 48842} | more
    return Estimate.model_validate({"id": identifier, "kind": "certified", "value": value} | fields)


def _share(identifier, value, half=0.004, **more):
    fields = {
        "side": "two-sided",
        "unit": "proportion",
        "low": value - half,
        "high": value + half,
        "method": "Held-out counts, Clopper–Pearson",
    }
    return _certified(identifier, value, **(fields | more))


def _mechanism_estimates(epsilon, k):
    noise = k / (k - 1 + math.exp(epsilon)) if epsilon < 700 else 0.0
    reference = "Busa-Fekete et al. (2023), section 8.1"
    return [
        Estimate(
            id="mechanism.epsilon", kind="exact", value=epsilon, unit="nats", reference=reference
        ),
        Estimate(id="mechanism.lambda", kind="exact", value=noise, reference=reference),
        Estimate(id="mechanism.total_variation", kind="exact", value=1 - noise, unit="proportion"),
        Estimate(
            id="mechanism.marginal_consistency",
            kind="certified",
            value=0.41,
            side="two-sided",
            level=0.95,
            method="Pearson's test of the released shares",
        ),
    ]


def _epsilon_bounds(measured, *, truth):
    alone = _certified(
        "release_only.epsilon_lower",
        0.93 * measured,
        method="Anchors chosen without labels, Clopper–Pearson over a grid of neighbourhoods",
        assumptions=("The label channel does not depend on the features.",),
    )
    if not truth:
        return [alone]
    counts = {"count": 30211, "method": "Two-sided Clopper–Pearson on the channel's counts"}
    return [
        _certified("mechanism.epsilon_lower", measured, method="The strongest of three"),
        _certified("mechanism.epsilon_lower.counts", measured * 0.975, **counts),
        _certified(
            "mechanism.epsilon_lower.one-run", measured * 0.995, method="Guesses in one run"
        ),
        _certified("mechanism.epsilon_lower.odds-ratio", measured * 0.985),
        alone,
    ]


def _loss_estimates():
    return [
        _certified("instance_loss.mean_lower", 1.4312, method="By a model's log-odds"),
        Estimate(
            id="instance_loss.mean",
            kind="estimated",
            value=1.52,
            low=1.49,
            high=1.55,
            side="two-sided",
            level=0.99,
            unit="nats",
            n=20000,
            method="Nearest neighbours, k = 220, standardised L2",
            assumptions=(SMOOTHNESS,),
        ),
    ]


def _attack_estimates(k):
    scores = {
        "prior": 0.7607,
        "features-only": 0.8461,
        "released-label": 0.731,
        "knn": 0.8512,
        "classifier": 0.8644,
        "bayes": 0.8733,
        "best": 0.8733,
    }
    estimates = [_share(f"attack.{name}.accuracy", value) for name, value in scores.items()]
    for name in ("knn", "classifier", "bayes"):
        value = scores[name]
        estimates += [
            _share(f"attack.{name}.balanced_accuracy", value - 0.08),
            _share(f"attack.{name}.tpr_at_fpr_1pct", 0.31, 0.02),
            _share(f"attack.{name}.advantage", value - 0.8461, 0.006),
            _certified(f"attack.{name}.multiplicative_advantage", 0.97, unit="log-odds"),
            Estimate(
                id=f"attack.{name}.in_sample.accuracy",
                kind="estimated",
                value=value + 0.03,
                unit="proportion",
                n=48842,
                assumptions=("The model saw the rows that it is scored on.",),
            ),
        ]
        if k == 2:
            estimates.append(_share(f"attack.{name}.auc", value + 0.05, 0.003, unit="1"))
    ceiling = Estimate(id="attack.ceiling.accuracy", kind="exact", value=0.9213, unit="proportion")
    return [*estimates, ceiling]


def _exceedance():
    grid = tuple(i / 10 for i in range(81))
    value = tuple(1 / (1 + math.exp(1.6 * (x - 1.8))) for x in grid)
    return Curve(
        id="instance_loss.exceedance",
        kind="estimated",
        x=grid,
        value=value,
        low=tuple(
            max(v - 0.03 - 0.02 * math.sin(x), 0.0) for x, v in zip(grid, value, strict=True)
        ),
        side="lower",
        level=0.99,
        x_label="τ (nats)",
        unit="proportion",
        n=20000,
        assumptions=(SMOOTHNESS,),
    )


def _histogram():
    edges = (-math.inf, *(i / 2 for i in range(-2, 15)), math.inf)
    counts = tuple(int(6000 * math.exp(-((i - 6) ** 2) / 9)) for i in range(len(edges) - 1))
    return Histogram(
        id="instance_loss.histogram",
        kind="estimated",
        edges=edges,
        counts=counts,
        x_label="ν (nats)",
        assumptions=(SMOOTHNESS,),
    )


def _rdp(epsilon):
    if math.isinf(epsilon):
        return []
    orders = (1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0, math.inf)
    value = tuple(epsilon * (1 - 0.55 / order) for order in orders)
    rdp = Curve(
        id="mechanism.rdp", kind="exact", x=orders, value=value, x_label="order α", unit="nats"
    )
    grid = tuple(i / 10 * epsilon for i in range(11))
    delta = Curve(
        id="mechanism.delta",
        kind="exact",
        x=grid,
        value=tuple(max(0.46 * (1 - x / epsilon), 0.0) for x in grid),
        x_label="ε (nats)",
        unit="proportion",
    )
    return [rdp, delta]


def _check(verdict, epsilon, measured, *, truth):
    reasons = {
        "fail": "a certified lower bound lies above the claim",
        "pass": "no certified lower bound lies above the claim",
        "inconclusive": "nothing was claimed, so nothing was judged",
    }
    bound = "mechanism.epsilon_lower" if truth else "release_only.epsilon_lower"
    return Check(
        id="claimed-epsilon",
        question="Does the release leak more about a label than the claimed ε?",
        limit=epsilon,
        observed=None if epsilon is None else measured if truth else 0.93 * measured,
        verdict=verdict,
        level="error",
        confidence=0.95,
        reason=reasons[verdict],
        evidence=(bound, "power.min_detectable_excess"),
    )


def _sentence(verdict, epsilon, measured):
    observed, claim = against(measured, epsilon or 1.0, "down")
    return {
        "fail": f"Violation found: the release claims ε = {claim} nats, but at least "
        f"ε = {observed} is certified (at 95 % confidence).",
        "pass": "No violation found: the claimed ε = 1 nats is not refuted (certified so far: at "
        "least 0.976); an excess of 0.031 or more would have been found with 90 % probability.",
        "inconclusive": "Inconclusive: nothing was claimed, so nothing was judged.",
    }[verdict]


def build_result(
    verdict="pass", *, truth=True, k=2, epsilon=1.0, measured=None, features=14, names=False
):
    """Return a made-up result: every part of a report is in it unless the options take it away."""
    bound = measured if measured is not None else {"fail": 1.9476}.get(verdict, 0.9761)
    estimates = [] if epsilon is None else _mechanism_estimates(epsilon, k)
    estimates += _epsilon_bounds(bound, truth=truth)
    estimates += _loss_estimates() if features else []
    estimates += _attack_estimates(k) if truth and features else []
    estimates += [
        Estimate(id="power.min_detectable_excess", kind="exact", value=0.03042, unit="nats"),
        Estimate(id="power.rows_needed", kind="exact", value=1210.2, unit="rows"),
    ]
    curves = [] if epsilon is None else _rdp(epsilon)
    curves += [_exceedance()] if features else []
    made = AuditResult(
        ldpaudit_version="0.1.0",
        verdict=verdict,
        sentence=_sentence(verdict, epsilon, bound),
        release=ReleaseInfo(
            name="adult-rr.parquet",
            sha256="9f2c" * 16,
            rows=48842,
            features=features,
            classes=k,
            class_names=tuple(f"class {i}" for i in range(1, k + 1)),
            label="income" if names else None,
            truth=truth,
        ),
        mechanism=_mechanism(epsilon, k),
        estimates=tuple(estimates),
        curves=tuple(curves),
        histograms=(_histogram(),) if features else (),
        notes=_notes(),
        checks=(
            _check(verdict, epsilon, bound, truth=truth),
            *_more_checks(truth and features > 0),
        ),
        audits=_records(truth=truth, features=features),
        run=RunInfo(
            seed=20261120,
            command="ldpaudit run adult-rr.parquet --truth adult.parquet --policy policy.toml",
            versions={"python": "3.11.7", "numpy": "2.1.0", "scikit-learn": "1.6.1"},
            threads=2,
            seconds=17.42,
            policy_sha256="ab12" * 16,
        ),
    )
    return as_stored_earlier(made)


def as_stored_earlier(result):
    """Return a result that was stored under schema 1.0, whose numbers had ids only."""
    stored = result.model_dump() | {"schema_version": "1.0"}
    for part in ("estimates", "curves", "histograms"):
        for number in stored[part]:
            for added in ("title", "section", "axis", "score"):
                number.pop(added, None)
    return AuditResult.model_validate(stored)


def _mechanism(epsilon, k):
    if epsilon is None:
        return MechanismInfo(name="unknown", declared=None, parameters={}, epsilon=None)
    noise = k / (k - 1 + math.exp(min(epsilon, 700.0)))
    return MechanismInfo(
        name="randomized-response",
        declared="file",
        parameters={"classes": [f"class {i}" for i in range(1, k + 1)], "lambda": noise},
        epsilon=epsilon,
        description=f"randomized response on {k} labels: λ = {noise:.6g}, ε = {epsilon:.6g} nats",
    )


def _more_checks(attacked):
    if not attacked:
        return ()
    warned = Check(
        id="label-inference-advantage",
        question="Is the best label-inference attack's advantage above the limit?",
        limit=0.05,
        observed=0.0272,
        verdict="pass",
        level="warn",
        confidence=0.95,
        reason="the best attack's advantage is within the limit",
        evidence=("attack.bayes.advantage",),
    )
    waived = Check(
        id="instance-loss-exceedance",
        question="Is the share of people whose loss is at least 3 nats too large?",
        limit=0.05,
        observed=0.0958,
        verdict="fail",
        level="error",
        confidence=0.99,
        waived=True,
        waiver=Waived(approved_by="the board", reason="A small pilot", expires="2030-01-01"),
        reason="the lower bound of the share lies above the limit",
        evidence=("instance_loss.exceedance",),
    )
    return warned, waived


def _notes():
    return (
        Note(audit="instance-loss", text="20,000 of 48,842 rows were asked for their neighbours."),
        Note(audit="policy", text="The waiver of renyi-epsilon has expired.", level="warning"),
    )


def _records(*, truth, features):
    without = "all features are constant" if not features else "" if truth else "no true labels"
    return (
        AuditRecord(id="mechanism", status="ran", seconds=1.4),
        AuditRecord(
            id="instance-loss",
            status="ran" if features else "skipped",
            reason="" if features else "all features are constant",
            seconds=5.2,
        ),
        AuditRecord(
            id="label-inference",
            status="skipped" if without else "ran",
            reason=f"the attacks cannot be scored: {without}" if without else "",
            seconds=5.9,
        ),
        AuditRecord(id="power", status="ran", seconds=0.1),
    )


def hostile_result():
    """Return a result with hostile markup in every string that can hold some."""
    plain = build_result("fail", names=True)
    text = HOSTILE.replace("\ud800", "")
    long = "<b>" + "W" * 10_000
    free = {"method": HOSTILE, "assumptions": (HOSTILE, long), "reference": text}
    estimates = tuple(e.model_copy(update=free) for e in plain.estimates)
    curves = tuple(c.model_copy(update=free | {"x_label": text}) for c in plain.curves)
    odd = Curve(
        id="plug-in.new_curve", kind="estimated", x=(1, 2, 3), value=(3, 1, 2), x_label=HOSTILE
    )
    histograms = tuple(h.model_copy(update=free | {"x_label": long}) for h in plain.histograms)
    return plain.model_copy(
        update={
            "ldpaudit_version": text,
            "sentence": text,
            "release": plain.release.model_copy(
                update={"name": long, "label": text, "class_names": (HOSTILE, long)}
            ),
            "mechanism": plain.mechanism.model_copy(
                update={"name": text, "description": long, "parameters": {text: [HOSTILE, long]}}
            ),
            "estimates": estimates,
            "curves": (*curves, odd),
            "histograms": histograms,
            "notes": (Note(audit="policy", text=text, level="warning"), Note(audit="x", text=long)),
            "checks": tuple(
                c.model_copy(update={"question": text, "reason": long}) for c in plain.checks
            ),
            "audits": (AuditRecord(id="mechanism", status="skipped", reason=HOSTILE),),
            "run": RunInfo(seed=1, command=HOSTILE, versions={text: long}, threads=1, seconds=1.0),
        }
    )


def build_vector(*parts):
    """Return a made-up result of several private columns: what is refuted is their sum."""
    whole = build_result("fail" if any(p.verdict == "fail" for p in parts) else "pass")
    bound = _certified("person.epsilon_lower", 1.9476, section="vector", axis="epsilon")
    check = whole.checks[0].model_copy(
        update={"observed": 1.9476, "limit": 2.5, "evidence": (bound.id,), "verdict": "pass"}
    )
    exact = Estimate.exact("person.epsilon", "", 2.5, section="vector", unit="nats")
    own = {
        "mechanism": whole.mechanism.model_copy(update={"epsilon": 2.5}),
        "estimates": (exact, bound),
        "curves": (),
        "histograms": (),
        "checks": (check,),
        "labels": parts,
    }
    return whole.model_copy(update=own)


def build_repeats(*releases):
    """Return a made-up result of several releases, of which some may hold several columns."""
    vector = build_vector(*releases)
    return vector.model_copy(update={"labels": (), "releases": releases})


@pytest.fixture(scope="session")
def whole():
    """Return a result of three columns, of which the second fails."""
    return build_vector(build_result("pass"), build_result("fail", names=True), build_result())


@pytest.fixture(scope="session")
def nested(whole):
    """Return a result of two releases; the second has three columns."""
    return build_repeats(build_result("pass"), whole)


@pytest.fixture(scope="session")
def build():
    return build_result


@pytest.fixture(scope="session")
def hostile():
    return hostile_result()


CASES = {
    "pass": lambda: build_result("pass"),
    "fail": lambda: build_result("fail"),
    "inconclusive": lambda: build_result("inconclusive", epsilon=None),
    "outsider": lambda: build_result("pass", truth=False),
    "three": lambda: build_result("pass", k=3, names=True),
    "fifty-three": lambda: build_result("fail", k=53, epsilon=4.0, measured=4.0002),
    "infinite": lambda: build_result("inconclusive", epsilon=math.inf),
    "label-only": lambda: build_result("pass", features=0),
    "hostile": hostile_result,
    "columns": lambda: build_vector(build_result("fail"), build_result(truth=False)),
    "releases": lambda: build_repeats(
        build_result(), build_vector(hostile_result(), build_result())
    ),
}


@pytest.fixture(scope="session", params=list(CASES))
def any_result(request):
    return CASES[request.param]()
