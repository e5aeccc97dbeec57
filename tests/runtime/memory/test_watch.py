"""Checked memories: stale writes are told with their lines, stale sides are poisoned, and nobody is accused wrongly."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from kept import WAYS
from subjects import SIZE, devices, failing, filled

from syncedmem.model import DeviceError, InvalidArgumentError, StaleWriteError, SyncedHead
from syncedmem.model.interface import DeviceType, MemcpyKind
from syncedmem.runtime import (
    Blob,
    CPUDeviceAllocator,
    LimitingAllocator,
    PoolAllocator,
    SimulatedDeviceAllocator,
    SyncedMemory,
    named_device,
)
from syncedmem.runtime.allocators.late_writes import POISON
from syncedmem.spec import Subject, check_conformance

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.lines import Line

HERE = Path(__file__).name


@pytest.fixture(params=devices(), ids=lambda place: str(place.device_type.name))
def place(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def checked(place: Any) -> SyncedMemory:
    """A checked memory on each device of this machine."""
    return SyncedMemory(SIZE, device=place, checked=True)


def written(memory: Any, value: int = 3) -> Any:
    """Write the device side; returns the view."""
    view = memory.mutable_gpu_data()
    view.set(np.full(SIZE, value, np.uint8))
    return view


def escaped(memory: Any) -> Any:
    """The host side to write, in a form that does not become read-only with the view."""
    return memoryview(memory.mutable_cpu_data())


def place_of(line: Line | None) -> tuple[str, str]:
    """The call of a line, and the name of its file."""
    assert line is not None
    return line.call, Path(line.file).name


# --- what is told


def test_a_write_is_told_once_and_the_memory_goes_on_with_the_bytes_that_it_has(checked: SyncedMemory) -> None:
    """It is told before the call does anything."""
    kept = escaped(checked)
    kept[5] = 0
    checked.gpu_data()
    kept[5] = 7
    with pytest.raises(StaleWriteError):
        checked.gpu_data()

    assert SyncedHead.SYNCED is checked.head
    assert 0 == checked.gpu_data().get()[5]
    assert 7 == checked.cpu_data()[5]


def while_both_sides_are_fresh(memory: Any) -> None:
    kept = escaped(memory)
    memory.gpu_data()
    kept[5] = 7
    memory.gpu_data()


def to_a_stale_host_side(memory: Any) -> None:
    kept = escaped(memory)
    written(memory)
    kept[SIZE - 1] = 9
    memory.cpu_data()


def by_an_old_view_of_the_device(memory: Any, after: str = "cpu_data") -> None:
    kept = written(memory)
    getattr(memory, after)()
    kept.set(np.full(SIZE, 4, np.uint8))
    memory.cpu_data()


def by_the_owner_of_an_adopted_array(memory: Any) -> None:
    mine = np.ones(SIZE, np.uint8)
    memory.set_cpu_data(mine)
    memory.gpu_data()
    mine[3] = 2
    memory.gpu_data()


def by_who_adopts_the_other_side_again(memory: Any) -> None:
    mine, theirs = np.ones(SIZE, np.uint8), memory.device.empty(SIZE)
    memory.set_gpu_data(theirs)
    memory.set_cpu_data(mine)
    memory.gpu_data()
    mine[3] = 4
    memory.set_gpu_data(theirs)


def by_another_memory_over_the_same_bytes(memory: Any) -> None:
    mine, other = np.zeros(SIZE, np.uint8), SyncedMemory(SIZE, device=memory.device, checked=True)
    for each in (memory, other):
        each.set_cpu_data(mine)
        each.gpu_data()
    other.mutable_cpu_data()[:] = 3
    memory.gpu_data()


def to_the_diff_of_a_blob(memory: Any) -> None:
    blob: Any = Blob((SIZE,), device=memory.device, checked=True)
    kept = memoryview(blob.mutable_cpu_diff())
    blob.gpu_diff()
    kept[0] = 9
    blob.gpu_diff()


TO_A_STALE_DEVICE = partial(by_an_old_view_of_the_device, after="mutable_cpu_data")
WRITES: list[tuple[Callable[[Any], None], str, int | None, tuple[str, str, str]]] = [
    (while_both_sides_are_fresh, "host", 5, ("mutable_cpu_data", "gpu_data", "gpu_data")),
    (to_a_stale_host_side, "host", SIZE - 1, ("mutable_cpu_data", "mutable_gpu_data", "cpu_data")),
    (by_an_old_view_of_the_device, "device", 0, ("mutable_gpu_data", "cpu_data", "cpu_data")),
    (TO_A_STALE_DEVICE, "device", None, ("mutable_gpu_data", "mutable_cpu_data", "cpu_data")),
    (by_the_owner_of_an_adopted_array, "host", 3, ("set_cpu_data", "gpu_data", "gpu_data")),
    (by_who_adopts_the_other_side_again, "host", 3, ("set_cpu_data", "gpu_data", "set_gpu_data")),
    (by_another_memory_over_the_same_bytes, "host", 0, ("set_cpu_data", "gpu_data", "gpu_data")),
    (to_the_diff_of_a_blob, "host", 2, ("mutable_cpu_diff", "gpu_diff", "gpu_diff")),
]
"""How somebody writes; which side and byte is told; the calls that gave the view and ended its right, and
the call that found it."""


@pytest.mark.parametrize(("write", "side", "position", "calls"), WRITES)
def test_a_write_is_told_with_its_lines(
    checked: SyncedMemory, write: Callable[[Any], None], side: str, position: int | None, calls: tuple[str, str, str]
) -> None:
    with pytest.raises(StaleWriteError) as caught:
        write(checked)

    error = caught.value
    taken, ended, found = calls
    assert (side, found) == (error.side, error.call)
    assert position in (None, error.position)
    assert [(taken, HERE), (ended, HERE)] == [place_of(error.taken), place_of(error.ended)]
    assert isinstance(error, RuntimeError)


@pytest.mark.parametrize("way", WAYS)
def test_a_write_through_what_was_made_of_a_view_is_told(place: Any, way: str) -> None:
    memory = SyncedMemory(64, device=place, checked=True)
    kept = WAYS[way](memory.mutable_cpu_data())
    kept[0] = 1
    memory.gpu_data()
    kept[0] = 9
    with pytest.raises(StaleWriteError):
        memory.cpu_data()


@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_who_writes_late_to_a_block_of_a_pool_is_told_by_its_next_owner_if_that_side_must_not_change(
    place: Any, on_device: bool
) -> None:
    """If the one before was not checked.  While the side alone is fresh, it looks like a write of the owner."""
    with PoolAllocator(CPUDeviceAllocator()) as host, PoolAllocator(place) as device:

        def make(*, checked: bool) -> SyncedMemory:
            return SyncedMemory(SIZE, host=host, pinned=host, device=device, checked=checked)

        with make(checked=False) as before:
            late: Any = before.mutable_gpu_data() if on_device else escaped(before)
        with make(checked=True) as owner:
            (owner.mutable_gpu_data if on_device else owner.mutable_cpu_data)()
            _write(late, 5)
            (owner.cpu_data if on_device else owner.gpu_data)()
            assert 5 == owner.cpu_data()[0]
            _write(late, 6)
            with pytest.raises(StaleWriteError) as caught:
                owner.cpu_data()
            assert ("device" if on_device else "host") == caught.value.side


def _write(view: Any, value: int) -> None:
    """Write all bytes, of an array of a device or of a buffer of the host."""
    if hasattr(view, "set"):
        view.set(np.full(SIZE, value, np.uint8))
    else:
        view[:] = bytes([value]) * SIZE


def test_closing_tells_and_closes(checked: SyncedMemory) -> None:
    kept = escaped(checked)
    checked.gpu_data()
    kept[0] = 9
    with pytest.raises(StaleWriteError):
        checked.close()

    assert checked.closed
    checked.close()


def test_a_block_that_ends_with_an_error_warns_and_shows_the_error(checked: SyncedMemory) -> None:
    def fail() -> None:
        with checked:
            kept = escaped(checked)
            checked.gpu_data()
            kept[0] = 9
            raise ZeroDivisionError

    with pytest.warns(RuntimeWarning, match="the host side was written"), pytest.raises(ZeroDivisionError):
        fail()

    assert checked.closed


def test_what_is_written_before_a_memory_is_dropped_is_a_warning(place: Any) -> None:
    memory = SyncedMemory(SIZE, device=place, checked=True)
    kept = escaped(memory)
    memory.gpu_data()
    kept[0] = 9
    with pytest.warns(RuntimeWarning, match="byte 0 of the host side was written"):
        del memory
        gc.collect()


# --- what is shown


def test_a_stale_side_shows_poison(checked: SyncedMemory) -> None:
    """Who reads it sees no old number: NaN for floats."""
    near = checked.mutable_cpu_data().view(np.float32)
    near[:] = 1
    far = written(checked)
    assert np.isnan(near).all()
    checked.mutable_cpu_data().view(np.float32)[:] = 2

    assert {POISON} == {*far.get().tolist()}
    assert [2.0] * (SIZE // 4) == checked.gpu_data().get().view(np.float32).tolist()


def test_adopted_memory_is_never_poisoned(checked: SyncedMemory, place: Any) -> None:
    mine, theirs = np.ones(SIZE, np.uint8), place.empty(SIZE)
    checked.set_cpu_data(mine)
    checked.mutable_gpu_data()
    theirs.set(np.full(SIZE, 2, np.uint8))
    checked.set_gpu_data(theirs)
    checked.set_cpu_data(mine)

    assert ([1] * SIZE, [2] * SIZE) == (mine.tolist(), theirs.get().tolist())


def test_a_block_that_another_memory_has_adopted_is_not_poisoned(place: Any) -> None:
    lender, borrower = (SyncedMemory(SIZE, device=place, checked=True) for _ in range(2))
    view = lender.mutable_cpu_data()
    view[:] = 5
    borrower.set_cpu_data(view)
    lender.mutable_gpu_data()

    assert [5] * SIZE == borrower.cpu_data().tolist()


# --- nobody is accused wrongly, and nothing else changes


def test_who_adopts_his_array_again_has_written_it_rightly(checked: SyncedMemory) -> None:
    mine = np.ones(SIZE, np.uint8)
    checked.set_cpu_data(mine)
    written(checked)
    mine[:] = 4
    checked.set_cpu_data(mine)

    assert [4] * SIZE == checked.gpu_data().get().tolist()


@pytest.mark.parametrize("side", ["cpu", "gpu"])
def test_who_adopts_the_diff_of_a_blob_again_has_written_it_rightly(place: Any, side: str) -> None:
    """The call of the blob has a name of its own; what it does is what the call of its memory declares."""
    blob: Any = Blob((SIZE,), dtype=np.float32, device=place, checked=True)
    adopt = getattr(blob, f"set_{side}_diff")
    mine: Any = np.ones(SIZE, np.float32) if side == "cpu" else place.empty(4 * SIZE).view(np.float32)
    adopt(mine)
    (blob.mutable_gpu_diff if side == "cpu" else blob.mutable_cpu_diff)()
    if side == "cpu":
        mine[:] = 4
    else:
        mine.set(np.full(SIZE, 4, np.float32))
    adopt(mine)

    assert [4] * SIZE == blob.cpu_diff().tolist()


def test_queued_work_finds_its_bytes() -> None:
    """A kernel that reads the device side may run after the side is stale."""
    device = SimulatedDeviceAllocator()
    memory, stream, found = SyncedMemory(SIZE, device=device, checked=True), device.stream(), list[Any]()
    filled(memory)

    def read(items: Any) -> None:
        found.extend(items.tolist())

    stream.launch(read, memory.gpu_data())
    memory.mutable_cpu_data()[:] = 8
    memory.cpu_data()
    assert not stream.done
    stream.synchronize()

    assert [7] * SIZE == found


def test_a_push_makes_no_false_alarm(checked: SyncedMemory, place: Any) -> None:
    filled(checked)
    stream = place.stream()
    checked.async_gpu_push(stream=stream)
    checked.cpu_data()
    checked.gpu_data()
    device_copy = place.empty(SIZE)
    place.memcpy(checked.gpu_data(), device_copy, SIZE, MemcpyKind.CUDA2CUDA)
    checked.mutable_cpu_data()[:] = 8

    assert ([7] * SIZE, [8] * SIZE) == (device_copy.get().tolist(), checked.gpu_data().get().tolist())


@pytest.mark.parametrize("operation", ["allocate", "memcpy"])
def test_a_call_that_fails_accuses_nobody(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    device = SimulatedDeviceAllocator()
    memory = filled(SyncedMemory(SIZE, device=device, checked=True))
    with monkeypatch.context() as patch:
        patch.setattr(device, operation, failing(RuntimeError, "dead"))
        with pytest.raises(DeviceError):
            memory.gpu_data()

    assert [7] * SIZE == memory.gpu_data().get().tolist()


@pytest.mark.parametrize("adaptor", [PoolAllocator, partial(LimitingAllocator, limit=1 << 20)])
def test_adaptors_pass_on_what_a_checked_memory_needs(place: Any, adaptor: Any) -> None:
    host = PoolAllocator(CPUDeviceAllocator())
    with SyncedMemory(SIZE, host=host, pinned=host, device=adaptor(place), checked=True) as memory:
        kept = memory.mutable_cpu_data().view(np.float32)
        far = written(memory)
        assert np.isnan(kept).all()
        memory.cpu_data()
        far.set(np.zeros(SIZE, np.uint8))
        with pytest.raises(StaleWriteError):
            memory.cpu_data()


def test_memories_without_bytes_or_without_a_device_have_nothing_to_check() -> None:
    for memory in (SyncedMemory(0, device="simulated", checked=True), SyncedMemory(SIZE, device=None, checked=True)):
        memory.mutable_cpu_data()[:] = 7
        assert [7] * memory.size == memory.cpu_data().tolist()
        memory.close()
        assert memory.closed


def test_only_memories_on_the_simulated_device_are_checked_unless_they_say_so(place: Any) -> None:
    by_default = place.device_type is DeviceType.SIMULATED
    assert by_default is SyncedMemory(SIZE, device=place).checked
    assert (True, False) == tuple(SyncedMemory(SIZE, device=place, checked=number).checked for number in (True, False))
    assert by_default is Blob((2,), device=place).data_memory.checked
    for make in (partial(SyncedMemory, SIZE), partial(Blob, (2,))):
        wrong: Any = "yes"
        with pytest.raises(InvalidArgumentError, match="checked must be True, False or 'always', got 'yes'"):
            make(device=place, checked=wrong)


@pytest.mark.parametrize(("value", "expected"), [("1", "True True"), ("0", "False False"), ("", "True False")])
def test_the_environment_decides_for_those_that_do_not_say_so(value: str, expected: str) -> None:
    assert (0, expected) == _run("print(*(SyncedMemory(4, device=it).checked for it in ('simulated', None)))", value)


def test_a_wrong_value_in_the_environment_is_refused() -> None:
    status, printed = _run("SyncedMemory(4)", "perhaps")

    assert 1 == status
    assert "SYNCEDMEM_CHECKED must be 0, 1 or always, got 'perhaps'" in printed


def test_what_is_written_before_the_exit_is_a_warning() -> None:
    program = "m = SyncedMemory(4)\nkept = memoryview(m.mutable_cpu_data())\nm.gpu_data()\nkept[2] = 9"
    status, printed = _run(program, "1")

    assert 0 == status
    assert "RuntimeWarning: at the exit: byte 2 of the host side was written" in printed


LEFT = """
from syncedmem import Blob, Buffer, PoolAllocator, SimulatedDeviceAllocator, SyncedMemory
memory = SyncedMemory(1 << 21, checked=True, device="simulated")
alone = SyncedMemory(1 << 21, checked=True, device="cpu")
kept = [alone.mutable_cpu_data(), memory.mutable_cpu_data(), memory.mutable_gpu_data()]
buffer = Buffer(1 << 21, PoolAllocator(SimulatedDeviceAllocator()), checked=True)
kept.append(buffer.ptr)
blob = Blob((1 << 19,))
kept.append((blob.mutable_cpu_data(), blob.mutable_gpu_data()))
"""


@pytest.mark.skipif(find_spec("_xxsubinterpreters") is None, reason="this Python has another module for it")
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "left to the end of the process"])
def test_a_sub_interpreter_ends_with_what_is_left_in_it(*, ended: bool) -> None:
    """One that nobody ends is ended while the process is, and a thread that gives up the GIL then never gets it back.

    NumPy can be imported in one interpreter of a process only.
    """
    program = f"import _xxsubinterpreters as those\nit = those.create(isolated=False)\nthose.run_string(it, {LEFT!r})\n"
    command = [sys.executable, "-W", "ignore", "-c", program + ("those.destroy(it)\n" * ended) + "print('here')"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (0, "here\n", "") == (done.returncode, done.stdout, done.stderr)


def _run(program: str, value: str) -> tuple[int, str]:
    """Run a program in a new interpreter; returns its status, and what it prints."""
    environment = os.environ | {"SYNCEDMEM_CHECKED": value, "SYNCEDMEM_DEVICE": "simulated"}
    command = [sys.executable, "-c", f"from syncedmem import SyncedMemory\n{program}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


@pytest.mark.deep
def test_the_kit_sees_caffes_actions_and_nothing_else(place: Any) -> None:
    """A checked memory conforms: the checks are no calls of an allocator, and poison is where no byte is promised."""
    make = partial(SyncedMemory, checked=True)
    report = check_conformance(
        Subject("checked", make, CPUDeviceAllocator(), named_device(place.device_type.name.lower())), steps=500
    )

    assert report.passed, report.violations
