"""The devices that are here, by name, and why the others are not."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

from syncedmem.model import InvalidArgumentError, NoDeviceError, SyncedMemoryError
from syncedmem.model.interface import DEVICE_CALLS, HOST_CALLS, DeviceType, is_host

from ..allocators.base import DeviceAllocator
from ..allocators.pointers import as_integer
from .host import cpu_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DEVICE_NAMES",
    "DeviceReport",
    "automatic_name",
    "check_wish",
    "named_device",
    "probe",
    "report_of",
    "resolve_device",
    "resolve_host",
    "shared_device",
    "sibling",
]

ENVIRONMENT = "SYNCEDMEM_DEVICE"
HOST_ALONE = "cpu"
"""What it says for no device, and how `probe` lists host memory."""

_making = threading.RLock()
"""Held while a shared allocator is made: two allocators of the same device would refuse each other's memory."""

# A child of a fork has only the thread that forked.  A lock that another thread held then would never be released.
os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release)


@dataclass(frozen=True)
class DeviceReport:
    """One line of ``syncedmem devices``.

    Attributes
    ----------
    name : str
    available : bool
    detail : str
        The description of the device, or why it is not available.
    compiler : bool or None
        Whether its compiler works; None if it needs none, or is not available, or cannot be tried.
    compiler_error : str
        The first line of the message of a compiler that fails, or why it cannot be tried.
    arithmetic : {"device", "host"} or None
        What computes with the memory of the device; None if nothing does.  A device whose compiler fails still has
        memory, and the host computes with it if the device allows that.
    """

    name: str
    available: bool
    detail: str
    compiler: bool | None = None
    compiler_error: str = ""
    arithmetic: Literal["device", "host"] | None = None

    @property
    def limits(self) -> str:
        """What the device cannot do, and who does it instead; empty if nothing is missing."""
        if not self.compiler_error:
            return ""
        reason = f"its compiler fails ({self.compiler_error})" if self.compiler is False else self.compiler_error
        return f"memory only: {reason}; {'no arithmetic' if self.arithmetic is None else 'the host computes'}"


def _new(name: str, ordinal: int) -> tuple[DeviceAllocator, str]:
    """An allocator of a kind, and its description.  Its module is imported late: its library is optional and slow."""
    allocator = import_module(f".{name}", __package__).ALLOCATOR(ordinal)
    return allocator, allocator.description


# Every kind of device has a module of its name in this folder.  Its `ALLOCATOR` is a class that has a `description`.
_MAKERS: dict[str, Callable[[int], tuple[DeviceAllocator, str]]] = {
    name: partial(_new, name) for name in (kind.name.lower() for kind in reversed(DeviceType) if kind > DeviceType.CPU)
}

DEVICE_NAMES = tuple(_MAKERS)
"""The devices that can be asked for by name."""


@cache
def _made(name: str, ordinal: int) -> tuple[DeviceAllocator, str]:
    return _MAKERS[name](ordinal)


def _shared(name: str, ordinal: int = 0) -> tuple[DeviceAllocator, str]:
    with _making:
        return _made(name, ordinal)


def shared_device(name: str, ordinal: int) -> DeviceAllocator:
    """The shared allocator of one device, by the name of its kind and its number.

    Parameters
    ----------
    name : str
        One of `DEVICE_NAMES`.
    ordinal : int

    Raises
    ------
    NoDeviceError
        If there is no such device here.
    InvalidArgumentError
        If `ordinal` is no integer.
    """
    return _shared(name, as_integer(ordinal, "ordinal", "the number of a device"))[0]


