"""Frequency-oracle protocols, one file per protocol.

In: labels as codes, and recorded reports. Out: each protocol's law, reports and exact ε.
"""

from ldpaudit.mechanisms.frequency_oracles.interface import NAME, PROTOCOLS, FrequencyOracle

__all__ = ["NAME", "PROTOCOLS", "FrequencyOracle"]
