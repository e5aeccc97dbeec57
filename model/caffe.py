"""Caffe's head machine: its words, and one table.

Rules of this file
------------------
Rule 1: everything that moves the head is in the rows, and everything that changes a pointer or an ownership flag is in
the effects of the actions.  No other module assigns either, and no other module names a word of Caffe's.

Rule 2: this module knows no memory, no NumPy and no CUDA.  An action is a name.  Its effect on pointers and flags is
declared here; its effect on bytes is bound elsewhere.

Rule 3: a row says what Caffe does, nothing safer.  This project adds some things around the machine (it waits for
copies in flight, refuses its own buffers, undoes a failed call), but they never change which row fires.

Theory of operation
-------------------
One buffer of ``size`` bytes may exist twice, on the host and on the device.  The *head* says which copy is
fresh: none yet (``UNINITIALIZED``), the host's (``HEAD_AT_CPU``), the device's (``HEAD_AT_GPU``) or both
(``SYNCED``).  A side is allocated, and copied to, only when somebody asks for it: reading a stale side
copies and synchronises, and writing a side makes the other side stale.  Two flags say which pointers we own and
must free; we never own an adopted pointer.

A call in a given head is one row, or several rows with different guards over the pointers, the flags and the
argument.  The rows of one (call, head) pair must be exclusive and complete: for all values of the guards,
exactly one row is enabled.  A call that fails a CHECK in Caffe is a row too, with a
refusal in place of actions, because a port must reproduce that nothing happens.

Two things are not in the table on purpose.  The *mode* (``Caffe::mode()``) selects no row.  One effect reads it
when host memory is allocated, and stores it in ``cpu_malloc_use_cuda``.  The *size* selects no row
either: a memory of zero bytes has the same transitions.

Sources: BVLC/caffe 9b8915401, ``src/caffe/syncedmem.cpp`` and ``include/caffe/syncedmem.hpp``, by line.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from .declaration import Action, Call, Fact, Head, Machine, Refusal, Row, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CAFFE", "CPU_ONLY", "DEFAULT", "EARLY", "EDITIONS", "EVERYTHING", "edition_for"]

# --- sides and heads: syncedmem.hpp:68

CPU, GPU = "cpu", "gpu"

UNINITIALIZED = Head("UNINITIALIZED", letter="U")
HEAD_AT_CPU = Head("HEAD_AT_CPU", (CPU,), "C")
HEAD_AT_GPU = Head("HEAD_AT_GPU", (GPU,), "G")
SYNCED = Head("SYNCED", (CPU, GPU), "S")

# --- facts: the pointers, and the flags of an object; syncedmem.hpp:81-87

HAS_CPU_POINTER = Fact("has_cpu_pointer", "pointer", CPU)
HAS_GPU_POINTER = Fact("has_gpu_pointer", "pointer", GPU)
OWN_CPU_DATA = Fact("own_cpu_data", "owned", CPU, flag=True)
OWN_GPU_DATA = Fact("own_gpu_data", "owned", GPU, flag=True)
CPU_MALLOC_USE_CUDA = Fact("cpu_malloc_use_cuda", "pinned", CPU, flag=True)

MODE = Setting("mode", ("CPU", "GPU"), start="GPU")
"""``Caffe::mode()``; here it is GPU at first, in Caffe CPU."""

# --- calls

HAS_DATA = "has_data"
"""The condition that the argument of an adoption is not NULL."""

CPU_DATA = Call("cpu_data", "read", CPU)
MUTABLE_CPU_DATA = Call("mutable_cpu_data", "write", CPU)
GPU_DATA = Call("gpu_data", "read", GPU)
MUTABLE_GPU_DATA = Call("mutable_gpu_data", "write", GPU)
SET_CPU_DATA = Call("set_cpu_data", "adopt", CPU, takes=HAS_DATA)
SET_GPU_DATA = Call("set_gpu_data", "adopt", GPU, takes=HAS_DATA)
ASYNC_GPU_PUSH = Call("async_gpu_push", "push", GPU, CPU)
RELEASE = Call("release", "release")
"""Caffe's destructor."""

# --- actions, and their effects

_CPU_MEMORY = HAS_CPU_POINTER.name, OWN_CPU_DATA.name
_GPU_MEMORY = HAS_GPU_POINTER.name, OWN_GPU_DATA.name

# Codes: H for host or D for device, and a letter: allocate, zero, free, and E for an external pointer, which no
# allocator ever gets.  A copy has its direction, with an asterisk if it is only queued.

