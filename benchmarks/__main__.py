"""Lists and runs the cases: ``python -m benchmarks [NAME [--small] [--write] [--OPTION …]]``."""

from benchmarks import (
    attacks,
    beside,
    bounds,
    designs,
    guesses,
    learning,
    passes,
    speed,
    unlisted,
    verdicts,
)
from benchmarks.papers import iwp, losses, mnist, weeks_worked
from benchmarks.runner import main

MODULES = attacks, beside, bounds, designs, guesses, learning, passes, speed, unlisted, verdicts
PAPERS = iwp, losses, mnist, weeks_worked

if __name__ == "__main__":
    main()
