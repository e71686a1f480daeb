"""What a policy may say: its sections, the keys of each, and what they mean."""

# The descriptions are what ``ldpaudit policy explain`` and the page of policies say.

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass
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

from ldpaudit.judging.policy.presets import preset_name
from ldpaudit.mechanisms.listing import DEFAULT, UNKNOWN
from ldpaudit.mechanisms.parameters import check_epsilon, check_number
from ldpaudit.mechanisms.registry import family, full_name
from ldpaudit.options.allowed_excess import AllowedExcess
from ldpaudit.release import Declaration

OWN: Final = ("sha256", "name")
"""Fields of a policy that no file states."""
CLAIM: Final = "claim"
"""The word for the claimed ε, and for what a claim of that ε allows."""
_LONGEST_NAME = 200


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Loss:
    """A loss in nats: so much, or so much more than the claimed ε."""

    nats: float
    above_claim: bool = False

    def at(self, epsilon: float | None) -> float | None:
        """Return it in nats; None where it needs a finite claim and there is none."""
        if not self.above_claim:
            return self.nats
        return None if epsilon is None or math.isinf(epsilon) else epsilon + self.nats

    @classmethod
    def parse(cls, value: object) -> "Loss":
        """Return what a policy states: a number of nats, or a text such as "claim + 5"."""
        if isinstance(value, cls):
            return value
        words = value.replace(" ", "") if isinstance(value, str) else ""
        above, nats = words.startswith(CLAIM), math.nan
        if above:
            value = words.removeprefix(CLAIM).removeprefix("+") or 0
        if isinstance(value, int | float | str) and (above or not isinstance(value, bool | str)):
            try:
                nats = float(value)
            except ValueError:
                nats = math.nan
        if not 0 <= nats < math.inf:
            raise ValueError('must be nats from 0 up, such as 6.0, or a text such as "claim + 5"')
        return cls(nats, above)


def _share_of(value: object) -> float | Literal["claim"]:
    if value == CLAIM:
        return "claim"
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(
            'must be a share from 0 to 1, such as 0.05, or "claim" (the most that the claimed ε '
            "allows)"
        )
    return float(value)


def _within(noise: float) -> float:
    if not 0 < check_number("lambda", noise) <= 1:
        raise ValueError(f"The 'lambda' parameter must lie in (0, 1]. Got {noise:g} instead.")
    return noise


def _looked_at(order: float) -> float:
    from ldpaudit.estimators.renyi import (
        AUDITED_ORDERS,  # Takes its time, and few policies ask for it.
    )

    if order < AUDITED_ORDERS[0]:
        raise ValueError(
            f"must be at least {AUDITED_ORDERS[0]:g}, the smallest order that audits look at, not "
            f"{order:g}"
        )
    return order


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


