"""`CUDADeviceAllocator` and blobs on a real GPU: behaviour that no other device can show.

Without CuPy or without a GPU all tests are skipped; test_devices.py tests the messages for that case.
"""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from arrays_of_others import Interface, OnlyDLPack
from blob_views import HEADS
from subjects import failing

from syncedmem import runtime
from syncedmem.model import (
    AllocationError,
    BufferMismatchError,
    DeviceError,
    InvalidArgumentError,
    InvalidPointerError,
    MissingPackageError,
    Mode,
    NoDeviceError,
    SyncedHead,
    using_mode,
)
from syncedmem.runtime import MemcpyKind, SyncedMemory
from syncedmem.runtime.devices import cuda_arithmetic
from syncedmem.runtime.devices.cuda_arithmetic import CUDAArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    import syncedmem.runtime.devices.cuda as cuda_module

    cuda_module.CUDADeviceAllocator()
except NoDeviceError as error:
    pytest.skip(f"no GPU here: {error}", allow_module_level=True)

cupy: Any = cuda_module.cupy
Blob: Any = runtime.Blob
CUDADeviceAllocator: Any = cuda_module.CUDADeviceAllocator
GPUS: int = cupy.cuda.runtime.getDeviceCount()

SIZE = 4096
UP, DOWN, ACROSS = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA
two_gpus = pytest.mark.skipif(GPUS < 2, reason="needs two GPUs")


@pytest.fixture(params=[False, True], ids=["malloc", "pool"])
def device(request: pytest.FixtureRequest) -> Any:
    """The first GPU, from CUDA directly and from CuPy's pools."""
    return CUDADeviceAllocator(pool=request.param)


def hold(stream: Any, gate: threading.Event) -> None:
    """Hold the stream: work that is queued from now on runs only after the gate is opened."""
    gc.collect()  # to free memory of an earlier test after this would wait for the whole device
    stream.launch_host_func(gate.wait, 30)


def opening(gate: threading.Event) -> threading.Timer:
    """Open the gate a little later, while the caller waits."""
    timer = threading.Timer(0.2, gate.set)
    timer.start()
    return timer


def ready_to_push(device: Any) -> SyncedMemory:
    """Make a memory with both sides allocated and the host fresh; to allocate later could wait for all work."""
    memory = SyncedMemory(SIZE, device=device)
    memory.gpu_data()
    memory.mutable_cpu_data()[:] = 7
    return memory


def row(value: int, size: int = SIZE) -> Any:
    """Host bytes that are all the same."""
    return np.full(size, value, np.uint8)


def filled(device: Any, value: int, size: int = SIZE) -> Any:
    """A block of device memory that holds one value."""
    block = device.allocate(size)
    device.memcpy(row(value, size), block, size, UP)
    return block


def answering(answer: Any) -> Callable[[object], Any]:
    """Return a function that always gives the same answer."""

    def answered(_: object) -> Any:
        return answer

    return answered


def kind_of_memory(address: int) -> int:
    """Return the type of memory that CUDA reports for an address."""
    return int(cupy.cuda.runtime.pointerGetAttributes(address).type)


# --- the kit


def test_the_gpu_is_named_by_its_driver(device: Any) -> None:
    properties = cupy.cuda.runtime.getDeviceProperties(0)

    assert properties["name"].decode() in device.description
    assert cupy.__version__ in device.description
    with pytest.raises(NoDeviceError, match=f"there is no CUDA device {GPUS}; there are {GPUS}"):
        CUDADeviceAllocator(GPUS)
    with pytest.raises(InvalidArgumentError, match="ordinal must be the number of a device"):
        CUDADeviceAllocator("0")


# --- memory


