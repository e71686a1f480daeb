"""Mechanisms that release several private columns of a row: independently, or together.

In: the channels of the columns, or one joint mechanism. Out: the exact channel of each column and,
where the product of the domains is small enough, that of the whole vector; the exact ε of both.
"""

from ldpaudit.mechanisms.joint.interface import JointMechanism

__all__ = ["JointMechanism"]
