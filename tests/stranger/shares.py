"""``ldpaudit shares FILE``: how often each label is released."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from ldpaudit.doors import (
    Argument,
    Command,
    Debug,
    Option,
    Outputs,
    Stored,
    carry_out,
    number,
    read_release,
)


class Shares(Stored):
    shares: dict[str, float]

    def said(self, *, quiet):
        for label, share in self.shares.items():
            yield label, number(share)


@dataclass(frozen=True)
class SharesRequest:
    file: Annotated[str, Argument("The released file.", file=True)]
    label: Annotated[str | None, Option("Its released label.")] = None


def count(request, progress):
    progress.step("counting")
    release = read_release(request.file, label=request.label).release
    counts = np.bincount(release.released, minlength=len(release.outputs))
    shares = (counts / len(release)).tolist()
    return Shares(shares=dict(zip(map(str, release.outputs), shares, strict=True)))


def shares(
    request: SharesRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Show no progress.")] = False,
    _debug: Debug = False,
) -> None:
    """Count how often each label is released."""
    carry_out(count, request, Outputs(json), quiet=quiet)


SHARES = Command(shares, stored=lambda: Shares)
