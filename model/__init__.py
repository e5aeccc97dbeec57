"""The one declaration, and everything that is computed from it alone.

Start at `syncedmem.model.head`: it holds the table.  Around it, in the order in which each builds on the one
before: ``errors`` and ``mode``; ``machine`` (the table as a `transitions` machine), ``dispatch`` (that machine
compiled), ``soundness`` (what is refused), ``editions`` (the shared machines and tables), ``exploration`` (their
reachable states), ``suites`` (tour and HSI) and ``vocabulary`` (what the names of the table mean).  Above these are two
rooms: ``diagrams``, which lays the state diagram out and paints it, and ``exports``, which has every format.

Nothing here imports NumPy, CuPy or Hypothesis, and nothing here touches memory.
"""

from .editions import head_machine
from .errors import (
    AllocationError,
    BufferMismatchError,
    ClosedAllocatorError,
    ClosedMemoryError,
    DeclarationError,
    DeviceError,
    FileAccessError,
    FileFormatError,
    IllegalCallError,
    InvalidArgumentError,
    InvalidExportError,
    InvalidIndexError,
    InvalidPointerError,
    InvalidShapeError,
    InvalidSizeError,
    InvalidValueError,
    MemoryCorruptionError,
    MissingPackageError,
    MissingProgramError,
    NoArithmeticError,
    NoDeviceError,
    NoScopeError,
    NotCopyableError,
    ReentrantCallError,
    ReleaseError,
    SyncedMemoryError,
    WrongDeviceError,
)
from .exploration import Configuration, Input, Side, State, configurations, inputs, matrix, space
from .head import EDITIONS, EFFECTS, TRANSITIONS, Action, Call, Edition, Fact, Guard, Refusal, SyncedHead, Transition
from .machine import BoundHead, Declaration, HeadMachine
from .mode import Mode, current_mode, set_mode, using_mode
from .suites import hsi_suite, minimal_machine, tour

__all__ = [
    "EDITIONS",
    "EFFECTS",
    "TRANSITIONS",
    "Action",
    "AllocationError",
    "BoundHead",
    "BufferMismatchError",
    "Call",
    "ClosedAllocatorError",
    "ClosedMemoryError",
    "Configuration",
    "Declaration",
    "DeclarationError",
    "DeviceError",
    "Edition",
    "Fact",
    "FileAccessError",
    "FileFormatError",
    "Guard",
    "HeadMachine",
    "IllegalCallError",
    "Input",
    "InvalidArgumentError",
    "InvalidExportError",
    "InvalidIndexError",
    "InvalidPointerError",
    "InvalidShapeError",
    "InvalidSizeError",
    "InvalidValueError",
    "MemoryCorruptionError",
    "MissingPackageError",
    "MissingProgramError",
    "Mode",
    "NoArithmeticError",
    "NoDeviceError",
    "NoScopeError",
    "NotCopyableError",
    "ReentrantCallError",
    "Refusal",
    "ReleaseError",
    "Side",
    "State",
    "SyncedHead",
    "SyncedMemoryError",
    "Transition",
    "WrongDeviceError",
    "configurations",
    "current_mode",
    "head_machine",
    "hsi_suite",
    "inputs",
    "matrix",
    "minimal_machine",
    "set_mode",
    "space",
    "tour",
    "using_mode",
]
