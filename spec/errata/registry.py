"""Mistakes in the texts from which this project was built, and in the originals themselves.

Each erratum has its place, what is written or done there, what is wrong with it, what is right, and its evidence:
seeded bugs by name (a memory, a blob or an allocator with exactly this mistake, which a kit must refuse), or tests.
docs/errata.md is made from this list, and so is what docs/blobs.md says about Caffe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .blob import BLOBS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ERRATA", "SOURCES", "Erratum"]

SOURCES: dict[str, str] = {
    "000": "`000`, a transcription of SyncedMemory as it was in 2017 and 2018",
    "001": "`001`, about SyncedMemory as it was in 2014",
    "002": "`002`, about a fork for inference",
    "003": "`003`, about Blob as it was in 2015 and 2016",
    "004": "`004_5979a102caedf1b7.txt`, the first lesson of KuiperLLama, which ends in the middle of a sentence",
    "Caffe": "BVLC/caffe 9b8915401 itself; H1 to H20 are the names of its hazards here, #n its issues",
    "KuiperLLama": "zjhellofss/KuiperLLama bef1525 itself",
}
"""The texts and the originals, in order."""


@dataclass(frozen=True, slots=True)
class Erratum:
    """One mistake.

    Attributes
    ----------
    source : str
        A key of `SOURCES`.
    place : str
        Lines, or the number of a hazard.
    says : str
        What is written or done there.
    wrong : str
        What is wrong with it.
    right : str
        What is right, or what is done here instead.
    shown : tuple of str
        Seeded bugs by name, and tests as ``file::name``.
    requirement : str
        For mistakes about blobs: the requirement that says what is right.
    """

    source: str
    place: str
    says: str
    wrong: str
    right: str
    shown: tuple[str, ...]
    requirement: str = ""


_BUFFER = "tests/runtime/memory/test_buffer.py::test_"
_MISPRINT = "tests/spec/test_errata.py::test_a_misprint_does_not_compile"

_SEEDS: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("000", "6, 89", "a header without a guard", "a second include defines everything twice",
     "`#ifndef CAFFE_SYNCEDMEM_HPP_`", _MISPRINT),
    ("000", "33", "`Caffe_FreeHost(void* ptr, bool* use_cuda)`", "its callers use another name, and pass no pointer",
     "`CaffeFreeHost(void* ptr, bool use_cuda)`", _MISPRINT),
    ("000", "35", "`if(use_cuda)` on a pointer", "always true, so `malloc`ed memory goes to `cudaFreeHost`",
     "the value is tested", "FlagTestedAsPointer"),
    ("000", "36", "`cudaFreeHost(ptr);`", "its result is dropped", "`CUDA_CHECK(...)`", "HostFreeUnchecked"),
    ("000", "48", "`class SynedMemory`", "not the name of its constructors", "`SyncedMemory`", _MISPRINT),
    ("000", "57", "setting host data frees what was allocated", "it is freed only if it is owned",
     "external memory is never freed", "FreesExternalHost ReleasesExternal"),
    ("000", "59", "setting device data frees what was allocated", "it is freed only if it is owned",
     "external memory is never freed", "FreesExternalDevice"),
    ("000", "63", "four states of *shared* memory", "there are two memories with the same bytes",
     "it is mirrored", "SpoiltCopy"),
    ("000", "65, 66", "`head()` and `size()` are not `const`", "true only until 2018", "`const`", _MISPRINT),
    ("000", "111", "`cpu_ptr(NULL), gpu_ptr(NULL)`", "no such members", "`cpu_ptr_`, `gpu_ptr_`", _MISPRINT),
    ("000", "125", "`#ifndef CPU_ONLTY`", "always true: `cudaFree` in a build without CUDA", "`CPU_ONLY`",
     "CudaFreeWithoutDevice"),
    ("000", "127", "`cudaFree(gpu_ptr);`", "no such member, and the result is dropped",
     "`CUDA_CHECK(cudaFree(gpu_ptr_))`", f"DeviceFreeUnchecked {_MISPRINT}"),
    ("000", "142", "`#ifdef CPU_ONLY` around the copy down", "the wrong way round: a GPU build never copies down",
     "`#ifndef CPU_ONLY`", "InvertedCpuOnly"),
    ("000", "144", "`CaffeMallocHost(&cpu_ptr_, size, ...)`", "`size` is a function", "`size_`", _MISPRINT),
    ("000", "232", "`head_ = HEAD_AT_CPU();`", "it calls an enumerator", "`HEAD_AT_CPU`", _MISPRINT),
    ("000", "236", "`void SyncedMemory::mutable_gpu_data()`", "nothing is returned", "`void*`",
     f"ReturnsNothing {_MISPRINT}"),
    ("000", "249", "a push synchronises with its stream", "it does not wait; the caller has to",
     "queued, and both sides count as fresh at once", "SynchronousPush WaitsForItsPush"),
    ("000", "264", "`chenck_device`", "misspelt", "`check_device`", _MISPRINT),
    ("000", "290", "`caffe_gpu_memory`", "there is no such function", "`caffe_gpu_memcpy`", _MISPRINT),
    ("001", "21", "the author meant to wrap memory of the GPU", "it is page-locked memory of the *host*",
     "`cudaMallocHost`, in GPU mode", "HostMemoryOnDevice AlwaysPinned"),
    ("001", "27-32", "two accessors for each side, one flag", "everything that was added later is missing",
     "the edition `early`",
     "tests/model/test_caffe_machine.py::test_the_early_edition_adopts_no_device_memory_and_pushes_nothing"),
    ("001", "63", "the flag says whether there is host data", "it says whether we must free it",
     "`own_cpu_data`", "OwnershipAsExistence"),
    ("001", "97", "copying down sets `own_cpu_data`", "only if host memory was allocated for it",
     "ownership follows the allocation", "CopyDownTakesOwnership"),
    ("001", "throughout", "zeros are never mentioned", "the side that is used first is zeroed",
     "zeroed when the head leaves UNINITIALIZED, and only then", "HostNotZeroed DeviceNotZeroed"),
    ("002", "16-24", "`#ifdef USE_CUDA`", "the fork's polarity, opposite to Caffe's", "`#ifndef CPU_ONLY`",
     "InvertedCpuOnly"),
    ("002", "32", "after reading on the device the head is HEAD_AT_GPU, and the next read on the host copies",
     "after reading the head is SYNCED, and nothing is copied back", "only writing moves the head there",
     "ReadingMovesHead ReadingDownMovesHead"),
    ("002", "50", "`shape_data_` is the size of the storage", "it holds the extents, mirrored to the device",
     "`gpu_shape`", "ShapeBackwards"),
    ("002", "51, 52", "capacity is the size of the current data", "it is the largest count so far, in elements",
     "a reshape that fits keeps the memory", "AlwaysRenews GrowsByHalf"),
    ("002", "53", "`cout_`", "misspelt", "`count_`", "CountOfLastAxes"),
    ("003", "17", "`gpu_device_`, on which memory is freed", "since 2017 it is `device_`, and checked in DEBUG only",
     "`check_device=True`", "IgnoresDeviceCheck"),
    ("003", "23-25", "the push, without its head", "SYNCED as soon as it is queued; the caller waits",
     "as in Caffe, but a call that would overtake the copy waits", "PushKeepsHead"),
    ("003", "29", "with a GPU, host memory is allocated *on the GPU*", "it is page-locked memory of the host",
     "`cudaMallocHost`", "HostMemoryOnDevice"),
    ("003", "38, 43", "four axes N, K, H, W", "any number up to 32 since 2014", "the four are the legacy accessors",
     "OneAxisTooMany LegacyOfMany"),
    ("003", "41", "capacity is the current number of elements", "that is the count", "the largest count that fits",
     "CapacityRemembered"),
    ("003", "58-60", "`INT_MAX / count_`, unchecked", "an earlier extent of zero ends the program (#3583)",
     "only if `count_ != 0`", "tests/spec/test_errata.py::test_an_extent_of_zero_may_be_anywhere"),
    ("003", "72", "growing releases the original memory", "not if another blob shares it",
     "the blob drops it", "GrowthTellsSharers"),
    ("003", "110", "`sumsq` is the L1 norm", "that is `asum`", "the sum of the squares", "SumsqIsL1"),
    ("004", "13-33", "virtual functions, and no virtual destructor", "undefined when deleted through the base",
     "a virtual destructor", _MISPRINT),
    ("004", "36", "the base may be of an unknown device", "its only constructor sets the device",
     "an allocator is of one device", "tests/spec/test_errata.py::test_an_allocator_knows_its_device"),
    ("004", "49", "`memcpy` of three parameters, with `override`", "overrides nothing: the base has six",
     "one `memcpy`, that of the interface", _MISPRINT),
    ("004", "52-63", "`malloc`, unchecked", "the failure appears later, elsewhere", "`AllocationError`",
     "tests/runtime/devices/test_host.py::test_no_room_is_one_error"),
    ("004", "66-74", "failure is a failed CHECK", "the process ends", "`AllocationError`",
     "tests/runtime/devices/test_devices.py::test_the_list_of_devices_is_complete_and_says_what_each_is NullOnFailure"),
    ("004", "76, 77", "the text breaks off", "it does not say how memory is freed", "owned memory is released once",
     f"{_BUFFER}its_own_memory_is_released_once"),
)  # fmt: skip

_ORIGINALS: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("Caffe", "7149de51c", "the first version starts at SYNCED", "the first access returns NULL",
     "UNINITIALIZED", "InitiallySynced FirstTouchSyncs"),
    ("Caffe", "7149de51c", "it copies only when it allocates", "the second transfer is stale",
     "every transfer copies", "CopiesDownOnlyOnce CopiesUpOnlyOnce"),
    ("Caffe", "#3053", "host memory is freed by the current mode", "`free` of page-locked memory",
     "freed as it was allocated", "FreesByMode"),
    ("Caffe", "H3", "a push counts as done when it is queued",
     "its source can be written or freed, its target read, too early", "such calls wait, or are ordered after it",
     "WritesInFlight FreesInFlight ReadsInFlight"),
    ("Caffe", "H4", "state is changed before the CHECK that fails", "half of the change stays, if the program goes on",
     "a call that raises has changed nothing", "FailureLeaks"),
    ("Caffe", "H5", "a memory can be set to its own pointer", "the pointer is freed, and then used", "refused",
     "AdoptsOwnHostBuffer AdoptsOwnDeviceBuffer"),
    ("Caffe", "H6", "external memory has no size and no owner", "it is overrun, or freed while in use",
     "checked, and kept alive", "AdoptsTooSmall ForgetsAdoptedBuffer"),
    ("Caffe", "H7", "the pinned flag stays when external memory is set", "harmless while nothing is allocated again",
     "a side is allocated at most once", "ReallocatesOnCopyDown"),
    ("Caffe", "H8", "setting one side drops newer bytes of the other", "an update is lost silently",
     "kept as it is, and documented", "HostAdoptionSavesDevice"),
    ("Caffe", "H9", "writing copies first", "a needless copy if everything is overwritten",
     "kept as it is", "WriteOnlyHost"),
    ("Caffe", "H10", "pointers outlive the call; reading in Python is a write", "stale bytes, needless copies",
     "a view to read is read-only, and every call returns a view of its own", "WriteableReadView CachedView"),
    ("Caffe", "H12", "one device, checked in DEBUG only", "work and frees on the wrong device",
     "work is done on the memory's own device", "LeavesDeviceChanged IgnoresDeviceCheck"),
    ("Caffe", "H13", "reading changes the object, and nothing is locked", "two readers race",
     "calls are serialised", "tests/runtime/memory/test_memory.py::test_calls_of_two_threads_are_serialised"),
    ("Caffe", "H14", "memory of size 0 is a null pointer", "a failed CHECK in the next copy",
     "legal everywhere", "AllocatesNothing RefusesSizeZero"),
    ("Caffe", "H15", "the computation of a size wraps", "it cannot be allocated, or is too small (#2474)",
     "a size that is too large is refused", "AnySize"),
    ("Caffe", "H17", "a destructor that CHECKs", "aborts at exit, after the driver has ended (#4230)",
     "finalisers warn, and never raise",
     "tests/runtime/memory/test_memory.py::test_nothing_is_leaked_at_interpreter_exit"),
    ("Caffe", "H18", "one pointer given to two objects", "it dangles", "freed once, by its owner", "FreedTwice"),
    ("KuiperLLama", "alloc.cpp:4-42", "null is refused before the size is checked", "copies of zero bytes are refused",
     "zero bytes need no memory", "NullBeforeSize"),
    ("KuiperLLama", "alloc.cpp:4-60", "CUDA's results are dropped", "failures go unnoticed",
     "`DeviceError`", "DropsErrors CopyUnchecked"),
    ("KuiperLLama", "alloc.cpp", "with zero bytes it returns before `need_sync`", "nobody waits",
     "waits for any size", f"{_BUFFER}need_sync_waits_for_all_work_of_the_device"),
    ("KuiperLLama", "alloc_cu.cpp", "release returns if there is no small block", "big blocks are never used again",
     "every release counts", "ReleasesNothingWithoutSmall"),
    ("KuiperLLama", "alloc_cu.cpp", "zero bytes get an idle block", "nobody else can use that block", "no block",
     "ZeroTakesAnIdleBuffer"),
    ("KuiperLLama", "alloc_cu.cpp", "a full device gives a null pointer", "there may be idle memory",
     "idle memory is freed first", "NullOnFailure NullWhenFull"),
    ("KuiperLLama", "alloc_cu.cpp", "the limit is compared before the block is counted", "it is passed by one block",
     "counted first",
     "tests/runtime/allocators/test_pool.py::test_idle_memory_is_counted_before_it_is_looked_at"),
    ("KuiperLLama", "alloc_cu.cpp", "a reclaim leaves another device current", "later work is on the wrong device",
     "left as it was", "ReclaimLeavesADevice LeavesADevice"),
    ("KuiperLLama", "alloc_cu.cpp", "a double release is counted twice", "two owners get one block",
     "`InvalidPointerError`", "CountsDoubleReleases"),
    ("KuiperLLama", "alloc_cu.cpp", "an unknown pointer is freed", "it is somebody else's memory",
     "`InvalidPointerError`", "TakesAnything ReclaimForgetsBusy"),
    ("KuiperLLama", "alloc_cu.cpp", "big blocks are never freed", "memory only grows", "`trim`, `close`",
     "tests/runtime/allocators/test_pool.py::test_big_blocks_go_back_too"),
    ("KuiperLLama", "alloc_cu.cpp", "streams are ignored", "a block gets a new owner while it is written",
     "such a block waits", "IgnoresStreams"),
    ("KuiperLLama", "alloc_cu.cpp", "nothing is locked", "two threads get one block", "one thread at a time",
     "PoolWithoutLocks NoLocks"),
    ("KuiperLLama", "buffer.cpp", "`allocate` overwrites its pointer", "the old memory leaks",
     "released first", "ReallocKeepsTheOld HostAdoptionLeaks"),
    ("KuiperLLama", "buffer.cpp", "`copy_from` takes the smaller size", "the rest is lost silently", "refused",
     f"{_BUFFER}a_longer_source_is_refused"),
    ("KuiperLLama", "buffer.cpp", "`copy_from` tests null with `||`, not `&&`", "a null argument is used", "refused",
     f"{_BUFFER}a_copy_from_or_to_a_buffer_without_memory_is_refused"),
    ("KuiperLLama", "buffer.h:6", "`enable_shared_from_this`, privately", "`get_shared_from_this()` always throws",
     "references are Python's", f"{_BUFFER}a_buffer_cannot_be_copied_or_pickled"),
    ("KuiperLLama", "buffer.cpp", "external memory has no allocator", "it cannot be copied to", "it can be",
     f"{_BUFFER}a_copy_between_any_two_places_copies_the_source_and_changes_no_other_byte"),
)  # fmt: skip


def _errata() -> Iterator[Erratum]:
    for source in SOURCES:
        for named, place, says, wrong, right, shown in _SEEDS + _ORIGINALS:
            if named == source:
                yield Erratum(source, place, says, wrong, right, tuple(shown.split()))
        for place, says, wrong, right, requirement, shown in BLOBS if source == "Caffe" else ():
            yield Erratum(source, place, says, wrong, right, tuple(shown.split()), requirement)


ERRATA: tuple[Erratum, ...] = tuple(_errata())
"""All errata, by source."""
