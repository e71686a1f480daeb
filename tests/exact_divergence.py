"""Rényi divergences of distributions on finite sets."""

import numpy as np

from ldpaudit.mechanisms.channel import Channel


def divergence_of(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Return D_α(p‖q) of two distributions on one finite set, exactly."""
    channel = Channel(np.stack([p, q]), (0, 1), tuple(range(len(p))))
    return float(channel.divergences(order)[0, 1])
