"""Runs a vector of blobs against blobs, and judges by the vector alone; see `syncedmem.spec.vectors.memory_replay`."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from itertools import chain, permutations
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import Mode, caffe, using_mode

from ..blob.elements import decoded, encoded, near, pour, shown
from ..engine.call_log import action_of, recorded
from .blobs import RELEASE
from .memory_replay import Difference
from .programs import SET_MODE

if TYPE_CHECKING:
    from ..engine.subject import Subject
    from .memory_replay import Problem

__all__ = ["replay_blobs"]

_TOLERANCE = 1e-6
_UNSEEN = ("free", "clone")


def replay_blobs(subject: Subject, vector: dict[str, Any]) -> Difference | None:
    """Run a vector of blobs against new blobs, until something is wrong.

    Parameters
    ----------
    subject : Subject
        Of blobs; without a device for vectors of ``cpu_only``, with a device for others.
    vector : dict
        The data of one line in a file of vectors.

    Returns
    -------
    Difference or None
        The first difference; None if there is none.
    """
    with nullcontext() if subject.device is None else subject.device.using():
        player = _Player(subject, vector)
        for number, step in enumerate(vector["steps"]):
            try:
                problem = player.play(step)
            except Exception as error:  # noqa: BLE001 -- any error that a subject causes here
                problem = ("blobs that can be looked at", f"{type(error).__name__}: {error}")
            if problem is not None:
                return Difference(number, step["call"], *problem)
        return None


class _Player:
    """Blobs with their log, and the mode."""

    def __init__(self, subject: Subject, vector: dict[str, Any]) -> None:
        self._subject = subject
        self._mode = Mode.GPU
        self._type: str = vector["type"]
        self._log, host, device = recorded(subject)
        make: Any = subject.make
        with using_mode(self._mode):
            blobs = [make(tuple(shape), dtype=self._type, host=host, device=device) for shape in vector["shapes"]]
        self._blobs: dict[int, Any] = dict(enumerate(blobs))

    def play(self, step: dict[str, Any]) -> Problem | None:
        """Take one step and check it; None if everything is as expected."""
        if step["call"] == SET_MODE:
            self._mode = Mode[step["argument"]]
            return None
        if step["call"] == RELEASE:
            return self._release(step.get("blob", 0))
        start = len(self._log.calls)
        raised, value = self._call(step)
        done = [it for it in self._log.calls[start:] if it.operation not in _UNSEEN]
        return (
            self._refusal(step, raised)
            or self._answered(step, value)
            or self._actions(step, [action_of(caffe.EVERYTHING, it.operation, it.side, it.source) for it in done])
            or self._compared(step)
        )

    def _release(self, n: int) -> Problem | None:
        """Drop a blob; when the last one is gone, nothing may be left."""
        if self._subject.program is not None:
            self._blobs[n].drop()
        del self._blobs[n]
        if self._log.live and not self._blobs:
            gc.collect()
        if self._log.live and not self._blobs:
            return "nothing left after release", f"{len(self._log.live)} allocations"
        return None

    def _call(self, step: dict[str, Any]) -> tuple[str, Any]:
        """Make a call; return what it raised, as text, and what it returned."""
        argument, options = step.get("argument"), dict[str, Any]()
        given = [argument] if "argument" in step else []
        if isinstance(argument, dict):
            known = cast("dict[str, Any]", argument)
            options = {name: it for name, it in known.items() if name != "blob"}
            given = [self._blobs[known["blob"]]]
        try:
            with using_mode(self._mode):
                return "", getattr(self._blobs[step.get("blob", 0)], step["call"])(*given, **options)
        except Exception as error:  # noqa: BLE001 -- subjects may raise any error
            return f"{type(error).__name__}: {error}", None

    # --- checks

    def _refusal(self, step: dict[str, Any], raised: str) -> Problem | None:
        if bool(step["refusal"]) == bool(raised):
            return None
        return f"the refusal {step['refusal']}" if step["refusal"] else "an answer", raised or "an answer"

    def _answered(self, step: dict[str, Any], value: Any) -> Problem | None:
        if "value" in step and not near(value, step["value"], _TOLERANCE):
            return str(step["value"]), str(value)
        if "shows" not in step:
            return None
        numbers = [*decoded(shown(value), self._type)]
        if numbers != step["shows"]:
            return f"the view {step['shows']}", str(numbers)
        if "write" in step:
            pour(value, encoded(step["write"], self._type))
        return None

    def _actions(self, step: dict[str, Any], seen: list[str]) -> Problem | None:
        """Compare allocator calls; either memory may come first."""
        orders = [[*chain.from_iterable(order)] for order in permutations(step["actions"])]
        if seen in orders:
            return None
        return ", ".join(orders[0]) or "no action", ", ".join(seen) or "no action"

    def _compared(self, step: dict[str, Any]) -> Problem | None:
        """Compare the shapes of all blobs, and the heads and the numbers of their parts."""
        for n, wanted in enumerate(step["blobs"]):
            blob = self._blobs[n]
            if list(blob.shape) != wanted["shape"]:
                return f"blob {n} of the shape {wanted['shape']}", str(list(blob.shape))
            for part in ("data", "diff"):
                memory, expected = getattr(blob, f"{part}_memory"), wanted[part]
                if memory.head.name != expected["head"]:
                    return f"the head {expected['head']} of {part} of blob {n}", memory.head.name
                for side in ("cpu", "gpu"):
                    numbers = None if expected[side] is None else self._numbers(memory, side)
                    if numbers != expected[side]:
                        return f"{expected[side]} on the {side} side of {part} of blob {n}", str(numbers)
        return None

    def _numbers(self, memory: Any, side: str) -> list[Any]:
        """The numbers on a fresh side; reading that side does nothing else."""
        with using_mode(self._mode):
            return [*decoded(shown(getattr(memory, f"{side}_data")()), self._type)]
