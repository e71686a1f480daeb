"""What everybody may see of an audit of several answers besides its decision."""

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace

from ldpaudit.doors import AuditResult, InputError
from ldpaudit.extras.several.nodes import Node, claim_info, everything, node_of, tree_info
from ldpaudit.extras.several.related import Companions
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import UNKNOWN
from ldpaudit.pipeline.public import (
    claim_alone,
    has_noisy_features,
    questions,
    released_alone,
    states_labels,
)
from ldpaudit.result import MechanismInfo, PublicFacts


def public_facts_of(
    node: Node, parts: Sequence[AuditResult], policy: Policy, today: datetime.date
) -> PublicFacts:
    """Return what everybody may see of several columns or releases."""
    epsilon = claimed_alone(node)
    try:
        bare = node
        if isinstance(node.related, Companions):
            columns = tuple(map(released_alone, node.related.file.columns))
            bare = node_of(replace(node.related.file, columns=columns))
        mechanism = claim_info(bare, bare.joint, epsilon)
    except InputError:  # One released label for all, and no classes declared.
        mechanism = MechanismInfo(name=UNKNOWN, declared=None, parameters={}, epsilon=None)
    left_out = next((part.public.left_out for part in parts if part.public is not None), ())
    replayed = bool(node.replays)
    noisy = any(has_noisy_features(claim_alone(released_alone(leaf))) for leaf in node.leaves)
    return PublicFacts(
        release=tree_info(node).model_copy(
            update={"classes": 0, "class_names": (), "before": None}
        ),
        mechanism=mechanism,
        questions=questions(policy, node.sha256, today, replayed=replayed, noisy=noisy),
        left_out=left_out,
    )


def claimed_alone(node: Node) -> float | None:
    """Return the claimed ε of a node with parts without a look at true labels."""
    # Where a claim depends on them, that of the parts added up, or the largest where answers of one
    # column are remembered.
    if all(map(states_labels, node.leaves)) and node.kind != "column":
        return node.epsilon
    if node.kind == "column":
        claim = claim_alone(released_alone(node.leaves[0]))
        return None if claim is None else claim.epsilon
    if node.kind == "person":
        return everything(node, claimed_alone)
    parts = node.releases or node.columns or tuple(map(node_of, node.leaves))
    known = [claimed_alone(part) for part in parts]
    if None in known:
        return None
    once = node.noise == "remembered"
    return (max if once else math.fsum)(value for value in known if value is not None)
