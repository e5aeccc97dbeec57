"""The requirements of mirrored memories and blobs, and kits that check implementations against them.

``requirements`` are numbered sentences.  ``engine`` has what every kit needs: the subject, the call log, the shrinker,
findings and reports.  ``record`` is what is done and what is seen, as data, and the one comparison of both, which names
the requirement.  The oracle of ``memory`` says what must be seen, and never reads the transition table.  ``subjects``
do steps on real memories, ``cases`` are lists of steps, ``kit`` runs them, and ``conformance`` reports.  ``blob`` and,
for allocators, ``fuzz`` are kits of their own.  ``contracts`` are the checks of allocators with our interface.
``vectors`` are cases written with what must be seen, for ports that Python cannot call.  ``proofs`` compare the table
of a machine with the oracle.  ``evidence`` compares the model with observations of Caffe.  Nothing here
imports the runtime.
"""

from importlib import import_module

from syncedmem.model import MissingPackageError

try:
    import_module("hypothesis")
except Exception as _error:
    raise MissingPackageError("syncedmem.spec", "hypothesis", "kit", _error) from _error

from .blob import BlobCoverage, blob_requirements_for, blob_suite_names, check_blobs
from .conformance import check_conformance, state_machine, suite_names
from .engine.call_log import CallLog, RecordingAllocator
from .engine.report import Conformance, SuiteResult, Verdict
from .engine.subject import BlobMaker, Maker, Memory, Subject
from .engine.violation import UnfitMakerError, UnfitPolicyError, Violation
from .evidence import compare_model, evidence
from .memory import Coverage, Oracle, Policy, ReferenceMemory, requirements_for
from .requirements import REQUIREMENTS, Requirement

__all__ = [
    "REQUIREMENTS",
    "BlobCoverage",
    "BlobMaker",
    "CallLog",
    "Conformance",
    "Coverage",
    "Maker",
    "Memory",
    "Oracle",
    "Policy",
    "RecordingAllocator",
    "ReferenceMemory",
    "Requirement",
    "Subject",
    "SuiteResult",
    "UnfitMakerError",
    "UnfitPolicyError",
    "Verdict",
    "Violation",
    "blob_requirements_for",
    "blob_suite_names",
    "check_blobs",
    "check_conformance",
    "compare_model",
    "evidence",
    "requirements_for",
    "state_machine",
    "suite_names",
]


def __dir__() -> list[str]:
    return sorted(__all__)
