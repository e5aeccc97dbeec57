"""The requirements of a memory, sentence by sentence: those of Caffe, and those that are promised beyond Caffe's.

Sources: Caffe's files by name and line (docs/design.md explains them), its issues by number, and its hazards H1 to H20.
"""

from __future__ import annotations

from .levels import by_level

__all__ = [
    "MEMORY_CAFFE",
    "MEMORY_LEVELS",
    "MEMORY_NEEDS",
    "MEMORY_OF_MACHINES",
    "MEMORY_OF_OBJECTS",
    "MEMORY_SAFE",
]

MEMORY_CAFFE: tuple[tuple[str, str, str], ...] = (
    ("R01-lazy",
     "Making a memory copies nothing, and allocates and zeroes what is there from the beginning: in Caffe nothing.",
     "syncedmem.cpp:6-24"),
    ("R02-uninitialized", "A new memory is in its first state, which is UNINITIALIZED in Caffe.", "syncedmem.cpp:7"),
    ("R03-allocate-when-needed", "A side is allocated by the first call that needs it, and by no other.",
     "syncedmem.cpp:43, 51, 71, 78"),
    ("R04-exact-size", "Every allocation, zero-fill and copy is of exactly the memory's size.", "syncedmem.cpp:43-81"),
    ("R05-zeroed-first", "The first side that is used is filled with zeros.", "syncedmem.cpp:44, 72"),
    ("R06-zero-only-first",
     "Zeros are filled in only while no side is fresh yet, or where what is allocated is always zeroed.",
     "syncedmem.cpp:50-55"),
    ("R07-copy-down", "A call for the host side copies down, once, if only the device side is fresh.",
     "syncedmem.cpp:54"),
    ("R08-copy-up", "A call for the device side copies up, once, if only the host side is fresh.",
     "syncedmem.cpp:81"),
    ("R09-no-needless-copy", "Nothing is copied to a fresh side.", "syncedmem.cpp:60-61, 84-85"),
    ("R10-same-bytes", "After a call for a side, that side has the bytes that were last written on either side.",
     "syncedmem.hpp:52-53"),
    ("R11-head", "The head says which side is fresh: none, host, device or both.", "syncedmem.hpp:68"),
    ("R12-read-keeps", "Reading a side does not make the other side stale.", "syncedmem.cpp:55, 82"),
    ("R13-write-makes-stale", "Writing a side makes the other side stale.", "syncedmem.cpp:139, 147"),
    ("R14-adopt-host", "After set_cpu_data the host side is the caller's buffer itself, and fresh.",
     "syncedmem.cpp:105-106"),
    ("R15-adopt-device", "After set_gpu_data the device side is the caller's buffer itself, and fresh.",
     "syncedmem.cpp:128-129"),
    ("R16-adopt-keeps-other", "Adopting on one side neither frees nor copies the other side, which becomes stale.",
     "syncedmem.cpp:99-134; H8"),
    ("R17-adopt-frees-owned", "Adopting frees owned memory of its side before it takes the new pointer.",
     "syncedmem.cpp:102-104, 125-127"),
    ("R18-external-not-freed", "External memory is never freed.", "syncedmem.cpp:102, 125"),
    ("R19-external-is-target", "A copy to a side with an adopted buffer writes into that buffer.",
     "syncedmem.cpp:54, 81"),
    ("R20-null-refused", "Adopting NULL is refused, before anything is freed.", "syncedmem.cpp:101, 124"),
    ("R21-push", "async_gpu_push queues one asynchronous copy up, and both sides count as fresh at once.",
     "syncedmem.cpp:156-167"),
    ("R22-push-refused", "If the head is not HEAD_AT_CPU, async_gpu_push is refused and changes nothing.",
     "syncedmem.cpp:158"),
    ("R23-own-flags", "own_cpu_data and own_gpu_data say whether a side is owned, not whether it exists.",
     "syncedmem.hpp:85, 87"),
    ("R24-pinned-by-mode", "Host memory that is allocated in GPU mode is page-locked, and pageable in CPU mode.",
     "syncedmem.hpp:19-34"),
    ("R25-pinned-frozen", "Host memory is freed in the way it was allocated, whatever the mode is then.",
     "syncedmem.hpp:36-48, 86; #3053"),
    ("R26-release-order", "Release frees the host side first, then the device side.", "syncedmem.cpp:28-36"),
    ("R27-release-frees-owned", "Release frees everything that the memory owns.", "syncedmem.cpp:26-37"),
    ("R28-freed-once", "Nothing is freed twice, and nothing is freed that is not allocated.", "H5, H18"),
    ("R29-allocated-once", "A memory allocates each side at most once in its life.", "syncedmem.cpp:50, 77"),
    ("R30-no-gpu", "Without a device, every call for the device side is refused and changes nothing.",
     "syncedmem.cpp:89, 116, 132, 150"),
    ("R31-size-constant", "The size never changes.", "syncedmem.hpp:70"),
    ("R58-push-on-its-stream", "A push is queued on the stream that it was given, and on no other.",
     "syncedmem.cpp:163"),
    ("R53-independent", "A call on one memory does not change another memory.", "syncedmem.hpp:90"),
    ("R54-view-of-the-memory", "A view is over the memory itself: it shows later writes.",
     "syncedmem.cpp:96, 114; H10"),
)  # fmt: skip

