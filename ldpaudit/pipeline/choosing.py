"""Which audits are to run, by the options ``--only`` and ``--skip``."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from ldpaudit.audits.listing import AUDITS, BUILT_IN
from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.plugins import NOT_HERE, added


def available_audits() -> Mapping[str, str]:
    """Return the audits by id, with the place of each; a plug-in cannot replace a built-in one."""
    plugins = {name: plugin.value for name, plugin in added("audit", BUILT_IN).items()}
    return {**AUDITS, **plugins}


def chosen_audits(
    only: Collection[str], skip: Collection[str], more: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return the audits that are to run by id, with the place of each; ``more``: built in, too.

    Raises
    ------
    InputError
        If one is unknown, or none is left.
    """
    known = {**available_audits(), **more}
    for name in (*only, *skip):
        if name not in known:
            near = did_you_mean(name, known, NOT_HERE)
            raise InputError(f"There is no audit {name!r}; choose from {', '.join(known)}{near}")
    chosen = {n: p for n, p in known.items() if (not only or n in only) and n not in skip}
    if not chosen:
        raise InputError("No audit is left to run after --only and --skip.")
    return chosen
