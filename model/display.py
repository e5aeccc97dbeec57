"""How a notebook shows values of ours: as the diagram.

A notebook asks a value for ``_repr_mimebundle_``.  The values are on low floors, and what draws them is on a high one,
which they may not import.  So they ask here, and `syncedmem.model` says who draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Bundle", "draw_with", "shown"]

Bundle = dict[str, str]
"""Contents by their media type."""

_drawers: dict[str, Callable[..., Bundle]] = {}


def draw_with(drawer: Callable[..., Bundle]) -> None:
    """Let a function draw from now on.  It takes what `shown` is given."""
    _drawers["diagram"] = drawer


def shown(edition: object, **options: Any) -> Bundle:  # noqa: ANN401 -- passed on as they are
    """What a notebook shows of a machine.

    Parameters
    ----------
    edition : str or Declaration
    **options
        Of ``syncedmem.model.diagrams.diamond.diamond_svg``.
    """
    return _drawers["diagram"](edition, **options)
