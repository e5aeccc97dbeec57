"""The requirements of mirrored memories and blobs, and kits that check implementations against them.

``requirements`` are numbered sentences.  ``engine`` has what every kit needs: the subject, the call log, reproducers,
the shrinker, findings and reports.  The kits of ``memory``, of ``blob`` and, for allocators, ``fuzz`` use it.
``contracts`` are the checks of allocators with our interface, which need no generated steps.  In each kit an ``oracle``
predicts what must happen, and never reads the transition table.  A ``driver`` makes one call after the other and
compares everything with the oracle.  ``suites`` are enumerated, ``walks`` are generated.
``vectors`` are programs with their expected results, for ports that Python cannot call.  ``proofs`` compare the table
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
from .engine.call_log import CallLog, RecordingAllocator
from .engine.report import Conformance, SuiteResult, Verdict
from .engine.subject import BlobMaker, Maker, Memory, Subject
from .engine.violation import UnfitMakerError, UnfitPolicyError, Violation
from .evidence import compare_model, evidence
from .memory import (
    Coverage,
    MemoryDriver,
    Oracle,
    Policy,
    ReferenceMemory,
    check_conformance,
    requirements_for,
    state_machine,
    suite_names,
)
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
    "MemoryDriver",
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
