"""Blobs: an array of numbers and the gradients that belong to them, on the host and on a device at once.

``shape`` has Caffe's rules about axes, counts and offsets and ``shaped`` asks them of an object; ``elements`` looks
at a memory as numbers, and ``conversion`` says which numbers elements can hold; ``pair`` has data and diff in one
shape, and ``arithmetic`` computes with them.  ``viewed`` shows them as arrays, ``live_array`` is what one writes to,
``foreign_arrays`` are those of others; ``stored`` puts them into messages and files.  ``blob`` is all of it: `Blob`.
"""

from .blob import Blob

__all__ = ["Blob"]
