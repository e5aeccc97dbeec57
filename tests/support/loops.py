"""Loops of tests that must not be empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["some"]

T = TypeVar("T")


def some(items: Iterable[T]) -> list[T]:
    """The items; there has to be at least one, or a test that asserts only in its loop asserts nothing."""
    found = list(items)
    assert found, "the loop of this test is empty"
    return found
