"""`SyncedMemory`, and its parts.

``synced_memory`` looks up a call in the table, performs it and stores the new state.  ``tables`` has the tables.
``transaction`` is one call.  ``bindings`` has a function on real memory for each declared action.  ``owned`` has the
blocks that have to be released, and ``flight`` the copies that are queued.
"""

from .synced_memory import SyncedMemory

__all__ = ["SyncedMemory"]
