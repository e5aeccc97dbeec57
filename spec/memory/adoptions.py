"""Adoption in every state: buffers that must be refused, and buffers that must be accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import Input, caffe

from ..engine.contents import fetch
from .checks import SIZE, Contract, Refusable, everywhere, refused
from .driver import MemoryDriver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..engine.subject import Subject

__all__ = [
    "ADOPTIONS",
    "DEVICE_ADOPTIONS",
    "device_shapes",
    "host_shapes",
    "misplaced_buffers",
    "own_buffers",
    "unsuitable_device_buffers",
    "unsuitable_host_buffers",
]

_READ, _WRITE, _ADOPT = Input(caffe.CPU_DATA), Input(caffe.MUTABLE_CPU_DATA), Input(caffe.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(caffe.GPU_DATA), Input(caffe.MUTABLE_GPU_DATA), Input(caffe.SET_GPU_DATA)
_PUSH = Input(caffe.ASYNC_GPU_PUSH)
_CANARY = b"\xee"


# --- refused buffers


@everywhere
def own_buffers(driver: MemoryDriver) -> None:
    """The memory's own buffers are not adopted, fresh or stale, through any kind of object (R35)."""
    oracle = driver.oracle
    if driver.subject.program is not None:
        for side in driver.subject.sides:
            if oracle.copy(side).owner == "memory":
                refused(driver, *_own(side, (f"memory.own('{side}')",), ""))
        return
    if oracle.copy("cpu").owner == "memory":
        driver.reproducer.run("(own,) = log.owned('cpu')")
        refused(driver, *_own("cpu", _OWN_HOST, "memory.cpu_data()" if oracle.copy("cpu").fresh else ""))
    if oracle.copy("cpu").owner == "memory" and driver.head == caffe.HEAD_AT_CPU:
        refused(driver, *_own("cpu", (), "memory.mutable_cpu_data()"))
    if oracle.copy("gpu").owner == "memory":
        driver.reproducer.run("(own,) = log.owned('gpu')")
        refused(driver, *_own("gpu", _OWN_DEVICE, "memory.gpu_data()" if oracle.copy("gpu").fresh else ""))
    if oracle.copy("gpu").owner == "memory" and driver.head == caffe.HEAD_AT_GPU:
        refused(driver, *_own("gpu", (), "memory.mutable_gpu_data()"))


_OWN_HOST = (
    "own",
    "memoryview(own)",
    "memoryview(own).cast('B').cast('d')",
    "memoryview(own[:])",
    f"(c_char * {SIZE}).from_buffer(own)",
)
_OWN_DEVICE = ("own", "own.view()", f"own[:{SIZE}]")


def _own(side: str, shown: Iterable[str], view: str) -> Iterator[Refusable]:
    """The memory's own side as objects of many kinds; the log knows its pointer from the allocation."""
    return (_adoption(side, "R35-own-buffer-refused", text) for text in (*shown, view) if text)


_SMALL, _FROZEN, _SPREAD, _KIND = (
    "R36-too-small-refused",
    "R37-read-only-refused",
    "R38-not-contiguous-refused",
    "R39-wrong-kind-refused",
)

_UNSUITABLE_HOST = (
    (_SMALL, f"bytearray({SIZE - 1})"),
    (_SMALL, f"memoryview(bytearray({2 * SIZE}))[:{SIZE - 1}]"),
    (_SMALL, "bytearray()"),
    (_FROZEN, f"bytes({SIZE})"),
    (_FROZEN, f"memoryview(bytearray({SIZE})).toreadonly()"),
    (_SPREAD, f"memoryview(bytearray({2 * SIZE}))[::2]"),
    (_SPREAD, f"memoryview(bytearray({2 * SIZE}))[::-1]"),
    (_KIND, "object()"),
    (_KIND, "12345"),
    (_KIND, f"'0' * {SIZE}"),
)


