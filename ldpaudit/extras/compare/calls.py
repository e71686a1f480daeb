"""``ldpaudit.compare``: the command as a function, with keywords for options."""

from typing import TYPE_CHECKING, Any

from ldpaudit.extras.compare.request import CompareRequest
from ldpaudit.keywords import documented, in_python, made
from ldpaudit.work.notebook import notebook_progress

if TYPE_CHECKING:
    from ldpaudit.extras.compare.comparison import Comparison


@in_python(CompareRequest)
def compare(*inputs: Any, **options: Any) -> "Comparison":
    """Compare releases of the same data: leakage, attacks, and what can still be learnt.

    Parameters
    ----------
    *inputs : path, pandas.DataFrame or pyarrow.Table
        Two or more releases, or stored results (``.json``); the others are compared with the first.

    Returns
    -------
    Comparison
        With ``sentence``, ``differences`` and the result of each release.

    Raises
    ------
    ldpaudit.errors.LdpAuditError
        One clear line about what is wrong with the input, the policy or the options.

    Examples
    --------
    >>> import ldpaudit
    >>> from ldpaudit.datasets import affairs
    >>> features, truth = affairs()
    >>> table = features.assign(label=truth).sample(1000, random_state=0)
    >>> weak, strong = (ldpaudit.privatize(table, "rr", epsilon=e) for e in (2.0, 0.5))
    >>> comparison = ldpaudit.compare(weak, strong, truth=table["label"], only="mechanism")
    >>> comparison.difference("mechanism.epsilon").value
    -1.5
    """
    from ldpaudit.extras.compare.work import compare as work

    request = made(CompareRequest, {"inputs": inputs, **options}, "compare")
    with notebook_progress(request.progress) as progress:
        return work(request, progress)


documented(compare, CompareRequest, ("inputs",))
