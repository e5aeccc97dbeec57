"""What a blob must do, and the kit that finds out whether one does.

The ``oracle`` knows shapes, memories and who holds which; ``tables`` say what arithmetic and copies do to heads, and
the two do not know each other.  A scenario (``scenarios``) is what is done to blobs: enumerated (``suites``) or
generated (``walks``), and run by a ``driver`` that compares everything after every step.  ``rules`` and ``messages``
are checked one by one.  ``reference`` is a small blob that does all of it right.
"""

from .coverage import BlobCoverage
from .kit import blob_requirements_for, blob_suite_names, check_blobs
from .reference import ReferenceBlob

__all__ = ["BlobCoverage", "ReferenceBlob", "blob_requirements_for", "blob_suite_names", "check_blobs"]
