"""The declaration of the machine, and everything that is computed from it alone.

Start at `syncedmem.model.head`, which holds the table.  The other modules, each built on those before it:
``errors`` and ``mode``; ``machine`` (the table as a `transitions` machine), ``dispatch`` (that machine
compiled), ``soundness`` (what is refused), ``compiled`` (the shared machines and tables), ``exploration`` (their
reachable states), ``suites`` (tour and HSI) and ``vocabulary`` (what the names of the table mean).  Two rooms are
above these: ``diagrams`` lays out and paints the state diagram, and ``exports`` has every format.

An open model grows beside these, over anybody's words: ``declaration`` (what a machine is), ``caffe`` (Caffe's),
``stepper`` (what an input does) and ``states`` (what inputs reach, what is unsound, the table).  It replaces all but
``errors``, ``mode`` and ``suites``; ``tests/support/replaced.py`` prints who still imports what it replaces.

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
