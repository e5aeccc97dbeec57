"""What may be adopted, in every state there is: what is refused, and what is taken as it is."""

from __future__ import annotations

from array import array
from ctypes import c_char
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from syncedmem.model import Call, Input, SyncedHead

from .checks import SIZE, everywhere, raw, refused, require, write_raw
from .trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .oracle import Side
    from .subject import Bench

__all__ = ["ADOPTIONS", "DEVICE_ADOPTIONS"]

_READ, _WRITE, _ADOPT = Input(Call.CPU_DATA), Input(Call.MUTABLE_CPU_DATA), Input(Call.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(Call.GPU_DATA), Input(Call.MUTABLE_GPU_DATA), Input(Call.SET_GPU_DATA)
_PUSH = Input(Call.ASYNC_GPU_PUSH)
_CANARY = b"\xee" * 16

Buffer = tuple[str, str, object]
"""A requirement, how a report shows a buffer, and the buffer."""


# --- what is refused


@everywhere
def own_buffers(trial: Trial) -> None:
    """The memory's own buffers are not adopted, fresh or stale, however they are shown (R35)."""
    subject, oracle = trial.subject, trial.oracle
    if oracle.cpu.owner == "memory":
        refused(trial, *(_adoption(trial, "cpu", own) for own in _own_host_buffers(trial)))
    if oracle.cpu.owner == "memory" and oracle.head is SyncedHead.HEAD_AT_CPU:
        view = subject.mutable_cpu_data()
        refused(trial, _adoption(trial, "cpu", ("R35-own-buffer-refused", "memory.mutable_cpu_data()", view)))
    if oracle.gpu.owner == "memory":
        refused(trial, *(_adoption(trial, "gpu", own) for own in _own_device_buffers(trial)))
    if oracle.gpu.owner == "memory" and oracle.head is SyncedHead.HEAD_AT_GPU:
        view = subject.mutable_gpu_data()
        refused(trial, _adoption(trial, "gpu", ("R35-own-buffer-refused", "memory.mutable_gpu_data()", view)))


def _own_host_buffers(trial: Trial) -> Iterator[Buffer]:
    """The memory's own host side as objects of many kinds; the pointer is known from its allocation."""
    (own,) = trial.ledger.owned("cpu")
    shown: dict[str, object] = {
        "own": own,
        "memoryview(own)": memoryview(own),
        "memoryview(own).cast('d')": memoryview(own).cast("B").cast("d"),
        "memoryview(own[:])": memoryview(own[:]),
        "(c_char * size).from_buffer(own)": (c_char * SIZE).from_buffer(own),
    }
    if trial.oracle.cpu.fresh:
        shown["memory.cpu_data()"] = trial.subject.cpu_data()
    yield from (("R35-own-buffer-refused", text, buffer) for text, buffer in shown.items())


def _own_device_buffers(trial: Trial) -> Iterator[Buffer]:
    (own,) = trial.ledger.owned("gpu")
    shown = {"own": own, "own.view()": own.view(), "own[:size]": own[:SIZE]}
    if trial.oracle.gpu.fresh:
        shown["memory.gpu_data()"] = trial.subject.gpu_data()
    yield from (("R35-own-buffer-refused", text, buffer) for text, buffer in shown.items())


@everywhere
def unsuitable_host_buffers(trial: Trial) -> None:
    """Host buffers that are too small, read-only, not contiguous, or no host memory (R36 to R39)."""
    bench = trial.bench
    wide = memoryview(bytearray(2 * SIZE))
    block: Any = bench.host.empty(SIZE)
    buffers: list[Buffer] = [
        ("R36-too-small-refused", "bytearray(size - 1)", bytearray(SIZE - 1)),
        ("R36-too-small-refused", "memoryview(bytearray(2 * size))[:size - 1]", wide[: SIZE - 1]),
        ("R36-too-small-refused", "bytearray()", bytearray()),
        ("R37-read-only-refused", "bytes(size)", bytes(SIZE)),
        ("R37-read-only-refused", "memoryview(bytearray(size)).toreadonly()", memoryview(bytearray(SIZE)).toreadonly()),
        ("R38-not-contiguous-refused", "memoryview(bytearray(2 * size))[::2]", wide[::2]),
        ("R38-not-contiguous-refused", "memoryview(bytearray(2 * size))[::-1]", wide[::-1]),
        ("R39-wrong-kind-refused", "object()", object()),
        ("R39-wrong-kind-refused", "12345", 12345),
        ("R39-wrong-kind-refused", "'0' * size", "0" * SIZE),
    ]
    if hasattr(block, "reshape"):  # only NumPy's arrays come by columns
        columns = block.reshape(6, -1).T
        buffers.append(("R38-not-contiguous-refused", "numpy.zeros((6, size // 6), 'uint8').T", columns))
    if bench.device is not None:
        buffers.append(("R39-wrong-kind-refused", "device.empty(size)", bench.device.empty(SIZE)))
    buffers += [("R39-wrong-kind-refused", "own_device_buffer", own) for own in trial.ledger.owned("gpu")]
    refused(trial, *(_adoption(trial, "cpu", buffer) for buffer in buffers))


@everywhere
def unsuitable_device_buffers(trial: Trial) -> None:
    """Device buffers that are too small, or no memory of this device (R36, R39)."""
    device = cast("Any", trial.bench.device)
    buffers: list[Buffer] = [
        ("R36-too-small-refused", "device.empty(size - 1)", device.empty(SIZE - 1)),
        ("R36-too-small-refused", "device.empty(0)", device.empty(0)),
        ("R39-wrong-kind-refused", "bytearray(size)", bytearray(SIZE)),
        ("R39-wrong-kind-refused", "device.pinned_host().empty(size)", device.pinned_host().empty(SIZE)),
        ("R39-wrong-kind-refused", "object()", object()),
        ("R39-wrong-kind-refused", "12345", 12345),
    ]
    if trial.bench.elsewhere is not None:
        buffers.append(("R39-wrong-kind-refused", "other_device.empty(size)", trial.bench.elsewhere.empty(SIZE)))
    buffers += [("R39-wrong-kind-refused", "own_host_buffer", own) for own in trial.ledger.owned("cpu")]
    refused(trial, *(_adoption(trial, "gpu", buffer) for buffer in buffers))


def _adoption(trial: Trial, side: Side, buffer: Buffer) -> tuple[str, str, Callable[[], object]]:
    requirement, text, data = buffer
    adopt = trial.subject.set_cpu_data if side == "cpu" else trial.subject.set_gpu_data
    return requirement, f"memory.set_{side}_data({text})", partial(adopt, data)


# --- what is taken as it is


class _Shape(NamedTuple):
    """A buffer that has to be adopted.

    Attributes
    ----------
    text : str
        As reports show it.
    buffer : object
    whole : Any
        All the memory around it: a writeable ``memoryview`` of bytes, or a device array.
    start : int
        Where in the whole the memory's bytes begin.
    """

    text: str
    buffer: Any
    whole: Any
    start: int = 0


def _host_shapes() -> Iterator[_Shape]:
    doubles, more = array("d", bytes(SIZE)), array("d", bytes(SIZE) + _CANARY)
    yield _Shape("array('d', bytes(size))", doubles, memoryview(doubles).cast("B"))
    yield _Shape("array('d', bytes(size + 16))", more, memoryview(more).cast("B"))
    rows = memoryview(bytearray(SIZE))
    yield _Shape("memoryview(bytearray(size)).cast('B', (6, size // 6))", rows.cast("B", (6, SIZE // 6)), rows)
    characters = (c_char * SIZE)()
    yield _Shape("(c_char * size)()", characters, memoryview(characters).cast("B"))
    inside, to_the_end = (memoryview(bytearray(SIZE + 2 * len(_CANARY))) for _ in range(2))
    start = len(_CANARY)
    yield _Shape("memoryview(bytearray(16 + size + 16))[16:-16]", inside[start:-start], inside, start)
    yield _Shape("memoryview(bytearray(16 + size + 16))[16:]", to_the_end[start:], to_the_end, start)


def _device_shapes(bench: Bench) -> Iterator[_Shape]:
    device, start = cast("Any", bench.device), len(_CANARY)
    exact, longer, inside = (device.empty(SIZE + more) for more in (0, start, 2 * start))
    yield _Shape("device.empty(size)", exact, exact)
    yield _Shape("device.empty(size + 16)", longer, longer)
    yield _Shape("device.empty(16 + size + 16)[16:16 + size]", inside[start : start + SIZE], inside, start)


class _Handing(Trial):
    """A trial that hands in the same buffer whenever one is to be adopted on its side."""

    def __init__(self, bench: Bench, side: Side, shape: _Shape) -> None:
        super().__init__(bench, SIZE)
        self._handed_side = side
        self._shape = shape

    def buffer(self, side: Side, content: bytes) -> Any:
        """The shape with the content in it, and with canaries around."""
        if side != self._handed_side:
            return super().buffer(side, content)
        shape = self._shape
        self.script.append(f"# the next buffer on this side is {shape.text}")
        before = _CANARY[: shape.start]
        after = _CANARY * 2
        self._fill((before + content + after)[: len(memoryview(shape.whole)) if side == "cpu" else shape.whole.size])
        return shape.buffer

    def _fill(self, content: bytes) -> None:
        if self._handed_side == "cpu":
            self._shape.whole[:] = content
        else:
            write_raw(self.bench, self._shape.whole, content)

    def compare_canaries(self) -> None:
        """Look at the bytes around what was adopted."""
        whole, start = self._shape.whole, self._shape.start
        found = bytes(whole) if self._handed_side == "cpu" else raw(self.bench, whole, whole.size)
        around = found[:start] + found[start + SIZE :]
        untouched = around == _CANARY[:1] * len(around)
        require(self, untouched, "R04-exact-size", f"bytes around the adopted {self._shape.text} were written")


_HOST_WORD = (_ADOPT, _READ, _ADOPT, _WRITE, _ADOPT)
_ACROSS_WORD = (
    *(_GPU_READ, _ADOPT, _GPU_WRITE, _ADOPT, _PUSH, _READ),
    *(_GPU_ADOPT, _READ, _GPU_WRITE, _READ, _WRITE),
)
_DEVICE_WORD = (
    *(_GPU_ADOPT, _READ, _GPU_ADOPT, _WRITE, _GPU_ADOPT, _GPU_WRITE),
    *(_READ, _WRITE, _GPU_READ, _WRITE, _PUSH, _GPU_READ, _READ),
)


def host_shapes(bench: Bench) -> None:
    """Any writeable row of bytes is adopted as it is, and again, and nothing around it is touched (R14, R19, R04)."""
    across = () if bench.device is None else _ACROSS_WORD
    before = ((), (_WRITE,)) if bench.device is None else ((), (_WRITE,), (_WRITE, _GPU_READ), (_GPU_WRITE,))
    for word in before:
        for shape in _host_shapes():
            _taken(_Handing(bench, "cpu", shape), (*word, *_HOST_WORD, *across))


def device_shapes(bench: Bench) -> None:
    """Longer device buffers and parts of them are adopted, and again, and nothing around is touched (R15, R19, R04)."""
    for word in ((), (_WRITE,), (_WRITE, _GPU_READ), (_GPU_WRITE,)):
        for shape in _device_shapes(bench):
            _taken(_Handing(bench, "gpu", shape), (*word, *_DEVICE_WORD))


def _taken(trial: _Handing, word: tuple[Input, ...]) -> None:
    for entry in word:
        trial.perform(entry)
    trial.synchronize()
    trial.compare_canaries()
    trial.finish()
    trial.compare_canaries()


ADOPTIONS: tuple[Callable[[Bench], None], ...] = (
    own_buffers,
    unsuitable_host_buffers,
    host_shapes,
)
"""The contracts of adoption that every bench can be put to."""

DEVICE_ADOPTIONS: tuple[Callable[[Bench], None], ...] = (unsuitable_device_buffers, device_shapes)
"""Those for benches with a device."""
