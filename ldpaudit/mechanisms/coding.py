"""How a reader turns the released labels of a declared mechanism into codes.

The reader knows no mechanism: it is given this. The mechanism is built once, here, if its
declaration is complete; else the labels that occur complete it.
"""

from dataclasses import dataclass
from functools import cached_property

from ldpaudit.mechanisms.capabilities import BagSums
from ldpaudit.mechanisms.frequency_oracles import FrequencyOracle
from ldpaudit.mechanisms.interface import Mechanism, Traits
from ldpaudit.mechanisms.numeric.view import numeric_view
from ldpaudit.mechanisms.registry import from_declaration, traits_of
from ldpaudit.numeric_labels import NumericView
from ldpaudit.release import Declaration


@dataclass(frozen=True)
class DeclaredCoding:
    """The coding for a declared mechanism, or for none.

    Parameters
    ----------
    declaration : Declaration or None
    """

    declaration: Declaration | None

    @property
    def _traits(self) -> Traits:
        return traits_of("" if self.declaration is None else self.declaration.name)

    @property
    def outputs_are_labels(self) -> bool:
        """Whether the outputs are labels, unless outputs are declared."""
        return self._traits.outputs == "labels"

    @property
    def order_of_classes_matters(self) -> bool:
        """Whether the classes must be declared: they are the rows of a matrix."""
        return "matrix" in self._traits.needs

    @cached_property
    def _mechanism(self) -> Mechanism:
        return from_declaration(self.declaration, ())

    def view(self, rows: int) -> NumericView | None:
        """Return the coding of numeric labels; None for a mechanism on classes."""
        return numeric_view(self._mechanism, rows) if self._traits.numeric else None

    @property
    def bags(self) -> BagSums | None:
        """The mechanism that releases sums of bags; None where rows are released one by one."""
        if self._traits.rows != "bags":
            return None
        assert isinstance(self._mechanism, BagSums)
        return self._mechanism

    @property
    def reports(self) -> FrequencyOracle | None:
        """The protocol whose reports were recorded; None for a mechanism that releases labels."""
        if self._traits.outputs != "reports":
            return None
        assert isinstance(self._mechanism, FrequencyOracle)
        return self._mechanism
