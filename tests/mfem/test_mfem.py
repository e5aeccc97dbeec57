"""The machine of examples/machines/mfem.py beside MFEM itself; ``make test-mfem`` installs what is tested here.

MFEM's debug device has memory of its own, and protects the side that is not valid.  The Python package of MFEM does not
show the flags of a Memory, so they are read where MFEM has them (general/mem_manager.hpp, class Memory).
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.model import Declaration, Rule, declare, head_machine, tour
from syncedmem.model.exports.declared import machine_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LENGTH = 4
VALID_HOST, VALID_DEVICE = 1 << 4, 1 << 5
HEADS = {VALID_HOST: "HOST", VALID_DEVICE: "DEVICE", VALID_HOST | VALID_DEVICE: "BOTH"}
METHODS = {
    "host_read": "HostRead",
    "host_read_write": "HostReadWrite",
    "host_write": "HostWrite",
    "read": "Read",
    "read_write": "ReadWrite",
    "write": "Write",
    "delete": "Destroy",
}


class Memory(ctypes.Structure):
    """The fields of a Memory of MFEM 4.10."""

    _fields_ = (
        ("h_ptr", ctypes.c_void_p),
        ("capacity", ctypes.c_int),
        ("h_mt", ctypes.c_int),
        ("flags", ctypes.c_uint),
    )


class Contents:
    """What the actions of the declaration do to the contents of two sides; None is undefined."""

    def __init__(self) -> None:
        self.host: list[float] | None = None
        self.device: list[float] | None = None

    def allocate_gpu(self, _: object) -> None:
        """Fresh memory has no defined contents."""
        self.device = None

    def copy_to_gpu(self, _: object) -> None:
        """The device has the contents of the host."""
        self.device = self.host

    def copy_to_cpu(self, _: object) -> None:
        """The host has the contents of the device."""
        self.host = self.device

    def free_cpu(self, _: object) -> None:
        """The host side ends."""
        self.host = None

    def free_gpu(self, _: object) -> None:
        """The device side ends."""
        self.device = None


@pytest.fixture(scope="session")
def mfem() -> Any:
    """MFEM with its debug device, which stays switched on until the process ends."""
    folder = os.environ.get("MFEM")
    if folder is None:
        pytest.skip("needs MFEM's own package: make test-mfem")
    sys.path.insert(0, folder)
    found: Any = import_module("mfem.ser")
    found.Device("debug").thisown = False
    return found


@pytest.fixture(scope="session")
def flags() -> Declaration:
    """The machine that is compared."""
    found = machine_named(f"{Path(__file__).parents[2]}/examples/machines/mfem.py:FLAGS")
    assert isinstance(found, Declaration)
    return found


def differences(mfem: Any, machine: Declaration, calls: Sequence[str]) -> Iterable[str]:
    """Make calls on a Vector of MFEM and on the machine; yield what is not the same."""
    vector, contents = mfem.Vector(LENGTH), Contents()
    vector.UseDevice(True)
    real = Memory.from_address(int(vector.GetMemory()))
    bound = head_machine(machine).bind(contents)
    by_name = {call.value: call for call in head_machine(machine).calls}
    values = iter(range(1, 1 << 30))
    for number, name in enumerate(calls, 1):
        bound.trigger(by_name[name])
        pointer = getattr(vector, METHODS[name])()
        where = f"{number}. {name}: "
        if by_name[name].ends:
            yield from [f"{where}flags {real.flags:#b}"] * bool(real.flags & (VALID_HOST | VALID_DEVICE))
            return
        head = HEADS[real.flags & (VALID_HOST | VALID_DEVICE)]
        if head != bound.head.name:
            yield f"{where}MFEM is at {head}, the machine at {bound.head.name}"
            return
        side = "host" if name.startswith("host") else "device"
        seen = (ctypes.c_double * LENGTH).from_address(int(pointer))
        expected = getattr(contents, side)
        reads = name.split("_")[-1] != "write" or "read" in name
        if reads and expected is not None and list(seen) != expected:
            yield f"{where}MFEM has {list(seen)}, the machine {expected}"
            return
        if name.endswith("write"):
            seen[:] = [float(next(values))] * LENGTH
            setattr(contents, side, list(seen))


def walks(machine: Declaration) -> list[list[str]]:
    """The tour of all transitions, and random walks."""
    found = [[entry.call.value for entry in sequence if entry.call] for sequence in tour(machine)]
    names = [name for name in METHODS if name != "delete"]
    chosen = random.Random(20)  # noqa: S311 -- for tests
    return found + [["host_write", *chosen.choices(names, k=30), "delete"] for _ in range(300)]


def test_mfem_does_what_the_machine_says(mfem: Any, flags: Declaration) -> None:
    """Heads after each call, and contents after each call that reads."""
    found = [(calls, list(differences(mfem, flags, calls))) for calls in walks(flags)]

    assert len(found) > 300
    assert [it for it in found if it[1]] == []


def mistaken(flags: Declaration, at: tuple[str, str], **changes: Any) -> Declaration:
    """The machine with another row for a call from one head."""
    rules: list[Rule] = []
    for row in flags.rows:
        guards = [guard.value for guard in row.conditions] + [f"!{guard.value}" for guard in row.unless]
        rule = Rule(
            row.call.value,
            " ".join(head.name for head in row.source),
            row.dest.name if row.dest else "",
            " ".join(action.value for action in row.actions),
            " ".join(guards),
        )
        rules.append(rule._replace(**changes) if (rule.call, rule.source) == at else rule)
    names = flags.edition.names
    effects = {"allocate_gpu": "+device_memory", "free_gpu": "-device_memory"}
    return declare(
        "mfem",
        "With a mistake",
        heads=" ".join(head.name for head in names.heads),
        facts="device_memory",
        calls=" ".join(call.value for call in names.calls),
        ends="delete",
        actions={action.value: effects.get(action.value, "") for action in names.actions},
        rows=rules,
    )


@pytest.mark.parametrize(
    ("at", "changes", "message"),
    [
        (("host_read", "DEVICE"), {"dest": "HOST"}, "host_read: MFEM is at BOTH, the machine at HOST"),
        (("host_read", "DEVICE"), {"actions": ""}, "MFEM has "),
        (("read_write", "BOTH"), {"dest": "BOTH"}, "read_write: MFEM is at DEVICE, the machine at BOTH"),
        (("host_read_write", "DEVICE"), {"actions": ""}, "MFEM has "),
    ],
)
def test_a_row_that_is_wrong_is_found(
    mfem: Any, flags: Declaration, at: tuple[str, str], changes: dict[str, str], message: str
) -> None:
    wrong = mistaken(flags, at, **changes)
    found = [text for calls in walks(flags) for text in differences(mfem, wrong, calls)]

    assert any(message in text for text in found)
    same = mistaken(flags, ("", ""))
    assert [text for calls in walks(flags)[:20] for text in differences(mfem, same, calls)] == []
