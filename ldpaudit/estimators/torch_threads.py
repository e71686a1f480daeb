"""How many threads torch uses for a while."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Let torch use so many threads, at least one, and as many as before afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(threads, 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)
