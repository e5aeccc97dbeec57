"""The right allocators of ``allocators.c``: which freedom each takes, who allows it, and what its wrong twin breaks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_suffix(".c")


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
        """Its functions in a library."""
        return f"{library}:{self.name}_malloc,{self.name}_free{self.others}"


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
    )
}  # fmt: skip
