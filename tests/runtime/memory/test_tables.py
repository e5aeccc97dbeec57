"""What memories look up: the tables of both editions, and numbers that are the same in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from loops import some

from syncedmem.model import caffe
from syncedmem.model.states import space, stepper
from syncedmem.model.stepper import Input
from syncedmem.model.table import Table
from syncedmem.runtime.memory.tables import ACCESSORS, TABLES

if TYPE_CHECKING:
    from syncedmem.model.declaration import Machine

BOTH = pytest.mark.parametrize("machine", [caffe.CAFFE, caffe.CPU_ONLY], ids=str)


@BOTH
def test_an_accessor_is_idle_where_it_does_nothing(machine: Machine) -> None:
    """As the steps of the machine say, in every state that calls lead to."""
    packed, idle = Table(stepper(machine)).packed, TABLES[machine == caffe.CAFFE].idle
    for state in some(space(machine).steps):
        steps = [stepper(machine).step(state, Input(machine.calls[name])) for name in ACCESSORS]
        assert idle[packed(state)] == tuple(
            step is not None and (step.actions, step.after, step.refusal) == ((), state, "") for step in steps
        )


def test_only_copies_are_repeated_without_a_transaction() -> None:
    """A memory without a device has none."""
    assert {("copy_to_cpu",), ("copy_to_gpu",)} == set(TABLES[True].copies)
    assert () == TABLES[False].copies
