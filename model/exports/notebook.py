"""What a notebook shows of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..diagrams.diagram import diagram_svg
from ..errors import DeclarationError, InvalidExportError

if TYPE_CHECKING:
    from ..display import Bundle
    from ..opening import AnyMachine

__all__ = ["bundle"]


def bundle(edition: AnyMachine, **options: Any) -> Bundle:  # noqa: ANN401 -- passed on as they are
    """The diagram.

    Parameters
    ----------
    edition : str or Machine
    **options
        Of `diagram_svg`.

    Returns
    -------
    dict of str to str
        Contents by media type.  It is empty, so that a notebook shows the repr, if the machine is unsound, or if a
        trace or a state of it cannot be drawn.
    """
    try:
        return {"image/svg+xml": diagram_svg(edition, **options)}
    except (DeclarationError, InvalidExportError):
        return {}
