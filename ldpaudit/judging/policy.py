"""Policies: what a release may leak, as TOML.

:mod:`ldpaudit.judging.verdict` judges the findings of an audit by a policy.
"""

import datetime
import hashlib
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ldpaudit.audits.allowed_excess import AllowedExcess
from ldpaudit.errors import PolicyError, did_you_mean
from ldpaudit.mechanisms.registry import DEFAULT
from ldpaudit.release import Declaration

Correction = Literal["holm", "bonferroni", "none"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class ClaimSection(_Section):
    """The claim that the release must keep; without it the file's declaration counts.

    Without a ``mechanism`` it is about the declared one, randomized response where none is
    declared.
    """

    mechanism: str | None = None
    epsilon: float | None = None
    lambda_: Annotated[float | None, Field(alias="lambda")] = None

    def declaration(self, declared: str | None = None) -> Declaration:
        """Return the claim as a declaration; ``declared`` is the file's mechanism."""
        stated = {"epsilon": self.epsilon, "lambda": self.lambda_}
        parameters = {key: value for key, value in stated.items() if value is not None}
        name = self.mechanism or declared or DEFAULT
        return Declaration(name, parameters, "policy")


class AuditSection(_Section):
    """How the audit runs, so that nobody can choose a favourable seed or level."""

    seed: Annotated[int, Field(ge=0)] | None = None
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    correction: Correction = "holm"
    min_rows: Annotated[int, Field(ge=1)] | None = None
    max_undetected_excess: Annotated[AllowedExcess, BeforeValidator(AllowedExcess.parse)] = (
        AllowedExcess()
    )


class CheckSection(_Section):
    """One check: how grave a violation is."""

    level: Literal["error", "warn", "off"] = "error"


class LimitSection(CheckSection):
    """A check against a largest share."""

    max: Annotated[float, Field(ge=0, le=1)]


class ExceedanceSection(LimitSection):
    """J(τ) at τ = ``at`` nats must not exceed ``max``."""

    at: Annotated[float, Field(ge=0)]


class RenyiSection(CheckSection):
    """D_α of the release at order ``alpha`` must not exceed ``max`` nats."""

    alpha: Annotated[float, Field(gt=1)] = 2.0
    max: Annotated[float, Field(ge=0)]


class RevealSection(CheckSection):
    """The features alone must not tell more than ``max`` of the labels."""

    max: Annotated[float, Field(ge=0, le=1)] = 0.98


class CountSection(CheckSection):
    """No more than ``max`` columns of a kind."""

    max: Annotated[int, Field(ge=0)] = 0


class ChecksSection(_Section):
    """The checks of a policy, each under its id."""

    claimed_epsilon: Annotated[CheckSection | None, Field(alias="claimed-epsilon")] = None
    claimed_channel: Annotated[CheckSection | None, Field(alias="claimed-channel")] = None
    features_reveal_label: Annotated[RevealSection | None, Field(alias="features-reveal-label")] = (
        None
    )
    identifiers: Annotated[CountSection | None, Field(alias="identifiers")] = None
    guessable_seed: Annotated[CheckSection | None, Field(alias="guessable-seed")] = None
    shared_noise: Annotated[CheckSection | None, Field(alias="shared-noise")] = None
    composition: Annotated[CheckSection | None, Field(alias="composition")] = None
    instance_loss_exceedance: Annotated[
        ExceedanceSection | None, Field(alias="instance-loss-exceedance")
    ] = None
    label_inference_advantage: Annotated[
        LimitSection | None, Field(alias="label-inference-advantage")
    ] = None
    label_inference_accuracy: Annotated[
        LimitSection | None, Field(alias="label-inference-accuracy")
    ] = None
    renyi_epsilon: Annotated[RenyiSection | None, Field(alias="renyi-epsilon")] = None


class Waiver(_Section):
    """A violation that is accepted for one release until a date."""

    check: str
    release_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    reason: Annotated[str, Field(min_length=1)]
    approved_by: Annotated[str, Field(min_length=1)]
    expires: datetime.date


class Policy(_Section):
    """A whole policy; see the contract for its TOML form."""

    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    extends: Literal["ldpaudit:default"] | None = None
    claim: ClaimSection | None = None
    audit: AuditSection = AuditSection()
    checks: ChecksSection = ChecksSection()
    waivers: tuple[Waiver, ...] = ()
    sha256: str | None = None
    """The digest of the policy file; None for the built-in default."""

    @model_validator(mode="after")
    def _waivers_name_checks(self) -> "Policy":
        known = check_names()
        for waiver in self.waivers:
            if waiver.check not in known:
                raise ValueError(f"waiver of an unknown check{_suggest(waiver.check, known)}")
        return self


def check_names() -> tuple[str, ...]:
    """Return the ids of the checks that a policy can ask for."""
    return tuple(str(field.alias) for field in ChecksSection.model_fields.values())


DEFAULT_CHECKS: dict[str, Any] = {
    "claimed-epsilon": {"level": "error"},
    "claimed-channel": {"level": "warn"},
    "features-reveal-label": {"level": "warn"},
    "identifiers": {"level": "warn"},
    "guessable-seed": {"level": "error"},
    "shared-noise": {"level": "warn"},
    "composition": {"level": "warn"},
}
"""``ldpaudit:default``: that the claim is not refuted, and a warning of columns that give labels or
people away whatever the noise."""

STARTER = """\
# What this release may leak. Delete what does not apply.
schema = 1
extends = "ldpaudit:default"        # the claim must not be refuted

# [claim]                           # otherwise the file's own declaration counts
# mechanism = "randomized-response"
# epsilon = 1.0

[audit]
seed = 20260101                     # pinned, so that nobody shops for a seed
confidence = 0.99                   # of all checks together: 1 honest release in 100 fails, at most
correction = "holm"
min_rows = 1000
max_undetected_excess = 0.5         # nats, or "50%" of the claim; a weaker audit is inconclusive

[checks.claimed-epsilon]            # certified lower bounds against the claim
level = "error"

[checks.instance-loss-exceedance]   # at most 5 % of people may lose 6 nats or more
level = "error"
at = 6.0
max = 0.05

[checks.label-inference-advantage]  # over an attacker who sees the features alone
level = "warn"
max = 0.05
"""


EXPLANATIONS = {
    "claimed-epsilon": (
        "Compares certified lower bounds on ε with the claimed ε. It fails when a bound, at the "
        "policy's confidence, lies above the claim; it passes when none does and the audit would "
        "have noticed an excess of max_undetected_excess with 90 % probability: nats, or a share "
        "of the claimed ε such as '50%'; without it 0.5 nats, or half of the claim where that is "
        "more."
    ),
    "claimed-channel": (
        "Tests whether the released labels are distributed as the claimed mechanism distributes "
        "them. It fails when the p-value is below one minus the confidence."
    ),
    "features-reveal-label": (
        "Looks at what the features tell without the released label: the accuracy, balanced over "
        "labels, and the AUC of an attacker who learns from other people's labels, and the "
        "same for the best single column and for the order of the rows. It fails when one "
        "measured value lies above 'max', or a column tells 98 % of the labels of its own row or "
        "of one near by: noise on the label then protects nobody."
    ),
    "identifiers": (
        "Counts columns that may lead back to a person: those that number the rows, are different "
        "in (nearly) every row, or hold free text or exact dates. It fails when there are more "
        "than 'max' (default 0)."
    ),
    "guessable-seed": (
        "Tries the seeds that people choose with common random generators. It fails when one of "
        "them explains the noise; whoever tries it recomputes every true label. Without "
        "true labels it is then inconclusive: true labels simulated with that seed look the same."
    ),
    "shared-noise": (
        "Tests, with true labels, whether what noise did to one row tells what it did to another: "
        "at any distance in the file, in equal or nearly equal rows, in groups (--group). It fails "
        "when the p-value is below one minus the confidence. Bounds of ε then count one row of "
        "each group."
    ),
    "composition": (
        "Looks for people with several rows, each with noise of its own: groups (--group) whose "
        "rows have one true label, or, with true labels, rows with equal features and equal "
        "labels. It fails where there are some: ε is then that of a row times the rows of a person."
    ),
    "instance-loss-exceedance": (
        "Looks at J(τ), the share of people whose instance-based privacy loss is at least 'at' "
        "nats. It fails when its lower bound lies above 'max', and passes when both the bound "
        "and the estimate lie within."
    ),
    "label-inference-advantage": (
        "Looks at the strongest label-inference attack's gain in accuracy over an attacker who "
        "sees the features alone. It fails when the certified interval lies wholly above 'max', "
        "and passes when it lies wholly within."
    ),
    "label-inference-accuracy": (
        "Looks at the strongest label-inference attack's accuracy. It fails when the certified "
        "interval lies wholly above 'max', and passes when it lies wholly within."
    ),
    "renyi-epsilon": (
        "Looks at the Rényi divergence, at order 'alpha', between the released rows of two true "
        "labels. It fails when its lower bound lies above 'max' nats."
    ),
}


def explain(check: str) -> str:
    """Return what a check compares, and when it fails.

    Raises
    ------
    PolicyError
        If there is no such check.
    """
    if check not in EXPLANATIONS:
        raise PolicyError(f"There is no check {check!r}{_suggest(check, check_names())}")
    return f"{check}: {EXPLANATIONS[check]}"


def default_policy() -> Policy:
    """Return ``ldpaudit:default``."""
    return Policy.model_validate({"schema": 1, "checks": DEFAULT_CHECKS})


def parse_policy(text: str) -> Policy:
    """Read a policy from TOML text.

    Raises
    ------
    PolicyError
        If it is not TOML, has an unknown key (the nearest known one is named) or a value out of
        range.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"The policy is not valid TOML: {error}.") from None
    if "schema" not in data:
        raise PolicyError("The policy must state its version: 'schema = 1'.")
    if data.get("extends") == "ldpaudit:default" and isinstance(data.get("checks", {}), dict):
        data["checks"] = DEFAULT_CHECKS | data.get("checks", {})
    if "sha256" in data:
        raise PolicyError("Unknown key 'sha256' in the policy.")
    data["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    try:
        return Policy.model_validate(data)
    except ValidationError as error:
        raise PolicyError(_first_error(error)) from None


def load_policy(path: Path) -> Policy:
    """Read a policy file; errors name the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise PolicyError(f"The policy file {path.name!r} cannot be read.") from None
    try:
        return parse_policy(text)
    except PolicyError as error:
        raise PolicyError(f"{path.name}: {error}") from None


def _first_error(error: ValidationError) -> str:
    # A misspelt key also leaves the right one missing: name the misspelt one.
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in first["loc"]) or "policy"
    if first["type"] == "extra_forbidden":
        known = _known_keys(tuple(str(part) for part in first["loc"][:-1]))
        return f"Unknown key {place!r} in the policy{_suggest(str(first['loc'][-1]), known)}"
    return f"The policy's {place!r} is not valid: {first['msg']}."


def _known_keys(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that the section at ``path`` may have."""
    model: type[BaseModel] = Policy
    for part in path:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        if part in fields:  # A number counts waivers.
            model = _model_in(fields[part].annotation) or model
    names = (str(field.alias or name) for name, field in model.model_fields.items())
    return tuple(name for name in names if name != "sha256")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section in an annotation such as ``Section | None`` or ``tuple[Section, …]``."""
    parts = (annotation, *get_args(annotation))
    return next((p for p in parts if isinstance(p, type) and issubclass(p, BaseModel)), None)


def _suggest(word: str, known: tuple[str, ...]) -> str:
    return did_you_mean(word, known, f"; it may be one of {', '.join(known)}.")
