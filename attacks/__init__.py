"""Label-inference attacks: one module and one class each, and how they are scored.

In: what an attacker knows, as :class:`~ldpaudit.attacks.interface.Knowledge`, and rows. Out:
P(true label | what the attack sees). Other packages register attacks under the entry-point group
``ldpaudit.attacks``.
"""

import importlib
from collections.abc import Collection
from typing import Final

from ldpaudit.attacks.foreign import Factory, Given, foreign, given_attacks
from ldpaudit.attacks.interface import Attack, Knowledge, conditioned
from ldpaudit.errors import InputError, did_you_mean, quoted
from ldpaudit.plugins import added, check_one, unloadable
from ldpaudit.result.dictionary import attacks_of_their_own

__all__ = [
    "ATTACKS",
    "Attack",
    "Knowledge",
    "available_attacks",
    "conditioned",
    "create_attack",
    "taken_names",
]


def __dir__() -> list[str]:
    return __all__


ATTACKS: Final = {
    "prior": "ldpaudit.attacks.model_attack:PriorAttack",
    "features-only": "ldpaudit.attacks.model_attack:FeaturesOnlyAttack",
    "released-label": "ldpaudit.attacks.model_attack:ReleasedLabelAttack",
    "oracle": "ldpaudit.attacks.model_attack:OracleAttack",
    "classifier": "ldpaudit.attacks.model_attack:ClassifierAttack",
    "bayes": "ldpaudit.attacks.model_attack:BayesAttack",
    "bayes-whole-release": "ldpaudit.attacks.model_attack:WholeReleaseAttack",
    "knn": "ldpaudit.attacks.votes:NeighborsAttack",
    "near-rows": "ldpaudit.attacks.votes:NearVotesAttack",
    "row-order": "ldpaudit.attacks.votes:RowOrderAttack",
    "synthetic-aware": "ldpaudit.attacks.synthetic_aware:SyntheticAwareAttack",
}
"""The built-in attacks in the order in which they run; imported when they do."""


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
