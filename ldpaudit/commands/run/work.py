"""What ``run``, ``demo`` and ``report`` do: audit, write the reports, print the summary."""

from functools import partial
from pathlib import Path

from ldpaudit.api import audit
from ldpaudit.commands.outputs import Outputs
from ldpaudit.commands.run.request import Request, inputs_of, queries_of
from ldpaudit.commands.run.text import print_summary
from ldpaudit.errors import InputError
from ldpaudit.reports import render
from ldpaudit.result import AuditResult
from ldpaudit.terminal import progress_on_terminal, say


def audit_release(request: Request, outputs: Outputs, *, quiet: bool = False) -> AuditResult:
    """Run the audit, write the reports and print the summary."""
    outputs.check(inputs_of(request))
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
            queries=queries_of(request.queries),
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
