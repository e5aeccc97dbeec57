"""What a buffer must do, sentence by sentence.

F01 to F20 are about `syncedmem.runtime.Buffer`, or any class with its interface: bytes on one device, with an owner.
Sources: where the sentence is written down, or where somebody got it wrong.
"""

from __future__ import annotations

__all__ = ["BUFFER", "BUFFER_NEEDS"]

BUFFER: tuple[tuple[str, str, str], ...] = (
    ("F01-zero-bytes", "A buffer of zero bytes has no memory, and a copy from it or to it changes nothing.",
     "KuiperLLama buffer.cpp, a size of zero is not looked at"),
    ("F02-allocates", "A buffer with an allocator has exactly the requested bytes, in one block of that allocator.",
     "KuiperLLama buffer.h"),
    ("F03-released-once", "Its own memory is released once: by close, by the end of a with block, or if it is dropped.",
     "KuiperLLama buffer.cpp, the destructor"),
    ("F04-external", "External memory is used in place, kept alive, and never released.",
     "KuiperLLama buffer.h, use_external"),
    ("F05-handed-over", "A block that is handed over is released by the buffer.", "KuiperLLama buffer.h, use_external"),
    ("F06-allocate", "allocate gives new memory and releases the old; it opens a closed buffer again.",
     "KuiperLLama buffer.cpp, the old memory leaks"),
    ("F07-failure-unchanged", "An allocate that fails leaves the memory and its bytes as they were, and leaks nothing.",
     "KuiperLLama buffer.cpp, the pointer is overwritten"),
    ("F08-copies", "A copy between any two places copies all bytes of the source, and changes no others.",
     "KuiperLLama buffer.cpp, external memory cannot be copied to"),
    ("F09-too-long", "A source that is longer than the buffer is refused, and nothing is changed.",
     "KuiperLLama buffer.cpp, the rest is lost silently"),
    ("F10-no-memory", "A copy from or to a buffer without memory is refused.",
     "KuiperLLama buffer.cpp tests null with || and not with &&"),
    ("F11-bad-arguments", "A wrong size, allocator, memory or source is refused, and says so.",
     "KuiperLLama takes any pointer"),
    ("F12-queued", "Copies that are queued on streams are over when the memory of either buffer goes.",
     "cuda-python#779, which stream frees"),
    ("F13-in-order", "A copy without a stream comes after the copies that are queued from and to both buffers.",
     "KuiperLLama mixes the default stream with others"),
    ("F14-lost-told", "A queued copy that was lost is reported once, also if another copy was queued after it.",
     "cudaStreamSynchronize returns the errors of earlier calls"),
    ("F15-need-sync", "need_sync waits for all work of the device, also in a copy of zero bytes.",
     "KuiperLLama returns before need_sync is looked at"),
    ("F16-device-type", "A buffer says where its memory is: with an allocator there, else on the host, else nowhere.",
     "KuiperLLama buffer.h, device_type_ is set by hand"),
    ("F17-closed", "A closed buffer has no memory, and with refuses it.", "PEP 343; files"),
    ("F18-not-copied", "The object cannot be copied or pickled, as two would release one block.",
     "KuiperLLama, NoCopyable"),
    ("F19-threads", "Threads may copy between two buffers in opposite directions, and none waits for ever.",
     "two locks in two orders"),
    ("F20-reentrant", "A call from inside a call of the same buffer is refused, and the buffer is as it was.",
     "finalisers and allocators that call back"),
)  # fmt: skip

BUFFER_NEEDS: dict[str, str] = dict.fromkeys(("F12", "F13", "F14", "F15"), "device")
"""What a subject must offer for a requirement to be testable: host memory has no streams."""
