"""Independent tasks of one function: in this process, in processes beside it, on a cluster.

In: a module-level function, its items and what all of them share. Out: the results in the items'
order, the same whatever did them.
"""

from ldpaudit.tasks.interface import Tasks
from ldpaudit.tasks.threads import Threads

__all__ = ["Tasks", "Threads"]
