"""One memory under test, driven call by call and observed in full after each.

After every call the trial compares with the oracle: whether it was refused, the allocator calls in order with
their sizes and kinds, the head and the flags, the bytes of the view that was handed out, and, behind the
memory's back, the bytes of every fresh side.  The first difference is raised as a `Violation` that names the
requirement it breaks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from syncedmem.model import Call, Input, Mode, SyncedHead, using_mode

from .ledger import Entry, Ledger, RecordingAllocator
from .oracle import Copy, Expected, Oracle, Side
from .subject import Bench, Subject, Violation
from .verdict import difference, refusal_requirement, success_requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["State", "Trial", "pattern"]

P = ParamSpec("P")

State = tuple[SyncedHead, str, str, bool, Mode]
"""A head, the owners of both sides, the pinned flag and the mode: what coverage is counted in."""

_SHOWN = 16
_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_SIDES: dict[Call, Side] = {
    Call.CPU_DATA: "cpu",
    Call.MUTABLE_CPU_DATA: "cpu",
    Call.SET_CPU_DATA: "cpu",
    Call.GPU_DATA: "gpu",
    Call.MUTABLE_GPU_DATA: "gpu",
    Call.SET_GPU_DATA: "gpu",
}
_READS = (Call.CPU_DATA, Call.GPU_DATA)
_WRITES = (Call.MUTABLE_CPU_DATA, Call.MUTABLE_GPU_DATA)
_ADOPTIONS = (Call.SET_CPU_DATA, Call.SET_GPU_DATA)

# 251 is prime, so that no shift by a power of two maps the pattern onto itself.
_WHEEL = bytes(range(251)) * 2


def pattern(number: int, size: int) -> bytes:
    """Bytes that differ from those of every other number, everywhere they can."""
    start = number * 7 % 251
    return (_WHEEL[start : start + 251] * (size // 251 + 1))[:size]


def _blaming(act: Callable[Concatenate[Trial, P], None], /) -> Callable[Concatenate[Trial, P], None]:
    """Whatever a subject makes the kit stumble over is a violation, not a failure of the kit."""

    @wraps(act)
    def blamed(trial: Trial, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            act(trial, *args, **kwargs)
        except Violation:
            raise
        except Exception as error:
            requirement = "R10-same-bytes" if trial.size else "R44-size-zero"
            message = f"looking at the memory raised {type(error).__name__}: {error}"
            raise Violation(requirement, message, tuple(trial.script)) from error

    return blamed


class Trial:
    """A subject with its own ledger, and the oracle beside it.

    Parameters
    ----------
    bench : Bench
    size : int
        In bytes.
    mode : Mode
        The mode the trial starts in.
    """

    def __init__(self, bench: Bench, size: int, mode: Mode = Mode.GPU) -> None:
        self.bench = bench
        self.ledger = Ledger()
        self.mode = mode
        self.oracle = Oracle(size, bench.device is not None)
        self.script: list[str] = [f"memory = {bench.made_by.format(size=size)}"]
        self.visited: list[tuple[State, Input]] = []
        self._number = 0
        self._external: dict[Side, Any] = {}
        self._views: dict[Call, Any] = {}
        self._streams: list[Any] = []
        host = RecordingAllocator(bench.host, self.ledger, "cpu")
        device = None if bench.device is None else RecordingAllocator(bench.device, self.ledger, "gpu")
        with using_mode(mode):
            self.subject: Subject = self._make(host, device)
        self._require(not self.ledger.entries, "R01-lazy", "making a memory called its allocators")
        self._compare_head("R02-uninitialized")
        self._compare_flags()

    def _make(self, host: Any, device: Any) -> Subject:
        try:
            return self.bench.make(self.size, host=host, device=device)
        except Exception as error:
            message = f"making a memory of {self.size} bytes raised {type(error).__name__}: {error}"
            requirement = "R01-lazy" if self.size else "R44-size-zero"
            raise Violation(requirement, message, tuple(self.script)) from error

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.oracle.size

    @property
    def state(self) -> State:
        """Where the trial stands, for counting coverage."""
        oracle = self.oracle
        return (oracle.head, oracle.cpu.owner, oracle.gpu.owner, oracle.pinned, self.mode)

    # --- doing

    @_blaming
    def perform(self, entry: Input) -> None:
        """Do one thing, and compare everything.

        Raises
        ------
        Violation
        """
        self.visited.append((self.state, entry))
        self._number += 1
        if entry.call is None:
            self.mode = entry.mode or self.mode
            self.script.append(f"set_mode(Mode.{self.mode.name})")
            return
        expected = self.predict(entry)
        start = len(self.ledger.entries)
        argument = self._argument(entry)
        raised, view = self._invoke(entry, argument)
        self._compare_calls(entry, expected, self.ledger.entries[start:], raised)
        self._compare_refusal(entry, expected, raised)
        adopted = raised is None and argument is not None and entry.call in _ADOPTIONS
        if adopted:
            self._external[_SIDES[entry.call]] = argument
        self.oracle = expected.after
        self._compare_situation(entry, view, raised)
        if adopted:
            self._write_as_caller(_SIDES[entry.call], argument)
        if raised is None and entry.call in _WRITES:
            self._write(_SIDES[entry.call], view)

    @_blaming
    def perform_failing(self, entry: Input, k: int, *, partial: bool = False) -> None:
        """Do one thing whose k-th allocator call fails; nothing must have changed, and then it must work.

        Raises
        ------
        Violation
        """
        before, live = self.oracle, dict(self.ledger.live)
        argument = self._argument(entry)
        self.ledger.fail_at(k, partial=partial)
        raised, _ = self._invoke(entry, argument)
        self.ledger.fail_at(0)
        self.script[-1] += f"  # allocator call {k} fails{' halfway' if partial else ''}"
        self._require(raised is not None, "R32-strong-guarantee", "a failed allocator call was not reported")
        if entry.call is Call.RELEASE and k > 1:
            # What is freed cannot be unfreed: here the host side is gone and the device side is left to free.
            self.oracle = replace(before, cpu=Copy(), released=True)
            live = {key: value for key, value in live.items() if value[1].side == "gpu"}
        self._require(self.ledger.live.keys() == live.keys(), "R33-failure-leaks-nothing", self._leak(live))
        if not self.oracle.released:
            self._compare_head("R32-strong-guarantee")
            self._compare_flags("R32-strong-guarantee")
            self._compare_bytes("R32-strong-guarantee")
        try:
            self.perform(entry)
        except Violation as violation:
            self._require(False, "R34-works-after-failure", f"afterwards: {violation}")

    @_blaming
    def synchronize(self) -> None:
        """Wait for every push."""
        if self._streams:
            self.script.append("# wait for every stream")
        for stream in self._streams:
            try:
                self._device.record(stream).synchronize()
            except Exception as error:  # noqa: BLE001 -- whatever a device says of memory it lost
                self._require(False, "R42-in-flight-not-freed", f"the push failed: {error}")
        self._compare_bytes()

    @_blaming
    def finish(self) -> None:
        """Release, and look for what is left.

        Raises
        ------
        Violation
        """
        if not self.oracle.released:
            self.perform(Input(Call.RELEASE))
        self.synchronize()
        left = [f"{entry.byte_size} bytes on {entry.side}" for _, entry in self.ledger.live.values()]
        self._require(not left, "R27-release-frees-owned", f"still allocated after release: {', '.join(left)}")

    def predict(self, entry: Input) -> Expected:
        """What the oracle says of a call."""
        call, oracle = entry.call, self.oracle
        if call in _READS:
            return oracle.read(_SIDES[call], self.mode)
        if call in _WRITES:
            return oracle.write(_SIDES[call], self.mode)
        if call in _ADOPTIONS:
            return oracle.adopt(_SIDES[call], pattern(self._number, self.size) if entry.data else None)
        return oracle.push() if call is Call.ASYNC_GPU_PUSH else oracle.release()

    @property
    def _device(self) -> Any:
        return self.bench.device

    def _argument(self, entry: Input) -> Any:
        """The buffer or the stream a call takes."""
        if entry.call is Call.ASYNC_GPU_PUSH:
            if self.bench.device is None:
                return object()
            self._streams.append(self._device.stream())
            return self._streams[-1]
        if entry.call not in _ADOPTIONS or not entry.data:
            return None
        return self.buffer(_SIDES[entry.call], pattern(self._number, self.size))

    def buffer(self, side: Side, content: bytes) -> Any:
        """Memory of the caller's own; every third one is longer than it needs to be."""
        longer = len(content) + (5 if self._number % 3 == 0 else 0)
        if side == "cpu":
            return bytearray(content.ljust(longer, b"\0"))
        if self.bench.device is None:
            return object()
        array = self.bench.device.empty(longer)
        self._put(array, content)
        return array

    def _invoke(self, entry: Input, argument: Any) -> tuple[Exception | None, Any]:
        method = "close" if entry.call is Call.RELEASE else entry.call.value if entry.call else ""
        self.script.append(f"memory.{method}({self._shown_argument(entry)})")
        arguments = (argument,) if entry.call in _ADOPTIONS else ()
        keywords = {"stream": argument} if entry.call is Call.ASYNC_GPU_PUSH else {}
        current = None if self.bench.device is None else self.bench.device.current_ordinal()
        try:
            with using_mode(self.mode):
                outcome: tuple[Exception | None, Any] = None, getattr(self.subject, method)(*arguments, **keywords)
        except Exception as error:  # noqa: BLE001 -- a subject refuses with whatever it likes
            outcome = error, None
        if self.bench.device is not None:
            now = self.bench.device.current_ordinal()
            self._require(now == current, "R50-device-restored", f"device {current} was current, and now {now} is")
        return outcome

    def _shown_argument(self, entry: Input) -> str:
        if entry.call is Call.ASYNC_GPU_PUSH:
            return "stream=memory.device.stream()"
        if entry.call not in _ADOPTIONS:
            return ""
        buffer = f"bytearray({self.size})" if entry.call is Call.SET_CPU_DATA else f"memory.device.empty({self.size})"
        return buffer if entry.data else "None"

    def _write(self, side: Side, view: Any) -> None:
        content = pattern(self._number, self.size)
        value = content[0] if content else 0
        written = f"[:] = {value}" if side == "cpu" else f".set(numpy.full({self.size}, {value}, 'uint8'))"
        self.script[-1] += written
        if side == "cpu":
            memoryview(view).cast("B")[: self.size] = content
        else:
            self._put(view, content)
        self.oracle = self.oracle.written(side, content)

    def _write_as_caller(self, side: Side, buffer: Any) -> None:
        """Write into a buffer that was just adopted: the memory must hold the buffer, not a copy of it.

        Looking at a fresh side does nothing, so this look leaves the state as it is.
        """
        self._number += 1
        content = pattern(self._number, self.size)
        self.script[-1] += "  # and write into that buffer"
        if side == "cpu":
            memoryview(buffer)[: self.size] = content
        else:
            self._put(buffer, content)
        self.oracle = self.oracle.written(side, content)
        look = Call.CPU_DATA if side == "cpu" else Call.GPU_DATA
        with using_mode(self.mode):
            self._compare_view(look, side, getattr(self.subject, look.value)())

    # --- comparing

    def _require(self, holds: bool, requirement: str, message: str) -> None:
        if not holds:
            raise Violation(requirement, message, tuple(self.script))

    def _compare_calls(self, entry: Input, expected: Expected, seen: Sequence[Entry], raised: object) -> None:
        kinds = {"external": "R18-external-not-freed", "pinned": "R25-pinned-frozen", "stray": "R28-freed-once"}
        for kind, sentence in self.ledger.stray:
            self._require(False, kinds[kind], sentence)
        self._require(
            not self.ledger.freed_in_flight, "R42-in-flight-not-freed", "; ".join(self.ledger.freed_in_flight)
        )
        if raised is None or expected.refused:
            found = difference(entry, expected, seen, self.oracle)
            self._require(found is None, *(found or ("", "")))

    def _compare_refusal(self, entry: Input, expected: Expected, raised: Exception | None) -> None:
        name = entry.call.value if entry.call else "release"
        if expected.refused:
            self._require(raised is not None, refusal_requirement(entry, self.oracle), f"{name} was not refused")
        else:
            requirement = success_requirement(entry, expected) if self.size else "R44-size-zero"
            self._require(raised is None, requirement, f"{name} raised {type(raised).__name__}: {raised}")

    def _compare_situation(self, entry: Input, view: Any, raised: object) -> None:
        if self.oracle.released:
            return
        if raised is None and entry.call in _READS + _WRITES:
            self._require(view is not None, "R10-same-bytes", f"{entry.call.value} returned nothing")
        self._compare_head(_head_requirement(entry, self.visited[-1][0][0]))
        self._compare_flags()
        if view is not None and entry.call in _SIDES:
            self._compare_view(entry.call, _SIDES[entry.call], view)
        self._compare_bytes()

    def _compare_head(self, requirement: str) -> None:
        head = getattr(self.subject, "head", self.oracle.head)
        self._require(head is self.oracle.head, requirement, f"the head is {head}, expected {self.oracle.head.name}")
        size = getattr(self.subject, "size", self.size)
        self._require(size == self.size, "R31-size-constant", f"the size is {size}, expected {self.size}")

    def _compare_flags(self, requirement: str = "") -> None:
        expected = {
            "own_cpu_data": (self.oracle.cpu.owner == "memory", "R23-own-flags"),
            "own_gpu_data": (self.oracle.gpu.owner == "memory", "R23-own-flags"),
            "cpu_malloc_use_cuda": (self.oracle.pinned, "R24-pinned-by-mode"),
        }
        for flag, (value, usual) in expected.items():
            found = getattr(self.subject, flag, value)
            self._require(found == value, requirement or usual, f"{flag} is {found}, expected {value}")

    def _compare_view(self, call: Call, side: Side, view: Any) -> None:
        if self.bench.profile == "safe":
            self._require(
                view is not self._views.get(call), "R46-fresh-view", f"{call.value} returned one object twice"
            )
            self._views[call] = view
            if call is Call.CPU_DATA:
                self._require(_is_frozen(view), "R47-read-only-view", "the view of cpu_data can be written")
            if call is Call.MUTABLE_CPU_DATA:
                self._require(
                    not any(map(self.ledger.reads_in_flight, self._pointers("cpu"))),
                    "R41-in-flight-not-written",
                    "mutable_cpu_data returned while a push still reads the host side",
                )
        in_flight = side == "gpu" and self._in_flight()
        shown = bytes(memoryview(view if side == "cpu" else view.get()).cast("B"))
        content = (self.oracle.cpu if side == "cpu" else self.oracle.gpu).content
        if shown == content:
            return
        requirement = "R43-in-flight-read" if in_flight else self._content_requirement(side)
        self._require(False, requirement, f"{call.value} shows {_short(shown)}, expected {_short(content)}")

    def _compare_bytes(self, requirement: str = "") -> None:
        """Look at every fresh side behind the memory's back."""
        sides: tuple[tuple[Side, Copy], ...] = (("cpu", self.oracle.cpu), ("gpu", self.oracle.gpu))
        for side, copy in sides:
            if not copy.fresh or copy.content is None or not self.size or (side == "gpu" and self._in_flight()):
                continue
            for pointer in self._pointers(side):
                found = self._get(side, pointer)[: self.size]
                self._require(
                    found == copy.content,
                    requirement or ("R19-external-is-target" if copy.owner == "caller" else "R10-same-bytes"),
                    f"the {side} side holds {_short(found)}, expected {_short(copy.content)}",
                )

    @_blaming
    def compare_untouched(self) -> None:
        """After something was done to another memory: look at this one.

        Raises
        ------
        Violation
        """
        if not self.oracle.released:
            self._compare_head("R53-independent")
            self._compare_bytes("R53-independent")

    def _content_requirement(self, side: Side) -> str:
        """Whether a wrong view is a wrong buffer, a copy that went elsewhere, or wrong bytes."""
        copy = self.oracle.cpu if side == "cpu" else self.oracle.gpu
        if copy.owner != "caller" or side not in self._external:
            return "R10-same-bytes"
        if self._get(side, self._external[side])[: self.size] == copy.content:
            return "R14-adopt-host" if side == "cpu" else "R15-adopt-device"
        return "R19-external-is-target"

    # --- looking and touching behind the memory's back

    def _pointers(self, side: Side) -> list[Any]:
        copy = self.oracle.cpu if side == "cpu" else self.oracle.gpu
        return [self._external[side]] if copy.owner == "caller" else self.ledger.owned(side)

    def _in_flight(self) -> bool:
        return any(not event.done for _, _, event in self.ledger.in_flight)

    def _get(self, side: Side, pointer: Any) -> bytes:
        if side == "cpu" or not self.size:
            return bytes(memoryview(pointer).cast("B")) if side == "cpu" else b""
        scratch = self.bench.host.empty(self.size)
        self._device.memcpy(pointer, scratch, self.size, _DEVICE_TO_HOST)
        return bytes(memoryview(scratch))

    def _put(self, array: Any, content: bytes) -> None:
        if content:
            scratch = self.bench.host.empty(len(content))
            memoryview(scratch)[:] = content
            self._device.memcpy(scratch, array, len(content), _HOST_TO_DEVICE)

    def _leak(self, live: dict[int, Any]) -> str:
        new = [entry for key, (_, entry) in self.ledger.live.items() if key not in live]
        return f"leaked {new}" if new else "something was freed"


def _head_requirement(entry: Input, before: SyncedHead) -> str:
    if entry.call in _READS and before is not SyncedHead.UNINITIALIZED:
        return "R12-read-keeps"
    named = {
        **dict.fromkeys(_WRITES, "R13-write-makes-stale"),
        Call.SET_CPU_DATA: "R14-adopt-host" if entry.data else "R20-null-refused",
        Call.SET_GPU_DATA: "R15-adopt-device" if entry.data else "R20-null-refused",
        Call.ASYNC_GPU_PUSH: "R21-push" if before is SyncedHead.HEAD_AT_CPU else "R22-push-refused",
    }
    return named.get(entry.call or Call.RELEASE, "R11-head")


def _is_frozen(view: Any) -> bool:
    """Whether a host view is read-only and stays so."""
    if not memoryview(view).readonly:
        return False
    try:
        view.setflags(write=True)
    except (ValueError, AttributeError):
        return True
    return False


def _short(content: bytes | None) -> str:
    content = content or b""
    return content.hex() if len(content) <= _SHOWN else f"{content[:_SHOWN].hex()}... ({len(content)} bytes)"
