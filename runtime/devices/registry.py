"""The devices that are here, by name, and why the others are not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast

from syncedmem.model import InvalidArgumentError, NoDeviceError, SyncedMemoryError
from syncedmem.model.errors import shown
from syncedmem.model.interface import DEVICE_CALLS, HOST_CALLS, DeviceType, is_host

from ..allocators.base import DeviceAllocator
from ..allocators.failures import reporting, where_of
from ..allocators.forking import fork_safe_lock
from ..allocators.pointers import as_integer
from .host import cpu_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

    Resolved = tuple[DeviceAllocator, DeviceAllocator, DeviceAllocator | None]
    """The allocators of a memory: for pageable host memory, for page-locked host memory, and for device memory."""

__all__ = [
    "AUTOMATIC",
    "DEVICE_NAMES",
    "DeviceReport",
    "automatic_name",
    "check_environment",
    "named_device",
    "parse_device",
    "probe",
    "report_of",
    "resolve_device",
    "resolve_host",
    "resolve_sides",
    "shared_device",
    "sibling",
]

_T = TypeVar("_T")

ENVIRONMENT = "SYNCEDMEM_DEVICE"
AUTOMATIC: Final = "auto"
"""The default of ``device`` in every signature."""
HOST_ALONE = "cpu"
"""The name for no device; `probe` lists host memory under it."""
SEEDED: Final = "simulated-seeded"
"""The simulated device with a scheduler; a number in its name is the seed."""

_making = fork_safe_lock()
"""Held while a shared allocator is made: two allocators of the same device would refuse each other's memory."""


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


DEVICE_NAMES = tuple(kind.name.lower() for kind in reversed(DeviceType) if kind > DeviceType.CPU)
"""The kinds of devices that have a name.  ``"cuda"`` means the first device of its kind, ``"cuda:1"`` the second."""


# Every kind of device has a module of its name in this folder.  Its `ALLOCATOR` is a class that has a `description`.
def _new(name: str, ordinal: int) -> tuple[DeviceAllocator, str]:
    """An allocator of a kind, and its description.  Its module is imported late: its library is optional and slow."""
    allocator = import_module(f".{name}", __package__).ALLOCATOR(ordinal)
    return allocator, allocator.description


def _seeded(seed: int) -> tuple[DeviceAllocator, str]:
    """The simulated device with the seed of a scheduler."""
    module = import_module(".simulated", __package__)
    return module.ALLOCATOR(seed=seed), f"{module.ALLOCATOR.description}, with a scheduler of seed {seed}"


_MAKERS: dict[str, Callable[[int], tuple[DeviceAllocator, str]]] = {
    **{name: partial(_new, name) for name in DEVICE_NAMES},
    SEEDED: _seeded,
}


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


_MOST_DIGITS = 20
"""Of the number in a name: a seed may have 64 bits.  Python itself refuses to read thousands of digits."""


def parse_device(name: str) -> tuple[str, int]:
    """The kind and the number in the name of a device, without a check whether that device is here.

    Parameters
    ----------
    name : str
        ``"auto"``, ``"cpu"``, ``"simulated-seeded"`` or one of `DEVICE_NAMES`; the last two with or without a number:
        ``"cuda:1"``.
    """
    kind, colon, number = name.partition(":")
    if kind not in _MAKERS and name not in (AUTOMATIC, HOST_ALONE):
        known = f"{AUTOMATIC}, {', '.join(_MAKERS)}, and {HOST_ALONE} for no device"
        raise NoDeviceError(f"unknown device {shown(name)}; there are {known}")
    if colon and not (number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS):
        number_of = f"a number of at most {_MOST_DIGITS} digits"
        raise NoDeviceError(f"{shown(name)} names no device: {number_of} must follow the colon, as in {kind}:1")
    return kind, int(number or 0)


