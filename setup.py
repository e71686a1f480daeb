"""The package's own page: README, whose links into the repository would lead nowhere there."""

import re
from pathlib import Path

from setuptools import setup

README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")


def without_relative_links(page: str) -> str:
    """Return a page whose links to files are words alone, and which shows no pictures of files."""
    page = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", "", page, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", page)


if __name__ == "__main__":
    setup(
        long_description=without_relative_links(README),
        long_description_content_type="text/markdown",
    )
