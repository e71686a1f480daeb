"""Where torch computes, the rule of ``--device``; and what to do where it is not installed."""

from collections.abc import Collection
from importlib.util import find_spec
from typing import Literal

from ldpaudit.errors import InputError, MissingDependencyError

# ``auto``: a GPU where there is one.
DeviceName = Literal["auto", "cpu", "cuda"]


def torch_device(wanted: DeviceName) -> str:
    """Return the torch device to use; torch is imported only where a GPU may be used."""
    if wanted == "cuda":
        need_torch("The device 'cuda'")
    if wanted == "cpu" or not _installed():
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if wanted == "cuda":
        raise InputError("The device must be one that torch sees; there is no GPU (use auto).")
    return "cpu"


def device_for(kinds: Collection[str], wanted: DeviceName) -> str:
    """Return the device for models of some kinds; only a ``"network"`` needs torch to say."""
    return torch_device(wanted) if "network" in kinds else "cpu"


def check_device(wanted: DeviceName) -> None:
    """Refuse, before any work, a ``"cuda"`` that torch does not see (InputError)."""
    if wanted == "cuda":
        torch_device(wanted)


def need_torch(what: str) -> None:
    """Refuse what cannot be done without torch (MissingDependencyError) where there is none."""
    if not _installed():
        raise MissingDependencyError(
            f"{what} needs PyTorch, which is not installed: pip install 'ldpaudit[networks]'."
        )


def _installed() -> bool:
    return find_spec("torch") is not None
