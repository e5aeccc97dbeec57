"""Finds bugs in any allocator, without code for it.

``recognition`` finds out from its attributes which convention a target follows.  ``targets`` makes a `Target` of it, or
``native`` of functions in a library; ``capabilities`` has its promises.  A ``driver`` takes steps.  It has an
``oracle``, which judges the result of each step and has a ``shadow_heap``.  ``campaign`` draws steps.  ``kit`` tests a
target with it, in a process that may crash and does its ``jobs``; each comes to an ``outcome``.  The ``examiner`` makes
the program of a finding short and confirms it, and ``c_program`` writes it in C.  The ``report`` has the findings, in
which ``causes`` puts what follows from a bug under it.  ``cluster`` makes many runs.  ``machine`` is for tests of
Hypothesis.  Nothing here imports the runtime.
"""

from .allocator_tests import AllocatorTests
from .capabilities import Capabilities
from .driver import Driver
from .finding import OPERATIONS, EngineError, Finding, HeapStep, TargetError
from .kit import fuzz
from .machine import AllocatorMachine, allocator_machine
from .recognition import TargetSource
from .replay import FuzzWanted, Replay, driver_of
from .report import Report
from .targets import Target

__all__ = [
    "OPERATIONS",
    "AllocatorMachine",
    "AllocatorTests",
    "Capabilities",
    "Driver",
    "EngineError",
    "Finding",
    "FuzzWanted",
    "HeapStep",
    "Replay",
    "Report",
    "Target",
    "TargetError",
    "TargetSource",
    "allocator_machine",
    "driver_of",
    "fuzz",
]