# CaffeMallocHost chooses between cudaMallocHost and malloc: syncedmem.hpp:19-34.
ALLOCATE_CPU = Action(
    "allocate_cpu",
    "allocate",
    CPU,
    sets=_CPU_MEMORY,
    by_setting=((CPU_MALLOC_USE_CUDA.name, MODE.name, "GPU"),),
    code="HA",
)
ZERO_CPU = Action("zero_cpu", "zero", CPU, code="HZ")
COPY_TO_CPU = Action("copy_to_cpu", "copy", CPU, GPU, code="d2h")
# cpu_malloc_use_cuda keeps its old value.  That does no harm while host memory is allocated only once.
ADOPT_CPU = Action("adopt_cpu", "adopt", CPU, sets=(HAS_CPU_POINTER.name,), clears=(OWN_CPU_DATA.name,), code="HE")
FREE_CPU = Action("free_cpu", "free", CPU, clears=_CPU_MEMORY, code="HF")
ALLOCATE_GPU = Action("allocate_gpu", "allocate", GPU, sets=_GPU_MEMORY, code="DA")
ZERO_GPU = Action("zero_gpu", "zero", GPU, code="DZ")
COPY_TO_GPU = Action("copy_to_gpu", "copy", GPU, CPU, code="h2d")
COPY_TO_GPU_ASYNC = Action("copy_to_gpu_async", "copy", GPU, CPU, queued=True, code="h2d*")
ADOPT_GPU = Action("adopt_gpu", "adopt", GPU, sets=(HAS_GPU_POINTER.name,), clears=(OWN_GPU_DATA.name,), code="DE")
FREE_GPU = Action("free_gpu", "free", GPU, clears=_GPU_MEMORY, code="DF")

# --- refusals: each is a failed CHECK, which ends the process

NULL_DATA = Refusal("null_data", "BufferMismatchError", text="a buffer is needed")
NOT_HEAD_AT_CPU = Refusal("not_head_at_cpu", needs=HEAD_AT_CPU.name)
NO_GPU = Refusal("no_gpu", "NoDeviceError", text="cannot use a GPU in a CPU-only memory (it was made with device=None)")

REFUSALS = (NULL_DATA, NOT_HEAD_AT_CPU, NO_GPU)

# --- the table

_U, _C, _G, _S = UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED
_ALL, _LIVE = (_U, _C, _G, _S), (_C, _G, _S)
_CPU_PTR, _GPU_PTR, _DATA = HAS_CPU_POINTER, HAS_GPU_POINTER, HAS_DATA
_NEW_CPU, _NEW_GPU = (ALLOCATE_CPU, ZERO_CPU), (ALLOCATE_GPU, ZERO_GPU)
_FIRST_DOWN, _FIRST_UP, _FIRST_PUSH = (
    (ALLOCATE_CPU, COPY_TO_CPU), (ALLOCATE_GPU, COPY_TO_GPU), (ALLOCATE_GPU, COPY_TO_GPU_ASYNC)
)  # fmt: skip
_DOWN, _UP, _PUSH = COPY_TO_CPU, COPY_TO_GPU, COPY_TO_GPU_ASYNC
_GPU = ("caffe", "early")  # the editions with a device

