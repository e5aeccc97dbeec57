"""What a blob must do, and the kit that finds out whether one does.

The ``oracle`` knows shapes, memories and who holds which; ``tables`` say what arithmetic and copies do to heads, and
the two do not know each other.  A story (``stories``) is what is done to blobs: enumerated (``suites``) or generated
(``walks``), and driven by a ``trial`` that compares everything after every step.  ``rules`` and ``messages`` are
checked one by one.  ``faults`` are wrong blobs that the kit must refuse, planted in the small one of ``port``, and
``errata`` say what is not as in Caffe.
"""

from .coverage import BlobCoverage
from .kit import blob_requirements_for, blob_suite_names, check_blobs
from .reference import BlobPort

__all__ = ["BlobCoverage", "BlobPort", "blob_requirements_for", "blob_suite_names", "check_blobs"]
