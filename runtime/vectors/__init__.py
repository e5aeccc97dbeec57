"""Arithmetic on vectors, where they are: the ``operations``, and how each kind of device does them."""

from .operations import Vectors, vectors_of

__all__ = ["Vectors", "vectors_of"]
