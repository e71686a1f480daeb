"""The work of ``advise``: which table, policy and columns are meant, then one column or several."""

from ldpaudit.api import policy_of
from ldpaudit.commands.advise.adviser import Adviser
from ldpaudit.commands.advise.clock import Clock
from ldpaudit.commands.advise.closed_forms.study import read_study
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.advise.result import Advice
from ldpaudit.commands.advise.several import advise_several
from ldpaudit.commands.advise.tables import JOIN, checked
from ldpaudit.datasets.formats.watching import unchanged
from ldpaudit.judging.policy import default_policy
from ldpaudit.options import PlanOptions
from ldpaudit.running.progress import NoProgress, Progress


@unchanged()
def advise(request: AdviseRequest, progress: Progress | None = None) -> Advice:
    """Say what to release, so that a policy lets it pass.

    Raises
    ------
    LdpAuditError
        One line about what is wrong with the table, the policy or the options.
    """
    progress = progress or NoProgress()
    clock = Clock(60 * request.minutes)
    request.check()
    policy = policy_of(PlanOptions(policy=request.policy)) or default_policy()
    request = checked(request)
    columns = request.columns()
    if request.apart:
        progress.remark(JOIN)
    progress.step("reading the table")
    if len(columns) > 1:
        return advise_several(request, policy, clock, progress)
    only = columns[0]
    study = read_study(only, only.label[0], only.drop, progress)
    return Adviser(only, policy, clock, progress, study).advice()
