"""Where torch computes: the rule of ``--device``."""

from typing import Literal

from ldpaudit.errors import InputError

DeviceName = Literal["auto", "cpu", "cuda"]
"""``auto``: a GPU where there is one."""


def torch_device(wanted: DeviceName) -> str:
    """Return the torch device to use; torch is imported only where a GPU may be used.

    Raises
    ------
    ldpaudit.errors.InputError
        If ``"cuda"`` is asked for and torch sees no GPU.
    """
    if wanted == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if wanted == "cuda":
        raise InputError("The device must be one that torch sees; there is no GPU (use auto).")
    return "cpu"


def check_device(wanted: DeviceName) -> None:
    """Refuse, before any work, a ``"cuda"`` that torch does not see (InputError)."""
    if wanted == "cuda":
        torch_device(wanted)
