"""The program, also as ``python -m ldpaudit``: signals are heeded before anything else."""

from ldpaudit.work.interruption import heeded


def main() -> None:
    """Run the command line."""
    with heeded():
        from ldpaudit.cli import main as command

        command()


if __name__ == "__main__":
    main()
