"""Simulate, audit and learn over a grid of noise levels, before anything is released."""

from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.commands.sweep.work import sweep

__all__ = ["SweepRequest", "sweep"]
