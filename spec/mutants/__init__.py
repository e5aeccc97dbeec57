"""Wrong memories, blobs and allocators, each with one bug that the kit for it must find.

``memory``, ``blob`` and ``allocator`` have them; each module of these registers its own in ``registry``.  ``selftest``
runs the kits of memories and of blobs against them.  Nobody loads them who does not ask for them.
"""
