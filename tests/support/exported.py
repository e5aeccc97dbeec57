"""Exports as text."""

from __future__ import annotations

from typing import Any

from syncedmem.model.exports.formats import export

__all__ = ["exported"]


def exported(format_: str, edition: str = "caffe", **options: Any) -> str:
    """The machine of an edition in a format that is text."""
    text = export(format_, edition=edition, **options)
    assert isinstance(text, str)
    return text
