"""The requirements of a blob, and the kit that checks blobs against them.

The ``oracle`` knows shapes, memories and which blob holds which memory, and foresees each call.  A scenario
(``scenarios``) is a list of ``steps``.  It is enumerated (``suites``) or generated (``walks``).  A ``driver`` runs it,
and compares everything after every step.  ``rules`` and ``messages`` are scenarios about one requirement.
"""

from .cells import BlobCoverage
from .claims import blob_requirements_for
from .kit import blob_suite_names, check_blobs

__all__ = ["BlobCoverage", "blob_requirements_for", "blob_suite_names", "check_blobs"]
