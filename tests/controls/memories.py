"""Right memories in Python, each with a freedom of its own; their twins take more than it gives."""

from __future__ import annotations

from functools import partial
from threading import Thread
from typing import Any

from controls.registry import MEMORIES, control
from syncedmem.model import Action, Call, Fact, Machine, Row, caffe
from syncedmem.runtime import SimulatedDeviceAllocator
from syncedmem.runtime.devices.host import cpu_allocator
from syncedmem.spec import Policy, ReferenceMemory, Subject

__all__ = ["MEMORIES"]

SIDES = ("host", "device")
COPIES = (Action("to_host", "copy", "host", "device"), Action("to_device", "copy", "device", "host"))
CALLS = (
    Call("host_const", "read", "host"),
    Call("device_const", "read", "device"),
    Call("host_data", "write", "host"),
    Call("device_data", "write", "device"),
)


def moving() -> list[Row]:
    """The rows of reading and writing."""
    rows = list[Row]()
    for here, other in (("host", "DEVICE"), ("device", "HOST")):
        do = f"to_{here}"
        rows += [
            Row(f"{here}_const", ("BOTH", here.upper())),
            Row(f"{here}_const", other, "BOTH", do=do),
            Row(f"{here}_data", ("BOTH", here.upper()), here.upper()),
            Row(f"{here}_data", other, here.upper(), do=do),
        ]
    return rows


def subject(make: Any, machine: Any = caffe.CAFFE, policy: Policy | None = None, **more: Any) -> Subject:
    """Memories of a machine on the simulated device."""
    return Subject("control", make, cpu_allocator(), SimulatedDeviceAllocator(), edition=machine, policy=policy, **more)


class Forgetful(ReferenceMemory):
    """It takes no actions that it is told to leave out."""

    leaves_out = ""

    def act(self, action: Action, blocks: Any, step: Any, stream: Any, undo: Any) -> None:
        if action.name != self.leaves_out:
            super().act(action, blocks, step, stream, undo)


def of_table(machine: Machine, policy: Policy, twin: str, **more: Any) -> Subject:
    """Memories that perform a table; a twin leaves out an action of this name."""
    made = type("Memory", (Forgetful,), {"leaves_out": twin})
    return subject(partial(made, machine=machine), machine, policy, **more)


BOTH = Machine(
    "both_at_birth",
    moving(),
    sides=SIDES,
    heads={"BOTH": SIDES, "HOST": "host", "DEVICE": "device"},
    calls=CALLS,
    actions=COPIES,
)


@control("memory", "GridTools, data_store.hpp: made without a value", refuses="R08-copy-up")
def both_sides_undefined_at_birth(*, twin: bool) -> Subject:
    """Both sides are there and fresh from the beginning, and nobody says what they hold; the twin copies nothing up."""
    return of_table(BOTH, Policy(SIDES, born_fresh=frozenset(SIDES)), "to_device" if twin else "")


class Dirty(ReferenceMemory):
    """What it makes at the beginning is never zeroed."""

    def _make_the_rest(self) -> None:
        for side in self.machine.sides:
            self._blocks[side] = self.allocate(side, self.state)


@control("memory", "GridTools, data_store.hpp: made without a value", refuses="R10-same-bytes", level="L1")
def different_bytes_at_birth(*, twin: bool) -> Subject:
    """Its sides differ until somebody writes; the policy of the twin promises zeros."""
    policy = Policy(SIDES, born_fresh=frozenset(SIDES), first_touch="zero" if twin else "undefined")
    return subject(partial(Dirty, machine=BOTH), BOTH, policy)


@control("memory", "C11, 7.22.3.2: calloc", refuses="R01-lazy")
def zeroes_at_birth_as_well(*, twin: bool) -> Subject:
    """It zeroes what it makes, of which nothing is promised; the twin makes and zeroes it twice."""

    class Twice(ReferenceMemory):
        def _make_the_rest(self) -> None:
            super()._make_the_rest()
            if twin and self.size:
                self._places["host"].release(self._places["host"].allocate(self.size))

    return subject(partial(Twice, machine=BOTH), BOTH, Policy(SIDES, born_fresh=frozenset(SIDES)))


def zeroing() -> Machine:
    """ThunderSVM's memory: what it allocates it fills with zeros, and then perhaps copies over them."""
    rows = list[Row]()
    for here, other in (("host", "DEVICE"), ("device", "HOST")):
        new = [f"allocate_{here}", f"zero_{here}"]
        rows += [
            Row(f"{here}_data", "NONE", here.upper(), do=new),
            Row(f"{here}_data", here.upper()),
            Row(f"{here}_data", other, here.upper(), do=[*new, f"to_{here}"], unless=f"has_{here}"),
            Row(f"{here}_data", other, here.upper(), do=f"to_{here}", when=f"has_{here}"),
        ]
    return Machine(
        "zeroing",
        rows,
        sides=SIDES,
        heads={"NONE": (), "HOST": "host", "DEVICE": "device"},
        calls=CALLS[2:],
        facts=[Fact(f"has_{side}", "pointer", side) for side in SIDES],
        actions=[
            *COPIES,
            *(Action(f"allocate_{side}", "allocate", side, sets=(f"has_{side}",)) for side in SIDES),
            *(Action(f"zero_{side}", "zero", side) for side in SIDES),
        ],
    )


