"""What is built on the core: each folder is whole, and the core runs without it."""

# In: the core, by the names of ``ldpaudit.doors`` where these do. Out: commands, registered as
# those of other packages are, and functions of ``ldpaudit``.
