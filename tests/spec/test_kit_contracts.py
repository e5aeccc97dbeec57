"""The kit's contracts: calls that must be refused, and buffers and memories that are dropped."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from mutants.memory import MEMORY_BUGS
from mutants.memory.handmade import HandmadeMemory
from subjects import ADOPT, GPU_WRITE, READ, WRITE, device_subject, host_subject, reference_subject

from syncedmem.runtime.devices.host import cpu_allocator
from syncedmem.spec import ReferenceMemory, Violation, check_conformance
from syncedmem.spec.memory.buffers import adopted_buffers_live, unsuitable_buffers
from syncedmem.spec.memory.checks import Refusable, everywhere, refused, started


def test_a_contract_is_checked_in_every_state() -> None:
    """A memory with a device has 62 states, and one without a device has 6."""
    seen: list[object] = []
    for subject in (reference_subject(), host_subject(ReferenceMemory)):
        drivers = list(everywhere(lambda driver: seen.append(driver.state))(subject))
        assert all(driver.oracle.released for driver in drivers)

    assert (62, 6) == (len(set(seen[:62])), len(set(seen[62:])))


def test_an_adopted_buffer_that_is_never_written_is_named() -> None:
    """The kit reports that the buffer was not the target of the copy, not that its bytes are wrong."""

    class WritesElsewhere(HandmadeMemory):
        def copy_down(self, pointer: Any) -> None:
            adopted = self.cpu_ptr is not None and not self.own_cpu_data
            super().copy_down(self.host.empty(self.size) if adopted else pointer)

    driver = started(device_subject(WritesElsewhere), WRITE, size=8)
    driver.perform(ADOPT)
    driver.perform(GPU_WRITE)
    with pytest.raises(Violation, match=r"^R19-external-is-target: "):
        driver.perform(READ)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gpu_data", "R36-too-small-refused: the last call was not refused"),
        ("frees", "R36-too-small-refused: the last call was refused, but it called allocators"),
        ("turns", "R32-strong-guarantee: the last call was refused, but it changed something"),
        ("spoils", "R32-strong-guarantee: the last call was refused, but the cpu side holds 00"),
        ("refuses", ""),
    ],
)
def test_what_is_refused_must_be_refused_and_change_nothing(call: str, message: str) -> None:
    class Careless(HandmadeMemory):
        def frees(self) -> None:
            self.free_cpu()
            self.refuse("after all")

        def turns(self) -> None:
            self.own_cpu_data = False
            self.refuse("after all")

        def spoils(self) -> None:
            memoryview(self.cpu_ptr)[:] = bytes(self.size)
            self.refuse("after all")

        def refuses(self) -> None:
            self.refuse("at once")

    driver = started(device_subject(Careless), WRITE, size=1)
    attempt = partial(refused, driver, Refusable("R36-too-small-refused", f"memory.{call}()"))
    if not message:
        attempt()
        assert "with suppress(Exception): memory.refuses()" == driver.reproducer.lines[-1]
        return
    with pytest.raises(Violation, match=message) as caught:
        attempt()

    assert f"memory.{call}()" == caught.value.statements[-1]


def test_a_refusal_is_not_blamed_for_what_is_wrong_anyway() -> None:
    """An error is blamed on refused calls only if it does not happen without them."""
    idle = everywhere(lambda _: None)
    with pytest.raises(Violation, match="R08-copy-up: saw"):
        list(idle(device_subject(MEMORY_BUGS["CopiesUpOnlyOnce"].make)))
    with pytest.raises(Violation, match="R32-strong-guarantee: after calls that were refused"):
        list(unsuitable_buffers(device_subject(MEMORY_BUGS["RefusalLosesStaleSide"].make)))


def test_host_memory_need_not_be_an_array() -> None:
    """Arrays in column order are tried only if the host memory is an array."""

    class Plain:
        def empty(self, byte_size: int) -> Any:
            return bytearray(byte_size)

        def __getattr__(self, name: str) -> Any:
            return getattr(cpu_allocator(), name)

    plain: Any = Plain()

    assert list(unsuitable_buffers(replace(host_subject(), host=plain)))


def test_a_buffer_that_cannot_be_adopted_is_not_kept_alive() -> None:
    class Refuses(HandmadeMemory):
        def adopt_host(self, data: Any) -> Any:
            self.refuse(f"{type(data)} is none of ours")

    with pytest.raises(Violation, match="R40-kept-alive: set_cpu_data raised Refused"):
        list(adopted_buffers_live(host_subject(Refuses)))


def test_what_a_dropped_memory_does_wrong_has_a_name() -> None:
    """It may free too little, too early, or memory that it does not own."""

    class FreesAnything(HandmadeMemory):
        def __del__(self) -> None:
            with suppress(Exception):
                self.host.release(self.cpu_ptr)
            super().__del__()

    found = {
        make: check_conformance(device_subject(make), suites=["contracts"]).violations[0].requirement
        for make in (FreesAnything, MEMORY_BUGS["FinaliserFreesInFlight"].make, MEMORY_BUGS["NoFinaliser"].make)
    }

    assert ["R28-freed-once", "R42-in-flight-not-freed", "R55-dropped-freed"] == list(found.values())
