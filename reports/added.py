"""Report formats of other packages."""

from collections.abc import Callable
from dataclasses import dataclass

from ldpaudit.errors import InputError, did_you_mean, refuse
from ldpaudit.plugins import added, check_one, loaded, ours, watched
from ldpaudit.reports.interface import Surroundings
from ldpaudit.result import AuditResult, Profile
from ldpaudit.result.public import PublicResult, public


@dataclass(frozen=True)
class Format:
    """A form of the report; a package registers it in the group ``ldpaudit.formats``.

    It is written by ``run`` and ``report`` with ``--format NAME=FILE``.

    Attributes
    ----------
    render : callable
        Takes an :class:`~ldpaudit.result.AuditResult` and the :class:`Surroundings` and returns the
        report as text. It must depend on both alone, so that the same result gives the same text.
        What it returns is as confidential as the true labels, and written with mode 0600.
    render_public : callable, optional
        Takes the public form of a result (:class:`ldpaudit.result.public.PublicResult`), which has
        nothing that true labels reveal, and returns the report that everybody may see. None: with
        ``--profile public`` the format is refused.
    """

    render: Callable[[AuditResult, Surroundings], str]
    render_public: Callable[[PublicResult], str] | None = None


def format_named(name: str, built_in: tuple[str, ...]) -> Format:
    """Return a registered format (InputError where there is none of this name)."""
    points = added("format", built_in)
    if name not in points:
        known = (*built_in, *points)
        rest = f"; choose from {', '.join(known)}."
        raise InputError(f"There is no report format {name!r}{did_you_mean(name, known, rest)}")
    check_one("format", name)
    found = loaded("format", points[name], Format)
    ways = [found.render, *([] if found.render_public is None else [found.render_public])]
    refuse(
        not all(map(callable, ways)),
        f"What the plug-in {name!r} (format) renders with must be a function.",
    )
    return found


def own_format(name: str) -> Format:
    """Return a format of this package (InputError where it was taken out)."""
    points = ours("format")
    if name not in points:
        raise InputError(
            f"This installation lacks the report format {name!r}; install ldpaudit again."
        )
    return loaded("format", points[name], Format)


def check_profile(name: str, found: Format, profile: Profile) -> None:
    """Refuse the public form of a registered format that has none (InputError)."""
    if profile == "public" and found.render_public is None:
        raise InputError(
            f"The format {name!r} is of another package and has no public form; leave it out."
        )


def rendered(found: Format, result: AuditResult, surroundings: Surroundings) -> str:
    """Return the report in a format, made of the public form alone where everybody may see it."""
    if surroundings.profile == "public" and found.render_public is not None:
        return found.render_public(public(result))
    return found.render(result, surroundings)


def render_added(
    result: AuditResult, name: str, surroundings: Surroundings, built_in: tuple[str, ...]
) -> str:
    """Return the report in a registered format."""
    found = format_named(name, built_in)
    check_profile(name, found, surroundings.profile)
    with watched("format", name, "nothing was written"):
        text = rendered(found, result, surroundings)
    if not isinstance(text, str):
        raise InputError(
            f"The plug-in {name!r} (format) must return text. Got {type(text).__name__} instead."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(f"The plug-in {name!r} (format) returned text that is no Unicode.")
    return text