@everywhere
def unsuitable_host_buffers(driver: MemoryDriver) -> None:
    """Host buffers that are too small, read-only, not contiguous, or not host memory (R36 to R39)."""
    subject, buffers = driver.subject, list(_UNSUITABLE_HOST)
    if subject.program is not None:
        refused(driver, *(_adoption("cpu", *buffer) for buffer in _small("host")))
        return
    if hasattr(subject.host.empty(SIZE), "reshape"):  # only NumPy's arrays can be in column order
        buffers.append((_SPREAD, f"subject.host.empty({SIZE}).reshape(6, -1).T"))
    if subject.device is not None:
        buffers.append((_KIND, f"subject.device.empty({SIZE})"))
    if driver.log.owned("gpu"):
        buffers.append((_KIND, "log.owned('gpu')[0]"))
    refused(driver, *(_adoption("cpu", *buffer) for buffer in buffers))


@everywhere
def unsuitable_device_buffers(driver: MemoryDriver) -> None:
    """Device buffers that are too small, or not memory of this device (R36, R39)."""
    if driver.subject.program is not None:
        refused(driver, *(_adoption("gpu", *buffer) for buffer in _small("device")))
        return
    buffers = [
        (_SMALL, f"subject.device.empty({SIZE - 1})"),
        (_SMALL, "subject.device.empty(0)"),
        (_KIND, f"bytearray({SIZE})"),
        (_KIND, f"subject.device.pinned_host().empty({SIZE})"),
        (_KIND, "object()"),
        (_KIND, "12345"),
    ]
    if driver.subject.elsewhere is not None:
        buffers.append((_KIND, f"subject.elsewhere.empty({SIZE})"))
    if driver.log.owned("cpu"):
        buffers.append((_KIND, "log.owned('cpu')[0]"))
    refused(driver, *(_adoption("gpu", *buffer) for buffer in buffers))


@everywhere
def misplaced_buffers(driver: MemoryDriver) -> None:
    """Buffers of the other side, which a program made (R39)."""
    both = caffe.SET_GPU_DATA.name in driver.subject.machine.calls
    others: tuple[tuple[str, str], ...] = (("cpu", "device"), ("gpu", "host"))
    refused(driver, *(_adoption(side, _KIND, f"subject.{it}.empty({SIZE})") for side, it in others[: 1 + both]))


def _small(side: str) -> Iterator[tuple[str, str]]:
    """The buffers of a program that are too small."""
    return ((_SMALL, f"subject.{side}.empty({size})") for size in (SIZE - 1, 1))


def _adoption(side: str, requirement: str, buffer: str) -> Refusable:
    return Refusable(requirement, f"memory.set_{side}_data(buffer)", buffer)


# --- accepted buffers


class _Shape(NamedTuple):
    """A buffer that must be adopted.

    Attributes
    ----------
    whole : str
        The expression that makes the whole memory that contains the buffer.
    buffer : str
        The expression for the buffer, which may use ``whole``.
    start : int
        Where the memory's bytes begin in the whole.
    """

    whole: str
    buffer: str = "whole"
    start: int = 0


_AROUND = 16
_HOST_SHAPES = (
    _Shape(f"array('d', bytes({SIZE}))"),
    _Shape(f"array('d', bytes({SIZE + _AROUND}))"),
    _Shape(f"bytearray({SIZE})", f"memoryview(whole).cast('B', (6, {SIZE // 6}))"),
    _Shape(f"(c_char * {SIZE})()"),
    _Shape(f"bytearray({SIZE + 2 * _AROUND})", f"memoryview(whole)[{_AROUND}:-{_AROUND}]", _AROUND),
    _Shape(f"bytearray({SIZE + 2 * _AROUND})", f"memoryview(whole)[{_AROUND}:]", _AROUND),
)
_PROGRAM_SHAPES = (_Shape(f"subject.host.empty({SIZE})"), _Shape(f"subject.host.empty({SIZE + _AROUND})"))
_DEVICE_SHAPES = (
    _Shape(f"subject.device.empty({SIZE})"),
    _Shape(f"subject.device.empty({SIZE + _AROUND})"),
    _Shape(f"subject.device.empty({SIZE + 2 * _AROUND})", f"whole[{_AROUND}:{_AROUND + SIZE}]", _AROUND),
)


