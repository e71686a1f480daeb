"""The result of an audit as a whole, and its JSON form."""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, overload

from pydantic import FailFast, computed_field, model_validator

from ldpaudit.errors import InputError, did_you_mean, quoted
from ldpaudit.result.access import access_of
from ldpaudit.result.before_after import ColumnShares, Confusion
from ldpaudit.result.checks import (
    Check,
    Decision,
    Family,
    IsoDate,
    Verdict,
    decision_of,
    verdict_of,
    worst,
)
from ldpaudit.result.described import MechanismInfo, PublicFacts, ReleaseInfo
from ldpaudit.result.earlier import EARLIER, upgraded
from ldpaudit.result.estimate import Curve, Estimate, Frozen, Histogram, Note, readable
from ldpaudit.result.frames import frame_of, scores_frame, stacked
from ldpaudit.result.run_info import AuditRecord, RunInfo
from ldpaudit.result.shown import written
from ldpaudit.surfaces import spelt
from ldpaudit.work.documents import stored

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION: Final = "1.5"
Profile = Literal["internal", "public"]
"""Whom a page is for: who works on the release, or everybody."""


def _reports() -> Any:
    """Return the package of report formats, by name: methods for convenience, not a need of it."""
    return import_module("ldpaudit.reports")


def overall(checks: Sequence[Check], parts: Iterable["AuditResult"]) -> Verdict:
    """Return the verdict of a result with parts: the worst of its own checks and of the parts'."""
    # Where none of its own checks decides, the parts do.
    verdicts = [part.verdict for part in parts]
    own = not verdicts or any(check.level == "error" for check in checks)
    return worst([verdict_of(checks)] * own + verdicts)


def consistent(result: "AuditResult") -> bool:
    """Return whether a verdict is the worst of the checks and parts, and the sentence fits it."""
    parts = tuple(part for some in result.held.values() for part in some)
    several = (*result.labels, *result.releases)
    reassured = result.sentence.startswith(("No violation found", "Proven"))
    contradicts = len(several) == 1 or (reassured and result.verdict != "pass")
    agrees = result.verdict == overall(result.checks, parts)
    return agrees and not contradicts and all(map(consistent, parts))


