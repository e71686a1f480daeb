"""The result of comparing releases: their results, the differences, and whether data are the same.

Like :mod:`ldpaudit.result` no field can hold a row, a cell or a per-row score.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, computed_field, model_validator

from ldpaudit.doors import AuditResult, Estimate, Frozen, Note
from ldpaudit.result import SCHEMA_VERSION, Kind, Number, RunInfo, Titled, Unit
from ldpaudit.result.access import access_of
from ldpaudit.result.earlier import EARLIER, without_suppression
from ldpaudit.result.frames import frame_of
from ldpaudit.result.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the compared releases are called, in their order."""
Letter = Annotated[str, Field(pattern=r"^[A-Z]$")]


class Difference(Titled):
    """A number of release ``b`` minus the same number of release ``a``.

    Attributes
    ----------
    id : str
        The id of the number in both results.
    title : str
        For people.
    a, b : str
        The letters of the releases; ``a`` is the first one given, ``"A"``.
    a_name, b_name : str
        Their names; "" in earlier results.
    kind : {"exact", "certified", "estimated"}
        The weaker of the two numbers' kinds.
    value : float
        That of ``b`` minus that of ``a``.
    low, high : float
        The ends of the two-sided interval; both ``value`` for an exact difference.
    level : float or None
        The confidence of this interval alone; None for an exact difference.
    simultaneous : bool
        Whether the interval is one of those that hold together at the comparison's ``confidence``.
    paired : bool
        Whether the same rows were scored in both releases; if not, the interval combines one for
        each release, each at half the error probability, which makes it wider.
    n : int or None
        The rows behind it.
    unit, method, assumptions
        Those of the number, as in a result.
    """

    a: Letter
    b: Letter
    a_name: str = ""
    b_name: str = ""
    kind: Kind
    value: Number
    low: Number
    high: Number
    level: float | None = None
    simultaneous: bool = False
    paired: bool = False
    unit: Unit = "1"
    n: int | None = None
    method: str = ""
    assumptions: tuple[str, ...] = ()

    @classmethod
    def between(
        cls, letters: tuple[str, str], estimate: Estimate, *, simultaneous: bool, paired: bool
    ) -> "Difference":
        """Return a difference from an estimate."""
        low = estimate.value if estimate.low is None else estimate.low
        high = estimate.value if estimate.high is None else estimate.high
        ends = {"low": low, "high": high}
        fields = {"a": letters[0], "b": letters[1], "simultaneous": simultaneous, "paired": paired}
        shared = estimate.model_dump(include=set(Estimate.model_fields) & set(cls.model_fields))
        return cls.model_validate(shared | ends | fields)

    @property
    def decided(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


class Fingerprint(Frozen):
    """What is known about the data of one release, without the true labels.

    Attributes
    ----------
    letter
        What the release is called here.
    source
        Whether the data were read, or a stored result.
    name
        The name of the file, with as much of its folder as tells the releases apart.
    sha256
        The digest of the released file.
    rows
        Its rows.
    classes
        Different labels.
    features
        Columns of features.
    truth
        Whether true labels were given.
    shared_rows
        The share of rows with the same features at the same place as the first; None: unknown.
    mismatch
        How it differs from the first release, in words.
    """

    letter: Letter
    source: Literal["data", "result"]
    name: str
    sha256: str | None
    rows: int
    classes: int
    features: int
    truth: bool
    shared_rows: float | None = None
    mismatch: tuple[str, ...] = ()


class Comparison(Shown, Frozen):
    """Everything that a comparison found: the source of truth for its report.

    Attributes
    ----------
    schema_version
        The version of this form.
    ldpaudit_version
        The version that made it.
    sentence
        The sentences, one after the other.
    sentences
        On privacy, on the advantage over the features alone, on utility; none in earlier results.
    remark
        At which level the intervals in the sentences hold together.
    confidence
        At which all differences marked simultaneous hold together.
    fingerprints
        The data of each release, in the order of their letters.
    releases
        The result of each release.
    differences
        The numbers of each release minus those of the first.
    notes
        Remarks and warnings.
    run
        How to do it again.
    """

    schema_version: Literal["1.5"] = SCHEMA_VERSION
    ldpaudit_version: str
    sentence: str
    sentences: tuple[str, ...] = ()
    remark: str = ""
    confidence: float
    fingerprints: tuple[Fingerprint, ...]
    releases: tuple[AuditResult, ...]
    differences: tuple[Difference, ...]
    notes: tuple[Note, ...] = ()
    run: RunInfo

    @model_validator(mode="before")
    @classmethod
    def _of_this_schema(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        data = {key: value for key, value in data.items() if key != "access"}
        if data.get("schema_version") not in EARLIER:
            return data
        differences = without_suppression(data.get("differences", ()))
        return data | {"schema_version": SCHEMA_VERSION, "differences": differences}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def access(self) -> str:
        """Who may see this comparison; the first key of the file."""
        return access_of(self.confidential)

    @property
    def confidential(self) -> bool:
        """Whether it was made with true labels."""
        return any(one.truth for one in self.fingerprints)

    @property
    def names(self) -> dict[str, str]:
        """The name of each release by its letter, all different."""
        names = [print_.name for print_ in self.fingerprints]
        return {
            p.letter: p.name if names.count(p.name) == 1 else f"{p.name} ({p.letter})"
            for p in self.fingerprints
        }

    @property
    def _sentence(self) -> str:
        return self.sentence

    @property
    def _private(self) -> bool:
        return self.confidential

    def _html(self) -> str:
        html: str = import_module("ldpaudit.extras.compare.page").render_comparison(self)
        return html

    def _json(self) -> str:
        from ldpaudit.work.documents import as_json

        return as_json(self.model_dump())

    def _figures(self) -> dict[str, Any]:
        sections = import_module("ldpaudit.extras.compare.page").page_of(self).sections
        figures: dict[str, Any] = import_module("ldpaudit.reports.plots").by_name(sections)
        return figures

    def to_frame(self) -> "pd.DataFrame":
        """Return all differences, one row for each, indexed by the number's id."""
        return frame_of(self.differences, Difference)

    def difference(self, identifier: str, b: str = "B") -> Difference | None:
        """Return the difference of that id between ``b`` and A, None if there is none."""
        return next((d for d in self.differences if d.id == identifier and d.b == b), None)

    @classmethod
    def from_json(cls, text: str) -> "Comparison":
        """Read a stored comparison.

        Raises
        ------
        ldpaudit.errors.InputError
            If the text is not the JSON of a comparison.
        """
        from ldpaudit.work.documents import stored

        invalid = "The file must be a stored ldpaudit comparison."
        return stored(cls.model_validate, text, "A stored comparison", invalid)
