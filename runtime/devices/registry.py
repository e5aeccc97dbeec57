"""Which devices there are here, by name, and why not."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from syncedmem.model import InvalidArgumentError, NoDeviceError
from syncedmem.model.interface import DEVICE_CALLS, HOST_CALLS, DeviceType, is_host

from ..allocators.base import DeviceAllocator
from ..allocators.pointers import as_integer
from .host import cpu_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DEVICE_NAMES",
    "DeviceReport",
    "named_device",
    "probe",
    "report_of",
    "resolve_device",
    "resolve_host",
    "shared_device",
    "sibling",
]

ENVIRONMENT = "SYNCEDMEM_DEVICE"

_making = threading.RLock()
"""Held while a shared allocator is made: two of the same device would refuse each other's memory."""

# As for the lock of simulated devices: a child of a fork must not find it held by a thread that it does not have.
os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release)


@dataclass(frozen=True)
class DeviceReport:
    """One line of ``syncedmem devices``.

    Attributes
    ----------
    name : str
    available : bool
    detail : str
        What it is, or why it is not available.
    compiler : bool or None
        Whether its compiler works; None if it needs none, or is not available.  A device whose compiler fails has
        memory, and the host computes with what is there.
    compiler_error : str
        The first line of what a compiler said that fails.
    """

    name: str
    available: bool
    detail: str
    compiler: bool | None = None
    compiler_error: str = ""

    @property
    def limits(self) -> str:
        """What it cannot do; empty if nothing is missing."""
        return f"memory only: its compiler fails ({self.compiler_error})" if self.compiler is False else ""


def _new(name: str, ordinal: int) -> tuple[DeviceAllocator, str]:
    """An allocator of a kind, and what it is.  Its module is imported late: its library is optional, and slow."""
    allocator = import_module(f".{name}", __package__).ALLOCATOR(ordinal)
    return allocator, allocator.description


# Every kind of device has a module of its name here, with an `ALLOCATOR` that has a `description`.
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
    """The shared allocator of one device among those of a name.

    Parameters
    ----------
    name : str
        One of `DEVICE_NAMES`.
    ordinal : int

    Raises
    ------
    NoDeviceError
        If the device is not here.
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
        GPU whose compute mode is not "prohibited", else the simulated device.

    Raises
    ------
    InvalidArgumentError
        If it is no string.
    NoDeviceError
        If the name is unknown, or the device is not here; the message says what is missing.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
        raise InvalidArgumentError("name", name, "the name of a device")
    if name == "auto":
        return _automatic(os.environ.get(ENVIRONMENT, ""))
    if name not in _MAKERS:
        known = ", ".join(("auto", *DEVICE_NAMES))
        raise NoDeviceError(f"unknown device {name!r}; there are {known}, and None for no device")
    return _shared(name)[0]


@cache
def _automatic(wish: str) -> DeviceAllocator:
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
    """What the ``device`` argument of a memory means.

    Raises
    ------
    InvalidArgumentError
        If it is no allocator, name or None, or allocates host memory.
    NoDeviceError
        See `named_device`.
    """
    if device is None:
        return None
    if isinstance(device, str):
        return named_device(device)
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
        If it is neither, or does not say that its memory is the host's.
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
    # Structural, so that a wrapper or somebody else's allocator needs no base class of ours; ours pass at once, and
    # isinstance() of a class over a protocol would take five times as long to find that out.
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
    """What a device that can be asked for by name is and can do, or why it is not here."""
    try:
        allocator, detail = _shared(name)
    except NoDeviceError as error:
        return DeviceReport(name, False, str(error))
    compiler = getattr(allocator, "compiler", None)  # what computes with kernels has one
    return DeviceReport(name, True, detail, *(() if compiler is None else (compiler.works, compiler.reason)))


def probe() -> list[DeviceReport]:
    """The same of every device, and of host memory."""
    return [DeviceReport("cpu", True, "host memory only (device=None)"), *map(report_of, DEVICE_NAMES)]
