"""Releases of the same data side by side: leakage, attacks and what can still be learnt."""