def test_pinned_memory_is_page_locked_and_pageable_is_not(device: Any) -> None:
    """CUDA itself reports the type of memory of each address."""
    with using_mode(Mode.GPU), SyncedMemory(SIZE, device=device) as memory:
        pinned = kind_of_memory(memory.cpu_data().ctypes.data)
        there: Any = memory.gpu_data()
        far = kind_of_memory(there.data.ptr)
        assert memory.cpu_malloc_use_cuda
    with using_mode(Mode.CPU), SyncedMemory(SIZE, device=device) as memory:
        pageable = kind_of_memory(memory.cpu_data().ctypes.data)

    runtime = cupy.cuda.runtime
    # 0 is cudaMemoryTypeUnregistered.
    assert (runtime.memoryTypeHost, runtime.memoryTypeDevice, 0) == (pinned, far, pageable)
    assert (0, 0) == (device.live_blocks, device.pinned_host().live_blocks)


def test_a_full_gpu_is_an_allocation_error() -> None:
    """The request is larger than the free memory, and smaller than the whole memory."""
    device = CUDADeviceAllocator()
    free, total = cupy.cuda.runtime.memGetInfo()
    first: Any = device.allocate(free - (free >> 3))
    with pytest.raises(AllocationError, match="on cuda:0: "):
        device.allocate(free >> 1)
    device.release(first)
    del first
    again: Any = device.allocate(free >> 1)

    assert (free >> 1, True) == (again.nbytes, free < total)