def named_device(name: str) -> DeviceAllocator:
    """The shared allocator of a device.

    Parameters
    ----------
    name : str
        One of `DEVICE_NAMES`, or ``"auto"``: what ``SYNCEDMEM_DEVICE`` names, else CUDA where there is a
        GPU whose compute mode is not "prohibited", else the simulated device.  ``SYNCEDMEM_DEVICE=cpu`` names no
        device: memories are then as with ``device=None``.

    Raises
    ------
    InvalidArgumentError
        If it is no string.
    NoDeviceError
        If the name is unknown, or the device is not here; the message says what is missing.  Also for ``"auto"``
        where ``SYNCEDMEM_DEVICE`` is ``cpu``.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
        raise InvalidArgumentError("name", name, "the name of a device")
    if name == "auto":
        if (device := _automatic(os.environ.get(ENVIRONMENT, ""))) is None:
            raise NoDeviceError(f"{ENVIRONMENT}={HOST_ALONE}: there is no device to name")
        return device
    if name not in _MAKERS:
        raise NoDeviceError(_unknown(name, "None"))
    return _shared(name)[0]


def _unknown(name: str, nothing: str) -> str:
    return f"unknown device {name!r}; there are {', '.join(('auto', *DEVICE_NAMES))}, and {nothing} for no device"


def check_wish() -> None:
    """Refuse a value of ``SYNCEDMEM_DEVICE`` that names nothing; a device that is not here is a name.

    Raises
    ------
    NoDeviceError
    """
    _check_wish(os.environ.get(ENVIRONMENT, ""))


def _check_wish(wish: str) -> None:
    if wish not in ("", "auto", HOST_ALONE, *DEVICE_NAMES):
        raise NoDeviceError(f"{ENVIRONMENT}={wish}: {_unknown(wish, HOST_ALONE)}")


@cache
def _automatic(wish: str) -> DeviceAllocator | None:
    _check_wish(wish)
    if wish == HOST_ALONE:
        return None
    if wish and wish != "auto":
        try:
            return named_device(wish)
        except NoDeviceError as error:
            raise NoDeviceError(f"{ENVIRONMENT}={wish}: {error}") from None
    try:
        device = named_device("cuda")
    except NoDeviceError:
        return named_device("simulated")
    # As CUDA itself, which takes a GPU whose owner prohibits it only for programs that name it.
    return named_device("simulated") if getattr(device, "prohibited", False) else device


def resolve_device(device: object) -> DeviceAllocator | None:
    """The allocator that the ``device`` argument of a memory means, or None.

    Raises
    ------
    InvalidArgumentError
        If it is no allocator, no name and not None, or if it allocates host memory.
    NoDeviceError
        As for `named_device`.
    """
    if device is None:
        return None
    if isinstance(device, str):
        return _automatic(os.environ.get(ENVIRONMENT, "")) if device == "auto" else named_device(device)
    expected = "an allocator, a device name, or None"
    _check_calls("device", device, DEVICE_CALLS, expected)
    if is_host(device):
        raise InvalidArgumentError(
            "device", device, f"{expected}, for the device side; memory of the host goes into host="
        )
    return cast("DeviceAllocator", device)


def resolve_host(host: object) -> DeviceAllocator:
    """What the ``host`` argument of a memory means: an allocator, or None for the shared one.

    Raises
    ------
    InvalidArgumentError
        If it is neither, or does not say that its memory is host memory.
    """
    if host is None:
        return cpu_allocator()
    expected = "an allocator, or None"
    _check_calls("host", host, HOST_CALLS - {"device_type"}, expected)
    if not is_host(host):
        found = getattr(host, "device_type", "missing")
        wanted = f"its device_type has to be DeviceType.CPU, and is {found!s}"
        raise InvalidArgumentError(
            "host", host, f"{expected}, for the host side: {wanted}; memory of the device goes into device="
        )
    return cast("DeviceAllocator", host)


def _check_calls(argument: str, allocator: object, calls: frozenset[str], expected: str) -> None:
    # By attributes, so that a wrapper or somebody else's allocator needs no base class of ours.  Our allocators pass at
    # once; isinstance() of a class over a protocol would take five times as long.
    complete = DeviceAllocator in type(allocator).__mro__ or all(hasattr(allocator, name) for name in calls)
    if isinstance(allocator, type) or not complete:
        raise InvalidArgumentError(argument, allocator, expected)


def sibling(allocator: DeviceAllocator) -> DeviceAllocator | None:
    """The shared allocator of the same kind on the next ordinal, or None if there is no other device."""
    try:
        return shared_device(allocator.device_type.name.lower(), allocator.ordinal + 1)
    except NoDeviceError:
        return None


def report_of(name: str) -> DeviceReport:
    """What a device, given by name, is and can do; or why it is not here."""
    try:
        allocator, detail = _shared(name)
    except NoDeviceError as error:
        return DeviceReport(name, False, str(error))
    try:
        compiler = getattr(allocator, "compiler", None)  # a device that computes with kernels has one
    except InvalidArgumentError as error:  # the environment variable for compilers has an unknown value
        return DeviceReport(name, True, detail, compiler_error=str(error))
    if compiler is None:
        return DeviceReport(name, True, detail, arithmetic="device")
    return DeviceReport(name, True, detail, compiler.works, compiler.reason, _who_computes(allocator, compiler.works))


def _who_computes(allocator: DeviceAllocator, compiles: bool) -> Literal["device", "host"] | None:
    """What computes with the memory of a device, given whether its compiler works."""
    try:
        allocator.arithmetic()
    except SyncedMemoryError:
        return None
    return "device" if compiles else "host"


def probe() -> list[DeviceReport]:
    """The reports of all devices, and of host memory."""
    host = DeviceReport(HOST_ALONE, True, "host memory only (device=None)", arithmetic="host")
    return [host, *map(report_of, DEVICE_NAMES)]


def automatic_name() -> str:
    """The name in `probe` of what ``device="auto"`` is here.

    Raises
    ------
    NoDeviceError
        If ``SYNCEDMEM_DEVICE`` names a device that is not here.
    """
    device = resolve_device("auto")
    return HOST_ALONE if device is None else device.device_type.name.lower()
