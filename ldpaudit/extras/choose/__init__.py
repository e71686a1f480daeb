"""Before a release: ``sweep``, ``advise`` and the exact analysis of mechanisms."""
