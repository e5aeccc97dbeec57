"""A machine as a page to play with: one HTML file that needs no network, made from the declaration.

``material`` is what the page is told: every state with every step from it, as the model computes them.  ``page`` puts
that, the style and the scripts beside it into one file.  The scripts look steps up, so the page can do only what the
model does.
"""

from .material import explorer_material
from .page import explorer_page

__all__ = ["explorer_material", "explorer_page"]
