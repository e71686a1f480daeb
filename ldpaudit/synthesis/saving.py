"""Fitted generators as files that hold tensors and plain values, and nothing that runs."""

import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpaudit.datasets.names import quoted
from ldpaudit.device import need_torch
from ldpaudit.errors import InputError
from ldpaudit.files.documents import check_regular
from ldpaudit.files.writing import WholeFiles
from ldpaudit.synthesis.interface import VERSION

if TYPE_CHECKING:
    from ldpaudit.synthesis.gan.generator import ConditionalGan
    from ldpaudit.synthesis.mixture import ClassMixtures

_FORMAT = "ldpaudit-generator"


def save_generator(
    generator: "ConditionalGan | ClassMixtures",
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> Path:
    """Write a fitted generator to a file, whole or not at all.

    The file holds what was learnt of the training rows: treat it as confidential where they are.
    It is readable by its owner only.

    Raises
    ------
    InputError
        If the generator is not fitted.
    OutputError
        If the file is there already, or cannot be written.
    """
    need_torch("A generator's file")
    import torch

    target = Path(path)
    content = {"format": _FORMAT, "version": VERSION, "name": generator.name}
    content |= {"state": generator.state()}
    with WholeFiles(overwrite) as files:
        part = files.add(target, private=True)
        with part.writing():
            torch.save(content, part.stream)
    return target


def load_generator(path: str | os.PathLike[str]) -> "ConditionalGan | ClassMixtures":
    """Read a generator that :func:`save_generator` wrote; no code in the file is ever run.

    Raises
    ------
    InputError
        If the file is no generator of this version, or is damaged.
    """
    need_torch("A generator's file")
    import torch

    target = Path(path)
    try:
        check_regular(target)
        content = torch.load(target, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError):
        raise InputError(f"{quoted(target.name)} must be a generator's file.") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise InputError(f"{quoted(target.name)} must be a generator's file.")
    if content.get("version") != VERSION:
        raise InputError(
            f"{quoted(target.name)} holds a generator of another version; fit it again."
        )
    return _rebuilt(content, target.name)


def _rebuilt(content: dict[str, Any], name: str) -> "ConditionalGan | ClassMixtures":
    from ldpaudit.synthesis.gan.generator import ConditionalGan
    from ldpaudit.synthesis.mixture import ClassMixtures

    makers: dict[str, Callable[[Mapping[str, Any]], ConditionalGan | ClassMixtures]] = {
        ConditionalGan.name: ConditionalGan.from_state,
        ClassMixtures.name: ClassMixtures.from_state,
    }
    damaged = InputError(f"{quoted(name)} is damaged: no generator can be rebuilt from it.")
    maker = makers.get(str(content.get("name")))
    if maker is None:
        raise damaged
    try:
        return maker(content["state"])
    except Exception:
        # A file of the right format with a damaged content fails wherever the damage lies.
        raise damaged from None
