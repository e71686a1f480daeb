"""What one audit returns: numbers with their sections, and notes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from ldpaudit.result.curve import Curve, Histogram
from ldpaudit.result.estimate import Estimate, Frozen, Identifier, Quantified

Q = TypeVar("Q", bound=Quantified)


class Note(Frozen):
    """One sentence for people: a limit, an assumption, what was sampled; never any data."""

    audit: Identifier
    """The audit that it is of."""
    text: str
    """The sentence."""
    level: Literal["info", "warning"] = "info"
    """Whether it is a warning."""

    @classmethod
    def info(cls, audit: str, text: str) -> "Note":
        """Return a remark."""
        return cls(audit=audit, text=text)

    @classmethod
    def warning(cls, audit: str, text: str) -> "Note":
        """Return a warning."""
        return cls(audit=audit, text=text, level="warning")


@dataclass(frozen=True)
class Finding:
    """What one audit returns; the pipeline puts the findings into one ``AuditResult``.

    Attributes
    ----------
    estimates, curves, histograms, notes : tuples
    bounds : mapping from estimate id to a function
        For a certified estimate, a function from a one-sided error probability ``alpha`` in (0, 1)
        to the bound at confidence 1 - alpha. The policy needs it to correct for several checks; the
        result does not store it.
    """

    estimates: tuple[Estimate, ...] = ()
    curves: tuple[Curve, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    notes: tuple[Note, ...] = ()
    bounds: Mapping[str, Callable[[float], float]] = field(default_factory=dict)

    def in_section(self, section: str) -> "Finding":
        """Return the finding with its numbers in a section, unless they name another."""
        return replace(
            self,
            estimates=_placed(self.estimates, section),
            curves=_placed(self.curves, section),
            histograms=_placed(self.histograms, section),
        )


def together(findings: Iterable[Finding]) -> Finding:
    """Return several findings as one."""
    every = list(findings)
    return Finding(
        tuple(e for finding in every for e in finding.estimates),
        tuple(c for finding in every for c in finding.curves),
        tuple(h for finding in every for h in finding.histograms),
        tuple(n for finding in every for n in finding.notes),
        {key: bound for finding in every for key, bound in finding.bounds.items()},
    )


def _placed(parts: tuple[Q, ...], section: str) -> tuple[Q, ...]:
    return tuple(p if p.section else p.model_copy(update={"section": section}) for p in parts)
