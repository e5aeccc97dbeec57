"""Only the planted faults of blobs; all else of them is in `syncedmem.spec.blob`."""
