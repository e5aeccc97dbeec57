"""What a machine is, Caffe's machine, and everything that is computed from a machine alone.

Start at `syncedmem.model.caffe`, which holds the table.  ``declaration`` says what a machine is, ``stepper`` what an
input does, and ``states`` what inputs reach and what is unsound.  ``suites`` has tours and complete suites.  Two rooms
are above these: ``diagrams`` lays out and paints the state diagram, and ``exports`` has every format.

What knows Caffe's words alone still asks ``head`` (these words as enumerations), ``machine``, ``dispatch``,
``soundness``, ``compiled`` and ``exploration``.  They go with their last user; ``tests/support/replaced.py`` prints who
that is.

Nothing here imports NumPy, CuPy or Hypothesis, and nothing here touches memory.
"""

from __future__ import annotations

from . import display, errors
from .compiled import head_machine
from .errors import *  # noqa: F403 -- every error is public, and its module lists them
from .exploration import Configuration, Input, Side, State, configurations, inputs, matrix, space
from .head import EDITIONS, EFFECTS, TRANSITIONS, Action, Call, Edition, Fact, Guard, Refusal, SyncedHead, Transition
from .machine import BoundHead, Declaration, HeadMachine
from .mode import Mode, current_mode, set_mode, using_mode
from .suites import hsi_suite, minimal_machine, tour

__all__: list[str] = [
    "EDITIONS",
    "EFFECTS",
    "TRANSITIONS",
    "Action",
    "BoundHead",
    "Call",
    "Configuration",
    "Declaration",
    "Edition",
    "Fact",
    "Guard",
    "HeadMachine",
    "Input",
    "Mode",
    "Refusal",
    "Side",
    "State",
    "SyncedHead",
    "Transition",
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
__all__ += errors.__all__


display.draw_with(f"{__name__}.exports.notebook")  # it loads all that draws, so only when a notebook asks


def __dir__() -> list[str]:
    return sorted(__all__)
