"""``python -m ldpaudit.cli``."""

from ldpaudit.cli import main
from ldpaudit.work.interruption import heeded

if __name__ == "__main__":
    with heeded():
        main()
