"""The report as one HTML page, and as a fragment for a notebook."""

from markupsafe import Markup, escape

from ldpaudit.reports.interface import NOWHERE, Surroundings
from ldpaudit.reports.pages.audit import audit_page
from ldpaudit.result import AuditResult
from ldpaudit.result.harmless import shown


def render(result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:  # noqa: ARG001
    """Return one file with everything in it, static charts included."""
    return audit_page(result)


def embedded(result: AuditResult) -> str:
    """Return the page as a fragment for a notebook: the verdict, then the page in a frame.

    The frame may run nothing and reach nothing; where a notebook takes frames away, the verdict is
    still there.
    """
    fragment = Markup(
        "<p><strong>{sentence}</strong></p>\n"
        '<iframe title="Report of the audit" sandbox="" width="100%" height="800" '
        'frameborder="0" srcdoc="{page}"></iframe>\n'
    )
    return str(fragment.format(sentence=escape(shown(result.sentence)), page=audit_page(result)))
