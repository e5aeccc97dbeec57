"""The kit's contracts: calls that must be refused, and buffers and memories that are dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mutants.memory import MEMORY_BUGS
from mutants.memory.handmade import HandmadeMemory
from subjects import WRITE, device_subject, host_subject, reference_subject

from syncedmem.runtime.devices.host import cpu_allocator
from syncedmem.spec import ReferenceMemory, Violation
from syncedmem.spec.memory.buffers import adopted_buffers_live, unsuitable_buffers
from syncedmem.spec.memory.checks import Refusable, everywhere, refused, started


def test_a_contract_is_checked_in_every_state() -> None:
    """A memory with a device has 62 states, and one without a device has 6."""
    seen: list[object] = []
    for subject in (reference_subject(), host_subject(ReferenceMemory)):
        drivers = list(everywhere(lambda driver: seen.append(driver.state))(subject))
        assert all(driver.oracle.released for driver in drivers)

    assert (62, 6) == (len(set(seen[:62])), len(set(seen[62:])))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("turns", "R32-strong-guarantee: the last call was refused, but it changed something"),
        ("spoils", "R32-strong-guarantee: the last call was refused, but the cpu side holds 00"),
    ],
)
def test_what_is_refused_must_change_nothing(call: str, message: str) -> None:
    class Careless(HandmadeMemory):
        def turns(self) -> None:
            self.own_cpu_data = False
            self.refuse("after all")

        def spoils(self) -> None:
            memoryview(self.cpu_ptr)[:] = bytes(self.size)
            self.refuse("after all")

    driver = started(device_subject(Careless), WRITE, size=1)
    with pytest.raises(Violation, match=message) as caught:
        refused(driver, Refusable("R36-too-small-refused", f"memory.{call}()"))

    assert f"memory.{call}()" == caught.value.statements[-1]


def test_a_refusal_is_not_blamed_for_what_is_wrong_anyway() -> None:
    """An error is blamed on refused calls only if it does not happen without them."""
    idle = everywhere(lambda _: None)
    with pytest.raises(Violation, match="R08-copy-up: saw"):
        list(idle(device_subject(MEMORY_BUGS["CopiesUpOnlyOnce"].make)))
    with pytest.raises(Violation, match="R32-strong-guarantee: after calls that were refused"):
        list(unsuitable_buffers("R36-too-small-refused")(device_subject(MEMORY_BUGS["RefusalLosesStaleSide"].make)))


def test_host_memory_need_not_be_an_array() -> None:
    """Arrays in column order are tried only if the host memory is an array."""

    class Plain:
        def empty(self, byte_size: int) -> Any:
            return bytearray(byte_size)

        def __getattr__(self, name: str) -> Any:
            return getattr(cpu_allocator(), name)

    plain: Any = Plain()

    assert list(unsuitable_buffers("R38-not-contiguous-refused")(replace(host_subject(), host=plain)))


def test_a_buffer_that_cannot_be_adopted_is_not_kept_alive() -> None:
    class Refuses(HandmadeMemory):
        def adopt_host(self, data: Any) -> Any:
            self.refuse(f"{type(data)} is none of ours")

    with pytest.raises(Violation, match="R40-kept-alive: set_cpu_data raised Refused"):
        list(adopted_buffers_live(host_subject(Refuses)))
