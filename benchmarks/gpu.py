"""Copies, memory, arithmetic and overlap on an NVIDIA GPU, compared with CUDA and CuPy in the same run.

``python benchmarks/gpu.py`` measures all of it and writes ``benchmarks/results/<date>-cuda.json``.  Without a GPU it
says so and does nothing.  ``--quick`` takes small sizes, to try the program.  These are measurements, not tests:
nothing fails when a machine is slow.  Every figure is the median over rounds, in wall-clock time from the call until
the device is done.  The two sides of a ratio alternate within each round.
"""

from __future__ import annotations

import datetime as dt
import statistics
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
from figures import options_of, publish

from syncedmem.model import Mode, NoDeviceError, set_mode
from syncedmem.runtime import Blob, CPUDeviceAllocator, MemcpyKind, PoolAllocator, SyncedMemory, named_device

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).parent / "results"
TYPES = {"float16": "float16", "bfloat16": ml_dtypes.bfloat16, "float32": "float32", "float64": "float64"}
KERNEL = "x = x * 1.0009765625f"


class Scale(NamedTuple):
    """How much is measured.

    Attributes
    ----------
    copies : tuple of int
        Sizes in bytes.
    blocks : tuple of int
        Sizes of allocations.
    vector : int
        Bytes in a vector.  An H200 takes about 60 us for 256 MiB, which is little more than a launch.
    batch : int
        Bytes in a push that overlaps with kernels.
    rounds, loop : int
        The number of rounds of everything; and how many very short calls are timed at once.
    """

    copies: tuple[int, ...] = (4 << 10, 1 << 20, 64 << 20, 4 << 30)
    blocks: tuple[int, ...] = (4 << 10, 1 << 20, 64 << 20)
    vector: int = 4 << 30
    batch: int = 256 << 20
    rounds: int = 15
    loop: int = 10_000


QUICK = Scale(copies=(4 << 10, 1 << 20), blocks=(4 << 10,), vector=1 << 20, batch=1 << 20, rounds=3, loop=100)


class Empty:
    """Has a method that does nothing: the cost of the cheapest call in Python."""

    def method(self) -> None:
        """Do nothing."""


