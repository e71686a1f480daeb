"""``ldpaudit mechanism audit``."""

from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import EXIT, Debug, option


def audit(
    function: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="The randomizer, FUNCTION(value, n, rng) -> n outputs; or FILE.py:FUNCTION.",
        ),
    ],
    inputs: Annotated[
        str,
        option("--inputs", help="The values to tell apart: A,B,… (0 is a number) or a JSON list."),
    ],
    samples: Annotated[
        int, option("--samples", help="Outputs to draw of each input of the tested pair.")
    ] = 100_000,
    epsilon: Annotated[float | None, option("--epsilon", help="The claimed ε, in nats.")] = None,
    delta: Annotated[float, option("--delta", help="The δ of (ε, δ)-DP.")] = 0.0,
    features: Annotated[
        str,
        option(
            "--feature-function", help="MODULE:FUNCTION(outputs, value) -> what is public of them."
        ),
    ] = "",
    confidence: Annotated[
        float, option("--confidence", help="One-sided, of the certified bound.")
    ] = 0.95,
    max_undetected_excess: Annotated[
        float,
        option("--max-undetected-excess", help="An audit that could miss more is inconclusive."),
    ] = 0.5,
    timeout: Annotated[
        float, option("--timeout", help="Seconds that one call of the function may take.")
    ] = 60.0,
    threads: Annotated[
        int | None, option("--threads", help="Processes to draw in (default: one per processor).")
    ] = None,
    seed: Annotated[int, option("--seed", help="The seed of all generators.")] = 0,
    json: Annotated[Path | None, option("--json", help="Where to write the result.")] = None,
    quiet: Annotated[bool, option("--quiet", help="Print the verdict only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit any randomizer by its outputs: a certified lower bound of its ε."""
    from ldpaudit.commands.black_box import Claim, Request, parse_inputs, run_and_write

    request = Request(
        function=function,
        inputs=parse_inputs(inputs),
        samples=samples,
        claim=Claim(epsilon, delta),
        features=features,
        confidence=confidence,
        max_excess=max_undetected_excess,
        timeout=timeout,
        processes=threads,
        seed=seed,
    )
    raise typer.Exit(EXIT[run_and_write(request, json, quiet=quiet).verdict])
