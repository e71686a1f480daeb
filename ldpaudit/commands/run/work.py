"""What the commands do: from options to an audit, and from a result to files and a summary."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ldpaudit.api import audit
from ldpaudit.commands.outputs import Outputs
from ldpaudit.errors import InputError
from ldpaudit.release import Declaration
from ldpaudit.reports import render
from ldpaudit.result import AuditResult
from ldpaudit.terminal import progress_on_terminal, say

SPECIAL = frozenset({"numeric-inference", "aggregates", "synthetic"})
"""Audits of special releases: that they do not apply to another is told in the result only."""


@dataclass(frozen=True)
class Request:
    """The options of ``ldpaudit run``, checked and ready."""

    release: str
    label: str | None = None
    truth: str | None = None
    truth_column: str | None = None
    original: str | None = None
    synthetic: str | None = None
    held_out: str | None = None
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    claim: Declaration | None = None
    channel: Path | None = None
    """The file that the claim was read from, which no output may overwrite."""
    policy: Path | None = None
    seed: int | None = None
    queries: str | None = None
    neighbors: int | None = None
    metric: Literal["l2", "raw", "learned"] = "l2"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    threads: int | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    show_class_names: bool = False
    slices: tuple[str, ...] = ()
    budget: float | None = None
    public_posterior: str | None = None
    public: str | None = None
    canaries: str | None = None
    command: str = "ldpaudit run …"


def claim_from_options(
    mechanism: str | None,
    epsilon: float | None,
    noise: float | None,
    channel: Path | None,
    labels: str | None = None,
) -> Declaration | None:
    """Return the claim that the options state, None where they state none.

    Raises
    ------
    InputError
        If they contradict one another.
    """
    if channel is not None:
        others = (epsilon, noise, labels)
        if mechanism not in (None, "channel") or any(value is not None for value in others):
            raise InputError("--channel is a whole claim; give no other mechanism, ε or λ with it.")
        from ldpaudit.datasets import read_channel

        return read_channel(channel)
    stated = {"epsilon": epsilon, "lambda": noise}
    parameters = {key: value for key, value in stated.items() if value is not None}
    if labels is not None:
        parameters |= _numeric_labels(mechanism, labels)
    if mechanism is None:
        return Declaration("randomized-response", parameters, "options") if parameters else None
    if mechanism == "channel":
        raise InputError("--mechanism channel needs its matrix: --channel FILE.")
    if mechanism == "unknown" and parameters:
        raise InputError("--mechanism unknown claims nothing; give no ε or λ with it.")
    from ldpaudit.mechanisms import full_name

    return Declaration(full_name(mechanism), parameters, "options")


def _numeric_labels(mechanism: str | None, labels: str) -> dict[str, Any]:
    """Return how a mechanism on numbers declares its labels."""
    from ldpaudit.mechanisms.label_range import LabelRange
    from ldpaudit.mechanisms.numeric.view import NUMERIC_NAMES

    if mechanism not in NUMERIC_NAMES:
        raise InputError(
            "--labels must come with a --mechanism on numbers: " + ", ".join(sorted(NUMERIC_NAMES))
        )
    found = LabelRange.parse(labels)
    if mechanism in ("debiased-rr", "rr-on-bins", "optimal-unbiased"):
        return {"classes": list(found.classes)}
    return found.declaration()


def audit_release(request: Request, outputs: Outputs, *, quiet: bool = False) -> AuditResult:
    """Run the audit, write the reports and print the summary."""
    outputs.check((*_inputs(request), request.policy, request.channel))
    with progress_on_terminal(quiet) as progress:
        result = audit(
            request.release,
            request.truth,
            request.claim,
            request.seed,
            label=request.label,
            truth_column=request.truth_column,
            original=request.original,
            synthetic=request.synthetic,
            held_out=request.held_out,
            id_column=request.id_column,
            drop=request.drop,
            features=request.features,
            policy=request.policy,
            only=request.only,
            skip=request.skip,
            queries=_queries(request.queries),
            neighbors=request.neighbors,
            metric=request.metric,
            threads=request.threads,
            device=request.device,
            show_class_names=request.show_class_names,
            slices=request.slices,
            budget=request.budget,
            public_posterior=request.public_posterior,
            public=request.public,
            canaries=request.canaries,
            progress=progress,
            command=request.command,
        )
        progress.step("report")
        outputs.write(partial(render, result, "json"), partial(render, result, "html"))
    print_summary(result, quiet=quiet)
    if not quiet:
        outputs.announce()
    return result


def run_demo(folder: Path, seed: int) -> int:
    """Write the two releases of the demo, audit both and say what came of it; return the status.

    0 where the honest release passes and the dishonest one fails, as they should; else 1.
    """
    from ldpaudit.demonstration import write_demo

    files = write_demo(folder, seed)
    verdicts = []
    for path, story in (
        (files.honest, "declares ε = 1 and was made with ε = 1"),
        (files.dishonest, "declares ε = 1 but was made with ε = 3"),
    ):
        say(f"\n{path.name}: {story}")
        say(f"$ ldpaudit run {path} --truth {files.truth}")
        request = Request(str(path), truth=str(files.truth), command="ldpaudit demo")
        result = audit_release(request, Outputs.beside(str(path), "audit", None, None))
        say(f"exit status {({'pass': 0, 'fail': 1}).get(result.verdict, 3)}")
        verdicts.append(result.verdict)
    return 0 if verdicts == ["pass", "fail"] else 1


def render_again(stored: Path, html: Path | None) -> str:
    """Render a stored result; return what was done in one line."""
    try:
        text = stored.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"The result {stored.name!r} cannot be read.") from None
    result = AuditResult.from_json(text)
    target = html or stored.with_suffix(".html")
    Outputs(html=target).check([stored])
    result.to_html(target)
    return f"Wrote {target}."


def print_summary(result: AuditResult, *, quiet: bool) -> None:
    """Print the verdict and the checks."""
    say(result.sentence)
    if quiet:
        return
    for check in result.checks:
        waived = " (waived)" if check.waived else ""
        say(f"  {check.verdict:<12} {check.id}: {check.reason}{waived}")
    for record in result.audits:
        if record.status != "ran" and record.id not in SPECIAL:
            say(f"  {record.status:<12} {record.id}: {record.reason}")
    for note in result.notes:
        if note.level == "warning":
            say(f"  {'warning':<12} {note.text}")


def _queries(text: str | None) -> int | Literal["all"] | None:
    if text is None or text == "all":
        return text  # type: ignore[return-value]
    if not text.isdecimal():
        raise InputError("--queries must be a number or 'all'.")
    return int(text)


def _inputs(request: Request) -> tuple[str | None, ...]:
    own = (request.release, request.truth, request.original, request.synthetic, request.held_out)
    return (*own, request.public_posterior, request.public, request.canaries)
