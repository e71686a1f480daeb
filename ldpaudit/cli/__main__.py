"""``python -m ldpaudit.cli``."""

from ldpaudit.cli import main

if __name__ == "__main__":
    main()
