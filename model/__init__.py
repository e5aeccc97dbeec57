"""What a machine is, Caffe's machine, and everything that is computed from a machine alone.

Start at `syncedmem.model.caffe`, which holds the table.  ``declaration`` says what a machine is, ``moves`` what its
rows and inputs do, and ``states`` what inputs reach and what is unsound.  ``suites`` has tours and complete suites.
Two rooms are above these: ``diagrams`` lays out and paints the state diagram, and ``exports`` has every format.

Nothing here imports NumPy, CuPy or Hypothesis, and nothing here touches memory.
"""

from __future__ import annotations

from . import errors
from .caffe import EDITIONS
from .declaration import (
    ACTION_MEANINGS,
    CALL_MEANINGS,
    FACT_MEANINGS,
    Action,
    BySetting,
    Call,
    Fact,
    Head,
    Machine,
    Refusal,
    Row,
    Setting,
)
from .errors import *  # noqa: F403 -- every error is public, and its module lists them
from .head import SyncedHead
from .mode import Mode, current_mode, set_mode, using_mode
from .moves import Effect, Input, Move, State, Stepper
from .states import Configuration, Space, configurations, matrix, space
from .suites import hsi_suite, minimal_machine, tour

__all__: list[str] = [
    "ACTION_MEANINGS",
    "CALL_MEANINGS",
    "EDITIONS",
    "FACT_MEANINGS",
    "Action",
    "BySetting",
    "Call",
    "Configuration",
    "Effect",
    "Fact",
    "Head",
    "Input",
    "Machine",
    "Mode",
    "Move",
    "Refusal",
    "Row",
    "Setting",
    "Space",
    "State",
    "Stepper",
    "SyncedHead",
    "configurations",
    "current_mode",
    "hsi_suite",
    "matrix",
    "minimal_machine",
    "set_mode",
    "space",
    "tour",
    "using_mode",
]
__all__ += errors.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
