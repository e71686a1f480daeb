"""Mechanisms that release several private columns of a row: independently, or together.

In: the channels of the columns, or one joint mechanism. Out: the exact channel of each column and,
where the product of the domains is small enough, that of the whole vector; the exact ε of both.
"""

from ldpaudit.mechanisms.joint.building import (
    JOINT,
    from_declaration,
    joint_family,
    marginal_claims,
)
from ldpaudit.mechanisms.joint.domains import OnDomains
from ldpaudit.mechanisms.joint.independent import IndependentColumns
from ldpaudit.mechanisms.joint.interface import JointMechanism
from ldpaudit.mechanisms.joint.product_response import JointRR
from ldpaudit.mechanisms.joint.random_sampling import RandomSampling

__all__ = [
    "JOINT",
    "IndependentColumns",
    "JointMechanism",
    "JointRR",
    "OnDomains",
    "RandomSampling",
    "from_declaration",
    "joint_family",
    "marginal_claims",
]
