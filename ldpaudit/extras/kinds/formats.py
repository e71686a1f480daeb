"""The report formats for pipelines; what renders one is imported when it is asked for."""

from typing import Final

from ldpaudit.doors import AuditResult, Format, Surroundings
from ldpaudit.result.public import PublicResult


def _sarif(result: AuditResult, around: Surroundings) -> str:
    from ldpaudit.extras.kinds.reports.sarif import render

    return render(result, around)


def _public_sarif(result: PublicResult) -> str:
    from ldpaudit.extras.kinds.reports.public import sarif

    return sarif(result)


def _junit(result: AuditResult, around: Surroundings) -> str:
    from ldpaudit.extras.kinds.reports.junit import render

    return render(result, around)


def _public_junit(result: PublicResult) -> str:
    from ldpaudit.extras.kinds.reports.public import junit

    return junit(result)


def _markdown(result: AuditResult, around: Surroundings) -> str:
    from ldpaudit.extras.kinds.reports.markdown import render

    return render(result, around)


def _public_markdown(result: PublicResult) -> str:
    from ldpaudit.extras.kinds.reports.public import markdown

    return markdown(result)


SARIF: Final = Format(_sarif, _public_sarif)
JUNIT: Final = Format(_junit, _public_junit)
MARKDOWN: Final = Format(_markdown, _public_markdown)
