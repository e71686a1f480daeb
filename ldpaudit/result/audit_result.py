"""The result of an audit as a whole, and its JSON form."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, computed_field, model_validator

from ldpaudit.result.curve import Curve, Histogram
from ldpaudit.result.earlier import EARLIER, upgraded
from ldpaudit.result.estimate import Estimate, Frozen, Identifier, Number, Side, readable
from ldpaudit.result.finding import Note

SCHEMA_VERSION: Final = "1.3"

Verdict = Literal["pass", "fail", "inconclusive"]
CheckLevel = Literal["error", "warn"]
Decision = Literal["publish", "not yet", "do not publish"]
IsoDate = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class ReleaseInfo(Frozen):
    """What was audited; names of columns and classes only if the user asked to show them."""

    name: str
    sha256: str | None
    rows: int
    features: int
    classes: int
    class_names: tuple[str, ...]
    label: str | None
    truth: bool


class MechanismInfo(Frozen):
    """The mechanism as declared, with its exact privacy parameter."""

    name: str
    declared: Literal["file", "options", "policy", "api"] | None
    parameters: dict[str, Any]
    epsilon: Number | None
    description: str = ""


class Check(Frozen):
    """One question of the policy and its answer."""

    id: Identifier
    question: str
    limit: Number | None
    observed: Number | None
    side: Side | None = None
    """Whether ``observed`` is a confidence bound, and which; None for a plain number."""
    verdict: Verdict
    level: CheckLevel
    confidence: float | None = None
    p_value: float | None = None
    """The smallest error probability at which it fails; None where that is above the policy's."""
    reason: str = ""
    waived: bool = False
    evidence: tuple[str, ...] = ()


class AuditRecord(Frozen):
    """Whether an audit ran, and if not why; one that was stopped may have a part of its numbers."""

    id: Identifier
    status: Literal["ran", "skipped", "failed", "stopped"]
    reason: str = ""
    seconds: float = 0.0


class RunInfo(Frozen):
    """How to reproduce the audit."""

    seed: int | None
    command: str
    versions: dict[str, str]
    threads: int
    seconds: float
    policy_sha256: str | None = None


def decision_of(verdict: Verdict, checks: Iterable[Check]) -> Decision:
    """Return whether to publish a release.

    A failed check that only warns changes neither the verdict nor the exit status, but somebody
    has to look at it first, and waive it or not: "not yet".
    """
    if verdict == "fail":
        return "do not publish"
    warned = any(c.level == "warn" and c.verdict == "fail" and not c.waived for c in checks)
    return "not yet" if warned or verdict == "inconclusive" else "publish"


class AuditResult(Frozen):
    """Everything that an audit found: the source of truth for every report format."""

    schema_version: Literal["1.3"] = SCHEMA_VERSION
    ldpaudit_version: str
    verdict: Verdict
    sentence: str
    """The verdict for people, one sentence."""
    next_steps: tuple[str, ...] = ()
    """What to do now, the most important first; at most three."""
    date: IsoDate | None = None
    """When the audit was run; None for a result of an earlier schema."""
    release: ReleaseInfo
    mechanism: MechanismInfo
    estimates: tuple[Estimate, ...]
    curves: tuple[Curve, ...]
    histograms: tuple[Histogram, ...] = ()
    notes: tuple[Note, ...] = ()
    checks: tuple[Check, ...]
    audits: tuple[AuditRecord, ...]
    run: RunInfo

    @model_validator(mode="before")
    @classmethod
    def _of_this_schema(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if data.get("schema_version") in EARLIER:
            data = upgraded(data) | {"schema_version": SCHEMA_VERSION}
        return {key: value for key, value in data.items() if key != "decision"}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def decision(self) -> Decision:
        """Whether to publish: what follows from the verdict and the checks that only warn."""
        return decision_of(self.verdict, self.checks)

    def estimate(self, identifier: str) -> Estimate | None:
        """Return the estimate of that id, None where the audit did not produce it."""
        return next((e for e in self.estimates if e.id == identifier), None)

    def curve(self, identifier: str) -> Curve | None:
        """Return the curve of that id, None where the audit did not produce it."""
        return next((c for c in self.curves if c.id == identifier), None)

    def title(self, identifier: str) -> str:
        """Return what people call the estimate or curve of that id."""
        part = self.estimate(identifier) or self.curve(identifier)
        return readable(identifier) if part is None else part.title

    def to_json(self, path: Path | str | None = None) -> str:
        """Return the result as JSON (sorted keys, full precision, "inf" for infinities).

        With a ``path`` the text is written there too, whole or not at all.
        """
        return self._render("json", path)

    def to_html(self, path: Path | str | None = None) -> str:
        """Return the report as one HTML page; with a ``path`` it is written there too."""
        return self._render("html", path)

    def _repr_html_(self) -> str:
        from ldpaudit.reports import embed

        return embed(self)

    def _render(self, format_name: str, path: Path | str | None) -> str:
        # The one import that goes up: methods for convenience, the report itself stays a function
        # of the result.
        from ldpaudit.reports import render
        from ldpaudit.writing import write_whole

        text = render(self, format_name)
        if path is not None:
            write_whole(Path(path), text)
        return text

    @classmethod
    def from_json(cls, text: str) -> "AuditResult":
        """Read a stored result.

        Raises
        ------
        ldpaudit.errors.InputError
            If the text is not the JSON of a result of this schema version or an earlier one.
        """
        from ldpaudit.errors import InputError

        try:
            return cls.model_validate(json.loads(text))
        except ValueError:
            raise InputError(
                f"The file must be an ldpaudit result of schema version {SCHEMA_VERSION}."
            ) from None
