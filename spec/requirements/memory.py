"""What a memory must do, sentence by sentence: R1 to R31 as Caffe, and what this project promises beyond it.

Sources: Caffe's files by name and line, which docs/design.md explains, its issues by number, and the hazards H1 to H20
known of it.
"""

from __future__ import annotations

__all__ = ["MEMORY_CAFFE", "MEMORY_NEEDS", "MEMORY_SAFE"]

MEMORY_CAFFE: tuple[tuple[str, str, str], ...] = (
    ("R01-lazy", "Making a memory allocates, copies and zeroes nothing.", "syncedmem.cpp:6-24"),
    ("R02-uninitialized", "A fresh memory is UNINITIALIZED.", "syncedmem.cpp:7"),
    ("R03-allocate-when-needed", "A side is allocated by the first call that needs it, and by no other.",
     "syncedmem.cpp:43, 51, 71, 78"),
    ("R04-exact-size", "Every allocation, zero-fill and copy is of exactly the memory's size.", "syncedmem.cpp:43-81"),
    ("R05-zeroed-first", "The first side ever touched is zero-filled.", "syncedmem.cpp:44, 72"),
    ("R06-zero-only-first", "Nothing is zero-filled but on the way out of UNINITIALIZED.", "syncedmem.cpp:50-55"),
    ("R07-copy-down", "Asking for the host side when only the device side is fresh copies it down, once.",
     "syncedmem.cpp:54"),
    ("R08-copy-up", "Asking for the device side when only the host side is fresh copies it up, once.",
     "syncedmem.cpp:81"),
    ("R09-no-needless-copy", "A side that is fresh is not copied to.", "syncedmem.cpp:60-61, 84-85"),
    ("R10-same-bytes", "A side that was asked for holds the bytes last written, on whichever side that was.",
     "syncedmem.hpp:52-53"),
    ("R11-head", "The head says which side is fresh: none, host, device or both.", "syncedmem.hpp:68"),
    ("R12-read-keeps", "Reading a side leaves the other side fresh if it was.", "syncedmem.cpp:55, 82"),
    ("R13-write-makes-stale", "Writing a side makes the other one stale.", "syncedmem.cpp:139, 147"),
    ("R14-adopt-host", "After set_cpu_data the host side is the caller's buffer itself, and fresh.",
     "syncedmem.cpp:105-106"),
    ("R15-adopt-device", "After set_gpu_data the device side is the caller's buffer itself, and fresh.",
     "syncedmem.cpp:128-129"),
    ("R16-adopt-keeps-other", "Adopting on one side neither frees nor copies the other, which becomes stale.",
     "syncedmem.cpp:99-134; H8"),
    ("R17-adopt-frees-owned", "Adopting frees the side's own memory, before the new pointer is taken.",
     "syncedmem.cpp:102-104, 125-127"),
    ("R18-external-not-freed", "External memory is never freed.", "syncedmem.cpp:102, 125"),
    ("R19-external-is-target", "Copies down to an adopted host buffer, and up to a device one, write into it.",
     "syncedmem.cpp:54, 81"),
    ("R20-null-refused", "Adopting nothing is refused, before anything is freed.", "syncedmem.cpp:101, 124"),
    ("R21-push", "async_gpu_push queues one asynchronous copy up and counts both sides as fresh at once.",
     "syncedmem.cpp:156-167"),
    ("R22-push-refused", "async_gpu_push is refused unless the head is HEAD_AT_CPU, and changes nothing then.",
     "syncedmem.cpp:158"),
    ("R23-own-flags", "own_cpu_data and own_gpu_data say whether a side is ours to free, not whether it exists.",
     "syncedmem.hpp:85, 87"),
    ("R24-pinned-by-mode", "Host memory is page-locked if it is allocated in GPU mode, and pageable in CPU mode.",
     "syncedmem.hpp:19-34"),
    ("R25-pinned-frozen", "Host memory is freed as it was allocated, whatever the mode is by then.",
     "syncedmem.hpp:36-48, 86; #3053"),
    ("R26-release-order", "Release frees the host side first, then the device side.", "syncedmem.cpp:28-36"),
    ("R27-release-frees-owned", "Release frees everything that is ours.", "syncedmem.cpp:26-37"),
    ("R28-freed-once", "Nothing is freed twice, and nothing is freed that is not allocated.", "H5, H18"),
    ("R29-allocated-once", "A memory allocates each side at most once in its life.", "syncedmem.cpp:50, 77"),
    ("R30-no-gpu", "Without a device, every call for the device side is refused and changes nothing.",
     "syncedmem.cpp:89, 116, 132, 150"),
    ("R31-size-constant", "The size never changes.", "syncedmem.hpp:70"),
)  # fmt: skip