MEMORY_SAFE: tuple[tuple[str, str, str], ...] = (
    ("R32-strong-guarantee", "A call that raises keeps head, flags, pointers and the bytes of every fresh side.", "H4"),
    ("R33-failure-leaks-nothing", "A call that raises leaves allocated exactly what was allocated before.", "H4"),
    ("R34-works-after-failure", "After a call that raised, the same call succeeds if the cause is gone.", "H4"),
    ("R35-own-buffer-refused", "Adopting the memory's own buffer, or a part of it, is refused.",
     "H5; syncedmem.cpp:102-105"),
    ("R36-too-small-refused", "Adopting a buffer smaller than the memory is refused.", "H6; #5822"),
    ("R37-read-only-refused", "Adopting a read-only host buffer is refused.", "H6"),
    ("R38-not-contiguous-refused", "Adopting a host buffer that is not contiguous is refused.", "H6"),
    ("R39-wrong-kind-refused", "Device memory is not adopted as host memory, nor host memory as device memory.", "H6"),
    ("R40-kept-alive", "An adopted buffer lives as long as the memory uses it.", "H6; #4220"),
    ("R41-in-flight-not-written", "The host side is not returned for writing while a push still reads it.", "H3"),
    ("R42-in-flight-not-freed", "Memory that a push still uses is neither freed nor dropped.", "H3"),
    ("R43-in-flight-read", "A read on the device after a push shows the pushed bytes.", "H3"),
    ("R44-size-zero", "A memory of zero bytes accepts every call and moves its head, but calls no allocator.",
     "H14; syncedmem.hpp:28"),
    ("R45-bad-size-refused", "A size that is negative, too large or not an integer is refused.", "H15"),
    ("R46-fresh-view", "Every call returns a view object that nobody else has.", "H10"),
    ("R47-read-only-view", "A host view for reading is read-only, and cannot be made writable.", "H10"),
    ("R48-released-refuses", "After release every call is refused and changes nothing.", "H18"),
    ("R49-release-twice", "Releasing twice is harmless.", "H18"),
    ("R50-device-restored", "A call leaves the current device as it was.", "H12"),
    ("R51-device-check", "With the device check on, a call while another device is current is refused.",
     "syncedmem.cpp:170-183; H12"),
    ("R52-bad-stream-refused", "A push on an object that is not a stream of the device is refused.", "H3"),
    ("R57-push-in-order", "A push comes after the work that the device's current stream has when it is made.",
     "syncedmem.cpp:163; observed on OpenCL"),
    ("R55-dropped-freed", "A dropped memory frees everything that it owns.", "H18; syncedmem.cpp:26-37"),
    ("R56-adopted-let-go", "A released memory keeps no adopted buffer.", "H6"),
)  # fmt: skip

MEMORY_NEEDS: dict[str, str] = {
    **dict.fromkeys(
        "R07 R08 R12 R13 R15 R16 R19 R21 R22 R25 R26 R39 R41 R42 R43 R52".split(),  # noqa: SIM905 -- a list of numbers reads best so
        "device",
    ),
    "R30": "no device",
    "R50": "another device",
    "R51": "device check",
    "R57": "current stream",
    "R58": "streams",
}
"""What a subject must offer for a requirement, unless every subject can be tested for it."""

MEMORY_OF_MACHINES: dict[str, str] = {
    "call that adopts": "R16 R17 R18 R19 R20 R35 R36 R37 R38 R39 R40 R56",
    "call that adopts on the host": "R14",
    "call that adopts on a device": "R15",
    "call that pushes": "R21 R22 R41 R42 R43 R52 R57 R58",
    "call that releases": "R26 R27 R48 R49 R55",
    "flag of ownership": "R23",
    "page-locked memory": "R24 R25",
    "meaning for zero bytes": "R44",
    "policy": "R35 R36 R37 R38 R39 R40 R45 R49 R50 R51 R52 R55 R56 R57",
}
"""The requirements that are judged only of machines that have this; the last are about what only a policy says."""

MEMORY_OF_OBJECTS = frozenset(
    "R37 R38 R40 R45 R46 R47 R50 R51 R52 R54 R55 R56 R57".split()  # noqa: SIM905 -- as above
)
"""The requirements of memories that are Python objects; they are not judged of a program."""

MEMORY_LEVELS = by_level(
    L0="R02 R11 R12 R13 R20 R22 R23 R24 R30 R31 R45 R48 R49",
    L1="R10 R14 R15 R19 R35 R36 R37 R38 R39 R53",
    L2="R01 R03 R04 R05 R06 R07 R08 R09 R16 R17 R18 R21 R25 R26 R27 R28 R29 R44",
    L3="R32 R33 R34",
    L4="R40 R41 R42 R43 R46 R47 R50 R51 R52 R54 R55 R56 R57 R58",
)
"""The lowest level at which a requirement can be judged, by its number."""
