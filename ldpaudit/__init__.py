"""Audits of datasets released with privatized labels."""

__version__ = "0.1.0"
