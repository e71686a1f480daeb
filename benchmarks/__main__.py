"""Lists and runs the cases: ``python -m benchmarks [NAME [--small] [--write] [--OPTION …]]``."""

from benchmarks import speed
from benchmarks.runner import main

MODULES = (speed,)

if __name__ == "__main__":
    main()
