"""Audits: each examines a release from one side, in a folder of its own."""

# In: an :class:`~ldpaudit.audits.interface.AuditContext`: release, claim and plan. Out: a
# ``Finding`` of numbers and notes. Others register theirs under the entry-point group
# ``ldpaudit.audits``.
