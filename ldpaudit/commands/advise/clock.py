"""How much time is left."""

import time
from dataclasses import dataclass, field


@dataclass
class Clock:
    """How much of the time is left.

    Parameters
    ----------
    seconds : float
        In all, from now.
    """

    seconds: float
    _start: float = field(default_factory=time.monotonic)
    _worked: float = field(default_factory=time.process_time)

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds that are left, 0 at least."""
        return max(self.seconds - self.spent, 0.0)

    @property
    def pace(self) -> float:
        """Seconds that pass for one of work: more than 1 where others use the machine, too."""
        return max(self.spent / max(time.process_time() - self._worked, 1e-3), 1.0)

    def has(self, seconds: float) -> bool:
        """Return whether so many seconds are left."""
        return self.spent + seconds <= self.seconds
