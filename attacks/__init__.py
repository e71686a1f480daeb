"""Label-inference attacks: a class each, and how they are scored."""

# In: what an attacker knows, as :class:`~ldpaudit.attacks.interface.Knowledge`, and rows. Out:
# P(true label | what the attack sees). Other packages register attacks under the entry-point group
# ``ldpaudit.attacks``.

import importlib
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from ldpaudit.attacks.interface import NEEDS, Attack, Knowledge, conditioned
from ldpaudit.errors import (
    AttackError,
    InputError,
    InsufficientDataError,
    LdpAuditError,
    did_you_mean,
    quoted,
)
from ldpaudit.plugins import (
    added,
    check_name,
    check_one,
    contained,
    load_object,
    ours,
    read_only,
    unloadable,
    where,
)
from ldpaudit.release import FloatArray, Release
from ldpaudit.result.dictionary import attacks_of_their_own

__all__ = [
    "ATTACKS",
    "Attack",
    "Knowledge",
    "available_attacks",
    "built_in_attacks",
    "conditioned",
    "create_attack",
    "given_attacks",
    "taken_names",
]


def __dir__() -> list[str]:
    return __all__


STATED: Final = ("name", "title", "needs", "uses_release", "learns_from_asked", "most_rows")
_METHODS: Final = ("fit", "posterior")
_SLACK: Final = 1e-6
_NAME: Final = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)*")

Factory = Callable[[Knowledge], Attack]
# An attack that an audit is given: ``FILE.py:CLASS``, ``MODULE:CLASS``, or the class itself.
Given = str | type

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
}
"""The attacks of the core in the order in which they run; imported when they do."""


def built_in_attacks() -> dict[str, str]:
    """Return the place of each attack of this installation: the core's, then those registered."""
    return {**ATTACKS, **{name: point.value for name, point in ours("attack").items()}}


def available_attacks(given: Collection[Given] = ()) -> dict[str, str | Factory]:
    """Return the place or the class of each attack by name: built in, plug-ins, then those given.

    Raises
    ------
    InputError
        If one that is given cannot be loaded, or has the name of another.
    """
    plugins = {name: point.value for name, point in added("attack", taken_names()).items()}
    known: dict[str, str | Factory] = {**built_in_attacks(), **plugins}
    return known | given_attacks(given, known.keys() | taken_names()) if given else known


def taken_names() -> frozenset[str]:
    """Return the names that no attack of others may have."""
    return attacks_of_their_own() | built_in_attacks().keys()


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
    built_in = built_in_attacks()
    if name in built_in:
        return _factory(built_in[name])(knowledge)
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
        with contained():
            return _factory(place)
    except (Exception, SystemExit) as error:
        raise unloadable("attack", name, error) from error


def given_attacks(
    given: Collection[Given], taken: Collection[str] = ()
) -> dict[str, str | Factory]:
    """Return the classes of attacks that an audit is given, by the attacks' names.

    Parameters
    ----------
    given : collection of str or class
    taken : collection of str
        Names that others have.

    Raises
    ------
    InputError
        If one cannot be imported, is no class of an attack, or has the name of another.
    """
    classes: dict[str, str | Factory] = {}
    for one in given:
        loaded = one if isinstance(one, type) else _loaded(one, _stamp(one))
        name = getattr(loaded, "name", None)
        if not isinstance(loaded, type) or not isinstance(name, str):
            raise InputError(
                "An attack must be a class with a 'name', such as the one in docs/how-to/attack.md."
            )
        if not _NAME.fullmatch(name):
            raise InputError(
                f"An attack's name has small letters, digits and -. Got {quoted(name)}."
            )
        if name in taken or name in classes:
            raise InputError(f"There is an attack called {name!r} already; call yours otherwise.")
        classes[name] = loaded
    return classes


def _stamp(place: str) -> int:
    """Return when the file of an attack was changed, so that a new one is read anew."""
    file = Path(place.rpartition(":")[0])
    return file.stat().st_mtime_ns if file.is_file() else 0


@cache
def _loaded(place: str, _stamp: int) -> Any:
    return load_object(place, (str(Path.cwd()),), "attack", "CLASS")