class Bench:
    """One GPU, and what is measured on it.

    Parameters
    ----------
    scale : Scale

    Raises
    ------
    NoDeviceError
        If there is no GPU that can be used.
    """

    def __init__(self, scale: Scale) -> None:
        self.device: Any = named_device("cuda")
        from syncedmem.runtime.devices.cuda import cupy  # noqa: PLC0415 -- without a device there may be no CuPy

        self.cupy: Any = cupy
        self.runtime: Any = cupy.cuda.runtime
        room = self.runtime.memGetInfo()[0] // 4
        fitting = tuple(size for size in scale.copies if size <= room)
        self.scale = scale._replace(copies=fitting, vector=min(scale.vector, 1 << room.bit_length() - 1))

    def about(self) -> dict[str, str]:
        """The machine and the versions that the figures belong to."""
        return {
            "device": self.device.description,
            "driver": str(self.runtime.driverGetVersion()),
            "cuda": str(self.runtime.runtimeGetVersion()),
            "cupy": self.cupy.__version__,
            "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        }

    def rows(self) -> list[dict[str, Any]]:
        """All figures."""
        return [
            self.idle_call(),
            *(
                row
                for size in self.scale.copies
                for pinned in (True, False)
                for row in self.copies_of(size, pinned=pinned)
            ),
            *(self.copy_across(size) for size in self.scale.copies),
            *(row for size in self.scale.blocks for row in self.allocations_of(size)),
            *(row for name in TYPES for row in self.arithmetic_of(name)),
            self.update(),
            *self.overlap(),
        ]

    # --- timing

    def seconds(self, call: Callable[[], object], prepare: Callable[[], object] | None = None) -> float:
        """The time of one call until the device is done; a preparation comes first and is not timed."""
        if prepare is not None:
            prepare()
        self.runtime.deviceSynchronize()
        start = time.perf_counter()
        call()
        self.runtime.deviceSynchronize()
        return time.perf_counter() - start

    def compared(
        self,
        what: str,
        first: Callable[[], object],
        second: Callable[[], object],
        prepare: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """The medians of two calls that alternate, and the median of how much faster the first one is."""
        self.seconds(first, prepare)
        self.seconds(second, prepare)
        pairs = [(self.seconds(first, prepare), self.seconds(second, prepare)) for _ in range(self.scale.rounds)]
        return {
            "what": what,
            "us": statistics.median(a for a, _ in pairs) * 1e6,
            "against_us": statistics.median(b for _, b in pairs) * 1e6,
            "ratio": statistics.median(b / a for a, b in pairs),
        }

    def repeated(self, call: Callable[[], object]) -> Callable[[], None]:
        """The time of one call, measured over many, for calls that take almost no time."""

        def loop() -> None:
            for _ in range(self.scale.loop):
                call()

        return loop

    # --- what is measured

    def idle_call(self) -> dict[str, Any]:
        """A call with nothing to do, compared with an empty method."""
        with SyncedMemory(4096, device=self.device) as memory:
            memory.gpu_data()
            row = self.compared(
                "gpu_data(), nothing to do, against an empty method",
                self.repeated(memory.gpu_data),
                self.repeated(Empty().method),
            )
        for key in ("us", "against_us"):
            row[key] /= self.scale.loop
        return row

    def copies_of(self, size: int, *, pinned: bool) -> list[dict[str, Any]]:
        """A copy through a memory, in both directions, compared with ``cudaMemcpy`` on the same bytes."""
        host_memory: Any = self.device.pinned_host() if pinned else CPUDeviceAllocator()
        with SyncedMemory(size, device=self.device, pinned=host_memory) as memory:
            memory.mutable_cpu_data()[:] = 1  # so that the system has made its pages
            there: Any = memory.gpu_data()
            far, here = there.data.ptr, memory.cpu_data().ctypes.data
            copy = self.runtime.memcpy
            ways = (
                ("up", memory.gpu_data, memory.mutable_cpu_data, (far, here, size, int(MemcpyKind.CPU2CUDA))),
                ("down", memory.cpu_data, memory.mutable_gpu_data, (here, far, size, int(MemcpyKind.CUDA2CPU))),
            )
            kind = "pinned" if pinned else "pageable"
            rows = [
                self.compared(f"{shown(size)} {way}, {kind}, against cudaMemcpy", ours, partial(copy, *ends), stale)
                for way, ours, stale, ends in ways
            ]
        return [with_speed(row, size) for row in rows]

    def copy_across(self, size: int) -> dict[str, Any]:
        """A copy within the device, compared with ``cudaMemcpyAsync`` and a wait."""
        source, target = self.device.allocate(size), self.device.allocate(size)
        stream = self.cupy.cuda.get_current_stream()
        ends = (target.data.ptr, source.data.ptr, size, int(MemcpyKind.CUDA2CUDA))

        def bare() -> None:
            self.runtime.memcpyAsync(*ends, stream.ptr)
            stream.synchronize()

        ours = partial(self.device.memcpy, source, target, size, MemcpyKind.CUDA2CUDA)
        row = self.compared(f"{shown(size)} on the device, against cudaMemcpyAsync", ours, bare)
        for block in (source, target):
            self.device.release(block)
        return with_speed(row, 2 * size)  # every byte is read and written

    def allocations_of(self, size: int) -> list[dict[str, Any]]:
        """A block from the pool and back, compared with ``cudaMalloc`` and with CuPy's pool."""
        pool, theirs = PoolAllocator(self.device), self.cupy.cuda.MemoryPool()

        def ours() -> None:
            pool.release(pool.allocate(size))

        def bare() -> None:
            self.runtime.free(self.runtime.malloc(size))

        what = f"{shown(size)} from PoolAllocator and back, against"
        rows = [
            self.compared(f"{what} cudaMalloc and cudaFree", ours, bare),
            self.compared(f"{what} CuPy's pool", ours, partial(theirs.malloc, size)),
        ]
        pool.close()
        return rows

    def arithmetic_of(self, name: str) -> list[dict[str, Any]]:
        """Each operation, compared with a copy within the device that moves as many bytes."""
        size, arithmetic = self.scale.vector, self.device.arithmetic()
        blocks = [self.device.allocate(size) for _ in range(2)]
        for block in blocks:
            block[:] = 0x3C  # a normal number of each type
        x, y = (block.view(TYPES[name]) for block in blocks)
        operations: tuple[tuple[str, Callable[[], object], int], ...] = (
            ("axpy", partial(arithmetic.axpy, 0.5, x, y), 3),
            ("scal", partial(arithmetic.scal, 1.0, x), 2),
            ("asum", partial(arithmetic.asum, x), 1),
            ("sumsq", partial(arithmetic.sumsq, x), 1),
            ("dot", partial(arithmetic.dot, x, y), 2),
        )
        copy = partial(self.device.memcpy, blocks[0], blocks[1], size, MemcpyKind.CUDA2CUDA)
        rows: list[dict[str, Any]] = []
        for operation, call, moved in operations:
            row = self.compared(f"{operation} of {shown(size)} {name}, against the speed of a copy", call, copy)
            row["ratio"] *= moved / 2  # a copy reads and writes every byte
            rows.append(with_speed(row, moved * size))
        for block in blocks:
            self.device.release(block)
        return rows

    def update(self) -> dict[str, Any]:
        """``Blob.update`` of a few elements, compared with the same arithmetic of CuPy."""
        blob = Blob((64,), device=self.device)
        for view in blob.mutable_gpu_data(), blob.mutable_gpu_diff():
            there: Any = view
            there[:] = 1
        x, y = (self.cupy.ones(64, self.cupy.float32) for _ in range(2))
        row = self.compared("update() of 64 elements, against y -= x of CuPy", blob.update, partial(subtract, x, y))
        blob.close()
        return row

    def overlap(self) -> list[dict[str, Any]]:
        """A push while kernels run on other memory, and one after them, compared with a push and kernels in turn."""
        size, stream = self.scale.batch, self.device.stream()
        memory = SyncedMemory(size, device=self.device)
        memory.gpu_data()
        memory.mutable_cpu_data()[:] = 1
        numbers = self.cupy.ones(size // 4, self.cupy.float32)
        kernel = self.cupy.ElementwiseKernel("", "float32 x", KERNEL, "syncedmem_overlap")
        push = partial(memory.async_gpu_push, stream=stream)
        self.seconds(partial(kernel, numbers))
        alone = min(self.seconds(push, memory.mutable_cpu_data) for _ in range(self.scale.rounds))
        one = min(self.seconds(partial(kernel, numbers)) for _ in range(self.scale.rounds))
        count = max(1, round(alone / one))

        def kernels() -> None:
            for _ in range(count):
                kernel(numbers)

        def beside() -> None:
            kernels()
            with stream:  # so that the push does not wait for the kernels
                push()

        def behind() -> None:
            kernels()
            push()

        def one_by_one() -> None:
            kernels()
            self.runtime.deviceSynchronize()
            push()

        stale, what = memory.mutable_cpu_data, f"{count} kernels, against one after the other"
        rows = [
            self.compared(f"push of {shown(size)} beside {what}", beside, one_by_one, stale),
            self.compared(f"push of {shown(size)} behind {what}", behind, one_by_one, stale),
        ]
        memory.close()
        return [row | {"push_us": alone * 1e6, "kernels_us": one * count * 1e6} for row in rows]


def subtract(x: Any, y: Any) -> None:
    """``y -= x``, as a call."""
    y -= x


def with_speed(row: dict[str, Any], moved: int) -> dict[str, Any]:
    """A row with the speed of its first call, in 10**9 bytes a second."""
    return row | {"gb_per_s": moved / row["us"] / 1e3}


def shown(size: int) -> str:
    """A size with its unit, as KiB, MiB or GiB."""
    unit, shift = next(pair for pair in (("GiB", 30), ("MiB", 20), ("KiB", 10)) if size >> pair[1])
    return f"{size >> shift} {unit}"


def show(row: dict[str, Any]) -> str:
    """One line of the table."""
    parts = [f"{row['what']:72}{row['us']:12.2f} us {row['against_us']:12.2f} us   {row['ratio']:7.2f}"]
    if "gb_per_s" in row:
        parts.append(f"{row['gb_per_s']:8.1f} GB/s")
    return "  ".join(parts)


def main() -> None:
    """Measure, print, and write the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes; written only with --json")
    options = parser.parse_args()
    set_mode(Mode.GPU)
    try:
        bench = Bench(QUICK if options.quick else Scale())
    except NoDeviceError as error:
        print(f"CUDA is left out: {error}")
        return
    about = bench.about()
    path = options.json or (None if options.quick else RESULTS / f"{about['date'][:10]}-cuda.json")
    publish(bench.rows(), show, path, f", {about['device']}", about)


if __name__ == "__main__":
    main()
