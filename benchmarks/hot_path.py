"""What a call costs, as ratios to a baseline that is timed in the same run.

Run with ``make bench``.  These are measurements, not tests: nothing fails when a machine is slow.  Every figure is the
median over rounds, and the two sides of a ratio alternate within each round.
"""

from __future__ import annotations

import importlib
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from figures import options_of, publish

from syncedmem.model import Mode, NoDeviceError, caffe, set_mode
from syncedmem.model.states import stepper
from syncedmem.runtime import (
    DeviceType,
    MemcpyKind,
    SimulatedArray,
    SimulatedDeviceAllocator,
    SyncedMemory,
    named_device,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 15
DEVICES = ("simulated", "opencl", "cuda")
SIZES = (1 << 20, 16 << 20, 128 << 20)


class Empty:
    """Has a method that does nothing: the cost of the cheapest call in Python."""

    def method(self) -> None:
        """Do nothing."""


def seconds(call: Callable[[], object], number: int) -> float:
    """The time of one call, averaged over a number of them."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def compared(first: Callable[[], object], second: Callable[[], object], number: int) -> tuple[float, float, float]:
    """The medians of two calls that alternate, and the median of their ratio."""
    pairs = [(seconds(first, number), seconds(second, number)) for _ in range(ROUNDS)]
    return (
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
    )


def idle_calls() -> list[dict[str, Any]]:
    """A call with nothing to do, compared with an empty method and with the same trigger in `transitions`."""
    memory = SyncedMemory(4096, device="simulated", checked=False)
    memory.cpu_data()
    event = stepper(caffe.CAFFE).library.events["cpu_data"]
    at_cpu = SimpleNamespace(head="HEAD_AT_CPU")  # there this call has one row, without conditions
    empty = Empty()
    loop = 50_000
    nothing = seconds(lambda: None, loop)
    rows: list[dict[str, Any]] = []
    ours, method, ratio = compared(memory.cpu_data, empty.method, loop)
    rows.append(_row("cpu_data(), nothing to do / empty method", ours, method, ratio, "<= 4"))
    ours, theirs, _ = compared(memory.cpu_data, lambda: event.trigger(at_cpu), 5_000)
    rows.append(_row("transitions trigger / cpu_data()", theirs - nothing, ours, (theirs - nothing) / ours, ">= 25"))
    return rows


def making() -> dict[str, Any]:
    """SyncedMemory(n) and close(), with the requests that the allocators got."""

    class Counted(SimulatedDeviceAllocator):
        allocations = 0

        def allocate(self, byte_size: int) -> SimulatedArray | None:
            self.allocations += 1
            return super().allocate(byte_size)

    counted = Counted()

    def make() -> None:
        SyncedMemory(4096, device=counted, checked=False).close()

    ours, method, ratio = compared(make, Empty().method, 5_000)
    row = _row("SyncedMemory(n) + close() / empty method", ours, method, ratio, "<= 5 us")
    row["allocations"] = counted.allocations
    return row


def lazy_zero() -> dict[str, Any]:
    """A first cpu_data() of 1 GiB, and how many of its bytes became resident."""
    size = 1 << 30
    memory = SyncedMemory(size, device=None)
    before, start = _resident(), time.perf_counter()
    memory.cpu_data()
    took, grown = time.perf_counter() - start, _resident() - before
    memory.close()
    return {"what": "first cpu_data() of 1 GiB", "us": took * 1e6, "resident_bytes": grown, "wanted": "pages untouched"}


def _resident() -> int:
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def copies(name: str) -> list[dict[str, Any]]:
    """Copies through a memory, compared with the device library's own copies between existing buffers."""
    try:
        device: Any = named_device(name)
    except NoDeviceError as error:
        return [{"what": f"copies on {name}", "left out": str(error)}]
    return [_copy(device, name, size, up) for size in SIZES for up in (True, False)]


def checking(name: str) -> list[dict[str, Any]]:
    """Calls that move the head of 64 MiB around, with checked mode and without it."""
    try:
        device: Any = named_device(name)
    except NoDeviceError:
        return []
    size = 64 << 20

    def rounds(*, checked: bool) -> tuple[SyncedMemory, Callable[[], None]]:
        memory = SyncedMemory(size, device=device, checked=checked)

        def around() -> None:
            memory.mutable_cpu_data()
            memory.gpu_data()
            memory.mutable_gpu_data()
            memory.cpu_data()
            device.memcpy(None, None, 0, MemcpyKind.CPU2CUDA, None, need_sync=True)

        around()
        return memory, around

    (one, on), (other, off) = rounds(checked=True), rounds(checked=False)
    first, second, ratio = compared(on, off, 1)
    one.close()
    other.close()
    what = f"64 MiB up, down and two moves more on {name}, checked / not"
    return [_row(what, first, second, ratio, "two copies, and ten passes more")]


def _after(prepare: Callable[[], object], call: Callable[[], object]) -> float:
    """The time of one call; a preparation comes first and is not timed."""
    prepare()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _both(
    prepare: Callable[[], object], first: Callable[[], object], second: Callable[[], object], number: int
) -> tuple[float, float]:
    """The times of two calls; in every other round the second comes first."""
    if number % 2:
        late = _after(prepare, second)
        return _after(prepare, first), late
    return _after(prepare, first), _after(prepare, second)


def _copy(device: Any, name: str, size: int, up: bool) -> dict[str, Any]:
    # The memory adopts the buffers of the library's own copy, so that both use the same pages.
    host_memory = device.pinned_host()
    host, there = host_memory.allocate(size), device.allocate(size)
    host[:] = 1
    memory = SyncedMemory(size, device=device, checked=False)
    memory.set_gpu_data(there)
    memory.set_cpu_data(host)
    memory.gpu_data()

    stale: Callable[[], object]
    copying: Callable[[], object]
    if up:
        stale, copying = memory.mutable_cpu_data, memory.gpu_data
    else:
        stale, copying = memory.mutable_gpu_data, memory.cpu_data
    bare, whose = _bare(device, host, there, up=up)
    pairs = [_both(stale, copying, bare, number) for number in range(max(2 * ROUNDS, (256 << 20) // size))]
    ours = statistics.median(first for first, _ in pairs)
    theirs = statistics.median(second for _, second in pairs)
    ratio = statistics.median(second / first for first, second in pairs)
    memory.close()
    host_memory.release(host)
    device.release(there)
    direction = "up" if up else "down"
    row = _row(f"{size >> 20} MiB {direction} on {name}, {whose} / ours", theirs, ours, ratio, ">= 0.95")
    row["gib_per_s"] = size / ours / (1 << 30)
    return row


def _bare(device: Any, host: Any, there: Any, *, up: bool) -> tuple[Callable[[], object], str]:
    """The same copy without a memory, and its name: the library's own, or else that of our allocator."""
    kind = MemcpyKind.CPU2CUDA if up else MemcpyKind.CUDA2CPU
    if device.device_type is DeviceType.CUDA:
        cuda: Any = importlib.import_module("cupy").cuda.runtime
        ends = (there.data.ptr, host.ctypes.data) if up else (host.ctypes.data, there.data.ptr)
        return partial(cuda.memcpy, *ends, len(host), int(kind)), "cudaMemcpy"
    if device.device_type is DeviceType.OPENCL:
        cl: Any = importlib.import_module("pyopencl")
        ends = (there.base_data, host) if up else (host, there.base_data)
        return partial(cl.enqueue_copy, device.queue, *ends), "enqueue_copy"
    ends = (host, there) if up else (there, host)
    return partial(device.memcpy, *ends, len(host), kind), "memcpy of the allocator"


def imports() -> dict[str, Any]:
    """Which of the heavy modules `import syncedmem.model` loads."""
    program = "import sys, syncedmem.model; print([m for m in ('numpy', 'cupy', 'hypothesis') if m in sys.modules])"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 -- fixed words
    took = time.perf_counter() - start
    return {"what": "import syncedmem.model loads", "loaded": done.stdout.strip(), "us": took * 1e6, "wanted": "[]"}


def footprint() -> dict[str, Any]:
    """How many bytes the Python objects of one unused memory have."""
    device = named_device("simulated")
    kept: list[SyncedMemory] = []
    tracemalloc.start()
    kept.extend(SyncedMemory(4096, device=device, checked=False) for _ in range(1000))
    size = tracemalloc.get_traced_memory()[0] / len(kept)
    tracemalloc.stop()
    return {"what": "Python objects for one fresh memory", "bytes": round(size), "wanted": "small"}


def _row(what: str, first: float, second: float, ratio: float, wanted: str) -> dict[str, Any]:
    return {"what": what, "us": first * 1e6, "against_us": second * 1e6, "ratio": ratio, "wanted": wanted}


def show(row: dict[str, Any]) -> str:
    """One line of the table."""
    parts = [f"{row['what']:52}"]
    if "ratio" in row:
        parts.append(f"{row['us']:12.3f} us {row['against_us']:12.3f} us   ratio {row['ratio']:8.2f}")
    elif "us" in row:
        parts.append(f"{row['us']:12.3f} us")
    parts += [
        f"{key} {row[key]}" for key in ("resident_bytes", "allocations", "loaded", "bytes", "left out") if key in row
    ]
    if "gib_per_s" in row:
        parts.append(f"{row['gib_per_s']:.1f} GiB/s")
    if "wanted" in row:
        parts.append(f"(wanted {row['wanted']})")
    return "  ".join(parts)


def main() -> None:
    """Measure, print, and write the figures where ``--json`` says."""
    parser = options_of(__doc__)
    parser.add_argument("--device", action="append", choices=DEVICES, help="copies only on this device (repeatable)")
    options = parser.parse_args()
    set_mode(Mode.GPU)
    rows = [*idle_calls(), making(), footprint(), lazy_zero(), imports()]
    for name in options.device or DEVICES:
        rows += copies(name) + checking(name)
    publish(rows, show, options.json)


if __name__ == "__main__":
    main()
