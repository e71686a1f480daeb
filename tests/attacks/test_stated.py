"""What an attack of others states is checked before it runs."""

from typing import Any

import pytest

from ldpaudit.attacks import STATED, Knowledge, foreign
from ldpaudit.errors import InputError

RIGHT: dict[str, Any] = dict.fromkeys(STATED) | {
    "name": "odd",
    "title": "Odd",
    "needs": frozenset({"channel"}),
    "uses_release": True,
    "learns_from_asked": False,
    "fit": lambda self, _: self,
    "posterior": lambda _, rows: rows,
}


def built(**stated: Any) -> Any:
    made = type("Odd", (), RIGHT | stated | {"__init__": lambda self, knowledge: None})
    return foreign("odd", made, Knowledge(None))


@pytest.mark.parametrize("needs", [None, 3, "channel", [[]], {"chanel"}])
def test_needs_of_no_set_are_refused(needs: Any) -> None:
    with pytest.raises(InputError, match="needs of the attack 'odd' must be a set of: truth"):
        built(needs=needs)


@pytest.mark.parametrize("member", ["uses_release", "learns_from_asked"])
def test_what_is_true_or_false_is_that(member: str) -> None:
    with pytest.raises(InputError, match=f"The {member} of the attack 'odd' must be True or False"):
        built(**{member: "yes"})
    assert built().needs == {"channel"}
