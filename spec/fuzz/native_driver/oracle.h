/* The oracle in C: which memory the live blocks have, what is in it, and how each convention is called.

   It judges as the oracle in Python does (oracle.py, shadow_heap.py, access.py), but for any number of threads and about
   a hundred times as fast.  Whoever includes this file defines wrong(). */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------------------- the target */

/* What a function may be called with: the letters are those of the calls of c_functions.py. */
enum argument { NUMBER_0, NUMBER_1, SIZE, POINTER, OBJECT, ALIGNMENT_16, OLD_SIZE };
#define ARGUMENTS "01spoal"

/* A function and what it is called with, in its order.  An argument that a function does not have lies in a register that
   it does not look at. */
struct function {
    void *address; /* null if the target has none */
    unsigned count, arguments[5];
};

static struct target {
    struct function take, give, take_zeroed, change;
} target;

static uintptr_t object; /* that the library made, if its functions take one */

static void *called(const struct function *function, void *pointer, size_t size, size_t old) {
    const unsigned *at = function->arguments;
    if (function->count == 1) /* nearly always */
        return ((void *(*)(uintptr_t))function->address)(at[0] == SIZE ? size : (uintptr_t)pointer);
    uintptr_t values[] = {0, 1, size, (uintptr_t)pointer, object, 16, old};
    return ((void *(*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t))function->address)(
        values[at[0]], values[at[1]], values[at[2]], values[at[3]], values[at[4]]
    );
}

static void *take(size_t size) { return called(&target.take, NULL, size, 0); }

static void give(void *pointer, size_t size) { called(&target.give, pointer, size, 0); }

/* ------------------------------------------------------------------------------------------------ promises */

/* In the order of the choices in capabilities.py. */
enum zero_size { ZERO_ANY, ZERO_NULL, ZERO_UNIQUE, ZERO_ERROR };

/* The promises that are judged here, by their names in capabilities.py, which passes all of them as numbers. */
#define PROMISES(PROMISE) \
    PROMISE(alignment) /* a power of two */ \
    PROMISE(zero_size) /* an enum zero_size */ \
    PROMISE(zeroed) /* whether all memory is zero when it comes */ \
    PROMISE(reuse) /* whether freed memory is lent again */ \
    PROMISE(null) /* whether null means that there is no memory */

static struct promises {
#define MEMBER(name) uint64_t name;
    PROMISES(MEMBER)
} promises = {.alignment = 1};

/* ------------------------------------------------------------------------------------------------ findings */

struct block {
    uintptr_t address;
    size_t size;
    uint64_t key; /* what its contents are computed from */
    uint32_t number;
};

/* Report a block, and never return; for a requirement that is left unjudged, do nothing. */
static void wrong(const char *requirement, const struct block *block, const char *what);

/* -------------------------------------------------------------------------------------------------- claims

   One bit for each granule of the address space.  A live block has claimed the bits of its memory, so a block that
   overlaps another one claims a bit that is set.  All blocks begin at multiples of a granule (A03 is judged before, and
   where it is not, a granule is a byte), so two blocks that share no byte share no granule.

   The bits are relaxed atomics.  They must not order the threads: that would hide races of the target. */

#define REGION_BITS 26
#define ADDRESS_BITS 47
#define MOST_GRANULE_BITS 4

static uint64_t *regions[1 << (ADDRESS_BITS - REGION_BITS)];
static unsigned granule_bits;
static int shared; /* whether several threads claim */

static void claims_begin(uint64_t alignment, int threads) {
    while (granule_bits < MOST_GRANULE_BITS && alignment >> (granule_bits + 1)) granule_bits++;
    shared = threads > 1;
}