# fmt: off
_ROWS = (
    # --- reading on the host: to_cpu(), syncedmem.cpp:39-64; cpu_data(), syncedmem.cpp:93
    Row(CPU_DATA, _U, _C, do=_NEW_CPU, cite="syncedmem.cpp:42-47"),
    Row(CPU_DATA, _C, _C, cite="syncedmem.cpp:60"),
    Row(CPU_DATA, _G, _S, do=_FIRST_DOWN, unless=_CPU_PTR, only=_GPU, cite="syncedmem.cpp:50-55"),
    Row(CPU_DATA, _G, _S, do=_DOWN, when=_CPU_PTR, only=_GPU, cite="syncedmem.cpp:54"),
    Row(CPU_DATA, _S, _S, only=_GPU, cite="syncedmem.cpp:61"),
    # --- writing on the host: as reading, then the device side is stale; syncedmem.cpp:136
    Row(MUTABLE_CPU_DATA, _U, _C, do=_NEW_CPU, cite="syncedmem.cpp:136-141"),
    Row(MUTABLE_CPU_DATA, _C, _C, cite="syncedmem.cpp:139"),
    Row(MUTABLE_CPU_DATA, _G, _C, do=_FIRST_DOWN, unless=_CPU_PTR, only=_GPU, cite="syncedmem.cpp:138"),
    Row(MUTABLE_CPU_DATA, _G, _C, do=_DOWN, when=_CPU_PTR, only=_GPU, cite="syncedmem.cpp:138"),
    Row(MUTABLE_CPU_DATA, _S, _C, only=_GPU, cite="syncedmem.cpp:139"),
    # --- reading on the device: to_gpu(), syncedmem.cpp:66-91; gpu_data(), syncedmem.cpp:110
    Row(GPU_DATA, _U, _G, do=_NEW_GPU, only=_GPU, cite="syncedmem.cpp:70-75"),
    Row(GPU_DATA, _C, _S, do=_FIRST_UP, unless=_GPU_PTR, only=_GPU, cite="syncedmem.cpp:77-82"),
    Row(GPU_DATA, _C, _S, do=_UP, when=_GPU_PTR, only=_GPU, cite="syncedmem.cpp:81"),
    Row(GPU_DATA, _G, _G, only=_GPU, cite="syncedmem.cpp:84"),
    Row(GPU_DATA, _S, _S, only=_GPU, cite="syncedmem.cpp:85"),
    # --- writing on the device: as reading, then the host side is stale; syncedmem.cpp:143
    Row(MUTABLE_GPU_DATA, _U, _G, do=_NEW_GPU, only=_GPU, cite="syncedmem.cpp:143-148"),
    Row(MUTABLE_GPU_DATA, _C, _G, do=_FIRST_UP, unless=_GPU_PTR, only=_GPU, cite="syncedmem.cpp:146"),
    Row(MUTABLE_GPU_DATA, _C, _G, do=_UP, when=_GPU_PTR, only=_GPU, cite="syncedmem.cpp:146"),
    Row(MUTABLE_GPU_DATA, _G, _G, only=_GPU, cite="syncedmem.cpp:147"),
    Row(MUTABLE_GPU_DATA, _S, _G, only=_GPU, cite="syncedmem.cpp:147"),
    # --- adopting host memory: the other side is neither copied nor freed; syncedmem.cpp:99
    Row(SET_CPU_DATA, _ALL, unless=_DATA, refused=NULL_DATA, cite="syncedmem.cpp:101"),
    Row(SET_CPU_DATA, _U, _C, do=ADOPT_CPU, when=_DATA, cite="syncedmem.cpp:105"),
    Row(SET_CPU_DATA, _LIVE, _C, do=(FREE_CPU, ADOPT_CPU), when=(_DATA, OWN_CPU_DATA),
        cite="syncedmem.cpp:102-107"),
    Row(SET_CPU_DATA, _LIVE, _C, do=ADOPT_CPU, when=_DATA, unless=OWN_CPU_DATA,
        cite="syncedmem.cpp:105"),
    # --- adopting device memory; syncedmem.cpp:121
    Row(SET_GPU_DATA, _ALL, unless=_DATA, refused=NULL_DATA, only="caffe",
        cite="syncedmem.cpp:124"),
    Row(SET_GPU_DATA, _U, _G, do=ADOPT_GPU, when=_DATA, only="caffe",
        cite="syncedmem.cpp:128"),
    Row(SET_GPU_DATA, _LIVE, _G, do=(FREE_GPU, ADOPT_GPU), when=(_DATA, OWN_GPU_DATA),
               only="caffe", cite="syncedmem.cpp:125-130"),
    Row(SET_GPU_DATA, _LIVE, _G, do=ADOPT_GPU, when=_DATA, unless=OWN_GPU_DATA, only="caffe",
        cite="syncedmem.cpp:128"),
    # --- pushing before use: the head is _S when the copy is queued, not when it is done; syncedmem.cpp:156
    Row(ASYNC_GPU_PUSH, _C, _S, do=_FIRST_PUSH, unless=_GPU_PTR, only="caffe",
        cite="syncedmem.cpp:156-167"),
    Row(ASYNC_GPU_PUSH, _C, _S, do=_PUSH, when=_GPU_PTR, only="caffe",
        cite="syncedmem.cpp:163-166"),
    Row(ASYNC_GPU_PUSH, (_U, _G, _S), refused=NOT_HEAD_AT_CPU, only="caffe",
        cite="syncedmem.cpp:158"),
    # --- the build without a GPU; NO_GPU comes before CHECK(data)
    Row(GPU_DATA, _ALL, refused=NO_GPU, only="cpu_only", cite="syncedmem.cpp:116"),
    Row(MUTABLE_GPU_DATA, _ALL, refused=NO_GPU, only="cpu_only", cite="syncedmem.cpp:150"),
    Row(SET_GPU_DATA, _ALL, refused=NO_GPU, only="cpu_only", cite="syncedmem.cpp:132"),
    # --- the destructor: first the host side, then the device side, only if owned; syncedmem.cpp:26-37
    Row(RELEASE, _U, cite="syncedmem.cpp:26-37"),
    Row(RELEASE, _LIVE, do=(FREE_CPU, FREE_GPU), when=(OWN_CPU_DATA, OWN_GPU_DATA),
        cite="syncedmem.cpp:28-36"),
    Row(RELEASE, _LIVE, do=FREE_CPU, when=OWN_CPU_DATA, unless=OWN_GPU_DATA,
        cite="syncedmem.cpp:28"),
    Row(RELEASE, _LIVE, do=FREE_GPU, when=OWN_GPU_DATA, unless=OWN_CPU_DATA,
        cite="syncedmem.cpp:33"),
    Row(RELEASE, _LIVE, unless=(OWN_CPU_DATA, OWN_GPU_DATA), cite="syncedmem.cpp:26-37"),
)
# fmt: on

