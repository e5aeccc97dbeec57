"""How a notebook shows values of ours: as the diagram.

A notebook asks a value for ``_repr_mimebundle_``.  The values are on low floors, and what draws them is on a high one,
which they may not import.  So they ask here, and `syncedmem.model` says who draws.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Bundle", "draw_with", "shown"]

Bundle = dict[str, str]
"""Contents by their media type."""

_drawers: dict[str, str] = {}
# Names, because a function of a package keeps the modules of the package alive.  At the exit of the interpreter Python
# empties modules that are still alive, and then nothing of them works for memories that are freed later.


def draw_with(module: str) -> None:
    """Let the function ``bundle`` of a module draw from now on.  It takes what `shown` is given."""
    _drawers["diagram"] = module


def shown(edition: object, **options: Any) -> Bundle:  # noqa: ANN401 -- passed on as they are
    """What a notebook shows of a machine.

    Parameters
    ----------
    edition : str or Machine
    **options
        Of ``syncedmem.model.diagrams.diagram.diagram_svg``.
    """
    found: Bundle = import_module(_drawers["diagram"]).bundle(edition, **options)
    return found
