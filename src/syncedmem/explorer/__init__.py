"""The machine as a page to play with: one HTML file that needs no network, made from the declaration.

``material`` is what the page is told: the machine's exported document, drawings, and traces; ``machines`` says which
machines are on the page.  ``page`` puts that, the style and the scripts beside it into one file.  ``trace`` looks at
what somebody wants to open with it, and ``server`` serves it.  The scripts interpret the document, so the page can do
only what the model does.
"""

from .material import explorer_material
from .page import explorer_page
from .server import page_server
from .trace import read_trace

__all__ = ["explorer_material", "explorer_page", "page_server", "read_trace"]
