"""What a mirrored memory must do, and a kit that finds out whether one does.

``requirements`` are numbered sentences.  ``oracle`` predicts by thinking about which copies are fresh, and never
reads the transition table.  ``kit`` puts a ``subject`` to every check: words from the state space (``suites``),
edges one by one (``contracts``), and generated walks (``walks``), each driven by a ``trial`` that runs a ``script``
line by line, and seen through the instrumented allocators of ``ledger``; ``shrinking`` makes what fails short.
``vectors`` are the same for ports that Python cannot call, written down with what must be seen.
``proofs`` are about the model alone.  ``faults`` are wrong memories that the kit must refuse, and ``evidence``
compares the model with what was observed of Caffe.  ``blobs`` has the same for blobs.  Nothing here imports
the runtime.
"""

from .blob import BlobCoverage, BlobPort, blob_requirements_for, blob_suite_names, check_blobs
from .blobs.faults import BLOB_FAULTS
from .engine.call_log import Ledger, RecordingAllocator
from .engine.finding import Violation
from .engine.report import Conformance, SuiteResult
from .engine.subject import Bench, BlobMaker, Maker, Subject
from .evidence.comparison import compare_model, evidence
from .faults import FAULTS, Fault, Kill, kill_table, run_fault
from .memory.coverage import Coverage
from .memory.driver import Trial
from .memory.kit import check_conformance, requirements_for, suite_names
from .memory.oracle import Oracle
from .memory.reference import Port
from .requirements import REQUIREMENTS, Requirement

__all__ = [
    "BLOB_FAULTS",
    "FAULTS",
    "REQUIREMENTS",
    "Bench",
    "BlobCoverage",
    "BlobMaker",
    "BlobPort",
    "Conformance",
    "Coverage",
    "Fault",
    "Kill",
    "Ledger",
    "Maker",
    "Oracle",
    "Port",
    "RecordingAllocator",
    "Requirement",
    "Subject",
    "SuiteResult",
    "Trial",
    "Violation",
    "blob_requirements_for",
    "blob_suite_names",
    "check_blobs",
    "check_conformance",
    "compare_model",
    "evidence",
    "kill_table",
    "requirements_for",
    "run_fault",
    "suite_names",
]
