"""``ldpaudit run --predictions``."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ldpaudit.commands.outputs import ReportOutputs
from ldpaudit.commands.requests import RunRequest
from ldpaudit.doors import Progress, Said, Told, carry_out, number, refuse
from ldpaudit.extras.probe.models.predictions import of_predictions
from ldpaudit.extras.probe.models.result import PredictionsAudit
from ldpaudit.result import Profile
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.result.harmless import one_line


def run_on_predictions(
    request: RunRequest,
    outputs: ReportOutputs,
    profile: Profile,
    gaussian_delta: float | None,
    *,
    quiet: bool,
) -> PredictionsAudit:
    """Audit a model's predictions, write result and page, and print the answer."""
    refuse(
        profile == "public" or outputs.asked.keys() - {"json", "html"},
        "Predictions have a result (--json) and a page (--html) for those who may see the true "
        "labels, and no other report.",
    )
    refuse(len(request.release) > 1, "Predictions are audited one file at a time.")

    def work(request: RunRequest, progress: Progress) -> _Predicted:
        options = replace(request, progress=progress)
        return _Predicted(of_predictions(request.release[0], options, gaussian_delta))

    outputs = outputs.or_beside(request.release[0], "audit")
    return carry_out(work, request, outputs, quiet=quiet).found


@dataclass(frozen=True)
class _Predicted(Told):
    found: PredictionsAudit
    access: str = CONFIDENTIAL

    def makers(self) -> Mapping[str, Callable[[], str]]:
        return {"json": self.found.to_json, "html": self.found.to_html}

    def said(self, *, quiet: bool) -> Iterator[Said]:
        yield one_line(self.found.sentence)
        for one in () if quiet else self.found.estimates:
            yield one.kind, f"{one.title}: {number(one.value)}"
