"""Runs a vector against a memory, and judges by the vector alone, without the model or the oracle.

It is also the simplest explanation of the format: for each field of a step there is one function here.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syncedmem.model import Mode, using_mode

from ..engine.call_log import InjectedInterrupt, recorded
from ..engine.contents import Watched, fetch, put
from .expected import REQUIRED
from .programs import OWN, SET_MODE, WRITE_BUFFER

if TYPE_CHECKING:
    from ..engine.call_log import AllocatorCall
    from ..engine.calls import Side
    from ..engine.subject import Subject
    from .expected import Class

__all__ = ["Difference", "Replay", "replay"]

_SIDES: dict[str, Side] = {"cpu": "cpu", "gpu": "gpu"}
_NAMES = {"copy": "copy_to", "push": "copy_to"}


@dataclass(frozen=True)
class Difference:
    """A difference between a memory and a vector.

    Attributes
    ----------
    step : int
        Counted from 0.
    message : str
    judged : {"required", "acceptable"}
        Whether the memory is wrong, or only wasteful.
    """

    step: int
    message: str
    judged: Class = REQUIRED


@dataclass(frozen=True)
class Replay:
    """The result of a vector.

    Attributes
    ----------
    differences : tuple of Difference
        All wasteful differences, and the first wrong one.
    """

    differences: tuple[Difference, ...]

    @property
    def result(self) -> str:
        """``"passed"``, ``"acceptable"`` if all differences are only wasteful, or ``"failed"``."""
        if any(it.judged == REQUIRED for it in self.differences):
            return "failed"
        return "acceptable" if self.differences else "passed"


def replay(subject: Subject, vector: dict[str, Any]) -> Replay:
    """Run a vector against a new memory, until something is wrong.

    Parameters
    ----------
    subject : Subject
        Without a device for vectors of ``cpu_only``, with a device for others.
    vector : dict
        The data of one line in a file of vectors.
    """
    with nullcontext() if subject.device is None else subject.device.using():
        player, found = _Player(subject, vector["size"]), list[Difference]()
        for number, step in enumerate(vector["steps"]):
            try:
                problem = player.play(step)
            except Exception as error:  # noqa: BLE001 -- any error that a subject causes here
                problem = (f"inspecting the memory raised {type(error).__name__}: {error}", REQUIRED)
            if problem is not None:
                found.append(Difference(number, *problem))
                if problem[1] == REQUIRED:
                    break
        return Replay(tuple(found))


Problem = tuple[str, "Class"]


class _Player:
    """A memory with its log, the caller's buffers, and the mode."""

    def __init__(self, subject: Subject, size: int) -> None:
        self._subject = subject
        self._size = size
        self._log, host, device = recorded(subject)
        self._mode = Mode.GPU
        self._buffers: dict[str, Any] = {}
        self._adopted: dict[Side, Any] = {}
        self._view: dict[Side, Any] = {}
        with using_mode(self._mode):
            make: Any = subject.make
            self._memory: Any = make(size, host=host, device=device)

    def play(self, step: dict[str, Any]) -> Problem | None:
        """Take one step and check it; None if everything is as expected."""
        name = step["call"]
        argument: Any = step.get("argument")
        if name == SET_MODE:
            self._mode = Mode[argument]
            return None
        if name == WRITE_BUFFER:
            self._fill(argument)
            return self._compared(step)
        start = len(self._log.calls)
        raised, value = self._call(step)
        return (
            self._refusal(step, raised)
            or self._shown(step, value)
            or self._frees(step)
            or self._compared(step)
            or self._actions(step, self._log.calls[start:])
        )

    # --- calls

    def _call(self, step: dict[str, Any]) -> tuple[BaseException | None, Any]:
        name, side = step["call"], "gpu" if "gpu" in step["call"] else "cpu"
        method = getattr(self._memory, "close" if name == "release" else name)
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        if name == "async_gpu_push":
            keywords["stream"] = object() if self._subject.device is None else self._subject.device.stream()
        elif "argument" in step:
            arguments.append(self._argument(_SIDES[side], step["argument"]))
        armed = self._log.moves.armed(step["fail"]) if "fail" in step else nullcontext()
        try:
            with using_mode(self._mode), armed:
                value = method(*arguments, **keywords)
        except (Exception, InjectedInterrupt) as error:  # noqa: BLE001 -- subjects may raise any error
            return error, None
        if keywords and self._subject.device is not None:
            self._subject.device.record(keywords["stream"]).synchronize()
        if arguments:
            self._adopted[_SIDES[side]] = arguments[0]
        self._view[_SIDES[side]] = value
        return None, value

    def _argument(self, side: Side, argument: dict[str, Any] | None) -> Any:
        """The argument of a call: None, the memory's own pointer, or a buffer of the caller."""
        if argument is None:
            return None
        if argument == OWN:
            return self._view[side]
        if argument["buffer"] not in self._buffers:
            device = self._subject.device if side == "gpu" else None
            self._buffers[argument["buffer"]] = Watched(self._size) if device is None else device.empty(self._size)
        if "bytes" in argument:
            self._fill(argument)
        return self._buffers[argument["buffer"]]

    def _fill(self, argument: dict[str, Any]) -> None:
        self._write(self._buffers[argument["buffer"]], bytes.fromhex(argument["bytes"]))

    def _write(self, target: Any, content: bytes) -> None:
        if isinstance(target, Watched):
            target[:] = content
        elif hasattr(target, "get"):
            put(self._subject, target, content)
        else:
            memoryview(target).cast("B")[:] = content

    # --- checks

    def _refusal(self, step: dict[str, Any], raised: BaseException | None) -> Problem | None:
        must = "fail" in step or step["refusal"] is not None
        if must == (raised is not None):
            return None
        return (f"{step['call']} was not refused" if must else f"{step['call']} raised {raised!r}"), REQUIRED

    def _shown(self, step: dict[str, Any], value: Any) -> Problem | None:
        if "shows" not in step:
            return None
        shown = bytes(memoryview(value.get() if "gpu" in step["call"] else value).cast("B")).hex()
        if shown != step["shows"]:
            return f"{step['call']} shows {shown}, expected {step['shows']}", REQUIRED
        if "write" in step:
            self._write(value, bytes.fromhex(step["write"]))
        return None

    def _frees(self, step: dict[str, Any]) -> Problem | None:
        """Check that every free was right, and that nothing is left after release."""
        if self._log.stray:
            return self._log.stray[0][1], REQUIRED
        if step["call"] == "release" and self._log.live:
            return f"{len(self._log.live)} allocations are left after release", REQUIRED
        return None

    def _compared(self, step: dict[str, Any]) -> Problem | None:
        """Compare head, flags and bytes, as far as the vector has them."""
        if "head" in step and self._memory.head.name != step["head"]:
            return f"the head is {self._memory.head.name}, expected {step['head']}", REQUIRED
        for flag, wanted in step.get("flags", {}).items():
            found = getattr(self._memory, flag)
            if found != wanted:
                return f"{flag} is {found}, expected {wanted}", REQUIRED
        for side, content in step.get("bytes", {}).items():
            for pointer in self._pointers(_SIDES[side]) if content else ():
                found = self._bytes(_SIDES[side], pointer)
                if found != content:
                    return f"the {side} side holds {found}, expected {content}", REQUIRED
        return None

    def _pointers(self, side: Side) -> list[Any]:
        return [self._adopted[side]] if side in self._adopted else self._log.owned(side)

    def _bytes(self, side: Side, pointer: Any) -> str:
        if side == "cpu":
            return bytes(memoryview(pointer).cast("B")).hex()
        return fetch(self._subject, pointer, self._size).hex()

    def _actions(self, step: dict[str, Any], entries: list[AllocatorCall]) -> Problem | None:
        """Compare allocator calls: their order, their sizes, and the kind of host memory."""
        if step["class"] == "unspecified":
            return None
        wanted = [it for it in step["actions"] if not it.startswith("adopt")]
        seen = [_named(entry) for entry in entries]
        sized = all(entry.byte_size == self._size for entry in entries)
        message = f"{step['call']}: {', '.join(seen) or 'nothing'}, expected {', '.join(wanted) or 'nothing'}"
        if seen == wanted and sized:
            return self._kinds(step, entries)
        rest = iter(seen)
        needed = all(action in rest for action in wanted)
        more = [*seen]
        for action in wanted:
            if action in more:
                more.remove(action)
        wasteful = step["class"] == "acceptable" and needed and sized
        if wasteful and all(action.startswith(("copy", "zero")) for action in more):
            return message, "acceptable"
        return message, REQUIRED

    def _kinds(self, step: dict[str, Any], entries: list[AllocatorCall]) -> Problem | None:
        """Check that host memory has the kind that the flag says; the log checks that its free has it too."""
        locked = step.get("flags", {}).get("cpu_malloc_use_cuda")
        made = [entry.pinned for entry in entries if (entry.operation, entry.side) == ("allocate", "cpu")]
        if locked is None or all(pinned == locked for pinned in made):
            return None
        return f"host memory is {'pageable' if locked else 'page-locked'}", REQUIRED


def _named(entry: AllocatorCall) -> str:
    """The name of the action that an allocator call belongs to."""
    name = f"{_NAMES.get(entry.operation, entry.operation)}_{entry.side}"
    return f"{name}_async" if entry.operation == "push" else name
