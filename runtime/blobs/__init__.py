"""Blobs: an array of numbers and the gradients that belong to them, on the host and on a device at once.

``blob`` has `Blob`, whole.  The other modules do not know it: ``shape`` has Caffe's rules about axes, counts and
offsets; ``elements`` looks at a memory as numbers, and ``arithmetic`` computes with them; ``conversion`` says which
numbers elements can hold, and ``rounding`` how they are rounded; ``live_array`` is what one writes to, and
``foreign_arrays`` are arrays of other libraries.

``contents`` is what messages and files say of a blob.  ``messages`` reads and writes Caffe's; ``array_files``,
``binaryproto`` and ``caffemodel`` are kinds of files, which ``file_kinds`` tells apart by name.
"""

from .blob import Blob

__all__ = ["Blob"]
