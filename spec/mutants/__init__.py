"""Wrong memories, blobs and allocators, each with one bug that the kit for it must find."""
