"""Label-inference attacks: one module and one class each, and how they are scored.

In: what an attacker knows, as :class:`~ldpaudit.attacks.interface.Knowledge`, and rows. Out:
P(true label | what the attack sees). Other packages register attacks under the entry-point group
``ldpaudit.attacks``.
"""

import importlib
from collections.abc import Collection
from typing import Final

from ldpaudit.attacks.costs import Size
from ldpaudit.attacks.foreign import Factory, Given, foreign, given_attacks
from ldpaudit.attacks.interface import Attack, Knowledge, conditioned
from ldpaudit.errors import InputError, did_you_mean, quoted
from ldpaudit.plugins import added, check_one, unloadable
from ldpaudit.result.dictionary import attacks_of_their_own

__all__ = [
    "ATTACKS",
    "DEFAULT",
    "Attack",
    "Knowledge",
    "available_attacks",
    "conditioned",
    "create_attack",
    "in_default_set",
    "taken_names",
]


def __dir__() -> list[str]:
    return __all__


ATTACKS: Final = {
    "prior": "ldpaudit.attacks.prior:PriorAttack",
    "features-only": "ldpaudit.attacks.features_only:FeaturesOnlyAttack",
    "released-label": "ldpaudit.attacks.released_label:ReleasedLabelAttack",
    "oracle": "ldpaudit.attacks.oracle:OracleAttack",
    "bayes": "ldpaudit.attacks.bayes:BayesAttack",
    "classifier": "ldpaudit.attacks.classifier:ClassifierAttack",
    "prior-shift": "ldpaudit.attacks.prior_shift:PriorShiftAttack",
    "row-order": "ldpaudit.attacks.votes:RowOrderAttack",
    "bayes-whole-release": "ldpaudit.attacks.whole_release:WholeReleaseAttack",
    "near-rows": "ldpaudit.attacks.votes:NearVotesAttack",
    "synthetic-aware": "ldpaudit.attacks.synthetic_aware:SyntheticAwareAttack",
    "knn": "ldpaudit.attacks.knn:NeighborsAttack",
    "unknown-channel": "ldpaudit.attacks.unknown_channel:UnknownChannelAttack",
    "bayes-network": "ldpaudit.attacks.corrected_classifiers:NetworkBayesAttack",
    "classifier-boosting-forward": "ldpaudit.attacks.corrected_classifiers:boosting_forward",
    "classifier-boosting-backward": "ldpaudit.attacks.corrected_classifiers:boosting_backward",
    "classifier-boosting-plain": "ldpaudit.attacks.corrected_classifiers:boosting_plain",
    "classifier-logistic-forward": "ldpaudit.attacks.corrected_classifiers:logistic_forward",
    "classifier-logistic-backward": "ldpaudit.attacks.corrected_classifiers:logistic_backward",
    "classifier-logistic-plain": "ldpaudit.attacks.corrected_classifiers:logistic_plain",
    "classifier-network-forward": "ldpaudit.attacks.corrected_classifiers:network_forward",
    "classifier-network-backward": "ldpaudit.attacks.corrected_classifiers:network_backward",
    "classifier-network-plain": "ldpaudit.attacks.corrected_classifiers:network_plain",
}
"""The built-in attacks in the order in which a budget is spent on them; imported when they run.

First what is free or expected to be the strongest for its seconds, last those that were never the
strongest by more than 0.2 points where measured (benchmarks/attack_set.py).
"""
DEFAULT: Final = (
    "prior",
    "features-only",
    "released-label",
    "oracle",
    "bayes",
    "classifier",
    "prior-shift",
    "row-order",
    "bayes-whole-release",
    "near-rows",
    "synthetic-aware",
)
"""The attacks that run unless all are asked for; so do those of other packages."""
_WITHOUT_CHANNEL: Final = "unknown-channel"
"""Runs, too, where no channel is declared: ``bayes`` cannot."""
_FROM_MORE_ROWS: Final = "bayes-whole-release"
_ENOUGH_WORK: Final = 2.0
"""Millions of rows × columns × labels of a half beyond which more rows teach at most 0.2 points."""


def available_attacks(given: Collection[Given] = ()) -> dict[str, str | Factory]:
    """Return the place or the class of each attack by name: built in, plug-ins, then those given.

    Raises
    ------
    InputError
        If one that is given cannot be loaded, or has the name of another.
    """
    plugins = {name: point.value for name, point in added("attack", taken_names()).items()}
    known: dict[str, str | Factory] = {**ATTACKS, **plugins}
    return known | given_attacks(given, known.keys() | taken_names()) if given else known


def taken_names() -> frozenset[str]:
    """Return the names that no attack of others may have."""
    return attacks_of_their_own() | ATTACKS.keys()


def in_default_set(name: str, knowledge: Knowledge, size: Size) -> bool:
    """Return whether an attack runs without being asked for."""
    if name == _WITHOUT_CHANNEL:
        return knowledge.channel is None
    if name == _FROM_MORE_ROWS and size.work > _ENOUGH_WORK:
        return False
    return name in DEFAULT or name not in ATTACKS


def create_attack(name: str, knowledge: Knowledge, given: Collection[Given] = ()) -> Attack:
    """Build an attack.

    Raises
    ------
    InputError
        If there is no attack of that name, or it does not state what every attack states.
    AttackError
        If it is of others and cannot be built.

    Examples
    --------
    >>> from ldpaudit.attacks import Knowledge, create_attack
    >>> create_attack("prior", Knowledge(None)).uses_release
    False
    """
    if name in ATTACKS:
        return _factory(ATTACKS[name])(knowledge)
    attacks = available_attacks(given)
    if name not in attacks:
        listed, near = ", ".join(sorted(attacks)), did_you_mean(name, attacks)
        raise InputError(f"There is no attack {quoted(name)}; choose one of {listed}{near}")
    place = attacks[name]
    return foreign(name, _plugin(name, place) if isinstance(place, str) else place, knowledge)


def _factory(place: str) -> Factory:
    module, _, attribute = place.partition(":")
    factory: Factory = getattr(importlib.import_module(module), attribute)
    return factory


def _plugin(name: str, place: str) -> Factory:
    check_one("attack", name)
    try:
        return _factory(place)
    except (Exception, SystemExit) as error:
        raise unloadable("attack", name, error) from error
