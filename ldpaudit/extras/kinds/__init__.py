"""Rare kinds of releases: the audits, mechanisms, readers and reports that a few of them need."""

# In: what every audit, mechanism, reader and report has. Out: the same, registered as the parts of
# other packages are. Each kind is a folder.
