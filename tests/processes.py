"""Child processes for tests."""

import signal


def heed_interrupts() -> None:
    """Undo, in a child, what a shell does to the jobs it puts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
