"""`SyncedMemory`, and what it has.

``synced_memory`` looks a call up, acts it out and commits it.  ``transaction`` is one call, ``bindings`` what the
declared actions do to real memory, ``owned`` the blocks behind it, and ``flight`` the copies that were queued.
"""

from .synced_memory import SyncedMemory

__all__ = ["SyncedMemory"]
