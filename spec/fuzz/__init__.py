"""Finds what is wrong with an allocator: anybody's, without glue.

``recognition`` decides by what a target has which convention it follows, ``targets`` and ``native`` make a `Target` of
it, and ``capabilities`` says what it promises.  A ``driver`` takes steps; it has an ``oracle``, which
judges what came of each, and has a ``shadow_heap``.  Two engines draw steps: ``campaign``, fast and seeded, and
``machine``, which is Hypothesis and shrinks.  ``kit`` puts a target to both, in a ``worker`` process where
it may crash, and makes a ``report``.  `syncedmem.spec.mutants.allocator` has wrong
allocators that all of this must catch.  Nothing here imports the runtime.
"""

from .allocator_tests import AllocatorTests
from .capabilities import Capabilities
from .contract import AllocatorContract, check_allocator
from .driver import Driver
from .finding import OPERATIONS, Finding, Step, TargetError
from .kit import fuzz
from .machine import AllocatorMachine, allocator_machine
from .recognition import Source
from .replay import Replay, driver_of
from .report import Report
from .targets import Target

__all__ = [
    "OPERATIONS",
    "AllocatorContract",
    "AllocatorMachine",
    "AllocatorTests",
    "Capabilities",
    "Driver",
    "Finding",
    "Replay",
    "Report",
    "Source",
    "Step",
    "Target",
    "TargetError",
    "allocator_machine",
    "check_allocator",
    "driver_of",
    "fuzz",
]