@control("memory", "ThunderSVM, syncmem.cpp: memset after each allocation", refuses="R05-zeroed-first")
def zeroes_whenever_it_allocates(*, twin: bool) -> Subject:
    """It zeroes the device also where it copies next; the twin does not zero it."""
    policy = Policy(SIDES, lazy=frozenset(SIDES), first_touch="zero", zeroed=frozenset(SIDES))
    return of_table(zeroing(), policy, "zero_device" if twin else "")


def evicting(*, prefetch: bool = False) -> Machine:
    """A mirror of host memory, which a call for more room can drop."""
    rows = [
        Row("read", "HOME"),
        Row("read", "AWAY", "BOTH", do="down"),
        Row("read", "BOTH"),
        Row("use", "HOME", "BOTH", do=("new", "up")),
        Row("use", ("AWAY", "BOTH")),
        Row("change", "HOME", "AWAY", do=("new", "up")),
        Row("change", ("AWAY", "BOTH"), "AWAY"),
        Row("evict", "HOME"),
        Row("evict", "BOTH", "HOME", do="drop"),
        Row("evict", "AWAY", "HOME", do=("down", "drop")),
    ]
    fetch = [Row("fetch", ("AWAY", "BOTH")), Row("fetch", "HOME", "BOTH", do=("new", "up"))] if prefetch else []
    return Machine(
        "evicting",
        rows + fetch,
        sides=SIDES,
        heads={"HOME": "host", "AWAY": "device", "BOTH": SIDES},
        calls=[
            Call("read", "read", "host"),
            Call("use", "read", "device"),
            Call("change", "write", "device"),
            Call("evict", "evict", "device"),
            *([Call("fetch", "prefetch", "device")] if prefetch else []),
        ],
        facts=[Fact("there", "pointer", "device"), Fact("own", "owned", "device")],
        actions=[
            Action("new", "allocate", "device", sets=("there", "own")),
            Action("up", "copy", "device", "host"),
            Action("down", "copy", "host", "device"),
            Action("drop", "free", "device", clears=("there", "own")),
        ],
    )


EVICTS = Policy(
    SIDES, lazy=frozenset({"device"}), born_fresh=frozenset({"host"}), first_touch="zero", home="host", evict_frees=True
)


@control("memory", "CUDA Programming Guide, unified memory: eviction", refuses="R07-copy-down")
def evicts_and_frees(*, twin: bool) -> Subject:
    """A call frees its device side, after what is newest was copied home; the twin frees it at once."""
    return of_table(evicting(), EVICTS, "down" if twin else "")


@control("memory", "CUDA Programming Guide, unified memory: cudaMemPrefetchAsync", refuses="R08-copy-up")
def prefetches(*, twin: bool) -> Subject:
    """A call copies to the device what will be needed there; the twin's copies nothing."""
    return of_table(evicting(prefetch=True), EVICTS, "up" if twin else "")


def unwritten(*, refuses: bool) -> Machine:
    """Two sides that are there from the beginning, and stale until one is written."""
    fills = [Call(f"{side}_fill", "overwrite", side) for side in SIDES] if refuses else []
    rows = moving()
    for side in SIDES:
        for call in (f"{side}_const", f"{side}_data"):
            rows.append(Row(call, "NONE", refused="unwritten") if refuses else Row(call, "NONE", side.upper()))
    rows += [Row(call, ("NONE", "BOTH", "HOST", "DEVICE"), call.side.upper()) for call in fills]
    heads = {"NONE": (), "BOTH": SIDES, "HOST": "host", "DEVICE": "device"}
    return Machine("unwritten", rows, sides=SIDES, heads=heads, calls=(*CALLS, *fills), actions=COPIES)


@control("memory", "C11, 7.22.3.4: malloc", refuses="R01-lazy")
def allocates_at_birth(*, twin: bool) -> Subject:
    """Both sides are allocated when it is made, and hold anything; the twin allocates the device at its first call."""

    class Late(ReferenceMemory):
        def _make_the_rest(self) -> None:
            self._blocks["host"] = self.allocate("host", self.state)
            if not twin:
                self._blocks["device"] = self.allocate("device", self.state)

        def act(self, action: Action, blocks: Any, step: Any, stream: Any, undo: Any) -> None:
            if action.name == "to_device" and "device" not in blocks:
                blocks["device"] = self.allocate("device", self.state)
            super().act(action, blocks, step, stream, undo)

    machine = unwritten(refuses=False)
    return subject(partial(Late, machine=machine), machine, Policy(SIDES))


