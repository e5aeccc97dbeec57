"""The contract of allocators: declared once, and what a host allocator has to say of itself."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects import devices

from syncedmem.model import InvalidArgumentError
from syncedmem.model.interface import (
    DEVICE_CALLS,
    HOST_CALLS,
    OPERATIONS,
    DeviceArray,
    DeviceType,
    MemcpyKind,
    calls_of,
    is_host,
)
from syncedmem.runtime import Adaptor, CPUDeviceAllocator, DeviceAllocator, SimulatedDeviceAllocator, SyncedMemory

ROOT = Path(__file__).parents[2]
ENUMERATIONS = [{kind.name for kind in MemcpyKind}, {kind.name for kind in DeviceType}]
FEW = 3
"""So many calls of the interface in one literal are a list of them."""


def declarations(source: str) -> list[str]:
    """Where a module gives numbers to directions or kinds of devices, or lists calls of an allocator."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            names = {target.id for it in node.body if isinstance(it, ast.Assign) for target in _names(it)}
            found += [node.name for enumeration in ENUMERATIONS if len(enumeration & names) >= FEW]
            methods = {it.name for it in node.body if isinstance(it, ast.FunctionDef)}
            if methods >= HOST_CALLS - {"device_type"} and "Protocol" in {ast.unparse(it) for it in node.bases}:
                found.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple | ast.List | ast.Set | ast.Call):
            words = {it.value for it in ast.walk(node.value) if isinstance(it, ast.Constant)}
            if set(OPERATIONS) <= words or HOST_CALLS - {"device_type"} <= words:
                found.append(ast.unparse(node.targets[0]))
            found += _numbered(node)
    return found


def _names(assignment: ast.Assign) -> list[ast.Name]:
    return [target for it in assignment.targets for target in ast.walk(it) if isinstance(target, ast.Name)]


def _numbered(node: ast.Assign) -> list[str]:
    """The names of directions that are given plain numbers."""
    numbers = [it for it in ast.walk(node.value) if isinstance(it, ast.Constant) and isinstance(it.value, int)]
    names = [name.id for name in _names(node) if "_TO_" in name.id or name.id.startswith(("TO_", "ON_DEV", "_ON_THE"))]
    return [", ".join(names)] if numbers and names else []


def test_numbers_and_lists_of_calls_are_declared_once() -> None:
    """In ``model/interface.py``, and by nobody who uses it."""
    found = {
        path.relative_to(ROOT).as_posix(): declared
        for room in ("model", "runtime", "spec", "src/syncedmem")
        for path in sorted((ROOT / room).rglob("*.py"))
        if (declared := declarations(path.read_text(encoding="utf-8")))
    }

    assert {"model/interface.py": ["DeviceType", "HostAllocator", "MemcpyKind", "OPERATIONS"]} == {
        path: sorted(declared) for path, declared in found.items()
    }


@pytest.mark.parametrize(
    "planted",
    [
        "class Kind(IntEnum):\n    CPU2CPU = 0\n    CPU2CUDA = 1\n    CUDA2CPU = 2",
        "class Place(IntEnum):\n    UNKNOWN = 0\n    CPU = 1\n    CUDA = 2",
        "class Heap(Protocol):\n" + "".join(f"    def {name}(self): ...\n" for name in sorted(HOST_CALLS)),
        "_CALLS = ('allocate', 'release', 'memcpy', 'memset_zero')",
        "_CALLS = frozenset({'allocate', 'release', 'memset_zero', 'adopt', 'overlaps'})",
        "TO_DEVICE, TO_HOST = 1, 2",
        "_DEVICE_TO_DEVICE, _HOST_TO_HOST = 3, 0",
        "_ON_THE_HOST = (0, 1)",
    ],
)
def test_a_second_declaration_is_seen(planted: str) -> None:
    assert 1 == len(declarations(planted))


def test_directions_are_put_together_from_their_ends() -> None:
    for kind in MemcpyKind:
        assert kind is MemcpyKind.between(from_device=kind.from_device, to_device=kind.to_device)


def test_the_lists_of_calls_are_those_of_the_protocols() -> None:
    """A host is asked for less than a device, and every allocator of ours has it all."""
    assert {"device_type", "allocate", "release", "memset_zero", "adopt", "overlaps"} == HOST_CALLS
    assert set(OPERATIONS) | HOST_CALLS < DEVICE_CALLS
    assert {name for name in dir(DeviceAllocator) if not name.startswith("_")} == DEVICE_CALLS | {"arithmetic"}
    assert frozenset() == calls_of(CPUDeviceAllocator) - DEVICE_CALLS


def test_arrays_of_every_device_are_device_arrays() -> None:
    for device in devices():
        array: DeviceArray = device.empty(16)
        array.set(np.arange(16, dtype=np.uint8))

        assert all(hasattr(array, name) for name in calls_of(DeviceArray))
        assert (16, 16, 1, np.uint8) == (len(array), array.nbytes, array.ndim, array.dtype)
        assert [4, 5] == array[4:6].view().get().tolist()


class Mute:
    """Everything that another allocator has, but for what is left out; it says what device it is for."""

    def __init__(self, inner: Any, **said: Any) -> None:
        self.inner = inner
        vars(self).update(said)

    def __getattr__(self, name: str) -> Any:
        if name == "device_type":
            raise AttributeError(name)
        return getattr(self.inner, name)


@pytest.mark.parametrize(
    ("host", "found"),
    [
        (Mute(CPUDeviceAllocator()), "missing"),
        (Mute(SimulatedDeviceAllocator(), device_type=DeviceType.UNKNOWN), "0"),
        (Mute(SimulatedDeviceAllocator(), device_type=DeviceType.CUDA), "2"),
        (Adaptor(Mute(SimulatedDeviceAllocator())), "0"),  # type: ignore[arg-type] # of nobody's class
        (SimulatedDeviceAllocator(), "4"),
    ],
)
def test_what_does_not_say_that_it_is_the_host_is_refused_as_one(host: Any, found: str) -> None:
    """Nobody knows what an unknown device is: its memory would be read and written as if it were here."""
    with pytest.raises(InvalidArgumentError, match=f"host must be .* has to be DeviceType.CPU, and is {found}; memory"):
        SyncedMemory(8, host=host)
    assert not is_host(host)


def test_what_says_that_it_is_the_host_is_taken_for_it() -> None:
    host: Any = Mute(CPUDeviceAllocator(), device_type=1)
    with SyncedMemory(8, host=host) as memory:
        assert is_host(host)
        assert [0] * 8 == memory.cpu_data().tolist()