class _Handed:
    """A buffer that is adopted again whenever its side adopts.

    Parameters
    ----------
    side : {"cpu", "gpu"}
    shape : _Shape
    """

    def __init__(self, side: str, shape: _Shape) -> None:
        self._side: str = side
        self._shape = shape
        self._start = shape.start

    def driver(self, subject: Subject) -> MemoryDriver:
        """A driver whose adoptions use this buffer."""
        driver = MemoryDriver(subject, SIZE, buffers=self._fill)
        driver.reproducer.run(f"whole = {self._shape.whole}")
        driver.reproducer.run(f"buffer = {self._shape.buffer}")
        return driver

    def _fill(self, driver: MemoryDriver, side: str, number: int) -> str:
        """Fill the buffer with the pattern, and its surroundings with canaries."""
        if side != self._side:
            return driver.hand_in(side, number)
        after = len(self._whole(driver)) - self._start - SIZE
        before, behind = (f"{_CANARY!r} * {length}" if length else "" for length in (self._start, after))
        content = " + ".join(filter(None, (before, f"pattern({number}, {SIZE})", behind)))
        here = side == "cpu" and driver.subject.program is None
        fill = f"memoryview(whole).cast('B')[:] = {content}" if here else f"put(subject, whole, {content})"
        driver.reproducer.run(fill)
        return "buffer"

    def _whole(self, driver: MemoryDriver) -> bytes:
        whole = driver.reproducer.names["whole"]
        here = self._side == "cpu" and driver.subject.program is None
        return bytes(whole) if here else fetch(driver.subject, whole, whole.size)

    def compare_canaries(self, driver: MemoryDriver) -> None:
        """Check the bytes around the adopted buffer."""
        whole, start = self._whole(driver), self._start
        around = whole[:start] + whole[start + SIZE :]
        untouched = around == _CANARY * len(around)
        driver.run.require(untouched, "R04-exact-size", "bytes around the adopted buffer were written")


_HOST_SEQUENCE = (_ADOPT, _READ, _ADOPT, _WRITE, _ADOPT)
_ACROSS_SEQUENCE = (
    *(_GPU_READ, _ADOPT, _GPU_WRITE, _ADOPT, _PUSH, _READ),
    *(_GPU_ADOPT, _READ, _GPU_WRITE, _READ, _WRITE),
)
_DEVICE_SEQUENCE = (
    *(_GPU_ADOPT, _READ, _GPU_ADOPT, _WRITE, _GPU_ADOPT, _GPU_WRITE),
    *(_READ, _WRITE, _GPU_READ, _WRITE, _PUSH, _GPU_READ, _READ),
)


def host_shapes(subject: Subject) -> Iterator[MemoryDriver]:
    """Any writable contiguous buffer is adopted, also twice, and no byte around it is touched (R14, R19, R04)."""
    across = () if subject.device is None else _ACROSS_SEQUENCE
    before = ((), (_WRITE,)) if subject.device is None else ((), (_WRITE,), (_WRITE, _GPU_READ), (_GPU_WRITE,))
    for sequence in before:
        for shape in _HOST_SHAPES if subject.program is None else _PROGRAM_SHAPES:
            yield _taken(subject, _Handed("cpu", shape), (*sequence, *_HOST_SEQUENCE, *across))


def device_shapes(subject: Subject) -> Iterator[MemoryDriver]:
    """Long device buffers and parts of them are adopted, also twice; no byte around is touched (R15, R19, R04)."""
    for sequence in ((), (_WRITE,), (_WRITE, _GPU_READ), (_GPU_WRITE,)):
        # Nobody but the program can make a part of its arrays.
        for shape in _DEVICE_SHAPES if subject.program is None else _DEVICE_SHAPES[:2]:
            yield _taken(subject, _Handed("gpu", shape), (*sequence, *_DEVICE_SEQUENCE))


def _taken(subject: Subject, handed: _Handed, sequence: tuple[Input, ...]) -> MemoryDriver:
    driver = handed.driver(subject)
    for entry in sequence:
        driver.perform(entry)
    driver.synchronize()
    handed.compare_canaries(driver)
    driver.finish()
    handed.compare_canaries(driver)
    return driver


ADOPTIONS: tuple[Contract, ...] = (
    own_buffers,
    unsuitable_host_buffers,
    host_shapes,
)
"""The contracts of adoption for every subject."""

DEVICE_ADOPTIONS: tuple[Contract, ...] = (unsuitable_device_buffers, device_shapes)
"""The contracts of adoption for subjects with a device."""