@control("memory", "Rust, MaybeUninit: what was not written is not read", refuses="R05-zeroed-first")
def refuses_to_read_what_nobody_wrote(*, twin: bool) -> Subject:
    """A read before the first write is refused; the twin shows what there is."""

    class Loose(ReferenceMemory):
        def perform(self, name: str, argument: Any = None, *, stream: Any = None) -> Any:
            if twin and not name.endswith("fill") and not self.head.fresh:
                call = self.machine.calls[name]
                return self.view(self._blocks[call.side], call)
            return super().perform(name, argument, stream=stream)

    machine = unwritten(refuses=True)
    policy = Policy(SIDES, first_touch="refused", refusals={"untouched": "unwritten"})
    return subject(partial(Loose, machine=machine), machine, policy)


# --- Caffe's own machine


class Caffe(ReferenceMemory):
    """The memory of Caffe's table, with something of its own."""


@control("memory", "CUDA Runtime API: cudaStreamSynchronize may be called at any time", refuses="R21-push")
def waits_more_than_it_must(*, twin: bool) -> Subject:
    """Every call waits for the pushes before it; the twin's push waits for itself."""

    class Waits(Caffe):
        def perform(self, name: str, argument: Any = None, *, stream: Any = None) -> Any:
            self.wait_for_push()
            view = super().perform(name, argument, stream=stream)
            if twin and name == "async_gpu_push":
                self.wait_for_push()
            return view

    return subject(Waits)


@control("memory", "docs/conformance.md: whatever it raises is a refusal", refuses="R20-null-refused")
def raises_errors_of_its_own(*, twin: bool) -> Subject:
    """A refusal is an error of any class; the twin adopts nothing, and says nothing."""

    class Raises(Caffe):
        def perform(self, name: str, argument: Any = None, *, stream: Any = None) -> Any:
            try:
                return super().perform(name, argument, stream=stream)
            except RuntimeError as error:
                if twin and name.startswith("set_"):
                    return None
                raise LookupError from error

    return subject(Raises)


@control("memory", "docs/conformance.md: heads by their names", refuses="R12-read-keeps")
def names_heads_by_words(*, twin: bool) -> Subject:
    """Its head is a text; that of the twin is the side that was read last."""

    class Named(Caffe):
        read = ""

        def perform(self, name: str, argument: Any = None, *, stream: Any = None) -> Any:
            view = super().perform(name, argument, stream=stream)
            self.read = {"cpu_data": "HEAD_AT_CPU", "gpu_data": "HEAD_AT_GPU"}.get(name, "")
            return view

        @property
        def head(self) -> Any:
            return self.read if twin and self.read else self.state.head

    return subject(Named)


@control("memory", "docs/conformance.md: at L1 nobody looks at allocators", refuses="R10-same-bytes", level="L1")
def frees_late_in_a_thread(*, twin: bool) -> Subject:
    """A thread of its own frees what is no longer used; the twin's frees it before the copy down has ended."""

    class Late(Caffe):
        def free(self, block: Any) -> None:
            thread = Thread(target=super().free, args=(block,))
            thread.start()
            thread.join()

        def copy(self, action: Action, blocks: Any, stream: Any) -> None:
            super().copy(action, blocks, stream)
            if twin and action.side == caffe.CPU:
                memoryview(blocks[caffe.CPU].pointer)[-1:] = b"\xdd"

    return subject(Late)


@control("memory", "C11, 7.22.3: the space may be larger", refuses="R04-exact-size")
def adopts_longer_buffers(*, twin: bool) -> Subject:
    """It uses the beginning of a longer buffer; the twin writes to its end."""

    class Adopts(Caffe):
        def adopt(self, side: str, buffer: Any) -> Any:
            if twin and side == caffe.CPU and len(buffer) > self.size:
                memoryview(buffer).cast("B")[self.size :] = bytes(len(buffer) - self.size)
            return super().adopt(side, buffer)

    return subject(Adopts)


@control("memory", "docs/conformance.md: flags are looked at where they are", refuses="R23-own-flags")
def has_no_flags(*, twin: bool) -> Subject:
    """It cannot be asked who owns a side; the twin answers for the other side."""

    class Bare:
        def __init__(self, size: int, **places: Any) -> None:
            self._inner = ReferenceMemory(size, **places)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("own_") and not twin:
                raise AttributeError(name)
            other = {"own_cpu_data": "own_gpu_data", "own_gpu_data": "own_cpu_data"}.get(name, name)
            return getattr(self.__dict__["_inner"], other)

        def set_cpu_data(self, data: Any) -> None:
            self._inner.set_cpu_data(data)

        def close(self) -> None:
            self._inner.close()

    return subject(Bare)


@control("memory", "CUDA Runtime API: a stream has any number of users", refuses="R58-push-on-its-stream")
def shares_its_streams(*, twin: bool) -> Subject:
    """Memories push on the streams that they are given, also on one; the twin pushes all on the first."""
    known: list[Any] = []

    class Shares(Caffe):
        def perform(self, name: str, argument: Any = None, *, stream: Any = None) -> Any:
            if twin and stream is not None:
                known.append(stream)
                stream = known[0]
            return super().perform(name, argument, stream=stream)

    return subject(Shares)
