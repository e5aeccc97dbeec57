"""Exports as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model.exports.formats import export

if TYPE_CHECKING:
    from syncedmem.model.opening import AnyMachine

__all__ = ["exported"]


def exported(format_: str, edition: AnyMachine = "caffe", **options: Any) -> str:
    """The machine of an edition, exported in a format that is text."""
    text = export(format_, edition=edition, **options)
    assert isinstance(text, str)
    return text
