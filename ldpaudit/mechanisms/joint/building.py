"""Building what a declaration of several private columns claims."""

from collections.abc import Mapping, Sequence
from typing import Final

from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms.joint.domains import OnDomains
from ldpaudit.mechanisms.joint.independent import IndependentColumns
from ldpaudit.mechanisms.joint.interface import JointMechanism
from ldpaudit.mechanisms.joint.product_response import JointRR
from ldpaudit.mechanisms.joint.random_sampling import RandomSampling
from ldpaudit.mechanisms.registry import from_declaration as one_column
from ldpaudit.release import ColumnsDeclaration, Declaration, Label

JOINT: Final[Mapping[str, type[OnDomains]]] = {
    family.name: family for family in (JointRR, RandomSampling)
}
"""The mechanisms that release several columns together, by name."""


def joint_family(name: str) -> type[OnDomains]:
    """Return the class of a joint mechanism.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in JOINT:
        raise InputError(
            f"The mechanism {name!r} does not release several columns together; choose one of "
            f"{', '.join(sorted(JOINT))}{did_you_mean(name, JOINT)}"
        )
    return JOINT[name]


def marginal_claims(declared: Declaration) -> list[Declaration]:
    """Return the exact claim about each column alone that a joint mechanism makes.

    Parameters
    ----------
    declared : Declaration
        Of the joint mechanism; its domains must be stated.

    Raises
    ------
    InputError
        If it is no joint mechanism, or not fully stated.
    """
    joint = joint_family(declared.name).from_parameters(declared.parameters, ())
    return [Declaration(one.name, one.declaration(), declared.source) for one in joint.columns]


def from_declaration(
    declaration: ColumnsDeclaration, classes: Sequence[tuple[Label, ...]]
) -> JointMechanism:
    """Build what is claimed of a vector of private columns, with every parameter checked.

    Parameters
    ----------
    declaration : ColumnsDeclaration
    classes : sequence of tuple, length d
        For each column, the true labels to use where the declaration states none.

    Raises
    ------
    InputError
        If a name is unknown, a parameter is missing, unknown or out of range, or the domains are
        not those of the declared columns.
    """
    labels = declaration.labels
    if len(classes) != len(labels):
        raise InputError(f"There are {len(labels)} private columns, but labels of {len(classes)}.")
    if declaration.joint is None:
        columns = tuple(one_column(a.mechanism, k) for a, k in zip(labels, classes, strict=True))
        return IndependentColumns(columns, tuple(one.by for one in labels))
    family = joint_family(declaration.joint.name)
    joint = family.from_parameters(declaration.joint.parameters, classes)
    if len(joint.domains) != len(labels):
        raise InputError(
            f"The mechanism {family.name!r} states {len(joint.domains)} domains, but there are "
            f"{len(labels)} private columns."
        )
    return joint
