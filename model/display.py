"""How a notebook shows values of ours: as the diagram.

A notebook asks a value for ``_repr_mimebundle_``.  The values are on low floors, and what draws them is on a high one,
which they may not import.  So they ask here, and what draws is loaded by its name when a notebook asks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Bundle", "shown"]

Bundle = dict[str, str]
"""Contents by their media type."""

# A name, because a function of a package keeps the modules of the package alive.  At the exit of the interpreter Python
# empties modules that are still alive, and then nothing of them works for memories that are freed later.
_DRAWER = f"{__package__}.exports.notebook"


def shown(edition: object, **options: Any) -> Bundle:  # noqa: ANN401 -- passed on as they are
    """What a notebook shows of a machine.

    Parameters
    ----------
    edition : str or Declaration
    **options
        Of ``syncedmem.model.diagrams.diamond.diamond_svg``.
    """
    found: Bundle = import_module(_DRAWER).bundle(edition, **options)
    return found
