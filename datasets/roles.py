"""What each column is: the label, the true label, the row's id, a feature, or left out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.errors import InputError

DEFAULT_LABEL = "label"


@dataclass(frozen=True)
class Roles:
    """The columns of a release by name: a label, perhaps a truth, an id and groups; features."""

    label: str
    truth: str | None
    identifier: str | None
    group: str | None
    features: tuple[str, ...]

    @property
    def special(self) -> tuple[str, ...]:
        """The columns that are no features, the label first."""
        others = (self.label, self.truth, self.identifier, self.group)
        return tuple(dict.fromkeys(name for name in others if name is not None))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that say whose row it is."""
        others = (self.identifier, self.group)
        return tuple(dict.fromkeys(name for name in others if name is not None))


def assign_roles(
    names: Sequence[str],
    *,
    label: str | None = None,
    declared_label: str | None = None,
    truth_column: str | None = None,
    id_column: str | None = None,
    group: str | None = None,
    drop: Collection[str] = (),
    features: Collection[str] | None = None,
) -> Roles:
    """Give every column its role.

    Parameters
    ----------
    names : sequence of str
        All columns of the release.
    label : str or None
        The label that was asked for; default: the declared one, else ``"label"``.
    declared_label : str or None
    truth_column, id_column, group : str or None
        Columns of the release that are no features; the ids may be the groups.
    drop : collection of str
        Columns to leave out.
    features : collection of str or None
        The only columns to use as features; None: all that have no other role.

    Raises
    ------
    InputError
        If a name is not there (the message tells the place of the nearest one), or two roles fall
        on one column.
    """
    roles = Roles(_label(names, label, declared_label), truth_column, id_column, group, ())
    for name, role in ((truth_column, "true label"), (id_column, "id"), (group, "group")):
        if name is not None and name not in names:
            raise missing_column(name, role, names)
    given = [name for name in (roles.label, truth_column, id_column) if name is not None]
    if len(set(given)) < len(given):
        raise InputError("The label, the true label and the id must be different columns.")
    if group is not None and group in (roles.label, truth_column):
        raise InputError("The group (--group) must be another column than the labels.")
    _check_names(names, drop, "drop", (roles.label,))
    _check_names(names, features or (), "features", roles.special)
    wanted = set(names if features is None else features) - set(drop) - set(roles.special)
    chosen = tuple(name for name in names if name in wanted)
    return replace(roles, features=chosen)


_PURPOSES: Final = {"drop": "to drop", "features": "to use as a feature"}


def _label(names: Sequence[str], label: str | None, declared: str | None) -> str:
    chosen = label or declared or DEFAULT_LABEL
    if chosen not in names:
        advice = "name the released label's column."
        raise missing_column(chosen, "label", names, advice, typed=bool(label) or declared is None)
    return chosen


def _check_names(
    names: Sequence[str], given: Collection[str], role: str, taken: Sequence[str]
) -> None:
    if isinstance(given, str):
        raise InputError(f"The '{role}' parameter must be a list of column names, not one text.")
    known = set(names)
    for name in given:
        if name not in known:
            raise missing_column(name, _PURPOSES[role], names)
        if name in taken:
            raise InputError(
                f"The column {quoted(name)} has another role; it cannot be in '{role}'."
            )
