"""What only memories in Python are asked: calls that must be refused, buffers in many forms, and lifetimes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from mutants.memory import MEMORY_BUGS
from mutants.memory.handmade import HandmadeMemory
from subjects import device_subject, host_subject

from syncedmem.runtime.devices.host import cpu_allocator
from syncedmem.spec import Violation, check_conformance
from syncedmem.spec.conformance import suites_of
from syncedmem.spec.kit.trial import Trial, bench_of, run_case
from syncedmem.spec.record.steps import Buffer, Step

if TYPE_CHECKING:
    from syncedmem.spec import Subject


def violation(subject: Subject, *suites: str) -> Violation:
    """Return the violation that some suites find first."""
    return check_conformance(subject, steps=0, suites=suites).violations[0]


def test_what_must_not_be_adopted_is_handed_in_in_every_state() -> None:
    """A memory with a device has 62 states, and two sides that adopt; one without a device has 6, and one."""
    for subject, states, sides in ((device_subject(), 62, 2), (host_subject(), 6, 1)):
        assert states * sides == len([*suites_of(subject)["forms"]()]) == len([*suites_of(subject)["refused"]()])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("turns", "the last call was refused, but own_cpu_data is False, expected True"),
        ("spoils", "the last call was refused, but the cpu side holds 00, expected 15"),
    ],
)
def test_what_is_refused_must_change_nothing(how: str, message: str) -> None:
    class Careless(HandmadeMemory):
        def set_cpu_data(self, data: Any) -> None:
            del data
            if how == "turns":
                self.own_cpu_data = False
            else:
                memoryview(self.cpu_ptr)[:] = bytes(self.size)
            self.refuse("after all")

    written = Step("call", 0, "mutable_cpu_data", write=3)
    odd = Step("call", 0, "set_cpu_data", Buffer("odd", "cpu", 1, form="read-only"))
    with pytest.raises(Violation) as caught:
        run_case(bench_of(device_subject(Careless)), (Step("new", size=1), written, odd))

    assert ("R32-strong-guarantee", message) == (caught.value.requirement, caught.value.message)
    assert "memory.set_cpu_data(odd_buffer)" == caught.value.statements[-1]


def test_a_refusal_is_not_blamed_for_what_is_wrong_anyway() -> None:
    """An error is blamed on refused calls only if it does not happen without them."""
    wrong, careless = (MEMORY_BUGS[name].make for name in ("CopiesUpOnlyOnce", "RefusalLosesStaleSide"))

    assert "R08-copy-up" == violation(device_subject(wrong), "forms").requirement
    found = violation(device_subject(careless), "refused")
    assert "R32-strong-guarantee" == found.requirement
    assert found.message.startswith("after calls that were refused: ")


def test_host_memory_need_not_be_an_array() -> None:
    """Arrays in column order are tried only if the host memory is an array."""

    class Plain:
        def empty(self, byte_size: int) -> Any:
            return bytearray(byte_size)

        def __getattr__(self, name: str) -> Any:
            return getattr(cpu_allocator(), name)

    def forms(subject: Subject) -> set[str]:
        steps = (step for case in suites_of(subject)["forms"]() for step in case)
        return {step.argument.form for step in steps if step.argument is not None}

    plain: Any = Plain()

    assert {"columns"} == forms(host_subject()) - forms(replace(host_subject(), host=plain))


def test_a_buffer_that_cannot_be_adopted_is_not_kept_alive() -> None:
    class Refuses(HandmadeMemory):
        def adopt_host(self, data: Any) -> Any:
            self.refuse(f"{type(data)} is none of ours")

    assert "R14-adopt-host" == violation(host_subject(Refuses), "lifetimes").requirement


def test_only_the_memory_knows_how_many_small_calls_there_are_to_fail() -> None:
    """A call of which none was left to fail was done, and the world is the one after it."""
    subject = device_subject()
    trial = Trial(bench_of(subject))
    for step in (Step("new", size=4), *(Step("call", 0, "gpu_data", fail=k, how="other") for k in range(1, 9))):
        trial.take(step)

    assert "HEAD_AT_GPU" == trial.world.head(0)