TITLE = "Head machine of SyncedMemory, edition {}"
"""What drawings of an edition are called."""

_THERE_AND_BACK = (MUTABLE_CPU_DATA, GPU_DATA, MUTABLE_GPU_DATA, CPU_DATA)

EVERYTHING = Machine(
    "all editions",
    _ROWS,
    sides=(CPU, GPU),
    heads=(UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED),
    calls=(
        CPU_DATA, MUTABLE_CPU_DATA, GPU_DATA, MUTABLE_GPU_DATA, SET_CPU_DATA, SET_GPU_DATA, ASYNC_GPU_PUSH, RELEASE
    ),
    facts=(HAS_CPU_POINTER, HAS_GPU_POINTER, OWN_CPU_DATA, OWN_GPU_DATA, CPU_MALLOC_USE_CUDA),
    actions=(
        ALLOCATE_CPU, ZERO_CPU, COPY_TO_CPU, ADOPT_CPU, FREE_CPU,
        ALLOCATE_GPU, ZERO_GPU, COPY_TO_GPU, COPY_TO_GPU_ASYNC, ADOPT_GPU, FREE_GPU,
    ),
    refusals=REFUSALS,
    settings=(MODE,),
)  # fmt: skip
"""The rows of all editions: nobody's machine, because rows of two editions may contradict each other."""

CAFFE = EVERYTHING.select(
    "caffe",
    title=TITLE.format("caffe"),
    about="Caffe as it is now",
    cycles=(
        _THERE_AND_BACK,
        (MUTABLE_CPU_DATA, ASYNC_GPU_PUSH),
        (SET_CPU_DATA, GPU_DATA, SET_GPU_DATA, CPU_DATA),
        (MUTABLE_CPU_DATA, GPU_DATA, CPU_DATA, GPU_DATA, CPU_DATA),
    ),
    cite="syncedmem.hpp:1-95; syncedmem.cpp:1-185",
)
EARLY = EVERYTHING.select(
    "early",
    title=TITLE.format("early"),
    about="Caffe as it was at first",
    # Device memory is always ours here, so the flag of later versions would equal the pointer.
    fix={OWN_GPU_DATA.name: HAS_GPU_POINTER.name, CPU_MALLOC_USE_CUDA.name: False},
    cycles=(_THERE_AND_BACK, (SET_CPU_DATA, GPU_DATA, MUTABLE_GPU_DATA, CPU_DATA)),
    cite="syncedmem.hpp and syncedmem.cpp as they were in 2014, at v0.9999",
)
CPU_ONLY = EVERYTHING.select(
    "cpu_only",
    title=TITLE.format("cpu_only"),
    about="Caffe in a build without a device",
    fix={HAS_GPU_POINTER.name: False, OWN_GPU_DATA.name: False, CPU_MALLOC_USE_CUDA.name: False},
    cycles=((MUTABLE_CPU_DATA, CPU_DATA, SET_CPU_DATA),),
    cite="syncedmem.cpp:89, 116, 132, 150; the CPU_ONLY build",
)

EDITIONS: Mapping[str, Machine] = MappingProxyType({machine.name: machine for machine in (CAFFE, EARLY, CPU_ONLY)})
DEFAULT = CAFFE
"""The edition that is used if none is named."""


def edition_for(*, has_device: bool) -> Machine:
    """The edition of a memory with a device, or without one."""
    return CAFFE if has_device else CPU_ONLY
