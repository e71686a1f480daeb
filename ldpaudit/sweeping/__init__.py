"""Simulate, audit and learn over a grid of noise levels, before anything is released."""

from ldpaudit.sweeping.command import sweep
from ldpaudit.sweeping.request import SweepRequest

__all__ = ["SweepRequest", "sweep"]
