"""Releases with known faults, and honest ones: what an audit has to tell apart."""