static uint64_t *region_made(uint64_t **place) {
    size_t size = (size_t)1 << (REGION_BITS - granule_bits - 3);
    void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t *before = NULL;
    if (made == MAP_FAILED) _exit(125);
    if (__atomic_compare_exchange_n(place, &before, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
    munmap(made, size);
    return before;
}

/* The word with the bits of 64 granules. */
static uint64_t *claims_at(uint64_t word) {
    unsigned bits = REGION_BITS - granule_bits - 6;
    uint64_t **place = &regions[word >> bits];
    uint64_t *region = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!region) region = region_made(place);
    return region + (word & (((uint64_t)1 << bits) - 1));
}

static int claimed(uintptr_t address) {
    uint64_t granule = address >> granule_bits;
    return address >> ADDRESS_BITS == 0 && *claims_at(granule >> 6) >> (granule & 63) & 1;
}

static int claimable(uintptr_t address, size_t size) {
    return size && address + size > address && (address + size - 1) >> ADDRESS_BITS == 0;
}

/* The bits of one word that the granules from first to last have. */
static uint64_t claim_mask(uint64_t word, uint64_t first, uint64_t last) {
    uint64_t mask = ~(uint64_t)0;
    if (word == first >> 6) mask &= ~(uint64_t)0 << (first & 63);
    if (word == last >> 6) mask &= ~(uint64_t)0 >> (63 - (last & 63));
    return mask;
}

/* Claim memory; false if some of it is claimed already. */
static int claim(uintptr_t address, size_t size) {
    uint64_t first = address >> granule_bits, last = (address + size - 1) >> granule_bits;
    if (!claimable(address, size)) return 1;
    for (uint64_t word = first >> 6; word <= last >> 6; word++) {
        uint64_t mask = claim_mask(word, first, last), before, *bits = claims_at(word);
        if (shared) {
            before = __atomic_fetch_or(bits, mask, __ATOMIC_RELAXED);
        } else {
            before = *bits;
            *bits = before | mask;
        }
        if (before & mask) return 0;
    }
    return 1;
}

/* Give claimed memory back.  This comes before the call that frees it: another thread may get it at once. */
static void unclaim(uintptr_t address, size_t size) {
    uint64_t first = address >> granule_bits, last = (address + size - 1) >> granule_bits;
    if (!claimable(address, size)) return;
    for (uint64_t word = first >> 6; word <= last >> 6; word++) {
        uint64_t mask = claim_mask(word, first, last), *bits = claims_at(word);
        if (shared) __atomic_fetch_and(bits, ~mask, __ATOMIC_RELAXED);
        else *bits &= ~mask;
    }
}

/* ------------------------------------------------------------------------------------------------ contents

   Word i of a block with key k is k + i * STRIDE.  Small blocks are filled whole, and one in 32 of the others; of the
   rest the first and the last bytes and a word of each page are written.  The key says which, so a check looks at what
   was written. */

#define STRIDE 0x9E3779B97F4A7C15u
#define WHOLE 512
#define EDGE 128
#define PAGE 4096

typedef uint64_t word_anywhere __attribute__((aligned(1), may_alias));

static int is_whole(const struct block *block) { return block->size <= WHOLE || block->key % 32 == 0; }

/* Write the bytes from a multiple of 8 up to an end; always true, as the tests of a part below may be. */
static int write_part(const struct block *block, size_t from, size_t to) {
    word_anywhere *words = (word_anywhere *)(block->address + from);
    uint64_t value = block->key + from / 8 * STRIDE;
    size_t count = (to - from) / 8;
    for (size_t i = 0; i < count; i++, value += STRIDE) words[i] = value;
    if (to & 7) memcpy(words + count, &value, to & 7);
    return 1;
}

/* Whether the bytes are as they were written. */
static int part_is_kept(const struct block *block, size_t from, size_t to) {
    const word_anywhere *words = (const word_anywhere *)(block->address + from);
    uint64_t value = block->key + from / 8 * STRIDE, different = 0, rest = 0;
    size_t count = (to - from) / 8;
    for (size_t i = 0; i < count; i++, value += STRIDE) different |= words[i] ^ value;
    if (to & 7) {
        memcpy(&rest, words + count, to & 7);
        different |= (rest ^ value) & (((uint64_t)1 << (to & 7) * 8) - 1);
    }
    return !different;
}

static int part_is_zero(const struct block *block, size_t from, size_t to) {
    const word_anywhere *words = (const word_anywhere *)(block->address + from);
    uint64_t different = 0, rest = 0;
    size_t count = (to - from) / 8;
    for (size_t i = 0; i < count; i++) different |= words[i];
    if (to & 7) memcpy(&rest, words + count, to & 7);
    return !(different | rest);
}

/* Where the last bytes of a block begin that are always written. */
static size_t tail_of(size_t size) { return (size - EDGE) & ~(size_t)7; }

/* The first part of the first `size` bytes that a test refuses, as its start; -1 if there is none. */
static inline __attribute__((always_inline)) ssize_t refused_part(
    const struct block *block, size_t size, int (*holds)(const struct block *, size_t, size_t)
) {
    if (is_whole(block)) return holds(block, 0, size) ? -1 : 0;
    if (!holds(block, 0, size < EDGE ? size : EDGE)) return 0;
    for (size_t at = PAGE; at + EDGE < block->size && at + 8 <= size; at += PAGE)
        if (!holds(block, at, at + 8)) return (ssize_t)at;
    if (size == block->size && !holds(block, tail_of(size), size)) return (ssize_t)tail_of(size);
    return -1;
}

static void fill(const struct block *block) { refused_part(block, block->size, write_part); }

/* Report the first wrong byte from a part on. */
static void wrong_byte(const char *requirement, const struct block *block, size_t from, int zero) {
    char what[128];
    for (size_t at = from; at < block->size; at++) {
        uint8_t found = *(const volatile uint8_t *)(block->address + at);
        uint8_t expected = zero ? 0 : (uint8_t)((block->key + at / 8 * STRIDE) >> at % 8 * 8);
        if (found == expected) continue;
        if (zero) snprintf(what, sizeof what, "byte %zu is %x, not 0", at, found);
        else snprintf(what, sizeof what, "byte %zu is %x, %x was written", at, found, expected);
        wrong(requirement, block, what);
        return;
    }
    wrong(requirement, block, "its contents were wrong for a moment"); /* somebody has written them again */
}

/* -------------------------------------------------------------------------------------------------- access */

static int readable = -1; /* whether the host can read and write the memory; -1 until the first block */

static int can_read(void) { return __atomic_load_n(&readable, __ATOMIC_RELAXED); }

/* Whether the system lets this process read and write a byte: the kernel tries it, so nothing happens to us. */
static int is_readable(uintptr_t address) {
    int ends[2], works;
    if (pipe(ends)) return 0;
    works = write(ends[1], (void *)address, 1) == 1 && read(ends[0], (void *)address, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return works;
}

/* ------------------------------------------------------------------------------------------------ judgement */

static void judge_null(const struct block *asked) {
    if (!asked->size && (promises.zero_size == ZERO_UNIQUE || promises.zero_size == ZERO_ERROR))
        wrong("A09-zero-size", asked, "a request for zero bytes gave null, which was not promised");
    if (asked->size && !promises.null)
        wrong("A05-served", asked, "the request gave null, which was not promised");
}

/* A new block: it is in a right place, zero if that was asked for, and it can be written. */
static void judge_block(const struct block *block, int zeroed) {
    if (!block->size) {
        if (promises.zero_size == ZERO_NULL || promises.zero_size == ZERO_ERROR)
            wrong("A09-zero-size", block, "a request for zero bytes gave memory, which was not promised");
        return;
    }
    if (block->address & (promises.alignment - 1)) wrong("A03-aligned", block, "it is not aligned as promised");
    if (!claim(block->address, block->size)) wrong("A02-no-overlap", block, "it has memory of a live block");
    if (can_read() < 0) __atomic_store_n(&readable, is_readable(block->address), __ATOMIC_RELAXED);
    if (!can_read()) return;
    if (zeroed || promises.zeroed) {
        ssize_t part = refused_part(block, block->size, part_is_zero);
        if (part >= 0) wrong_byte("A13-zeroed", block, (size_t)part, 1);
    }
    fill(block);
}

static void judge_contents(const char *requirement, const struct block *block, size_t size) {
    if (can_read() != 1 || !size) return;
    ssize_t part = refused_part(block, size, part_is_kept);
    if (part >= 0) wrong_byte(requirement, block, (size_t)part, 0);
}
