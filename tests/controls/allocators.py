"""The right allocators of ``allocators.c`` and ``python_allocators.py``.

Of each: which freedom it takes, who allows it, and what its wrong twin breaks.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_suffix(".c")
IN_PYTHON = Path(__file__).with_name("python_allocators.py")
PRELOADED = Path(__file__).with_name("preloaded.c")
TWINS = "twins"
"""What a library of twins is called."""


class Control(NamedTuple):
    """A right allocator, which has to pass, and the requirements of which its wrong twin has to break one.

    It is no `controls.registry.Control`: it is functions in C, by their names and with promises, and one of several
    requirements may see its twin first.
    """

    name: str
    freedom: str
    source: str
    broken: frozenset[str]
    promises: dict[str, str]
    others: str

    def target(self, library: Path) -> str:
        """Its functions in a library, or its class; that of its twin if the library is one of twins."""
        if self.name == "preloaded":
            return f"{preloaded_beside(library)}:malloc,free,calloc,realloc"
        if self.name[0].isupper():
            return f"{IN_PYTHON}:{'Wrong' * (library.stem == TWINS)}{self.name}"
        return f"{library}:{self.name}_malloc,{self.name}_free{self.others}"


def preloaded_beside(library: Path) -> Path:
    """Where the library for preloading is, beside another one of controls or of twins."""
    return library.with_name(f"preloaded-{library.name}")


def _control(name: str, freedom: str, source: str, broken: str, others: str = "", **promises: str) -> Control:
    return Control(name, freedom, source, frozenset(broken.split()), promises, others)


CONTROLS = {
    control.name: control
    for control in (
        _control("mutex", "a mutex that a fork may find locked", "POSIX fork, pthread_atfork", "A23"),
        _control("spin", "a lock that spins", "C17 7.17.8", "A06"),
        _control("bare", "no lock", "rmm: pool_memory_resource; not thread-safe", "A01", thread_safe="no"),
        _control("cache", "a cache of a thread that is lost with it", "jemalloc: tcache without a destructor", "A16"),
        _control("leaving", "a cache of a thread that others get", "jemalloc: tcache; pthread_key_create", "A01"),
        _control("arena", "a free that does nothing, and no reset", "APR pools", "A02", reuse="no"),
        _control("reset", "a free that does nothing, and a reset", "APR pools", "A16", ",reset=reset_reset"),
        _control("stack", "only the last block is freed", "GNU obstack", "A01 A02", ",reset=stack_reset"),
        _control("mark", "a reset to a mark", "LLVM BumpPtrAllocator", "A16", ",reset=mark_reset"),
        _control("zero", "new memory is zero", "NEP 49: calloc", "A13", zeroed="yes"),
        _control("poison", "what is free and new is written to", "jemalloc: junk; glibc: M_PERTURB", "A04 A14 A22"),
        _control("wait", "freed blocks wait in a quarantine", "AddressSanitizer: quarantine_size_mb", "A16"),
        _control(
            "twice", "sizes are rounded up to twice", "malloc_usable_size(3)", "A01 A02 A04 A08 A22",
            ",malloc_usable_size=twice_malloc_usable_size",
        ),
        _control("tail", "a mark behind each block", "dmalloc: fence-post", "A04 A22"),
        _control("odd", "no alignment, and no reuse", "rmm: alignment", "A02", alignment="1", reuse="no"),
        _control("page", "every block has pages of its own", "Electric Fence", "A03", alignment="4096"),
        _control("null", "nothing is null", "C17 7.22.3", "A09", zero_size="null"),
        _control("unique", "nothing has an address of its own", "C17 7.22.3", "A09", zero_size="unique"),
        _control("slow", "each call takes a millisecond", "cudaMalloc", "A06"),
        _control("lazy", "the first call takes long", "malloc_init of jemalloc", "A01 A04"),
        _control("limit", "sizes above a limit are refused", "C17 7.22.3; ulimit -v", "A06"),
        _control("random", "one request of four is refused", "C17 7.22.3; failmalloc", "A16"),
        _control("once", "what is below refuses now and then", "rmm: failure_callback", "A16"),
        _control("budget", "what is live has a limit, and is refused beyond it", "C17 7.22.3; ulimit -v", "A16"),
        _control("slab", "memory is kept in slabs for ever", "memcached: slabs", "A01 A02 A04 A22"),
        _control("ahead", "a head before each block", "dlmalloc: chunks", "A22"),
        _control("behind", "a head after each block", "dlmalloc: FOOTERS", "A22"),
        _control("wide", "every block begins a cache line", "oneTBB: cache_aligned_allocator", "A03", alignment="64"),
        _control("direct", "large blocks are mapped, and unmapped at once", "mallopt(3): M_MMAP_THRESHOLD", "A16"),
        _control("buddy", "buddies that become one", "Knuth 2.5; Linux: page allocator", "A01 A02 A04 A22"),
        _control("best", "the best fit is split, and holes become one", "dlmalloc: best fit", "A01 A02 A04 A22"),
        _control("bitmap", "a bit for each sixteen bytes", "jemalloc: bitmap of a slab", "A01 A02"),
        _control("fifo", "the block that was freed first comes first", "C17 7.22.3, order unspecified", "A01 A04"),
        _control("kept", "a list for each size, which is never trimmed", "mallopt(3): M_MXFAST", "A02 A04 A22"),
        _control("shard", "a lock and a pool for each of some shards", "ptmalloc: arenas", "A01"),
        _control("atomic", "no locks, so that handlers of signals may call it", "C17 7.14.1.1, lock-free", "A01"),
        _control("deferred", "frees are put down, and done later", "mimalloc: delayed frees", "A01 A04 A22 A23"),
        _control("bounded", "one idle block of a class is kept", "glibc.malloc.tcache_count", "A16"),
        _control("trim", "its own thread gives idle blocks back", "jemalloc: background_thread", "A01 A04 A22 A23"),
        _control("queued", "its own thread frees late", "liburcu: call_rcu", "A16"),
        _control("fork", "a fork while others call", "POSIX pthread_atfork", "A27", fork_safe="yes"),
        _control(
            "inplace", "a resize stays if there is room", "C17 7.22.3.5", "A01 A02 A04 A14 A22",
            ",realloc=inplace_realloc",
        ),
        _control("moving", "a resize always moves", "C17 7.22.3.5", "A14", ",realloc=moving_realloc"),
        _control("vanish", "a resize to nothing frees", "POSIX realloc; glibc", "A26", ",realloc=vanish_realloc"),
        _control("remain", "a resize to nothing is a block", "POSIX realloc; musl", "A26", ",realloc=remain_realloc"),
        _control(
            "class", "aligned blocks are in a class of their own", "C17 7.22.3.1", "A03",
            ",aligned_alloc=class_aligned_alloc",
        ),
        _control(
            "posix", "aligned blocks by posix_memalign alone", "POSIX posix_memalign", "A26",
            ",posix_memalign=posix_posix_memalign",
        ),
        _control(
            "sized", "a free that believes the size", "C23 7.24.3.4; jemalloc: sdallocx", "A01 A02 A04 A22",
            ",free_sized=sized_free_sized",
        ),
        _control(
            "exact", "usable is what was asked for", "malloc_usable_size(3)", "A08",
            ",malloc_usable_size=exact_malloc_usable_size",
        ),
        _control("fresh", "what is new is not zeroed again", "glibc: calloc", "A13", ",calloc=fresh_calloc"),
        _control("dirty", "only a free writes to a block", "jemalloc: junk:free", "A04"),
        _control("quiet", "a free keeps errno", "POSIX.1-2024 free", "A26", errno_kept="yes"),
        _control("handler", "blocks have no heads", "NEP 49", "A01 A02 A04 A22", ",handler_calloc?abi=nep49"),
        _control("preloaded", "it defines malloc, and is for preloading", "Electric Fence; ld.so(8)", "A06"),
        _control("Asked", "statistics of what was asked for", "rmm: statistics_resource_adaptor", "A16 A17"),
        _control("Rounded", "statistics of what was rounded up", "CuPy: MemoryPool.used_bytes", "A16 A17"),
        _control("RefusedOnce", "what is below refuses once in a while", "rmm: failure_callback", "A16"),
        _control("Budget", "what is live has a limit that is told", "rmm: limiting_resource_adaptor", "A16 A17 A18"),
        _control("Aligned", "a request names an alignment", "std::pmr::monotonic_buffer_resource", "A03", reuse="no"),
        _control("TellsSizes", "a wrong size is refused", "ASan: new_delete_type_mismatch", "A10", wrong_size="detect"),
        _control("TellsTwice", "a second free is refused", "C17 7.22.3.3, undefined", "A12", double_free="detect"),
        _control("Dropped", "a block that nobody refers to is freed", "CuPy: MemoryPointer", "A08"),
        _control("Events", "others get it after an event", "CUDA: AllowOpportunistic", "A19", stream_ordered="yes"),
        _control("Waits", "others wait for an event", "rmm: cudaStreamWaitEvent", "A19", stream_ordered="yes"),
    )
}  # fmt: skip
