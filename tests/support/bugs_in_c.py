"""The allocators of ``faulty_allocators.c``: what each does wrong, and which property the fuzzer names."""

from __future__ import annotations

from typing import NamedTuple


class BugInC(NamedTuple):
    """A faulty pair in ``faulty_allocators.c``."""

    symbols: str
    requirement: str
    source: str
    promises: dict[str, str]
    threads: int = 1
    abi: str = "malloc"


IN_C = (
    BugInC("twice_malloc,twice_free", "A01-distinct-pointers", "a cache that keeps what it hands out", {}),
    BugInC("overlap_malloc,overlap_free", "A02-no-overlap", "an end counted as inside", {"alignment": "1"}),
    BugInC("skewed_malloc,skewed_free", "A03-aligned", "a header of four bytes", {}),
    BugInC("marking_malloc,marking_free", "A04-contents-kept", "a header at the wrong address", {}),
    BugInC("cut_malloc,cut_free", "A06-out-of-memory", "Caffe: size -1655996416", {}),
    BugInC("wrapping_malloc,wrapping_free,wrapping_calloc", "A06-out-of-memory", "CVE-2002-0391: calloc", {}),
    BugInC("idle_malloc,idle_free", "A09-zero-size", "KuiperLLama: any idle buffer", {"zero_size": "null"}),
    BugInC("dirty_malloc,dirty_free,dirty_calloc", "A13-zeroed", "NEP 49", {}),
    BugInC("moving_malloc,moving_free,moving_calloc,moving_realloc", "A14-resize-keeps", "C17 7.22.3.5", {}),
    BugInC("hasty_malloc,hasty_free,hasty_calloc,hasty_realloc", "A04-contents-kept", "C17 7.22.3.5", {}),
    BugInC(
        "forgetting_malloc,forgetting_free,forgetting_calloc,forgetting_realloc", "A16-no-leaks", "C17 7.22.3.5", {}
    ),
    BugInC("leaky_malloc,leaky_free", "A16-no-leaks", "KuiperLLama: big buffers are never freed", {}),
    BugInC("hoarding_malloc,hoarding_free", "A16-no-leaks", "a class that has no list of free blocks", {}),
    BugInC("racing_malloc,racing_free", "A20-threads", "KuiperLLama: no locks", {}, threads=4),
    BugInC("unchecked_malloc,unchecked_free", "A22-no-crash", "KuiperLLama alloc_cpu.cpp:28-29, malloc unchecked", {}),
    BugInC(
        "fatal_malloc,fatal_free",
        "A22-no-crash",
        "KuiperLLama alloc_cu.cpp:12-13 at 978789f, a failed CHECK is fatal",
        {},
    ),
    BugInC("starving_malloc,starving_free", "A25-no-starvation", "memcached, slab calcification", {}),
    BugInC("halving_malloc,halving_free", "A04-contents-kept", "a class that is too small", {}),
    BugInC("narrow_malloc,narrow_free", "A02-no-overlap", "a size of 32 bits", {}),
    BugInC("headed_malloc,headed_free", "A06-out-of-memory", "CWE-190: a header added before the check", {}),
    BugInC("small_malloc,small_free,small_calloc", "A06-out-of-memory", "CWE-190: a product of 32 bits", {}),
    BugInC("early_malloc,early_free", "A01-distinct-pointers", "a table that is filled while the first calls run", {}),
    BugInC("aging_malloc,aging_free", "A01-distinct-pointers", "a counter of frees that runs over", {}),
    BugInC("leaving_malloc,leaving_free", "A22-no-crash", "a limit of requests that ends the process", {}),
    BugInC("fussy_malloc,fussy_free", "A22-no-crash", "C17 7.22.3.3: a free of null does nothing", {}),
    BugInC("null_malloc,null_free,realloc=null_realloc", "A26-c-contracts", "C17 7.22.3.5: a null that is resized", {}),
    BugInC("kept_malloc,kept_free,realloc=kept_realloc", "A26-c-contracts", "C17 7.22.3.5: a size of 0", {}),
    BugInC("lax_malloc,lax_free,posix_memalign=lax_memalign", "A26-c-contracts", "POSIX: EINVAL", {}),
    BugInC("rounding_malloc,rounding_free,aligned_alloc=rounding_at", "A06-out-of-memory", "CVE-2013-4332", {}),
    BugInC("paged_malloc,paged_free,posix_memalign=paged_memalign", "A03-aligned", "an alignment beyond a page", {}),
    BugInC("loud_malloc,loud_free", "A26-c-contracts", "POSIX 2024: free keeps errno", {"errno_kept": "yes"}),
    BugInC("locked_malloc,locked_free", "A27-survives-fork", "POSIX pthread_atfork: a mutex", {"fork_safe": "yes"}),
    BugInC("stuck_malloc,stuck_free", "A23-no-hang", "a wait that nobody ends", {}),
)
