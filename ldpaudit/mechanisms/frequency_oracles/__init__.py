"""Frequency-oracle protocols, one file per protocol: their law, their reports, their ε."""

from ldpaudit.mechanisms.frequency_oracles.interface import NAME, PROTOCOLS, FrequencyOracle

__all__ = ["NAME", "PROTOCOLS", "FrequencyOracle"]
