"""What a policy may say: its sections, the keys of each, and what they mean.

What each means is in ``words.toml``, beside this file.
"""

import datetime
import math
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    model_validator,
)

from ldpaudit.audits.allowed_excess import AllowedExcess
from ldpaudit.judging.policy.limits import Loss, Share, share_of
from ldpaudit.judging.policy.presets import preset_name
from ldpaudit.mechanisms.parameters import check_epsilon, check_number
from ldpaudit.mechanisms.places import DEFAULT, UNKNOWN
from ldpaudit.mechanisms.registry import family, full_name
from ldpaudit.release import Declaration

OWN: Final = ("sha256", "name")
"""Fields of a policy that no file states."""
Correction = Literal["holm", "bonferroni", "none"]
_LONGEST_NAME = 200
Allowed = Annotated[AllowedExcess, BeforeValidator(AllowedExcess.parse)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _existing(mechanism: str) -> str:
    return family(full_name(mechanism)).traits.name


def _within(noise: float) -> float:
    if not 0 < check_number("lambda", noise) <= 1:
        raise ValueError(f"The 'lambda' parameter must lie in (0, 1]. Got {noise:g} instead.")
    return noise


class Limit(NamedTuple):
    """The largest ε that a policy allows, in nats, and what of in words."""

    epsilon: float | None
    words: str


_Epsilon = Annotated[float, AfterValidator(check_epsilon)]


class ClaimSection(_Section):
    """The claim that the release must keep; without it the file's declaration counts.

    A release that declares more than the policy allows is a violation, whatever was measured; one
    that declares less is held against what it declares.
    """

    mechanism: Annotated[str, AfterValidator(_existing)] | None = None
    epsilon: _Epsilon | None = None
    epsilon_per_release: _Epsilon | None = None
    epsilon_total: _Epsilon | None = None
    lambda_: Annotated[Annotated[float, AfterValidator(_within)] | None, Field(alias="lambda")] = (
        None
    )

    _limit: Limit | None = None

    def of(self, *, everything: bool, one_release: bool) -> "ClaimSection | None":
        """Return the claim about one part of what was given, None where there is none.

        Parameters
        ----------
        everything : bool
            Whether it is all that was given: ``epsilon`` and ``epsilon_total`` count.
        one_release : bool
            Whether it is one release, with all its columns: ``epsilon_per_release`` counts.
        """
        if self._limit is not None:
            return self
        stated = [Limit(self.epsilon, ""), Limit(self.epsilon_total, " in total")] * everything
        stated += [Limit(self.epsilon_per_release, " for each release")] * one_release
        known = [limit for limit in stated if limit.epsilon is not None]
        if not known and not everything:
            return None
        limit = min(known, key=lambda one: one.epsilon or 0.0, default=Limit(None, ""))
        own = {"epsilon": limit.epsilon, "epsilon_per_release": None, "epsilon_total": None}
        claim = self.model_copy(update=own)
        claim._limit = limit
        return claim if known or self.mechanism or self.lambda_ else None

    @property
    def limit(self) -> Limit:
        """The largest ε that may be declared, and what of, in words such as ``" in total"``."""
        return self._limit or Limit(self.epsilon, "")

    def declaration(self, declared: str | None = None) -> Declaration:
        """Return the claim as a declaration; ``declared`` is the file's mechanism."""
        stated = {"epsilon": self.epsilon, "lambda": self.lambda_}
        parameters = {key: value for key, value in stated.items() if value is not None}
        return Declaration(self.mechanism or declared or DEFAULT, parameters, "policy")

    @model_validator(mode="after")
    def _can_be_claimed(self) -> "ClaimSection":
        """Refuse what no release could claim."""
        stated = self.declaration()
        limited = any((self.epsilon, self.epsilon_per_release, self.epsilon_total))
        if self.lambda_ is not None and limited:
            raise ValueError("[claim] must state 'epsilon' or 'lambda', not both.")
        if self.lambda_ is not None and "lambda" not in family(stated.name).traits.stated_by:
            raise ValueError(f"A claim of {stated.name!r} must be stated by its epsilon.")
        if stated.name == UNKNOWN and (stated.parameters or limited):
            raise ValueError(f"The mechanism {UNKNOWN!r} claims nothing; give no ε or λ with it.")
        if not stated.parameters and not limited and self.mechanism is None:
            raise ValueError("[claim] must state 'epsilon', or a 'mechanism'.")
        return self


class AuditSection(_Section):
    """How the audit runs, so that nobody can choose a favourable seed or level."""

    seed: Annotated[int | None, Field(ge=0)] = None
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    correction: Correction = "holm"
    min_rows: Annotated[int | None, Field(ge=1)] = None
    max_undetected_excess: Allowed = AllowedExcess()


class DecisionSection(_Section):
    """What the exit status makes of the decision."""

    not_yet: Literal["fail", "pass"] = "pass"


class CheckSection(_Section):
    """One check: how grave a violation is."""

    level: Literal["error", "warn", "off"] = "error"


class LimitSection(CheckSection):
    """A check against a largest share."""

    max: Annotated[float, Field(ge=0, le=1)]


class AdvantageSection(CheckSection):
    """A check against a largest share, or against what the claim allows."""

    max: Annotated[Share, BeforeValidator(share_of)]


class ExceedanceSection(LimitSection):
    """J(τ) at τ = ``at`` nats must not exceed ``max``."""

    at: Annotated[Loss, BeforeValidator(Loss.parse)]


class RenyiSection(CheckSection):
    """D_α of the release at order ``alpha`` must not exceed ``max`` nats."""

    alpha: Annotated[float, Field(gt=1)] = 2.0
    max: Annotated[float, Field(ge=0)]


class RevealSection(CheckSection):
    """The features alone must not tell more than ``max`` of the labels."""

    max: Annotated[float, Field(ge=0, le=1)] = 0.98
    max_decided: Annotated[float, Field(ge=0, le=1)] = 0.01


class CountSection(CheckSection):
    """No more than ``max`` columns of a kind."""

    max: Annotated[int, Field(ge=0)] = 0


class PowerSection(CheckSection):
    """What may go unnoticed before somebody has to look."""

    max: Allowed = AllowedExcess()


class ChecksSection(_Section):
    """The checks of a policy, each under its id."""

    claimed_epsilon: Annotated[CheckSection | None, Field(alias="claimed-epsilon")] = None
    undetected_excess: Annotated[PowerSection | None, Field(alias="undetected-excess")] = None
    claimed_channel: Annotated[CheckSection | None, Field(alias="claimed-channel")] = None
    rare_classes: Annotated[CheckSection | None, Field(alias="rare-classes")] = None
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
        AdvantageSection | None, Field(alias="label-inference-advantage")
    ] = None
    label_inference_accuracy: Annotated[
        LimitSection | None, Field(alias="label-inference-accuracy")
    ] = None
    renyi_epsilon: Annotated[RenyiSection | None, Field(alias="renyi-epsilon")] = None

    def asked(self) -> tuple[str, ...]:
        """Return the ids of the checks that are asked for."""
        return tuple(name for name, section in self._sections() if section.level != "off")

    def can_fail(self) -> bool:
        """Return whether some release could fail by it: a check of level error that can be missed.

        A share is never above 1, and an audit that may miss any excess misses none too many.
        """
        sections = (section for _, section in self._sections() if section.level == "error")
        return any(not _always_kept(section) for section in sections)

    def _sections(self) -> Iterator[tuple[str, CheckSection]]:
        for name, field in type(self).model_fields.items():
            section = getattr(self, name)
            if section is not None:
                yield str(field.alias), section