def test_other_failures_are_not_allocation_errors(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fail = failing(cupy.cuda.runtime.CUDARuntimeError, 719)

    monkeypatch.setattr(cupy.cuda, "PinnedMemory", fail)
    monkeypatch.setattr(cupy, "get_default_pinned_memory_pool", lambda: SimpleNamespace(malloc=fail))
    with using_mode(Mode.GPU), SyncedMemory(SIZE, device=device) as memory:
        with pytest.raises(DeviceError, match="allocate_cpu failed on cuda:0: CUDARuntimeError: cudaErrorLaunch"):
            memory.cpu_data()
        assert SyncedHead.UNINITIALIZED is memory.head


def test_a_released_block_goes_back_to_its_pool_or_to_cuda() -> None:
    """With pools, the next block of that size is the same memory. Without pools, CUDA gets it back at once."""
    pooled, direct, size = CUDADeviceAllocator(pool=True), CUDADeviceAllocator(), 64 << 20
    first = pooled.allocate(size)
    address = first.data.ptr
    pooled.release(first)
    del first
    second = pooled.allocate(size)
    assert address == second.data.ptr

    before, _ = cupy.cuda.runtime.memGetInfo()
    block = direct.allocate(size)
    during, _ = cupy.cuda.runtime.memGetInfo()
    direct.release(block)
    del block
    after, _ = cupy.cuda.runtime.memGetInfo()
    assert before - during >= size
    assert after - during >= size


# --- copies


def test_arrays_with_the_interface_are_adopted_as_they_are(device: Any) -> None:
    """Arrays of any type are adopted and kept alive, or refused with the reason."""
    words = cupy.zeros((4, 4), cupy.int32)
    with SyncedMemory(64, device=device) as memory:
        memory.set_gpu_data(Interface(words))
        memory.mutable_cpu_data()[:] = 1
        memory.gpu_data()
    assert [0x01010101] * 16 == words.get().ravel().tolist()
    assert (0,) == device.adopt(Interface(cupy.zeros(0, cupy.int32)), 0).shape
    kept = device.adopt(Interface(filled(device, 7)), SIZE)
    gc.collect()
    assert [7] * SIZE == kept.get().tolist()

    cases: list[tuple[Any, int, str]] = [
        (Interface(words, data=(words.data.ptr, True)), 64, "it is read-only, and the host is copied into it"),
        (Interface(words, mask=Interface(words)), 64, "masked arrays"),
        (Interface(words.T), 64, "it is not contiguous"),
        (Interface(words, strides=(32, 4), shape=(2, 4)), 32, "it is not contiguous"),
        (Interface(words), 65, "it has 64 bytes, and 65 are needed"),
        (words.T, 64, "not contiguous"),
        (words.ravel()[::2], 32, "not contiguous"),
    ]
    for theirs, size, reason in cases:
        with SyncedMemory(size, device=device) as memory:
            with pytest.raises(BufferMismatchError, match=reason):
                memory.set_gpu_data(theirs)
            assert SyncedHead.UNINITIALIZED is memory.head


def test_the_stream_of_an_adopted_array_is_waited_for(device: Any, gate: threading.Event) -> None:
    """Version 3 of the interface names the stream whose work has to come first."""
    stream, block = device.stream(), filled(device, 7)
    hold(stream, gate)
    block.data.memset_async(9, SIZE, stream)
    opening(gate)
    adopted = device.adopt(Interface(block, stream=stream.ptr), SIZE)

    assert (True, [9] * SIZE) == (stream.done, adopted.get().tolist())


# --- streams


def test_streams_of_the_gpu_pass_and_others_do_not(device: Any) -> None:
    """CuPy's null streams belong to the GPU that is current."""
    for good in (device.stream(), cupy.cuda.Stream.null, cupy.cuda.Stream.ptds):
        device.check_stream(good)
    with pytest.raises(InvalidArgumentError, match=r"stream must be a cupy\.cuda\.Stream of cuda:0"):
        device.check_stream(0)


def test_a_push_does_not_block_and_later_work_comes_after_it(device: Any, gate: threading.Event) -> None:
    """While the stream is held, the push and gpu_data() return; later the view shows the pushed bytes."""
    stream = device.stream()
    with using_mode(Mode.GPU), ready_to_push(device) as memory:
        hold(stream, gate)
        memory.async_gpu_push(stream=stream)
        view = memory.gpu_data()
        assert not stream.done
        opening(gate)

        assert [7] * SIZE == view.get().tolist()
        assert stream.done


def test_a_with_block_makes_a_stream_cupys_current_one(device: Any) -> None:
    stream = device.stream()
    with device.on(stream) as entered:
        inside = device.current_stream(), cupy.cuda.get_current_stream()
    with pytest.raises(InvalidArgumentError, match=r"a cupy\.cuda\.Stream of cuda:0"), device.on("stream"):
        pass

    assert (stream,) * 3 == (entered, *inside)
    assert device.current_stream() == cupy.cuda.get_current_stream() != stream


def test_dlpack_gives_the_device_side_if_it_is_fresh(device: Any) -> None:
    """The host side too, if that alone is fresh, or asked for."""
    with SyncedMemory(SIZE, device=device) as memory:
        memory.mutable_cpu_data()[:] = 3
        assert (1, 0) == memory.__dlpack_device__()
        assert [3] * SIZE == np.from_dlpack(memory).tolist()
        view: Any = memory.mutable_gpu_data()
        view[...] = 4
        array = cupy.from_dlpack(memory)
        assert (2, device.ordinal) == memory.__dlpack_device__()
        assert (array.data.ptr, "HEAD_AT_GPU") == (view.data.ptr, memory.head.name)
        assert [4] * SIZE == np.from_dlpack(memory, device="cpu").tolist()


def test_a_fill_and_a_copy_on_a_stream_come_after_what_the_current_stream_holds(
    device: Any, gate: threading.Event
) -> None:
    """Here the current stream writes the bytes that the copy reads."""
    writer, stream = device.stream(), device.stream()
    block, found = filled(device, 7), filled(device, 0)
    cupy.cuda.runtime.deviceSynchronize()
    hold(writer, gate)
    block.data.memset_async(9, SIZE, writer)
    with writer:
        device.memset_zero(block, 8, stream)
        device.memcpy(block, found, SIZE, ACROSS, stream)
    assert not stream.done
    opening(gate)
    stream.synchronize()

    assert [0] * 8 + [9] * (SIZE - 8) == found.get().tolist()


@pytest.mark.parametrize(("status", "done"), [(0, True), (600, False), (719, True)])
def test_an_event_is_done_also_when_the_work_has_failed(
    device: Any, gate: threading.Event, monkeypatch: pytest.MonkeyPatch, status: int, done: bool
) -> None:
    """600 is ``cudaErrorNotReady``, 719 ``cudaErrorLaunchFailure``."""
    stream = device.stream()
    hold(stream, gate)
    event = device.record(stream)
    monkeypatch.setattr(cupy.cuda.runtime, "eventQuery", answering(status))

    assert done is event.done


class Last:
    """Waits for an event in its finaliser, and is in a cycle, which is finalised in the order of its making."""

    def __init__(self, event: Any, stream: Any) -> None:
        self.event, self.stream, self.me = event, stream, self
        self.over: list[bool] = []

    def __del__(self) -> None:
        self.event.synchronize()
        self.over += [self.event.done, gc.is_finalized(self.event)]


def test_an_event_that_was_finalised_first_is_waited_for(device: Any) -> None:
    """As by a memory with a push in flight in a cycle that is dropped."""
    stream = device.stream()
    gc.collect()
    last = Last(device.record(stream), stream)
    over = last.over
    del last
    gc.collect()

    assert [True, True] == over


def test_a_push_that_failed_on_the_gpu_is_told_once(
    device: Any, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first close raises and the second works, although every query of the event gives the error."""
    with using_mode(Mode.CPU):
        memory = ready_to_push(device)
    view, held = memory.gpu_data(), device.stream()  # the view stays, because to free it could wait for all work
    memory.mutable_cpu_data()
    hold(held, gate)
    event = device.record(held)
    with monkeypatch.context() as patch:
        patch.setattr(device, "record", answering(event))
        patch.setattr(cupy.cuda.runtime, "eventQuery", answering(719))
        patch.setattr(cupy.cuda.Event, "synchronize", failing(cupy.cuda.runtime.CUDARuntimeError, 719))
        memory.async_gpu_push(stream=device.stream())
        with pytest.raises(DeviceError, match="waiting for the push failed on cuda:0: CUDARuntimeError: cudaError"):
            memory.close()
        memory.close()
    gate.set()

    assert (True, 0, SIZE) == (memory.closed, device.live_blocks, view.nbytes)


# --- arithmetic


def test_without_a_compiler_a_gpu_has_memory_and_no_arithmetic(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no compiler if CuPy lacks its extra ``ctk`` and the toolkit is missing."""
    blob = Blob((4,), device=device)
    blob.data[...] = 1
    blob.gpu_data()
    cuda_module._without_compiler.cache_clear()  # pyright: ignore[reportPrivateUsage] -- the answer is cached
    monkeypatch.setattr(cupy.cuda.nvrtc, "getVersion", failing(RuntimeError, 'Failure finding "libnvrtc.so.12"'))
    advice = r"^arithmetic on cuda:0 needs the package cupy-cuda1\dx\[ctk\], .*: pip install 'cupy-cuda1\dx\[ctk\]'$"
    for call in (device.arithmetic, blob.asum_data):
        with pytest.raises(MissingPackageError, match=advice) as caught:
            call()
        assert "libnvrtc.so.12" in str(caught.value.__cause__)
    assert ([1] * 4, SyncedHead.SYNCED) == (blob.data.tolist(), blob.data_memory.head)
    assert (False, 'Failure finding "libnvrtc.so.12"') == device.compiler
    monkeypatch.undo()
    cuda_module._without_compiler.cache_clear()  # pyright: ignore[reportPrivateUsage] -- as above

    assert device.compiler.works
    assert 4 == blob.asum_data()


def test_a_kernel_that_an_interrupt_meets_when_it_is_queued_is_waited_for(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote to the array after the call had ended."""
    arithmetic = device.arithmetic()
    x = device.empty(64 << 20).view(np.float32)
    arithmetic.scal(0.0, x)
    kernels = arithmetic._kernels

    def interrupted(name: str, dtype: Any) -> Any:
        def launch(*arguments: Any) -> None:
            kernels.get(name, dtype)(*arguments)
            raise KeyboardInterrupt

        return launch

    monkeypatch.setattr(arithmetic, "_kernels", SimpleNamespace(get=interrupted))
    with pytest.raises(KeyboardInterrupt):
        arithmetic.scal(2.0, x)

    assert cupy.cuda.get_current_stream().done


def test_a_kernel_that_does_not_compile_is_one_error_and_changes_nothing(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = Blob((4,), device=device)
    blob.data, blob.diff = [3] * 4, [1] * 4
    blob.gpu_data()
    with monkeypatch.context() as patch:
        patch.setattr(cuda_arithmetic, "_PREAMBLE", "no C++")
        patch.setattr(device, "_arithmetic", CUDAArithmetic(device.name, 0, 1, cupy))
        for call in (blob.update, blob.asum_data):
            with pytest.raises(DeviceError):
                call()

    assert ([3] * 4, [1] * 4, SyncedHead.SYNCED) == (list(blob.data), list(blob.diff), blob.data_memory.head)
    blob.update()
    assert [2] * 4 == list(blob.data)


# --- views


def test_a_view_is_returned_again_only_if_nobody_else_has_it(device: Any) -> None:
    """To make one takes longer than all the rest of an idle call."""
    memory, blob = SyncedMemory(SIZE, device=device), Blob((2, 3), device=device)
    call: Any
    for call in (memory.gpu_data, memory.mutable_gpu_data, blob.gpu_data, blob.mutable_gpu_data):
        first = call()
        shape = first.shape
        second, part = call(), call()[:1]
        assert first is not second
        assert part.base is not call()
        assert [first.data.ptr] * 2 == [second.data.ptr, call().data.ptr]
        second.shape = (*shape, 1)  # in place
        del first, second, part
        assert {shape} == {call().shape for _ in range(3)}


# --- the current device


def test_a_copy_for_which_the_device_cannot_be_made_current_does_not_happen(
    device: Any, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call does not wait for the stream either."""
    stream, block = device.stream(), filled(device, 7)
    hold(stream, gate)
    with monkeypatch.context() as patch:
        patch.setattr(cupy.cuda.runtime, "getDevice", failing(cupy.cuda.runtime.CUDARuntimeError, 46))
        with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
            device.memcpy(row(9), block, SIZE, UP, stream)
    assert not gate.is_set()
    gate.set()
    stream.synchronize()

    assert [7] * SIZE == block.get().tolist()


@two_gpus
def test_memory_and_streams_of_another_gpu_are_refused(device: Any) -> None:
    other = CUDADeviceAllocator(1)
    theirs = filled(other, 7)
    with pytest.raises(ValueError, match="memory of CUDA device 1, and cuda:0 is needed"):
        device.adopt(theirs, SIZE)
    with pytest.raises(InvalidPointerError, match="src is not memory of this device"):
        device.memcpy(theirs, filled(device, 1), SIZE, ACROSS)
    with pytest.raises(InvalidArgumentError, match=r"stream must be a cupy\.cuda\.Stream of cuda:0"):
        device.check_stream(other.stream())
    with SyncedMemory(SIZE, device=device) as memory, pytest.raises(BufferMismatchError):
        memory.set_gpu_data(theirs)

    assert cupy.cuda.runtime.getDevice() == 0


@two_gpus
def test_a_push_that_cannot_put_the_current_device_back_leaves_nothing_in_flight(
    device: Any, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is already queued, but the error tells the caller that it is not, so the call waits for it."""
    stream, set_device = device.stream(), cupy.cuda.runtime.setDevice

    def set_but_not_back(ordinal: int) -> None:
        if ordinal == 1:
            opening(gate)
            raise cupy.cuda.runtime.CUDARuntimeError(46)
        set_device(ordinal)

    with using_mode(Mode.GPU), ready_to_push(device) as memory:
        hold(stream, gate)
        with cupy.cuda.Device(1), monkeypatch.context() as patch:
            patch.setattr(cupy.cuda.runtime, "setDevice", set_but_not_back)
            with pytest.raises(DeviceError, match="copy_to_gpu_async failed on cuda:0: CUDARuntimeError: "):
                memory.async_gpu_push(stream=stream)
        assert (True, SyncedHead.HEAD_AT_CPU) == (stream.done, memory.head)
        memory.async_gpu_push(stream=stream)
        assert [7] * SIZE == memory.gpu_data().get().tolist()

    assert cupy.cuda.runtime.getDevice() == 0


# --- blobs


UNINITIALIZED, CPU, GPU, SYNCED = HEADS
ROW = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int32", "uint32"])
def test_views_are_cupys_own_in_type_and_shape(device: Any, name: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    blob = Blob((2, 3), dtype, device=device)
    blob.data = ROW
    view = blob.gpu_data()

    assert isinstance(view, cupy.ndarray)
    assert ((2, 3), dtype, ROW.tolist()) == (view.shape, view.dtype, view.get().astype(np.float32).tolist())
    assert view.data.ptr == blob.data_memory.gpu_data().data.ptr
    if dtype.kind not in "iu":
        blob.diff = 1
        blob.mutable_gpu_data()
        blob.update()
        assert ((ROW - 1).tolist(), 11.0) == (blob.data.astype(np.float32).tolist(), blob.asum_data())


def test_kernels_of_cupy_write_where_a_blob_looks(device: Any) -> None:
    blob = Blob((2, 3), device=device)
    blob.data = ROW
    array = blob.mutable_gpu_data()
    array *= 2
    assert (GPU, (ROW * 2).tolist()) == (blob.data_memory.head, blob.data.tolist())
    assert cupy.asnumpy(blob.gpu_shape()).tolist() == [2, 3]


def test_update_comes_after_what_the_current_stream_holds(device: Any) -> None:
    """A kernel that was launched before it writes the gradients."""
    blob = Blob((1 << 20,), device=device)
    blob.data[...] = 3
    blob.gpu_data()
    with device.stream():
        gradients = blob.mutable_gpu_diff()
        for _ in range(8):
            gradients += 0.25
        blob.update()

    assert {1.0} == set(blob.data.tolist())


def test_cupys_arrays_are_adopted(device: Any) -> None:
    mine = cupy.asarray(ROW)
    blob = Blob.from_array(mine, copy=False, device=device)
    assert (GPU, mine.data.ptr) == (blob.data_memory.head, blob.gpu_data().data.ptr)
    blob.scale_data(2)
    assert (ROW * 2).tolist() == mine.get().tolist()
    copied = Blob.from_array(mine.T, device=device)
    assert ((3, 2), (ROW * 2).T.tolist()) == (copied.shape, copied.data.tolist())
    with pytest.raises(BufferMismatchError, match="it is not contiguous"):
        Blob.from_array(mine.T, copy=False, device=device)
    wide = Blob.from_array(mine, dtype=np.float64, device=device)
    assert (np.float64, (ROW * 2).tolist()) == (wide.dtype, wide.data.tolist())


def test_arrays_of_other_libraries_are_adopted_by_protocol(device: Any) -> None:
    mine = cupy.asarray(ROW)
    for theirs in (Interface(mine), OnlyDLPack(mine)):
        blob = Blob.from_array(theirs, copy=False, device=device)
        assert mine.data.ptr == blob.gpu_data().data.ptr
    forbidden = Interface(mine, data=(mine.data.ptr, True))
    copied = Blob.from_array(forbidden, device=device)
    copied.scale_data(2)
    assert ROW.tolist() == mine.get().tolist()
    with pytest.raises(BufferMismatchError, match="it is read-only"):
        Blob.from_array(forbidden, copy=False, device=device)


def test_dlpack_hands_out_the_device_side(device: Any) -> None:
    blob = Blob((2, 3), device=device)
    blob.data = ROW
    taken = cupy.from_dlpack(blob.gpu_data())
    assert taken.data.ptr == blob.gpu_data().data.ptr
    assert SYNCED is blob.data_memory.head
    capsule = blob.__dlpack__(dl_device=(2, 0), stream=cupy.cuda.get_current_stream().ptr or 1)
    assert "dltensor" in repr(capsule)
    assert (1, 0) == blob.__dlpack_device__()


@two_gpus
def test_copies_between_two_gpus_go_through_the_host() -> None:
    one, two = (Blob((2, 3), device=CUDADeviceAllocator(ordinal)) for ordinal in (0, 1))
    one.data = ROW
    one.mutable_gpu_data()
    with using_mode(Mode.GPU):
        two.copy_from(one)

    assert GPU is two.data_memory.head
    assert ROW.tolist() == two.data.tolist()  # which copies down
