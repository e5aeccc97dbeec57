"""Interrupts where CPython delivers signals: at the start of a function, after a call of C, and at a jump back."""

from __future__ import annotations

import dis
import sys
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any

from syncedmem.model import SyncedMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

__all__ = ["ANYWHERE", "MOST", "STARTS", "Interrupt"]

MOST = 100_000
"""More points than there are in any call."""

STARTS = frozenset({"call"})
"""The start of a Python function, by the name of the event of a profiler."""

ANYWHERE = STARTS | {"c_return", "jump"}
"""All points."""


@cache
def _jumps_back(code: CodeType) -> frozenset[int]:
    """Where a function jumps back."""
    return frozenset(
        instruction.offset for instruction in dis.get_instructions(code) if "JUMP_BACKWARD" in instruction.opname
    )


class Interrupt:
    """Raises at the k-th point: an interrupt, what another signal handler raises, or an error of the interpreter.

    Attributes
    ----------
    left : int
        How many points there are until then; not positive after it.
    """

    def __init__(self, k: int, events: frozenset[str] = STARTS, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.left = self._k = k
        self._events = events
        self._error = error
        self._jumped: tuple[FrameType, int] | None = None

    def __call__(self, _frame: object, event: str, argument: object) -> None:
        """The function of the profiler."""
        if event in self._events and argument is not sys.setprofile and argument is not sys.settrace:
            self._count()

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self._error

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        """The function of the tracer: only it sees jumps."""
        if event == "call":
            if not _jumps_back(frame.f_code):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            jumped, self._jumped = self._jumped, None
            if jumped is not None and jumped[0] is frame and frame.f_lasti <= jumped[1]:
                self._count()
            if frame.f_lasti in _jumps_back(frame.f_code):
                self._jumped = frame, frame.f_lasti
        return self._trace

    def comes_in(self, act: Callable[[], object]) -> bool:
        """Do something; returns whether the interrupt came, in a finaliser perhaps, which Python prints."""
        context = copy_context()  # NumPy's settings may stay as they are for a call that is interrupted
        before = sys.gettrace()
        if "jump" in self._events:
            sys.settrace(self._trace)
        sys.setprofile(self)
        try:
            context.run(act)
        except self._error:
            pass
        except SyncedMemoryError:
            # What is no interrupt can become an error of the family.
            if self.left > 0 or not issubclass(self._error, Exception):
                raise
        finally:
            sys.setprofile(None)
            sys.settrace(before)
            self._jumped = None
        return self.left <= 0 < self._k
