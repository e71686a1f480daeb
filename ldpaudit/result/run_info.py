"""How a result came about: the audits, the parts of others, the settings."""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from ldpaudit.result.estimate import Frozen, Identifier

PlugInKind = Literal["attack", "audit", "mechanism", "reader"]


def _as_stopped(status: object) -> object:
    """Return the status of an audit; one that failed, as earlier versions had it, was stopped."""
    return "stopped" if status == "failed" else status


class AuditRecord(Frozen):
    """Whether an audit ran, and if not why; one that was stopped may have a part of its numbers.

    Attributes
    ----------
    id
        Its name for ``--only`` and ``--skip``.
    status
        What became of it.
    reason
        Why it did not run, or not to its end.
    seconds
        Seconds that it took.
    """

    id: Identifier
    status: Annotated[Literal["ran", "skipped", "stopped"], BeforeValidator(_as_stopped)]
    reason: str = ""
    seconds: float = 0.0


class PlugIn(Frozen):
    """A part of another package, or of a file, that took part in an audit.

    Attributes
    ----------
    kind
        What it is.
    name
        Its name in the result.
    package
        The distribution that it is installed with; None for one that was given by its place.
    version
        The distribution's version.
    sha256
        The digest of the file that it was given in.
    """

    kind: PlugInKind
    name: str
    package: str | None = None
    version: str | None = None
    sha256: str | None = None


class RunInfo(Frozen):
    """How to reproduce the audit.

    Attributes
    ----------
    seed
        The root of all randomness.
    command
        The command, without names of files and columns.
    versions
        Versions of Python and of the libraries.
    threads
        Threads that it used.
    seconds
        Seconds that it took.
    policy
        The name of the policy: of its file, without a folder, or of a preset.
    policy_sha256
        The digest of the policy file; None for a built-in policy.
    plugins
        The parts of other packages that took part.
    """

    seed: int | None
    command: str
    versions: dict[str, str]
    threads: int
    seconds: float
    policy: str | None = None
    policy_sha256: str | None = None
    plugins: tuple[PlugIn, ...] = ()
