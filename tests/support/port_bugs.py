"""Bugs for the C++ port of ``examples/ports``: each replaces a piece of its text, and the kit has to find it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HARMLESS", "NOT_IN_VECTORS", "PORT_BUGS", "PortBug"]


class PortBug(NamedTuple):
    """A bug.

    Attributes
    ----------
    name : str
    old, new : str
        The piece of text, which is there once, and its replacement.
    found : str
        The requirement that the kit has to name.
    says : str
        A regular expression for the message.
    file : str
    """

    name: str
    old: str
    new: str
    found: str
    says: str
    file: str = "syncedmem.hpp"

    @property
    def of_blobs(self) -> bool:
        """Whether it is a bug of blobs."""
        return self.name.startswith("of blobs")

    def seed(self, folder: Path) -> None:
        """Seed it in a copy of the port."""
        path = folder / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, self.name
        path.write_text("#include <cstdio>\n#include <cstdlib>\n" + text.replace(self.old, self.new), encoding="utf-8")


_COPY = "from_.copy(here, pointers_[other], size_);"
_PUSH = "from_.copy_async(here, pointers_[other], size_, with.stream);"
_LAST_STREAM = """struct Last {
    bool flying = false;
    static inline void *stream = nullptr;
    void operator=(void *used) { flying = true; stream = used; }
    explicit operator bool() const { return flying; }
    void *operator*() const { return stream; }
    void reset() { flying = false; }
  } in_flight_;"""
_TRIED = 'tried(it_.copy(it_.context, to, from, size), "copy");'
_FREE = "from_.free(owned_[side].get_deleter().kind, here);"
_ZERO = "from_.zero(here, size_);"
_COMMIT = "facts_ = smd_facts_after(row, facts_, mode);"

_DATA = "if (with.data != nullptr) check("
_NO_ROW = "if (row->refusal != SMD_REFUSED_NONE) throw Refused(row->refusal, row->id);"
_WAIT = "if (in_flight_) from_"
_TOUCH = "*static_cast<volatile char *>"
_OWN_ADOPTED = "if (call == SMD_SET_CPU_DATA) owned_[SMD_CPU] = Block(with.data, Free{&from_, SMP_HOST});"
_EAGER = "from_.free(SMP_HOST, from_.allocate(SMP_HOST, size));"
_HEAD = "smd_head head_ = SMD_UNINITIALIZED;"

_BLOB = "blob.hpp"
_SCALED = "for (std::int64_t k = 0; k < count_; ++k) at[k] *= factor;"
_UPDATED = "for (std::int64_t k = 0; k < count_; ++k) data[k] -= diff[k];"
_WRITTEN = 'require(parts_[DATA]->head() != SMD_UNINITIALIZED, "the data was never written");'
_BY_HEAD = "const bool up = on_device(part);"

PORT_BUGS = (
    # It ends, or does not come back.
    PortBug(
        "crashes in a push", _PUSH, f"{_PUSH} {_TOUCH}(nullptr) = 0;",
        "P01", r"async_gpu_push: the program was ended by SIGSEGV; .*the port touched memory that was not lent, at 0x0",
    ),
    PortBug(
        "aborts when it adopts", _DATA, f"if (with.data != nullptr) std::abort(); {_DATA}",
        "P01", "set_cpu_data: the program was ended by SIGABRT",
    ),
    PortBug(
        "exits on release", "void release() { call(SMD_RELEASE); }", "void release() { std::exit(0); }",
        "P01", "drop: the program ended with status 0",
    ),
    PortBug(
        "hangs while it waits", _WAIT, f"for (volatile int k = 0; in_flight_; ++k) {{}} {_WAIT}",
        "P01", "release: the program was ended after 2 seconds",
    ),
    PortBug(
        "returns an unknown status", "return SMP_REFUSED;", "return 7;",
        "P01", "call returned 7, which is none of SMP_OK, SMP_REFUSED and SMP_FAILED", "port.cpp",
    ),
    # It touches what it may not touch.
    PortBug(
        "uses what it has freed", _FREE, f"{_FREE} if (side == SMD_CPU) {_TOUCH}(here) = 0;",
        "P01", "release: .*the port touched byte 0 of a freed page-locked block of 1 bytes",
    ),
    PortBug(
        "writes one byte too far", _ZERO, f"{_ZERO} if (side == SMD_CPU) static_cast<char *>(here)[size_] = 0;",
        "P01", "in cpu_data the port wrote after the end of a block of 1 bytes",
    ),
    PortBug(
        "writes device memory on the host", _ZERO, f"{_ZERO} if (side == SMD_GPU) {_TOUCH}(here) = 0;",
        "P01", "gpu_data: .*the port touched byte 0 of a device block, which only copies and fills may touch",
    ),
    PortBug(
        "makes another device current", _TRIED, f"it_.set_device(it_.context, 1); {_TRIED}",
        "P01", "in gpu_data the port made device 1 current, and there is only device 0",
    ),
    # It copies and fills wrongly.
    PortBug(
        "copies one byte too few", _COPY, "from_.copy(here, pointers_[other], size_ - 1);",
        "R04", "copy of 0 bytes, the size is 1",
    ),
    PortBug(
        "skips every 13th copy", _COPY, f"static int copies = 0; if (++copies % 13 != 0) {_COPY}",
        "R08", r"expected allocate gpu, copy gpu \(in run 13 of the same steps, in one process\)",
    ),
    PortBug(
        "copies in the wrong direction", _COPY, "from_.copy(pointers_[other], here, size_);",
        "R08", "saw allocate gpu, copy cpu, expected allocate gpu, copy gpu",
    ),
    PortBug(
        "copies at most 65,536 bytes", _COPY, "from_.copy(here, pointers_[other], size_ > 65536 ? 65536 : size_);",
        "R04", "copy of 65536 bytes, the size is 65537",
    ),
    PortBug("does not zero", _ZERO, "", "R05", "saw allocate cpu, expected allocate cpu, zero cpu"),
    # Pushes.
    PortBug("forgets the push", _PUSH, "", "R21", "saw allocate gpu, expected allocate gpu, push gpu"),
    PortBug(
        "pushes on the default stream", _PUSH, "from_.copy_async(here, pointers_[other], size_, nullptr);",
        "R58", "the push was queued on the default stream, not on stream ",
    ),
    PortBug("waits in the push", _PUSH, f"{_PUSH} from_.synchronize(with.stream);", "R21", "waited for its copy"),
    PortBug(
        "never waits for a push", "if (call != SMD_CPU_DATA) wait();", "",
        "R42", "freed memory while a push still used it",
    ),
    PortBug(
        "waits for the stream that was used last", "std::optional<void *> in_flight_;", _LAST_STREAM,
        "R42", "freed memory while a push still used it",
    ),
    # It owns wrongly.
    PortBug("leaks", _FREE, "", "R27", "saw nothing, expected free cpu"),
    PortBug(
        "leaks after a failure", "from->free(kind, pointer); }", "(void)pointer; }",
        "R33", "still allocated after the failure: 1 bytes on cpu, page-locked",
    ),
    PortBug("frees twice", _FREE, f"{_FREE} {_FREE}", "R28", "asked to free memory that is not allocated"),
    PortBug(
        "frees again when it is destroyed", "(void)owned_[side].release();", "",
        "R28", "asked to free memory that is not allocated",
    ),
    PortBug(
        "frees the buffer of the caller", _COMMIT, f"{_COMMIT} {_OWN_ADOPTED}",
        "R18", "asked to free external memory",
    ),
    PortBug(
        "frees page-locked memory as pageable", "get_deleter().kind, here", "get_deleter().kind * 0, here",
        "R25", "asked to free page-locked memory as pageable",
    ),
    PortBug(
        "leaks when it is destroyed", "delete static_cast<Memory *>(memory);", "(void)memory;",
        "P04", "still allocated after the memory was dropped: 1 bytes on cpu", "port.cpp",
    ),
    # It adopts what it must refuse.
    PortBug("adopts its own buffer", "if (own != nullptr &&", "if (false &&", "R35", "the last call was not refused"),
    PortBug(
        "adopts a part of its own buffer", "if (own != nullptr &&", "if (own == given &&",
        "R35", "the last call was not refused",
    ),
    PortBug("adopts a short buffer", "if (with.size < size_) throw", "if (false) throw", "R36", "was not refused"),
    PortBug(
        "adopts device memory as host memory", "if ((with.kind == SMP_DEVICE) != (side == SMD_GPU)) throw",
        "if (false) throw", "R39", "the last call was not refused",
    ),
    PortBug("allocates eagerly", "size_(size) {}", f"size_(size) {{ {_EAGER} }}", "R01", "saw allocate cpu"),
    # It says something else than what it does.
    PortBug(
        "has a wrong flag", _COMMIT, "facts_ = smd_facts_after(row, facts_, SMD_MODE_GPU);",
        "R24", "cpu_malloc_use_cuda is True, expected False",
    ),
    PortBug(
        "owns what it adopted", _COMMIT, f"{_COMMIT} if (with.data != nullptr) facts_ |= SMD_OWN_CPU_DATA;",
        "R23", "own_cpu_data is True, expected False",
    ),
    PortBug("refuses nothing", _NO_ROW, "", "R22", "async_gpu_push was not refused"),
    PortBug(
        "refuses what is allowed", "released_ && call", "(released_ || head_ == SMD_SYNCED) && call",
        "R10", "cpu_data was refused",
    ),
    PortBug(
        "shares its head", f"  {_HEAD}", f"  static inline {_HEAD}",
        "R02", "the head is HEAD_AT_CPU, expected UNINITIALIZED",
    ),
    PortBug(
        "moves the head before it copies", "    Blocks fresh;", "    head_ = row->dest; Blocks fresh;",
        "R32", "the head is HEAD_AT_CPU, expected UNINITIALIZED",
    ),
    PortBug(
        "lives on after release", "released_ && call", "false && call",
        "R48", "saw allocate (cpu, zero c|gpu, zero g)pu, expected nothing",
    ),
    # Its blobs.
    PortBug(
        "of blobs: aborts in an update", _WRITTEN, f"{_WRITTEN} if (on_device(DIFF)) std::abort();",
        "P01", "ended by SIGABRT", _BLOB,
    ),
    PortBug(
        "of blobs: computes on the device without a kernel", "if (!up) return body();", "return body();",
        "P01", "a device block, which only copies and fills may touch", _BLOB,
    ),
    PortBug(
        "of blobs: scales one element too many", _SCALED, _SCALED.replace("k < count_", "k <= count_"),
        "P01", "the port wrote after the end of a block", _BLOB,
    ),
    PortBug(
        "of blobs: forgets the last element", _UPDATED, _UPDATED.replace("k < count_", "k + 1 < count_"),
        "B28", "the cpu side holds", _BLOB,
    ),
    PortBug(
        "of blobs: adds the diff", "data[k] -= diff[k]", "data[k] += diff[k]",
        "B28", "the cpu side holds", _BLOB,
    ),
    PortBug(
        "of blobs: sums signed numbers", "return std::fabs(number);", "return number;",
        "B31", "asum_data is -.*, expected", _BLOB,
    ),
    PortBug(
        "of blobs: scales on the side of the mode", f"{_BY_HEAD}\n    T *const",
        "const bool up = mode == SMD_MODE_GPU;\n    T *const",
        "B36", "saw allocate gpu 24 bytes, copy gpu 24 bytes, expected nothing", _BLOB,
    ),
    PortBug(
        "of blobs: copies on the side of the head", "const bool up = mode == SMD_MODE_GPU;", _BY_HEAD,
        "B43", "saw allocate cpu 24 bytes, zero cpu 24 bytes, expected allocate gpu 24 bytes", _BLOB,
    ),
    PortBug(
        "of blobs: shares nothing", "parts_[part] = other.parts_[part];", "(void)part;",
        "B26", "blobs that share a memory hold different ones", _BLOB,
    ),
    PortBug(
        "of blobs: keeps the diff when it adopts", "if (part == DATA) parts_[DIFF] = diff;", "",
        "B24", "data and diff have .24, 48. bytes", _BLOB,
    ),
    PortBug(
        "of blobs: leaks", "delete static_cast<AnyBlob *>(blob);", "(void)blob;",
        "B60", "bytes on cpu, expected nothing", "port_blobs.cpp",
    ),
)  # fmt: skip

NOT_IN_VECTORS = {
    "makes another device current": "the runner does not compare devices",
    "pushes on the default stream": "vectors do not say which stream a push is on",
    "uses what it has freed": "the runner does not protect memory",
    "writes device memory on the host": "the runner does not protect memory",
    "waits in the push": "vectors do not say when a push is done",
    "never waits for a push": "vectors of Caffe do not ask for it",
    "waits for the stream that was used last": "vectors of Caffe do not ask for it",
    "frees again when it is destroyed": "nothing is compared after the last step",
    "leaks when it is destroyed": "nothing is compared after the last step",
    "adopts a short buffer": "the buffers of vectors are long enough",
    "adopts device memory as host memory": "the buffers of vectors are of their side",
    "allocates eagerly": "making a memory is no step",
    "lives on after release": "vectors of Caffe do not ask for it",
}
"""The bugs that the runner of vectors in C does not see, and why."""

HARMLESS = PortBug("prints", _ZERO, f'{_ZERO} std::puts("zeroed");', "", "")
"""A library may print: the harness keeps its standard output away from the protocol."""