def _always_kept(section: CheckSection) -> bool:
    if isinstance(section, PowerSection):
        return not math.isfinite(section.max.nats)
    shares = LimitSection | AdvantageSection | RevealSection
    return isinstance(section, shares) and section.max == 1


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST_NAME:
        raise ValueError(f"must be a text on one line, of at most {_LONGEST_NAME} letters")
    return text


def _date(value: object) -> object:
    try:
        found = datetime.date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if isinstance(found, datetime.datetime) or not isinstance(found, datetime.date):
        raise ValueError("must be a date such as 2026-12-31")
    return found


def _digest(value: object) -> object:
    text = value.lower() if isinstance(value, str) else ""
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError(
            "must be the 64 hexadecimal digits of the released file's SHA-256 (sha256sum FILE)"
        )
    return text


class Waiver(_Section):
    """A violation that somebody answers for: of one check, in one file, until a day.

    A waived check stays a violation and stays visible, with who waived it and until when; it only
    no longer decides the exit status. A waiver covers violations, not inconclusive checks.
    """

    check: str
    release_sha256: Annotated[str, BeforeValidator(_digest)]
    reason: Annotated[str, AfterValidator(_one_line)]
    approved_by: Annotated[str, AfterValidator(_one_line)]
    expires: Annotated[datetime.date, BeforeValidator(_date)]


class Policy(_Section):
    """A whole policy; see the contract for its TOML form."""

    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    extends: Annotated[str, AfterValidator(preset_name)] | None = None
    claim: ClaimSection | None = None
    audit: AuditSection = AuditSection()
    decision: DecisionSection = DecisionSection()
    checks: ChecksSection = ChecksSection()
    waivers: Annotated[tuple[Waiver, ...], Field(strict=False), FailFast()] = ()
    sha256: str | None = None
    """The digest of the policy file; None for the built-in default."""
    name: Annotated[str | None, Field(exclude=True)] = None
    """What people call it: the file's name, or the preset's; it changes no number."""

    def of_all(self) -> "Policy":
        """Return the policy of one release that is all that was given: its limits in one."""
        if self.claim is None:
            return self
        claim = self.claim.of(everything=True, one_release=True)
        return self.model_copy(update={"claim": claim})


def check_names() -> tuple[str, ...]:
    """Return the ids of the checks that a policy can ask for."""
    return tuple(str(field.alias) for field in ChecksSection.model_fields.values())


def keys_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the keys that a section may have, as TOML spells them, with their fields."""
    named = {field.alias or name: field for name, field in model.model_fields.items()}
    return {name: field for name, field in named.items() if name not in OWN}


def section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section in an annotation such as ``Section | None`` or ``tuple[Section, …]``."""
    parts = (annotation, *get_args(annotation))
    return next((p for p in parts if isinstance(p, type) and issubclass(p, BaseModel)), None)
