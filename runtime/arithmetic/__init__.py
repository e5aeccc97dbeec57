"""Arithmetic where the elements are: the ``operations``, and how each kind of device does them."""

from .operations import Arithmetic, arithmetic_of

__all__ = ["Arithmetic", "arithmetic_of"]