def named_device(name: str) -> DeviceAllocator:
    """The shared allocator of a device, or of the host.

    Parameters
    ----------
    name : str
        One of `DEVICE_NAMES` for the first device of its kind, or with a number, counted from 0, as in ``"cuda:1"``.
        ``"cpu"``: the allocator of host memory, which as ``device=`` means no device.  ``"simulated-seeded"``, or with
        a seed as in ``"simulated-seeded:7"``: the simulated device with a scheduler, which lets queued work happen
        early or late, in the same way each time.  ``"auto"``: what ``SYNCEDMEM_DEVICE`` names; without it CUDA, if
        there is a GPU whose compute mode is not "prohibited"; otherwise the simulated device.

    Raises
    ------
    InvalidArgumentError
        If it is no string.
    NoDeviceError
        If the name is unknown, or the device is not here; the message says what is missing.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
        raise InvalidArgumentError("name", name, "the name of a device")
    return _found(name) or cpu_allocator()


def check_environment() -> None:
    """Refuse a value of ``SYNCEDMEM_DEVICE`` that is no name of a device; the device need not be here."""
    _from_environment(parse_device)


def _from_environment(meaning: Callable[[str], _T]) -> _T:
    """The result of a function for the value of ``SYNCEDMEM_DEVICE``, or for ``"auto"`` if it is not set."""
    value = os.environ.get(ENVIRONMENT) or AUTOMATIC
    try:
        return meaning(value)
    except NoDeviceError as error:
        raise NoDeviceError(f"{ENVIRONMENT}={shown(value)}: {error}") from None


def _found(name: str) -> DeviceAllocator | None:
    """The device that a name means here, with ``SYNCEDMEM_DEVICE``; None for the host alone."""
    return _from_environment(_named) if name == AUTOMATIC else _named(name)


def _named(name: str) -> DeviceAllocator | None:
    """The device that a name means here, without ``SYNCEDMEM_DEVICE``; None for the host alone."""
    kind, ordinal = parse_device(name)
    if kind == HOST_ALONE:
        return None
    return _automatic() if kind == AUTOMATIC else _shared(kind, ordinal)[0]


@cache
def _automatic() -> DeviceAllocator:
    try:
        device, _ = _shared("cuda")
    except NoDeviceError:
        return _shared("simulated")[0]
    # As in CUDA itself, such a GPU is used only by programs that name it.
    return _shared("simulated")[0] if getattr(device, "prohibited", False) else device


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
        return _found(device)
    if device is cpu_allocator():  # as named_device("cpu") returns it
        return None
    expected = "an allocator, a device name, or None"
    _check_calls("device", device, DEVICE_CALLS, expected)
    if is_host(device):
        raise InvalidArgumentError(
            "device", device, f"{expected}, for the device side; memory of the host goes into host="
        )
    return cast("DeviceAllocator", device)


def resolve_sides(host: object, pinned: object, device: object) -> Resolved:
    """The allocators that the three arguments ``host``, ``pinned`` and ``device`` of a memory mean."""
    pageable, there = resolve_host(host), resolve_device(device)
    if pinned is not None:
        return pageable, resolve_host(pinned, "pinned"), there
    if there is None:
        return pageable, pageable, None
    with reporting("pinned_host", there):
        locked = cast("DeviceAllocator", there.pinned_host())
    ordinary = cpu_allocator()
    if locked is ordinary:  # the device has no page-locked memory of its own
        return pageable, pageable, there
    if pageable is not ordinary:
        raise InvalidArgumentError(
            "pinned",
            None,
            f"an allocator, because there is a host=, which gives pageable memory only: in GPU mode, memory comes from "
            f"pinned=, and would come from {where_of(there)} instead (for that say pinned=device.pinned_host())",
        )
    return pageable, locked, there


def resolve_host(host: object, argument: str = "host") -> DeviceAllocator:
    """The allocator that the ``host`` or ``pinned`` argument of a memory means; None means the shared one."""
    if host is None:
        return cpu_allocator()
    expected = "an allocator, or None"
    _check_calls(argument, host, HOST_CALLS - {"device_type"}, expected)
    if not is_host(host):
        kind = getattr(host, "device_type", "missing")
        wanted = f"its device_type has to be DeviceType.CPU, and is {kind!s}"
        raise InvalidArgumentError(
            argument, host, f"{expected}, for the host side: {wanted}; memory of the device goes into device="
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
        allocator, detail = _shared(*parse_device(name))
    except NoDeviceError as error:
        return DeviceReport(name, False, str(error))
    try:
        compiler = getattr(allocator, "compiler", None)  # a device that computes with kernels has one
    except InvalidArgumentError as error:  # the environment variable for compilers has an unknown value
        return DeviceReport(name, True, detail, compiler_error=str(error))
    if compiler is None:
        return DeviceReport(name, True, detail, arithmetic="device")
    return DeviceReport(name, True, detail, compiler.works, compiler.reason, _who_computes(allocator))


def _who_computes(allocator: DeviceAllocator) -> Literal["device", "host"] | None:
    """What computes with the memory of a device."""
    try:
        return "host" if allocator.arithmetic().on_host else "device"
    except SyncedMemoryError:
        return None


def probe() -> list[DeviceReport]:
    """The reports of all devices, and of host memory."""
    host = DeviceReport(HOST_ALONE, True, "host memory only (device=None)", arithmetic="host")
    return [host, *map(report_of, DEVICE_NAMES)]


def automatic_name() -> str:
    """The name of the device that ``device="auto"`` means here, as in `probe`, with its number unless that is 0.

    Raises
    ------
    NoDeviceError
        If ``SYNCEDMEM_DEVICE`` names a device that is not here.
    """
    device = resolve_device(AUTOMATIC)
    if device is None:
        return HOST_ALONE
    return device.name if device.ordinal else device.device_type.name.lower()
