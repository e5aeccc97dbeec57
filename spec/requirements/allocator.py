"""What an allocator must do, sentence by sentence, whatever convention it follows.

Sources: where the sentence is written down, or where somebody got it wrong.
"""

from __future__ import annotations

__all__ = ["ALLOCATOR", "ALLOCATOR_NEEDS"]

ALLOCATOR: tuple[tuple[str, str, str], ...] = (
    ("A01-distinct-pointers", "Two live blocks never start at the same address.", "C17 7.22.3"),
    ("A02-no-overlap", "Two live blocks share no byte.", "C17 7.22.3, disjoint objects"),
    ("A03-aligned",
     "A block starts at a multiple of the promised alignment, and of the one that was asked for.",
     "rmm#2397, an adaptor that drops it"),
    ("A04-contents-kept", "What was written into a block stays there until the block is given back.",
     "C17 6.2.4, an object keeps its last-stored value"),
    ("A05-served", "A request that can be met gives a block, or an out-of-memory error, and nothing else.",
     "KuiperLLama alloc_cpu.cpp:28-29, the result of malloc unchecked"),
    ("A06-out-of-memory",
     "A request beyond all memory is refused as out of memory, and then the allocator still works.",
     "KuiperLLama logs and returns null"),
    ("A07-free-accepts", "A live block can be given back.", "KuiperLLama: fatal after a reclaim"),
    ("A08-size-known", "A block that knows its size has at least the bytes asked for.", "cuda.core Buffer.size"),
    ("A09-zero-size", "A request for zero bytes does what the record says, and never gives memory that is in use.",
     "KuiperLLama hands out any idle buffer"),
    ("A10-wrong-size", "A sized free with a wrong size is treated as the record says.", "RMM, sized deallocate"),
    ("A11-foreign-free", "Freeing what was never allocated is treated as the record says.", "C17 7.22.3.3"),
    ("A12-double-free", "Freeing twice is treated as the record says.", "KuiperLLama counts it twice"),
    ("A13-zeroed", "Memory is zero where that is promised: by the record, or by a calloc.",
     "NEP 49; mini-caffe drops the zeroing"),
    ("A14-resize-keeps", "A resized block keeps its bytes, up to the smaller size.", "C17 7.22.3.5; NEP 49"),
    ("A15-copies", "A copy moves the bytes asked for, from the source, and no others; zero bytes need no memory.",
     "KuiperLLama: null is checked before the size"),
    ("A16-no-leaks", "What is given back can be used again, or is gone.", "KuiperLLama, two defects of release"),
    ("A17-statistics", "What the allocator says of itself agrees with the shadow heap.", "RMM statistics adaptor"),
    ("A18-limit", "Live memory stays within the limit, and what is far below it is served.",
     "RMM limiting adaptor; CuPy set_limit"),
    ("A19-stream-order",
     "A block freed with work pending on its stream goes to no other stream before that work is done.",
     "KuiperLLama; PyTorch record_stream"),
    ("A20-threads", "All of this holds when several threads call at once.", "KuiperLLama has no locks"),
    ("A21-device-kept", "The device that is current stays current.",
     "KuiperLLama: was 3, became 0 after a release"),
    ("A22-no-crash", "No call ends the process.", "KuiperLLama alloc_cu.cpp:12-13 at 978789f, a failed CHECK is fatal"),
    ("A23-no-hang", "Every call returns.", "a pool that waits for its own lock"),
    ("A24-closes", "An allocator with nothing left in use can be closed.", "rmm#157, teardown"),
)  # fmt: skip

ALLOCATOR_NEEDS: dict[str, str] = {
    "A03": "alignment",
    "A10": "wrong_size",
    "A11": "foreign_free",
    "A12": "double_free",
    "A19": "stream_ordered",
    "A20": "thread_safe",
}
"""The entry of the capability record without which a requirement is not checked."""
