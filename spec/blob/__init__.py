"""The requirements of a blob, and the kit that checks blobs against them.

The ``oracle`` knows shapes, memories and which blob holds which memory.  ``tables`` say what arithmetic and copies do
to heads.  Neither uses the other.  A scenario (``scenarios``) is a list of calls on blobs.  It is enumerated
(``suites``) or generated (``walks``), and a ``driver`` runs it and compares everything after every step.  ``rules`` and
``messages`` are checked one by one.  ``reference`` is a small correct blob.
"""

from .claims import blob_requirements_for
from .coverage import BlobCoverage
from .kit import blob_suite_names, check_blobs
from .reference import ReferenceBlob

__all__ = ["BlobCoverage", "ReferenceBlob", "blob_requirements_for", "blob_suite_names", "check_blobs"]
