"""Frequency oracles: protocols by which people report labels under ε-LDP, a module for each kind.

In: a declared protocol. Out: its law and exact ε, and what a report says about a label.
"""

from ldpaudit.mechanisms.frequency_oracles.interface import PROTOCOLS, FrequencyOracle

__all__ = ["PROTOCOLS", "FrequencyOracle"]