MEMORY_SAFE: tuple[tuple[str, str, str], ...] = (
    ("R32-strong-guarantee", "A call that raises keeps head, flags, pointers and the bytes of every fresh side.", "H4"),
    ("R33-failure-leaks-nothing", "A call that raises leaves allocated exactly what was allocated before.", "H4"),
    ("R34-works-after-failure", "After a call that raised, the same call succeeds once its cause is gone.", "H4"),
    ("R35-own-buffer-refused", "Adopting one's own buffer, or a part of it, is refused.", "H5; syncedmem.cpp:102-105"),
    ("R36-too-small-refused", "Adopting a buffer smaller than the memory is refused.", "H6; #5822"),
    ("R37-read-only-refused", "Adopting a read-only host buffer is refused.", "H6"),
    ("R38-not-contiguous-refused", "Adopting a host buffer that is not contiguous is refused.", "H6"),
    ("R39-wrong-kind-refused", "Device memory is not adopted as host memory, nor host as device memory.", "H6"),
    ("R40-kept-alive", "An adopted buffer lives as long as the memory uses it.", "H6; #4220"),
    ("R41-in-flight-not-written", "The host side is not handed out for writing while a push still reads it.", "H3"),
    ("R42-in-flight-not-freed", "Memory that a push still uses is neither freed nor let go.", "H3"),
    ("R43-in-flight-read", "What is read on the device after a push is what was pushed.", "H3"),
    ("R44-size-zero", "A memory of zero bytes makes every call and moves its head, and asks no allocator.",
     "H14; syncedmem.hpp:28"),
    ("R45-bad-size-refused", "A negative or absurd size, or one that is no integer, is refused.", "H15"),
    ("R46-fresh-view", "Every call hands out a view object of its own.", "H10"),
    ("R47-read-only-view", "The host view of a read cannot be written through, nor be made writeable.", "H10"),
    ("R48-released-refuses", "After release every call is refused and changes nothing.", "H18"),
    ("R49-release-twice", "Releasing twice is harmless.", "H18"),
    ("R50-device-restored", "A call leaves the current device as it was.", "H12"),
    ("R51-device-check", "With the device check on, a call while another device is current is refused.",
     "syncedmem.cpp:170-183; H12"),
    ("R52-bad-stream-refused", "Pushing on something that is no stream of the device is refused.", "H3"),
    ("R53-independent", "What is done to one memory does not change another.", "syncedmem.hpp:90"),
    ("R54-view-of-the-memory", "A view is over the memory itself: it shows what is written there later.",
     "syncedmem.cpp:96, 114; H10"),
    ("R55-dropped-freed", "A memory that is dropped frees what is ours.", "H18; syncedmem.cpp:26-37"),
    ("R56-adopted-let-go", "After release nothing adopted is held.", "H6"),
)  # fmt: skip

MEMORY_NEEDS: dict[str, str] = {
    **dict.fromkeys(
        "R07 R08 R12 R13 R15 R16 R19 R21 R22 R24 R25 R26 R29 R39 R41 R42 R43 R52".split(),  # noqa: SIM905 -- a list of numbers reads best so
        "device",
    ),
    "R30": "no device",
    "R50": "another device",
    "R51": "device check",
}
"""What a subject must offer for a requirement, where that is not every subject."""
