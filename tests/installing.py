"""Packages with parts of their own, as ``pip install`` leaves them."""

import importlib

from ldpaudit import plugins
from ldpaudit.datasets.formats import added
from ldpaudit.mechanisms import registry


def forget():
    importlib.invalidate_caches()
    registry.family.cache_clear()
    added._loaded.cache_clear()
    registry._entry_points.cache_clear()
    plugins._in_group.cache_clear()


def register(site, name, entry_points):
    """Write what ``pip install`` writes about a package's parts; return where."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        "\n".join((f"[{group}]", *(f"{name} = {place}" for name, place in entries.items()), ""))
        for group, entries in entry_points.items()
    ]
    info.joinpath("entry_points.txt").write_text("\n".join(lines))
    return info
