"""Report formats, one module each, and the pages that people read."""

# In: a result, and where its checks are asked for. Out: one HTML page, JSON, or a registered
# format: a pure function of both, the same text every time.

from typing import TYPE_CHECKING, Final, get_args

from ldpaudit.errors import InputError
from ldpaudit.reports.interface import NOWHERE, Surroundings
from ldpaudit.result import AuditResult, Profile
from ldpaudit.result.public import public
from ldpaudit.result.registry import registry_entry
from ldpaudit.work.documents import as_json

if TYPE_CHECKING:
    from ldpaudit.reports.plots import Picture

__all__ = ["FORMATS", "Surroundings", "check_format", "embed", "render"]


def __dir__() -> list[str]:
    return __all__


FORMATS: Final = ("html", "json", "sarif", "junit", "markdown", "registry")
"""The formats of this package by name."""
_CORE: Final = ("html", "json", "registry")
"""Those of the core; the others are registered as those of other packages are."""


def render(result: AuditResult, format_name: str, surroundings: Surroundings = NOWHERE) -> str:
    """Return the report of a result in one of the formats, for whom it is.

    Raises
    ------
    ldpaudit.errors.InputError
        If there is no such format or profile.
    """
    if surroundings.profile not in get_args(Profile):
        raise InputError(
            f"The profile must be internal or public. Got {surroundings.profile!r} instead."
        )
    if format_name not in FORMATS:
        from ldpaudit.reports.added import render_added

        return render_added(result, format_name, surroundings, FORMATS)
    if format_name == "registry":  # It has the public profile's content for everybody.
        return registry_entry(result)
    if format_name not in _CORE:
        from ldpaudit.reports.added import own_format, rendered

        return rendered(own_format(format_name), result, surroundings)
    if surroundings.profile == "public":
        from ldpaudit.reports.public_forms import render_public

        return render_public(public(result), format_name)
    if format_name == "json":
        return as_json(result.model_dump())
    from ldpaudit.reports.html import render as render_page

    return render_page(result, surroundings)


def check_format(name: str, profile: Profile = "internal") -> None:
    """Refuse a format that no installed package has, or that has no such profile (InputError)."""
    if name in _CORE:
        return
    from ldpaudit.reports.added import check_profile, format_named, own_format

    found = own_format(name) if name in FORMATS else format_named(name, FORMATS)
    check_profile(name, found, profile)


def render_for(result: AuditResult, format_name: str, profile: Profile) -> str:
    """Return the report for somebody, where nothing is known besides the result."""
    return render(result, format_name, Surroundings(profile=profile))


def plot(result: AuditResult, what: str) -> "Picture":
    """Return one picture of the report, by its name or the id of its curve."""
    from ldpaudit.reports.plots import picture

    return picture(result, what)


def embed(result: AuditResult) -> str:
    """Return a result as a short HTML fragment for a notebook."""
    from ldpaudit.reports.html import embedded

    return embedded(result)