def foreign(name: str, build: Factory, knowledge: Knowledge) -> Attack:
    """Build an attack of others, which then says in one line what goes wrong.

    Raises
    ------
    InputError
        If it does not state what every attack states.
    AttackError
        If it cannot be built.
    """
    with _faults(name):
        attack = build(replace(knowledge, in_order=read_only(knowledge.in_order)))
        unstated = [member for member in STATED if not hasattr(attack, member)]
    if unstated:
        raise InputError(f"An attack must state {', '.join(unstated)}.")
    check_name("attack", name, attack.name)
    title: Any = attack.title
    if not isinstance(title, str) or not title.strip():
        raise InputError(f"The title of the attack {name!r} must be a text.")
    lacks = [method for method in _METHODS if not callable(getattr(attack, method, None))]
    if lacks:
        raise InputError(f"The attack {name!r} must have a method {lacks[0]!r}.")
    needs: Any = attack.needs
    listed = isinstance(needs, Collection) and not isinstance(needs, str)
    if not listed or any(not isinstance(need, str) or need not in NEEDS for need in needs):
        raise InputError(f"The needs of the attack {name!r} must be a set of: {', '.join(NEEDS)}.")
    for member in ("uses_release", "learns_from_asked"):
        if not isinstance(getattr(attack, member), bool | np.bool_):
            raise InputError(f"The {member} of the attack {name!r} must be True or False.")
    most: Any = attack.most_rows
    if most is not None and not (isinstance(most, int) and most > 0):
        raise InputError(f"The most_rows of the attack {name!r} must be a number of rows, or None.")
    return _Foreign(name, attack)


@contextmanager
def _faults(name: str) -> Iterator[None]:
    try:
        with contained():
            yield
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, LdpAuditError) and str(error).strip():
            raise
        if isinstance(error, InsufficientDataError):
            raise InsufficientDataError("there are too few rows for it.") from error
        raise AttackError(f"The attack {name!r} failed: {where(error)}.") from error


class _Foreign:
    """An attack of others: what it raises is said without its text, and its answers are checked."""

    def __init__(self, name: str, attack: Attack) -> None:
        self.name, self._attack = name, attack
        self.title, self.needs = attack.title, frozenset(attack.needs)
        self.uses_release, self.learns_from_asked = attack.uses_release, attack.learns_from_asked
        self.most_rows = attack.most_rows

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        with _faults(self.name):
            fitted: Any = self._attack.fit(read_only(release), rng)
        if not callable(getattr(fitted, "posterior", None)):
            raise AttackError(
                f"What 'fit' of the attack {self.name!r} returns must be the attack itself "
                f"(return self). Got {type(fitted).__name__} instead."
            )
        self._attack = fitted
        return self

    def posterior(self, release: Release) -> FloatArray:
        with _faults(self.name):
            answer = self._attack.posterior(read_only(release))
        shape = len(release), len(release.classes)
        if wrong := _no_probabilities(answer, shape):
            raise AttackError(
                f"The attack {self.name!r} must return probabilities of the true labels: numbers "
                f"of shape {shape}, each row summing to 1. Got {wrong}."
            )
        return np.asarray(answer, dtype=np.float64)


def _no_probabilities(answer: Any, shape: tuple[int, int]) -> str | None:
    """Say what an attack returned in place of probabilities; None where it returned these."""
    try:
        numbers = np.asarray(answer)
    except ValueError:  # Rows of different lengths.
        return f"{type(answer).__name__} of no shape"
    if numbers.dtype.kind not in "biuf":
        return type(answer).__name__ if numbers.ndim == 0 else f"values of type {numbers.dtype}"
    if numbers.shape != shape:
        return f"numbers of shape {numbers.shape}"
    found = {
        "numbers that are not finite": ~np.isfinite(numbers),
        "negative numbers": numbers < -_SLACK,
        "rows with another sum": np.abs(numbers.sum(axis=1) - 1) > _SLACK,
    }
    counts = ((int(here.sum()), words, here.size) for words, here in found.items())
    return next((f"{n:,} {words}, of {size:,}" for n, words, size in counts if n), None)
