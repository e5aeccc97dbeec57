"""Blobs: arrays of numbers with their gradients, on the host and on a device at once.

``blob`` has `Blob`.  The other modules do not import it.  ``shape`` has Caffe's rules about axes, counts and offsets.
``elements`` shows a memory as numbers, and ``arithmetic`` computes with them.  ``conversion`` says which numbers an
element can hold.  ``live_array`` has the arrays that users assign to, and ``foreign_arrays`` takes arrays of other
libraries.

``contents`` is what messages and files store of a blob.  ``messages`` reads and writes Caffe's messages.
``array_files``, ``binaryproto`` and ``caffemodel`` are kinds of files, and ``file_kinds`` finds the kind by the file's
name.
"""

from .blob import Blob

__all__ = ["Blob"]