_Mechanism = Annotated[str, AfterValidator(lambda name: family(full_name(name)).traits.name)]
_Epsilon = Annotated[float, AfterValidator(check_epsilon)]
_Allowed = Annotated[AllowedExcess, BeforeValidator(AllowedExcess.parse)]
_OneLine = Annotated[str, AfterValidator(_one_line)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Order = Annotated[float, Field(gt=1), AfterValidator(_looked_at)]


class Limit(NamedTuple):
    """The largest ε that a policy allows, in nats, and what of in words."""

    epsilon: float | None
    words: str


class ClaimSection(_Section):
    """The claim that the release must keep; without it the file's declaration counts.

    A release that declares more than the policy allows is a violation, whatever was measured; one
    that declares less is held against what it declares.
    """

    mechanism: _Mechanism | None = Field(
        default=None,
        description='The mechanism, such as "randomized-response"; without it the file\'s own, or '
        "randomized response where the file declares none.",
    )
    epsilon: _Epsilon | None = Field(
        default=None,
        description="The largest ε that may be declared, in nats: for several columns or releases, "
        "their sum.",
    )
    epsilon_per_release: _Epsilon | None = Field(
        default=None,
        description="The largest ε that one release may declare, over all its private columns.",
    )
    epsilon_total: _Epsilon | None = Field(
        default=None,
        description="The largest ε for a person, over all private columns of all releases.",
    )
    lambda_: Annotated[float, AfterValidator(_within)] | None = Field(
        default=None,
        alias="lambda",
        description="For randomized response, instead of epsilon: how often a label is redrawn.",
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
        if not known and not (everything and (self.mechanism or self.lambda_)):
            return None
        limit = min(known, key=lambda one: one.epsilon or 0.0, default=Limit(None, ""))
        own = {"epsilon": limit.epsilon, "epsilon_per_release": None, "epsilon_total": None}
        claim = self.model_copy(update=own)
        claim._limit = limit
        return claim

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
        stated = self.declaration()
        limited = any((self.epsilon, self.epsilon_per_release, self.epsilon_total))
        by_lambda = self.lambda_ is not None
        for wrong, message in (
            (by_lambda and limited, "[claim] must state 'epsilon' or 'lambda', not both."),
            (
                by_lambda and "lambda" not in family(stated.name).traits.stated_by,
                f"A claim of {stated.name!r} must be stated by its epsilon.",
            ),
            (
                stated.name == UNKNOWN and (stated.parameters or limited),
                f"The mechanism {UNKNOWN!r} claims nothing; give no ε or λ with it.",
            ),
            (
                not stated.parameters and not limited and self.mechanism is None,
                "[claim] must state 'epsilon', or a 'mechanism'.",
            ),
        ):
            if wrong:
                raise ValueError(message)
        return self


class AuditSection(_Section):
    """How the audit runs, so that nobody can choose a favourable seed or level."""

    seed: int | None = Field(
        default=None,
        ge=0,
        description="The seed of the audit's own randomness; it overrules --seed.",
    )
    confidence: float = Field(
        default=0.95,
        gt=0.5,
        lt=1,
        description="Of all checks of one level together: at 0.95 at most one honest release in 20 "
        "fails by chance, at 0.99 one in 100 (better for a gate that runs often).",
    )
    correction: Literal["holm", "bonferroni", "none"] = Field(
        default="holm",
        description='How checks share the error probability: "holm" (step-down), "bonferroni" '
        '(equal parts) or "none" (each check has all of it).',
    )
    min_rows: int | None = Field(
        default=None,
        ge=1,
        description="Fewer rows are inconclusive; shown as the check min-rows.",
    )
    max_undetected_excess: _Allowed = Field(
        default=AllowedExcess(),
        description="The excess over the claimed ε that may go unnoticed (at 90 % power) before "
        'claimed-epsilon is inconclusive: nats (0.5), a share of the claim ("50%"), the larger of '
        'two ([0.5, "50%"], the default), or "any".',
    )


class ReleaseSection(_Section):
    """What is known of the released columns."""

    before: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(),
        description="Columns that were there before the noise, so none was computed from released "
        'labels: ["age", "region"], or ["*"] for all but the private ones; with those of --before.',
    )


class DecisionSection(_Section):
    """What the exit status makes of the decision."""

    not_yet: Literal["fail", "pass"] = Field(
        default="pass",
        description='The exit status of "not yet" if nothing is violated: "pass" is 0, "fail" is '
        "3. The option --not-yet overrules it.",
    )


class CheckSection(_Section):
    """One check: how grave a violation is."""

    level: Literal["error", "warn", "off"] = Field(
        default="error",
        description='"error" decides the verdict and the exit status; "warn" leaves the verdict as '
        'it is, but the decision becomes "not yet"; "off" asks nothing.',
    )


class LimitSection(CheckSection):
    """A check against a largest share."""

    max: _Share = Field(description="The largest share, from 0 to 1.")


class AdvantageSection(CheckSection):
    """A check against a largest share, or against what the claim allows."""

    max: Annotated[float | Literal["claim"], BeforeValidator(_share_of)] = Field(
        description='The largest gain, from 0 to 1, or "claim": the most that the claimed ε '
        "allows, ½ tanh(ε/2) for two labels and tanh(ε/4) for more."
    )


class ExceedanceSection(LimitSection):
    """J(τ) at τ = ``at`` nats must not exceed ``max``."""

    at: Annotated[Loss, BeforeValidator(Loss.parse)] = Field(
        description='The loss τ: nats, or "claim + 5" for so many nats above the claimed ε.'
    )


class RenyiSection(CheckSection):
    """D_α of the release at order ``alpha`` must not exceed ``max`` nats."""

    alpha: _Order = Field(
        default=2.0,
        description="The order, above 1 and not below the smallest that audits look at.",
    )
    max: float = Field(ge=0, description="The largest divergence, in nats.")


class RevealSection(CheckSection):
    """The features alone must not reveal more than ``max`` of the labels."""

    max: _Share = Field(
        default=0.98, description="The largest share of labels, balanced over them, or AUC."
    )
    max_decided: _Share = Field(
        default=0.01,
        description="The largest share of people whose label the value of one column may decide.",
    )


class CountSection(CheckSection):
    """No more than ``max`` columns of a kind."""

    max: int = Field(default=0, ge=0, description="The largest number of such columns.")


class ReplaySection(CheckSection):
    """The noise is drawn again from its key."""

    required: bool = Field(
        default=False,
        description="Whether a release whose noise cannot be drawn again is inconclusive.",
    )


class PowerSection(CheckSection):
    """What may go unnoticed before somebody has to look."""

    max: _Allowed = Field(
        default=AllowedExcess(), description="As max_undetected_excess, with the same default."
    )


class ChecksSection(_Section):
    """The checks of a policy, each under its id."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    replay: ReplaySection | None = Field(
        default=None,
        description="Draws the noise again from the key that privatize --secret keeps with the "
        "true labels, and compares every row. It passes when all are equal: the claim is then "
        "proven, and no test of the noise counts any more. It fails when labels were changed after "
        "the noise and more of them are true than by chance, or when the declaration promises more "
        "than was drawn. If labels were changed otherwise, or the key is of another release, it is "
        "inconclusive. Without a receipt or key there is no such check, unless 'required' is true.",
    )
    claimed_epsilon: CheckSection | None = Field(
        default=None,
        description="Compares certified lower bounds on ε with the claimed ε. It fails when a "
        "bound, at the policy's confidence, lies above the claim; it passes when none does and the "
        "audit would have noticed an excess of max_undetected_excess with 90 % probability: nats, "
        "or a share of the claimed ε such as '50%'; without it 0.5 nats, or half of the claim "
        "where that is more.",
    )
    undetected_excess: PowerSection | None = Field(
        default=None,
        description="Says how large an excess of ε the audit could have missed, for policies with "
        "max_undetected_excess = \"any\". It fails when that is more than 'max', or not known.",
    )
    claimed_channel: CheckSection | None = Field(
        default=None,
        description="Tests whether the released labels are distributed as the claimed mechanism "
        "distributes them. It fails when the p-value is below one minus the confidence.",
    )
    rare_classes: CheckSection | None = Field(
        default=None,
        description="Tests, with true labels, whether the labels of each class with at most 50 "
        "people were released as the claimed mechanism releases them: labels in the clear above "
        "all. It fails when the exact p-value of all such classes is below 1 % and below one "
        "minus the confidence; below 5 % it is inconclusive, because people are too few.",
    )
    feature_noise: CheckSection | None = Field(
        default=None,
        description="Tests noise on the features, where that is claimed, or whether as many were "
        "replaced as is claimed. It fails when the "
        "declared σ is too small for the declared ε and δ, or when, with the true features "
        "(--original), a lower bound of their ε lies above the claim or more of their values are "
        "exactly the true ones than noise, or a replacement with the declared λ, leaves so, or "
        "synthetic features go with those that they replace. Where "
        "there is only less noise than declared, "
        "which rounding and clipping also bring about, or noise that is not drawn as declared "
        "(few values, shared by rows, another shape, along with the label), it is inconclusive.",
    )
    features_reveal_label: RevealSection | None = Field(
        default=None,
        description="Looks at what the features reveal without the released label. It fails when "
        "the balanced accuracy or the AUC of an attacker who learns from other people's labels, of "
        "the best single column or of the row order lies above 'max', when a column reveals 98 % "
        "of the labels of its own or a nearby row, or when nearby rows agree clearly more often "
        "than by chance and by what the features say. With true labels it also fails when the "
        "values of one column decide the labels of more than 'max_decided' of the people, as "
        "target encoding does, or filling in "
        "missing values by class.",
    )
    identifiers: CountSection | None = Field(
        default=None,
        description="Counts columns that may lead back to a person: those that number the rows, "
        "differ in (nearly) every row, or hold free text or exact dates. It fails when there are "
        "more than 'max'.",
    )
    guessable_seed: CheckSection | None = Field(
        default=None,
        description="Tries the seeds that people choose with common random generators, columns as "
        "the seeds of their rows, and checksums of columns. It fails when one explains the noise: "
        "anybody can then recover every true label. Without true labels it is then inconclusive: "
        "labels simulated with that seed look the same.",
    )
    shared_noise: CheckSection | None = Field(
        default=None,
        description="Tests, with true labels, whether what noise did to one row reveals what it "
        "did to another: at any distance in the file, in equal or nearly equal rows, in groups "
        "(--group), in rows of equal rank within a column's values; and whether a stretch or "
        "blocks of the file have other noise. Without: whether released labels relate to the "
        "features in the same way along the file. It fails when the p-value is below one minus the "
        "confidence; bounds of ε then count one row of each group.",
    )
    composition: CheckSection | None = Field(
        default=None,
        description="Looks for people with several rows, each with noise of its own: groups "
        "(--group) whose rows have one true label, or, with true labels, rows with equal features "
        "and equal labels. It fails when there are any: ε is then that of a row times the rows of "
        "a person.",
    )
    instance_loss_exceedance: ExceedanceSection | None = Field(
        default=None,
        description="Looks at J(τ), the share of people whose instance-based privacy loss is at "
        "least 'at' nats. It fails when its lower bound lies above 'max', and passes when both the "
        "bound and the estimate lie within.",
    )
    label_inference_advantage: AdvantageSection | None = Field(
        default=None,
        description="Looks at the strongest label-inference attack's gain in accuracy over an "
        "attacker who sees the features alone. It fails when the certified interval lies above "
        "'max', and passes when it lies below.",
    )
    label_inference_accuracy: LimitSection | None = Field(
        default=None,
        description="Looks at the strongest label-inference attack's accuracy. It fails when the "
        "certified interval lies above 'max', and passes when it lies below.",
    )
    renyi_epsilon: RenyiSection | None = Field(
        default=None,
        description="Looks at the Rényi divergence, at order 'alpha', between the released rows of "
        "two true labels. It fails when its lower bound lies above 'max' nats.",
    )

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
        for check, field in zip(check_names(), type(self).model_fields, strict=True):
            section = getattr(self, field)
            if section is not None:
                yield check, section


def _always_kept(section: CheckSection) -> bool:
    if isinstance(section, PowerSection):
        return not math.isfinite(section.max.nats)
    shares = LimitSection | AdvantageSection | RevealSection
    return isinstance(section, shares) and section.max == 1


class Waiver(_Section):
    """A violation that somebody answers for: of one check, in one file, until a day.

    A waived check stays a violation and stays visible, with who waived it and until when; it only
    no longer decides the exit status. A waiver covers violations, not inconclusive checks.
    """

    check: str = Field(
        description="The id of a check that the policy asks for, or of one that is always asked: "
        "made-as-assumed, truth-taken-out, whole-file, cells-read."
    )
    release_sha256: Annotated[str, BeforeValidator(_digest)] = Field(
        description="The SHA-256 of the released file, 64 hexadecimal digits (sha256sum FILE; it "
        "is in results). A violation of several releases together needs the one that the result "
        "shows for all of them."
    )
    reason: _OneLine = Field(description="Why it is accepted; shown in every result.")
    approved_by: _OneLine = Field(description="Who answers for it; shown in every result.")
    expires: Annotated[datetime.date, BeforeValidator(_date)] = Field(
        description="The last day on which it counts, by UTC: 2026-12-31."
    )


class Policy(_Section):
    """All that a policy says.

    Attributes
    ----------
    sha256
        The digest of the policy file; None for the built-in default.
    name
        What people call it: the file's name, or the preset's; it changes no number.
    """

    schema_: Literal[1] = Field(
        default=1, alias="schema", description="The version of the format: 1."
    )
    extends: Annotated[str, AfterValidator(preset_name)] | None = Field(
        default=None,
        description="The preset to start from.",
    )
    claim: ClaimSection | None = None
    release: ReleaseSection = ReleaseSection()
    audit: AuditSection = AuditSection()
    decision: DecisionSection = DecisionSection()
    checks: ChecksSection = ChecksSection()
    waivers: Annotated[tuple[Waiver, ...], Field(strict=False), FailFast()] = ()
    sha256: str | None = None
    name: Annotated[str | None, Field(exclude=True)] = None

    def of_all(self) -> "Policy":
        """Return the policy of one release that is all that was given: its limits in one."""
        if self.claim is None:
            return self
        claim = self.claim.of(everything=True, one_release=True)
        return self.model_copy(update={"claim": claim})


# Checks that every audit asks, whatever its policy says, and that can be waived.
ALWAYS_WAIVABLE: Final = ("made-as-assumed", "truth-taken-out", "whole-file", "cells-read")


def check_names() -> tuple[str, ...]:
    """Return the ids of the checks that a policy can ask for."""
    return tuple(keys_of(ChecksSection))


def keys_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the keys that a section may have, as TOML spells them, with their fields."""
    named = {field.alias or name: field for name, field in model.model_fields.items()}
    return {name: field for name, field in named.items() if name not in OWN}


def section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section in an annotation such as ``Section | None`` or ``tuple[Section, …]``."""
    parts = (annotation, *get_args(annotation))
    return next((p for p in parts if isinstance(p, type) and issubclass(p, BaseModel)), None)
