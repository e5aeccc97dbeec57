"""Wrong memories, blobs, buffers and allocators, each with one bug that the kit for it must find.

Their modules are in ``memory``, ``blob`` and ``allocator``, and register them in ``registry``.  ``selftest`` runs the
kits of memories and of blobs against them, and ``measurement`` the test vectors.  They are no part of the package
`syncedmem`: whoever imports them puts the folder above on the path.
"""
