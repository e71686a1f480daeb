"""Report formats, one module each, and the parts that pages are made of.

In: a result, and where its checks are asked for. Out: one HTML page, JSON, SARIF, JUnit or
Markdown.
"""

import importlib
from typing import Final, get_args

from ldpaudit.errors import InputError
from ldpaudit.reports.interface import NOWHERE, ReportFormat, Surroundings
from ldpaudit.result import AuditResult, Profile
from ldpaudit.result.public import public

__all__ = ["FORMATS", "Surroundings", "embed", "render", "report_format"]


def __dir__() -> list[str]:
    return __all__


FORMATS: Final = {
    "html": "ldpaudit.reports.html:HtmlReport",
    "json": "ldpaudit.reports.json_report:JsonReport",
    "sarif": "ldpaudit.reports.sarif:SarifReport",
    "junit": "ldpaudit.reports.junit:JUnitReport",
    "markdown": "ldpaudit.reports.markdown:MarkdownReport",
}
"""The formats by name, with the place of each; imported when one is asked for."""


def report_format(name: str) -> ReportFormat:
    """Return the report format of that name.

    Raises
    ------
    ldpaudit.errors.InputError
        If there is none.
    """
    if name not in FORMATS:
        raise InputError(f"There is no report format {name!r}; choose from {', '.join(FORMATS)}.")
    module, _, attribute = FORMATS[name].partition(":")
    implementation: ReportFormat = getattr(importlib.import_module(module), attribute)()
    return implementation


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
    if surroundings.profile == "public":
        from ldpaudit.reports.public_forms import render_public

        return render_public(public(result), format_name)
    return report_format(format_name).render(result, surroundings)


def embed(result: AuditResult) -> str:
    """Return the report as an HTML fragment for a notebook: the verdict and the page in a frame."""
    from ldpaudit.reports.html import embedded

    return embedded(result)
