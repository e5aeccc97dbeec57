/* A pool over malloc that is wrong only after several conditions: -DBUG=1 to 10 says which, and 0 has no bug.

   The bug is always the same: a request gets the memory of a live block.  Its conditions are what differs: one size of
   many thousands, two such sizes in a row, a number of live blocks, an order of calls, a sum. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef BUG
#define BUG 0
#endif

#define MOST 65536
#define LAST 8

static struct block {
    void *address;
    size_t size;
} live[MOST]; /* the oldest first */

static struct {
    size_t recent[LAST], largest, second_freed;
    unsigned live, step, stage, in_a_row, seen, rising, newest_freed, oldest_freed, last_was_free;
} state;

void pool_reset(void) { memset(&state, 0, sizeof state); }

static size_t before(unsigned steps) { return state.recent[(state.step - steps) % LAST]; }

/* Sizes of four classes, one after another, each but the first after a free. */
static int in_stages(size_t size) {
    static const size_t from[] = {1, 1025, 17, 257}, to[] = {16, 2048, 32, 512};
    int fits = size >= from[state.stage] && size <= to[state.stage] && (state.last_was_free || !state.stage);
    state.stage = fits ? state.stage + 1 : 0;
    if (state.stage < 4) return 0;
    state.stage = 0;
    return 1;
}

/* So many times in a row the size that is asked for follows from the number of live blocks. */
static int follows_the_number(size_t size) {
    state.in_a_row = size == state.live * 16 + 8 ? state.in_a_row + 1 : 0;
    return state.in_a_row == 3 && state.live > 3;
}

/* Every rest by 16 in requests without a free between them. */
static int all_rests(size_t size) {
    if (state.last_was_free) state.seen = 0;
    state.seen |= 1u << size % 16;
    return state.seen == 0xFFFF && state.live < 26;
}

/* Twelve sizes that rise, after frees of the newest blocks, and then the largest size again. */
static int rises(size_t size) {
    if (!state.last_was_free) state.rising = size > before(1) ? state.rising + 1 : 0;
    int hit = state.rising >= 12 && state.newest_freed >= 6 && size == state.largest;
    if (state.last_was_free && !hit) state.rising = state.newest_freed = 0;
    return hit;
}

static int is_hit(size_t size) {
    switch (BUG) {
    case 1: return size == 48271;
    case 2: return before(1) == 4321 && size == 1234;
    case 3: return in_stages(size);
    case 4: return state.oldest_freed >= 4 && size == state.second_freed && size > 100;
    case 5: return state.live == 37 && size > 300 && size % 257 == 3;
    case 6: return follows_the_number(size);
    case 7: return all_rests(size);
    case 8: return size % 256 == 0x5A && size / 256 == 0x17;
    case 9: return state.last_was_free && size > 64 && (size + before(1) + before(2) + before(3)) % 4096 == 1729;
    case 10: return rises(size);
    default: return 0;
    }
}

static void *of_a_live_block(void) {
    for (unsigned i = state.live; i--;)
        if (live[i].size >= 16) return live[i].address;
    return NULL;
}

void *pool_malloc(size_t size) {
    if (size > (size_t)1 << 40) return NULL;
    void *address = is_hit(size) && size ? of_a_live_block() : NULL;
    state.recent[state.step++ % LAST] = size;
    if (size > state.largest) state.largest = size;
    state.last_was_free = state.oldest_freed = 0;
    if (address) return address;
    address = malloc(size ? size : 1);
    if (address && state.live < MOST) live[state.live++] = (struct block){address, size};
    return address;
}

void pool_free(void *address) {
    unsigned at = 0;
    while (at < state.live && live[at].address != address) at++;
    if (!address || at == state.live) return;
    state.oldest_freed = at ? 0 : state.oldest_freed + 1;
    if (state.oldest_freed == 2) state.second_freed = live[0].size;
    state.newest_freed = at == state.live - 1 ? state.newest_freed + 1 : 0;
    memmove(&live[at], &live[at + 1], (--state.live - at) * sizeof *live);
    state.last_was_free = 1;
    free(address);
}
