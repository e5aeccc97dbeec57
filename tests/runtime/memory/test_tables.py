"""What memories look up: the tables of both editions, and numbers that are the same in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from loops import some

from syncedmem.model import Mode, SyncedHead, caffe
from syncedmem.model.states import space, stepper
from syncedmem.model.stepper import Input
from syncedmem.model.table import Table
from syncedmem.runtime.memory import tables
from syncedmem.runtime.memory.tables import ACCESSORS, CLEARED, HEADS, TABLES

if TYPE_CHECKING:
    from syncedmem.model.declaration import Machine

BOTH = pytest.mark.parametrize("machine", [caffe.CAFFE, caffe.CPU_ONLY], ids=str)


@BOTH
def test_a_memory_has_the_edition_for_its_device(machine: Machine) -> None:
    assert TABLES[machine == caffe.CAFFE].machine is machine


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


def test_a_packed_state_has_a_head_of_users() -> None:
    assert [head for head in SyncedHead for _ in range(32)] == [*HEADS]
    assert [*caffe.CAFFE.heads] == [head.name for head in SyncedHead]


def test_the_facts_have_the_bits_of_the_table() -> None:
    numbers = tables.CPU_POINTER, tables.GPU_POINTER, tables.OWN_CPU, tables.OWN_GPU, tables.PINNED

    assert (1, 2, 4, 8, 16) == numbers
    assert ["has_cpu_pointer", "has_gpu_pointer", "own_cpu_data", "own_gpu_data", "cpu_malloc_use_cuda"] == [
        *caffe.EVERYTHING.facts
    ]


def test_what_an_action_clears_is_known_of_every_action() -> None:
    cleared = {name: bits for name, bits in CLEARED.items() if bits}

    assert [*caffe.EVERYTHING.actions] == [*CLEARED]
    assert {"free_cpu": 1 | 4, "free_gpu": 2 | 8, "adopt_cpu": 4, "adopt_gpu": 8} == cleared


def test_the_mode_chooses_by_the_place_of_its_value() -> None:
    """A memory takes the second of what may follow in GPU mode, and the first otherwise."""
    assert ([*caffe.MODE.values], ["mode"]) == ([mode.name for mode in Mode], [*caffe.CAFFE.settings])
    assert [False, True] == [mode is Mode.GPU for mode in Mode]
