"""The version of this package; in ``pyproject.toml``, too."""

__version__ = "0.1.0"