class AuditResult(Frozen):
    """Everything that an audit found: the source of truth for every report format.

    Attributes
    ----------
    schema_version
        The version of this form.
    ldpaudit_version
        The version that made it.
    verdict
        The answer of the checks that decide; the exit status follows from it.
    sentence
        The verdict for people, one sentence.
    next_steps
        What to do now, the most important first; at most three.
    date
        When the audit was run; None for a result of an earlier schema.
    release
        What was audited.
    mechanism
        What was claimed.
    estimates
        Numbers, each under an id.
    curves
        Numbers as functions of one variable, each under an id.
    histograms
        Counts of people in bins.
    notes
        Remarks and warnings.
    checks
        The policy's questions and their answers.
    families
        How the checks that are tests share the error probability; none in earlier results.
    audits
        What ran, and what did not.
    run
        How to do it again.
    public
        What ``--profile public`` shows besides the decision; none in earlier results.
    labels
        Of several private columns: the result of each; the numbers above are then of the vector.
    releases
        Of several releases of the same people: the result of each; those above are of all.
    strata
        Of a column with a channel for each stratum: what is found of the channel in each that has
        rows, in the declared order; ``release.label`` is its value.
    columns
        How much of the label each column explains, before and after the noise; null without true
        labels, and of several columns or releases.
    confusion
        True against released labels and the claimed channel; null without true labels, and of
        several columns or releases.

    Examples
    --------
    >>> import ldpaudit
    >>> import pandas as pd
    >>> rows = [("yes", 1.0), ("no", 2.0), ("no", 1.0)] * 100
    >>> frame = pd.DataFrame(rows, columns=["label", "x"])
    >>> result = ldpaudit.audit(frame, mechanism="rr", epsilon=1.0, only=["mechanism", "power"])
    >>> result.verdict, result["mechanism.epsilon"].value
    ('inconclusive', 1.0)
    >>> frame = result.to_frame()  # every number, indexed by its id
    """

    schema_version: Literal["1.5"] = SCHEMA_VERSION
    ldpaudit_version: str
    verdict: Verdict
    sentence: str
    next_steps: tuple[str, ...] = ()
    date: IsoDate | None = None
    release: ReleaseInfo
    mechanism: MechanismInfo
    estimates: Annotated[tuple[Estimate, ...], FailFast()]
    curves: Annotated[tuple[Curve, ...], FailFast()]
    histograms: Annotated[tuple[Histogram, ...], FailFast()] = ()
    notes: Annotated[tuple[Note, ...], FailFast()] = ()
    checks: Annotated[tuple[Check, ...], FailFast()]
    families: Annotated[tuple[Family, ...], FailFast()] = ()
    audits: Annotated[tuple[AuditRecord, ...], FailFast()]
    run: RunInfo
    public: PublicFacts | None = None
    labels: Annotated[tuple["AuditResult", ...], FailFast()] = ()
    releases: Annotated[tuple["AuditResult", ...], FailFast()] = ()
    strata: Annotated[tuple["AuditResult", ...], FailFast()] = ()
    columns: ColumnShares | None = None
    confusion: Confusion | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_this_schema(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if data.get("schema_version") in EARLIER:
            data = upgraded(data) | {"schema_version": SCHEMA_VERSION}
        return {key: value for key, value in data.items() if key not in ("access", "decision")}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def access(self) -> str:
        """Who may see this result; the first key of the file."""
        return access_of(self.confidential)

    @property
    def confidential(self) -> bool:
        """Whether it was made with true labels."""
        return any(part.release.truth for part in (self, *self.parts.values()))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def decision(self) -> Decision:
        """Whether to publish: what follows from the verdict and the checks that only warn."""
        parts = (self, *self.parts.values())
        return decision_of(self.verdict, [check for one in parts for check in one.checks])

    @property
    def held(self) -> dict[str, tuple["AuditResult", ...]]:
        """The results of its own columns, releases and strata, by what one is called."""
        return {"column": self.labels, "release": self.releases, "stratum": self.strata}

    @property
    def parts(self) -> dict[str, "AuditResult"]:
        """The results of its columns, releases and strata by their keys, each before its own.

        Keys are such as ``"column-2"``, ``"release-1/column-2"`` and ``"stratum-1"``.
        """
        found: dict[str, AuditResult] = {}
        for kind, results in self.held.items():
            for position, result in enumerate(results, 1):
                key = f"{kind}-{position}"
                found |= {key: result} | {f"{key}/{k}": part for k, part in result.parts.items()}
        return found

    def __repr__(self) -> str:
        counted = {
            "columns": len(self.labels),
            "releases": len(self.releases),
            "strata": len(self.strata),
        }
        held = "".join(f"{count} {kind}, " for kind, count in counted.items() if count)
        return f"AuditResult({held}{self.decision}: {self})"

    def __str__(self) -> str:
        return spelt(self.sentence)

    def __getitem__(self, identifier: str) -> Estimate:
        """Return the estimate of that id: ``result["mechanism.epsilon"].value``.

        Of a column or release: ``result["column-2/mechanism.epsilon"]``.

        Raises
        ------
        KeyError
            If the audit did not produce it.
        """
        parts = {"": self, **{f"{key}/": part for key, part in self.parts.items()}}
        known = {f"{key}{e.id}": e for key, part in parts.items() for e in part.estimates}
        found = known.get(identifier)
        if found is None:
            near = did_you_mean(str(identifier), known)
            raise KeyError(f"The audit has no number {quoted(str(identifier))}{near}")
        return found

    @property
    def attacks(self) -> "pd.DataFrame":
        """The scores: one row for each attack, for each reference, and for each bound on all.

        Where the result has columns or releases, the column ``of`` says which a row is of.
        """
        return self._stacked(lambda result: scores_frame(result.estimates))

    def to_frame(
        self, part: Literal["estimates", "checks", "audits"] = "estimates"
    ) -> "pd.DataFrame":
        """Return all numbers, or all checks or audits, one row for each, indexed by id.

        Parameters
        ----------
        part : {"estimates", "checks", "audits"}
            Which of them. Numbers have the columns ``title``, ``section``, ``kind`` (exact,
            certified or estimated), ``value``, ``low``, ``high``, ``level``, ``unit`` and others.
            Where the result has columns or releases, the column ``of`` says which a row is of.
        """
        kinds: dict[str, type[Frozen]] = {
            "estimates": Estimate,
            "checks": Check,
            "audits": AuditRecord,
        }
        if part not in kinds:
            raise InputError(f"A frame is of {', '.join(kinds)}{did_you_mean(part, kinds)}")
        return self._stacked(lambda result: frame_of(getattr(result, part), kinds[part]))

    def _stacked(self, frame: Callable[["AuditResult"], "pd.DataFrame"]) -> "pd.DataFrame":
        """Return a frame of the result, and those of its parts below it."""
        if not self.parts:
            return frame(self)
        return stacked({key: frame(part) for key, part in {"all": self, **self.parts}.items()})

    def check(self, identifier: str) -> Check | None:
        """Return the check with the id ``identifier``; None: the policy did not ask for it."""
        return next((c for c in self.checks if c.id == identifier), None)

    def estimate(self, identifier: str) -> Estimate | None:
        """Return the estimate with the id ``identifier``; None: the audit did not produce it."""
        return next((e for e in self.estimates if e.id == identifier), None)

    def curve(self, identifier: str) -> Curve | None:
        """Return the curve with the id ``identifier``; None: the audit did not produce it."""
        return next((c for c in self.curves if c.id == identifier), None)

    def title(self, identifier: str) -> str:
        """Return what people call the estimate or curve with the id ``identifier``."""
        part = self.estimate(identifier) or self.curve(identifier)
        return readable(identifier) if part is None else part.title

    @overload
    def to_json(self, path: None = None, *, profile: Profile = "internal") -> str: ...
    @overload
    def to_json(self, path: Path | str, *, profile: Profile = "internal") -> None: ...
    def to_json(
        self, path: Path | str | None = None, *, profile: Profile = "internal"
    ) -> str | None:
        """Return the result as JSON (sorted keys, full precision, "inf" for infinities).

        With a ``path`` it is written there instead, whole or not at all. The public profile is
        the one to share: apart from the decision nothing in it depends on a true label.
        """
        return self._render("json", path, profile)

    @overload
    def to_html(self, path: None = None, *, profile: Profile = "internal") -> str: ...
    @overload
    def to_html(self, path: Path | str, *, profile: Profile = "internal") -> None: ...
    def to_html(
        self, path: Path | str | None = None, *, profile: Profile = "internal"
    ) -> str | None:
        """Return the report as one HTML page; with a ``path`` it is written there instead.

        The public profile is the one to share: decision, policy, claim and power, and apart from
        the decision nothing that depends on a true label.
        """
        return self._render("html", path, profile)

    def plot(self, what: str = "epsilon") -> Any:
        """Return one picture of the page, which a notebook shows and ``save(path)`` writes.

        Parameters
        ----------
        what : str
            ``"epsilon"``, ``"attacks"``, or the id of a curve or histogram such as
            ``"instance_loss.exceedance"``; of a column or release see ``parts``.

        Raises
        ------
        ldpaudit.errors.InputError
            If the result has no such picture; the message names those that it has.
        """
        return _reports().plot(self, what)

    def _repr_html_(self) -> str:
        embedded: str = _reports().embed(self)
        return embedded

    def _render(
        self, format_name: str, path: Path | str | None, profile: Profile = "internal"
    ) -> str | None:
        text: str = _reports().render_for(self, format_name, profile)
        return written(text, path, private=self.confidential and profile == "internal")

    @classmethod
    def from_json(cls, text: str) -> "AuditResult":
        """Read a stored result.

        Raises
        ------
        ldpaudit.errors.InputError
            If the text is not the JSON of a result of this schema version or an earlier one, or
            its verdict is not that of its checks and its sentence.
        """
        invalid = f"The file must be an ldpaudit result of schema version {SCHEMA_VERSION}."
        result = stored(cls.model_validate, text, "A stored result", invalid)
        if not consistent(result):
            raise InputError(
                "The result contradicts itself: its verdict is not that of its checks, parts and "
                "sentence. It was changed after the audit."
            )
        return result
