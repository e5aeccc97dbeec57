/* Right allocators, each with a freedom that a standard or a known allocator takes; with -DTWIN each is wrong in one thing.

   What a freedom is, who takes it, and what its twin breaks: allocators.py.  All are over one base: lists of idle blocks of
   powers of two, with a head of sixteen bytes before each block. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef TWIN
#define WRONG(wrong, right) (wrong)
#else
#define WRONG(wrong, right) (right)
#endif
#define TOO_MUCH ((size_t)1 << 40)
#define HEAD sizeof(struct head)

struct head { size_t size; uint64_t power; };
struct pool { struct head *idle[48]; };

static int power_of(size_t whole) {
    int power = 5;
    while ((size_t)1 << power < whole) power++;
    return power;
}

static struct head *head_of(void *block) { return (struct head *)block - 1; }

static void *get(struct pool *pool, size_t size) {
    if (size > TOO_MUCH) return NULL;
    int power = power_of(size + HEAD);
    struct head *head = pool->idle[power];
    if (head) pool->idle[power] = *(struct head **)(head + 1);
    else head = malloc((size_t)1 << power);
    if (!head) return NULL;
    *head = (struct head){size, (uint64_t)power};
    return head + 1;
}

/* A block with a head that begins there. */
static void *moved_in(void *there, size_t size, uint64_t power) {
    if (!there) return NULL;
    *(struct head *)there = (struct head){size, power};
    return (struct head *)there + 1;
}

static void put(struct pool *pool, void *block) {
    if (!block) return;
    struct head *head = head_of(block);
    *(struct head **)block = pool->idle[head->power];
    pool->idle[head->power] = head;
}

/* ------------------------------------------------------------------------------------------------ locks */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pool locked;
void *mutex_malloc(size_t size) {
    pthread_mutex_lock(&mutex);
    void *block = get(&locked, size);
    if (WRONG(block != NULL, 1)) pthread_mutex_unlock(&mutex);
    return block;
}
void mutex_free(void *block) {
    pthread_mutex_lock(&mutex);
    put(&locked, block);
    pthread_mutex_unlock(&mutex);
}

static atomic_flag spinning = ATOMIC_FLAG_INIT;
static struct pool spun;
void *spin_malloc(size_t size) {
    while (atomic_flag_test_and_set(&spinning)) {}
    void *block = get(&spun, WRONG(size & 0xFFFFFFFF, size));
    atomic_flag_clear(&spinning);
    return block;
}
void spin_free(void *block) {
    while (atomic_flag_test_and_set(&spinning)) {}
    put(&spun, block);
    atomic_flag_clear(&spinning);
}

static struct pool unlocked;
void *bare_malloc(size_t size) {
    void *block = get(&unlocked, size);
    if (WRONG(block && size == 100, 0)) put(&unlocked, block);
    return block;
}
void bare_free(void *block) { put(&unlocked, block); }

/* ------------------------------------------------------------------------------------ caches of threads */

static _Thread_local struct pool mine;
void *cache_malloc(size_t size) { return get(&mine, size); }
void cache_free(void *block) {
    if (WRONG(block && head_of(block)->size > 5000, 0)) return;
    put(&mine, block);
}

static _Thread_local struct pool own;
static _Thread_local int begun;
static struct pool common;
static pthread_key_t key;
static pthread_mutex_t of_common = PTHREAD_MUTEX_INITIALIZER;
static void leave(void *pool) {
    pthread_mutex_lock(&of_common);
    for (int power = 0; power < 48; power++)
        for (struct head *head; (head = ((struct pool *)pool)->idle[power]);) {
            ((struct pool *)pool)->idle[power] = *(struct head **)(head + 1);
            put(&common, head + 1);
        }
    pthread_mutex_unlock(&of_common);
}
__attribute__((constructor)) static void make_key(void) { pthread_key_create(&key, leave); }
void *leaving_malloc(size_t size) {
    if (!begun) begun = 1, pthread_setspecific(key, &own);
    int power = power_of(size > TOO_MUCH ? 0 : size + HEAD);
    if (size > TOO_MUCH || own.idle[power]) return get(&own, size);
    pthread_mutex_lock(&of_common);
    void *block = get(&common, size);
    pthread_mutex_unlock(&of_common);
    return block;
}
void leaving_free(void *block) {
    put(&own, block);
    if (WRONG(block && head_of(block)->power == 12, 0)) put(&common, block);
}

/* ----------------------------------------------------------------------------------------------- arenas */

#define ROOM (1 << 20)
static _Alignas(16) char room[4][ROOM];
static size_t used[4];
static void *bump(int arena, size_t size, size_t less) {
    size_t whole = size > ROOM ? ROOM + 1 : size ? (size + 15) & ~(size_t)15 : 16;
    if (whole > ROOM - used[arena]) return NULL;
    used[arena] += whole - (whole > less ? less : 0);
    return room[arena] + used[arena] - whole + (whole > less ? less : 0);
}

void *arena_malloc(size_t size) { return bump(0, size, WRONG(16, 0)); }
void arena_free(void *block) { (void)block; }

void *reset_malloc(size_t size) { return bump(1, size, 0); }
void reset_free(void *block) { (void)block; }
void reset_reset(void) { used[1] = WRONG(used[1] / 2 & ~(size_t)15, 0); }

static size_t last;
void *stack_malloc(size_t size) {
    size_t before = used[2];
    void *block = bump(2, size, 0);
    if (block) last = before;
    return block;
}
void stack_free(void *block) {
    if (block && WRONG((char *)block < room[2] + last, (char *)block == room[2] + last && last < used[2]))
        used[2] = (size_t)((char *)block - room[2]);
}
void stack_reset(void) { used[2] = last = 0; }

static size_t mark;
void *mark_malloc(size_t size) {
    if (!mark) bump(3, 1000, 0), mark = used[3];
    return bump(3, size, 0);
}
void mark_free(void *block) { (void)block; }
void mark_reset(void) {
    if (used[3] > mark) used[3] = WRONG(ROOM - 1024, mark);
}

/* -------------------------------------------------------------------------------- what a free does to bytes */

static struct pool zeroed;
void *zero_malloc(size_t size) {
    void *block = get(&zeroed, size);
    return block ? memset(block, 0, WRONG(size > 999 ? 999 : size, size)) : NULL;
}
void zero_free(void *block) { put(&zeroed, block); }

static struct pool poisoned;
void *poison_malloc(size_t size) {
    void *block = get(&poisoned, size);
    return block ? memset(block, 0xCD, size) : NULL;
}
void poison_free(void *block) {
    if (!block) return;
    struct head *head = head_of(block);
    memset(block, 0xDD, WRONG(head->power == 7 ? 2 << 7 : 16, head->size));
    put(&poisoned, block);
}

#define WAITING 64
static void *waiting[WAITING];
static unsigned turn;
void *wait_malloc(size_t size) { return size > TOO_MUCH ? NULL : malloc(size ? size : 1); }
void wait_free(void *block) {
    void **place = &waiting[turn++ % WAITING];
    if (WRONG(0, 1)) free(*place);
    *place = block;
}

/* ------------------------------------------------------------------------------------------ sizes and heads */

static struct pool rounded;
void *twice_malloc(size_t size) { return get(&rounded, size > TOO_MUCH ? size : 2 * size); }
void twice_free(void *block) { put(&rounded, block); }
size_t twice_malloc_usable_size(void *block) {
    return block ? ((size_t)1 << head_of(block)->power) - WRONG(0, HEAD) : 0;
}

static char *before;
void *tail_malloc(size_t size) {
    char *block = size > TOO_MUCH ? NULL : malloc(size + 8);
    if (WRONG(before != NULL, 0)) before[-1] ^= 1;
    if (block) memcpy(block + size, "the tail", 8);
    before = block && size > 64 ? block + size : NULL;
    return block;
}
void tail_free(void *block) {
    before = NULL;
    free(block);
}

static _Thread_local char *at, *end;
void *odd_malloc(size_t size) {
    if (size > TOO_MUCH) return NULL;
    if (size > 4096) {
        char *large = malloc(size + 1);
        return large ? large + 1 : NULL;
    }
    if ((size_t)(end - at) < size + 1) at = malloc(1 << 16), end = at ? at + (1 << 16) : NULL;
    if (!at) return NULL;
    at += size + 1 - WRONG(size > 64 ? 2 : 0, 0);
    return at - size + WRONG(size > 64 ? 1 : 0, 0);
}
void odd_free(void *block) { (void)block; }

void *page_malloc(size_t size) {
    char *block = size > TOO_MUCH ? NULL : aligned_alloc(4096, ((size + 8192) & ~(size_t)4095));
    return block ? block + WRONG(2048, 0) : NULL;
}
void page_free(void *block) { free(block ? (char *)block - WRONG(2048, 0) : NULL); }

static struct pool nothing, unique;
void *null_malloc(size_t size) { return size || WRONG(1, 0) ? get(&nothing, size) : NULL; }
void null_free(void *block) { put(&nothing, block); }
static char same[16];
void *unique_malloc(size_t size) { return WRONG(!size, 0) ? same : get(&unique, size); }
void unique_free(void *block) { if (block != same) put(&unique, block); }

/* --------------------------------------------------------------------------------- late, seldom, or refused */

static void nap(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}
static struct pool slow, lazy, limited, moody, once;
void *slow_malloc(size_t size) { return nap(1), get(&slow, WRONG(size & 0xFFFFFFFF, size)); }
void slow_free(void *block) { nap(1), put(&slow, block); }

static int ready;
void *lazy_malloc(size_t size) {
    if (!ready) nap(200);
    if (ready < WRONG(2, 1)) ready++;
    void *block = get(&lazy, size);
    if (WRONG(block && ready == 1, 0)) put(&lazy, block);
    return block;
}
void lazy_free(void *block) { put(&lazy, block); }

void *limit_malloc(size_t size) {
    return size > 1 << 20 ? WRONG(get(&limited, 1 << 20), NULL) : get(&limited, size);
}
void limit_free(void *block) { put(&limited, block); }

static uint32_t drawn = 1;
static unsigned refused;
void *random_malloc(size_t size) {
    drawn = drawn * 1664525 + 1013904223;
    if (drawn >> 30 == 0 || WRONG(refused > 100, 0)) return refused++, NULL;
    return get(&moody, size);
}
void random_free(void *block) { put(&moody, block); }

static unsigned asked;
static int dry;
static void *upstream(size_t size) { return ++asked % 50 == 0 ? NULL : malloc(size); }
void *once_malloc(size_t size) {
    if (size > TOO_MUCH) return NULL;
    int power = power_of(size + HEAD);
    if (once.idle[power]) return get(&once, size);
    struct head *head = dry ? NULL : upstream((size_t)1 << power);
    if (!head) return dry = WRONG(1, 0), NULL;
    *head = (struct head){size, (uint64_t)power};
    return head + 1;
}
void once_free(void *block) { put(&once, block); }

static size_t spent;
static struct pool budgeted;
void *budget_malloc(size_t size) {
    if (size > TOO_MUCH) return NULL;
    size_t whole = (size_t)1 << power_of(size + HEAD);
    if (spent + whole > 64 << 20) return spent += WRONG(whole & 0xFFFFFFF, 0), NULL;
    void *block = get(&budgeted, size);
    if (block) spent += whole;
    return block;
}
void budget_free(void *block) {
    if (block) spent -= (size_t)1 << head_of(block)->power;
    put(&budgeted, block);
}

/* ------------------------------------------------------------------------------------- where the memory lies */

static struct pool slabs;
static char *slab_at[48], *slab_end[48];
void *slab_malloc(size_t size) {
    int power = power_of(size > TOO_MUCH ? 0 : size + HEAD);
    if (size > TOO_MUCH || power > 15 || slabs.idle[power]) return get(&slabs, size);
    if (slab_end[power] - slab_at[power] < 1 << power) {
        slab_at[power] = malloc(1 << 16), slab_end[power] = slab_at[power] ? slab_at[power] + (1 << 16) : NULL;
        if (!slab_at[power]) return NULL;
    }
    struct head *head = (struct head *)slab_at[power];
    slab_at[power] += (1 << power) - WRONG(power > 6 ? 32 : 0, 0);
    *head = (struct head){size, (uint64_t)power};
    return head + 1;
}
void slab_free(void *block) { put(&slabs, block); }

static struct pool headed;
void *ahead_malloc(size_t size) {
    char *block = get(&headed, size > TOO_MUCH ? size : size + 8);
    return block ? block - WRONG(8, 0) : NULL;
}
void ahead_free(void *block) { put(&headed, block ? (char *)block + WRONG(8, 0) : NULL); }

static const uint64_t BEHIND = 0x600D600D600D600D;
static char *behind(void *block) { return (char *)block + malloc_usable_size(block) - WRONG(16, 8); }
void *behind_malloc(size_t size) {
    void *block = size > TOO_MUCH ? NULL : malloc(size + 8);
    if (block) memcpy(behind(block), &BEHIND, 8);
    return block;
}
void behind_free(void *block) {
    if (block && memcmp(behind(block), &BEHIND, 8)) abort();
    free(block);
}

void *wide_malloc(size_t size) {
    char *block = size > TOO_MUCH ? NULL : aligned_alloc(64, (size + 128) & ~(size_t)63);
    return block ? block + WRONG(32, 0) : NULL;
}
void wide_free(void *block) { free(block ? (char *)block - WRONG(32, 0) : NULL); }

void *direct_malloc(size_t size) {
    size_t whole = size > TOO_MUCH ? size : size + HEAD;
    if (whole < 1 << 15 || size > TOO_MUCH) return size > TOO_MUCH ? NULL : moved_in(malloc(whole), size, 0);
    void *pages = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : moved_in(pages, size, 1);
}
void direct_free(void *block) {
    if (block && !head_of(block)->power) free(head_of(block));
    else if (block && WRONG(head_of(block)->size < 1 << 20, 1)) munmap(head_of(block), head_of(block)->size + HEAD);
}

#define GROUND (1 << 22)
static _Alignas(64) char ground[3][GROUND];

/* Buddies: of each free one, its power is at the place where it begins. */
struct spot { struct spot *next, *before; };
static struct spot spots[23];
static uint8_t free_at[GROUND >> 5];
static uint8_t *free_of(char *at) { return &free_at[(at - ground[0]) >> 5]; }
static void add_buddy(char *at, int power) {
    struct spot *spot = (struct spot *)at, *first = spots[power].next;
    *spot = (struct spot){first, &spots[power]}, spots[power].next = spot, *free_of(at) = (uint8_t)power;
    if (first) first->before = spot;
}
static void take_buddy(char *at) {
    struct spot *spot = (struct spot *)at;
    spot->before->next = spot->next, *free_of(at) = 0;
    if (spot->next) spot->next->before = spot->before;
}
void *buddy_malloc(size_t size) {
    static int grounded;
    if (!grounded) grounded = 1, add_buddy(ground[0], 22);
    int power = power_of(size > GROUND ? GROUND : size + HEAD), from = power;
    while (from < 23 && !spots[from].next) from++;
    if (from > 22 || size > GROUND) return NULL;
    char *at = (char *)spots[from].next;
    take_buddy(at);
    while (from > power) from--, add_buddy(at + (1 << from), from);
    return moved_in(at, size, (uint64_t)power);
}
void buddy_free(void *block) {
    if (!block) return;
    char *at = (char *)head_of(block), *buddy;
    int power = (int)head_of(block)->power;
    for (; power < 22; power++) {
        buddy = ground[0] + ((at - ground[0]) ^ 1 << power);
        if (WRONG(!*free_of(buddy), *free_of(buddy) != power)) break;
        take_buddy(buddy);
        if (buddy < at) at = buddy;
    }
    add_buddy(at, power);
}

/* Best fit: holes in the order of their addresses, which are split and grow together. */
struct hole { size_t size; struct hole *next; };
static struct hole holes;
void *best_malloc(size_t size) {
    static int grounded;
    if (!grounded) grounded = 1, holes.next = (struct hole *)ground[1], *holes.next = (struct hole){GROUND, NULL};
    if (size > GROUND) return NULL;
    size_t whole = size < 16 ? 32 : (size + HEAD + 15) & ~(size_t)15;
    struct hole **best = NULL;
    for (struct hole **link = &holes.next; *link; link = &(*link)->next)
        if ((*link)->size >= whole && (!best || (*link)->size < (*best)->size)) best = link;
    if (!best) return NULL;
    struct hole *hole = *best;
    if (hole->size - whole < 32) whole = hole->size, *best = hole->next;
    else hole->size -= whole, hole = (struct hole *)((char *)hole + hole->size);
    return moved_in(hole, size, whole);
}
void best_free(void *block) {
    if (!block) return;
    struct hole *hole = (struct hole *)head_of(block), *before = &holes, *next;
    size_t whole = head_of(block)->power;
    while (before->next && before->next < hole) before = before->next;
    next = before->next;
    *hole = (struct hole){whole, next}, before->next = hole;
    if (next && (char *)hole + whole + WRONG(64, 0) >= (char *)next)
        hole->size = (size_t)((char *)next - (char *)hole) + next->size, hole->next = next->next;
    if (before != &holes && (char *)before + before->size == (char *)hole) before->size += hole->size, before->next = hole->next;
}

static uint64_t bits[GROUND >> 10];
static size_t looked_at;
static int bit(size_t at) { return (int)(bits[at >> 6] >> (at & 63) & 1); }
void *bitmap_malloc(size_t size) {
    size_t whole = size > GROUND ? GROUND : (size + HEAD + 15) >> 4, end = GROUND >> 4, run = 0;
    if (whole > end) return NULL;
    for (size_t turn = 0, at = looked_at; turn < end + whole; turn++, at++) {
        if (at >= end) at = run = 0;
        run = bit(at) ? 0 : run + 1;
        if (run < whole) continue;
        for (size_t i = at + 1 - whole; i <= at; i++) bits[i >> 6] |= (uint64_t)1 << (i & 63);
        looked_at = at + 1;
        return moved_in(ground[2] + ((at + 1 - whole) << 4), size, whole);
    }
    return NULL;
}
void bitmap_free(void *block) {
    if (!block) return;
    size_t at = (size_t)((char *)head_of(block) - ground[2]) >> 4, whole = head_of(block)->power;
    for (size_t i = at; i < at + whole + WRONG(whole == 10 ? 10 : 0, 0); i++) bits[i >> 6] &= ~((uint64_t)1 << (i & 63));
    looked_at = at;
}

/* --------------------------------------------------------------------------------------- which block comes next */

static struct head *oldest[48], *newest[48];
void *fifo_malloc(size_t size) {
    if (size > TOO_MUCH) return NULL;
    int power = power_of(size + HEAD);
    struct head *head = oldest[power];
    if (!head) return moved_in(malloc((size_t)1 << power), size, (uint64_t)power);
    oldest[power] = WRONG(power == 8 && head == newest[power], 0) ? head : *(struct head **)(head + 1);
    return moved_in(head, size, (uint64_t)power);
}
void fifo_free(void *block) {
    if (!block) return;
    struct head *head = head_of(block);
    *(struct head **)block = NULL;
    if (oldest[head->power]) *(struct head **)(newest[head->power] + 1) = head;
    else oldest[head->power] = head;
    newest[head->power] = head;
}

#define LISTS 4096
static struct head *list[LISTS];
void *kept_malloc(size_t size) {
    size_t whole = size > TOO_MUCH ? 0 : (size + HEAD + 15) & ~(size_t)15, at = whole >> 4 & WRONG(63, LISTS - 1);
    if (size > TOO_MUCH) return NULL;
    if (whole >> 4 >= LISTS || !list[at]) return moved_in(malloc(whole < 32 ? 32 : whole), size, whole >> 4);
    struct head *head = list[at];
    list[at] = *(struct head **)(head + 1);
    return moved_in(head, size, whole >> 4);
}
void kept_free(void *block) {
    if (block && head_of(block)->power >= LISTS) free(head_of(block));
    else if (block) {
        struct head **place = &list[head_of(block)->power & WRONG(63, LISTS - 1)];
        *(struct head **)block = *place, *place = head_of(block);
    }
}

#define SHARDS 8
static struct { pthread_mutex_t mutex; struct pool pool; } shards[SHARDS];
__attribute__((constructor)) static void make_shards(void) {
    for (int i = 0; i < SHARDS; i++) pthread_mutex_init(&shards[i].mutex, NULL);
}
void *shard_malloc(size_t size) {
    static atomic_uint turns;
    unsigned shard = turns++ % SHARDS;
    pthread_mutex_lock(&shards[shard].mutex);
    void *block = get(&shards[shard].pool, size);
    if (block) head_of(block)->power |= shard << 8;
    pthread_mutex_unlock(&shards[shard].mutex);
    return block;
}
void shard_free(void *block) {
    if (!block) return;
    unsigned shard = head_of(block)->power >> 8 & 255;
    head_of(block)->power &= 255;
    pthread_mutex_lock(&shards[shard].mutex);
    put(&shards[shard].pool, block);
    if (WRONG(head_of(block)->power == 8, 0)) put(&shards[shard ^ 1].pool, block);
    pthread_mutex_unlock(&shards[shard].mutex);
}

/* A block in sixteen bits less than a word, and in these how often one was taken: the list is as it was, or has another
   number. */
static _Atomic uint64_t top[48];
static uint64_t tagged(void *head, uint64_t before) { return (uint64_t)(uintptr_t)head | ((before >> 48) + 1) << 48; }
static struct head *untagged(uint64_t word) { return (struct head *)(uintptr_t)(word << 16 >> 16); }
void *atomic_malloc(size_t size) {
    if (size > TOO_MUCH) return NULL;
    int power = power_of(size + HEAD);
    uint64_t first = atomic_load(&top[power]);
    for (struct head *head; (head = untagged(first));) {
        struct head *next = *(struct head *volatile *)(head + 1);
        if (WRONG(power == 7 && !next, 0)) return moved_in(head, size, (uint64_t)power);
        if (atomic_compare_exchange_weak(&top[power], &first, tagged(next, first))) return moved_in(head, size, (uint64_t)power);
    }
    return moved_in(malloc((size_t)1 << power), size, (uint64_t)power);
}
void atomic_free(void *block) {
    if (!block) return;
    struct head *head = head_of(block);
    uint64_t first = atomic_load(&top[head->power]);
    do *(struct head **)block = untagged(first);
    while (!atomic_compare_exchange_weak(&top[head->power], &first, tagged(head, first)));
}

static struct pool collected;
static void *put_down;
void *deferred_malloc(size_t size) {
    for (void *block = put_down, *next; block; block = next) next = *(void **)block, put(&collected, block);
    if (WRONG(size != 100, 1)) put_down = NULL;
    return get(&collected, size);
}
void deferred_free(void *block) {
    if (!block) return;
    *(void **)block = put_down;
    put_down = block;
}

/* ------------------------------------------------------------------------------------------- when memory goes back */

static struct pool bounded;
static int idle_of[48];
void *bounded_malloc(size_t size) {
    if (size <= TOO_MUCH && bounded.idle[power_of(size + HEAD)]) idle_of[power_of(size + HEAD)]--;
    return get(&bounded, size);
}
void bounded_free(void *block) {
    if (!block) return;
    if (idle_of[head_of(block)->power]++ < 1) put(&bounded, block);
    else if (idle_of[head_of(block)->power]-- && WRONG(0, 1)) free(head_of(block));
}

static struct pool trimmed;
static pthread_mutex_t of_trimmed = PTHREAD_MUTEX_INITIALIZER;
static int trimming;
static void *trim(void *unused) {
    for (struct timespec moment = {0, 1000000};; nanosleep(&moment, NULL)) {
        pthread_mutex_lock(&of_trimmed);
        for (int power = 0; power < 48; power++) {
            struct head *head = trimmed.idle[power];
            if (!head) continue;
            if (WRONG(0, 1)) trimmed.idle[power] = *(struct head **)(head + 1);
            free(head);
        }
        pthread_mutex_unlock(&of_trimmed);
    }
    return unused;
}
static void lock_trimmed(void) { pthread_mutex_lock(&of_trimmed); }
static void unlock_trimmed(void) { pthread_mutex_unlock(&of_trimmed); }
static void trim_again(void) { trimming = 0, unlock_trimmed(); }
void *trim_malloc(size_t size) {
    pthread_t thread;
    lock_trimmed();
    if (!trimming++) pthread_atfork(lock_trimmed, unlock_trimmed, trim_again), pthread_create(&thread, NULL, trim, NULL);
    void *block = get(&trimmed, size);
    unlock_trimmed();
    return block;
}
void trim_free(void *block) { lock_trimmed(), put(&trimmed, block), unlock_trimmed(); }

#define QUEUED ((size_t)16 << 20)
static pthread_mutex_t of_queued = PTHREAD_MUTEX_INITIALIZER;
static struct head *queued;
static size_t in_queue;
static int freeing;
static void lock_queued(void) { pthread_mutex_lock(&of_queued); }
static void unlock_queued(void) { pthread_mutex_unlock(&of_queued); }
static void begin_again(void) { freeing = 0, unlock_queued(); }
static void empty_queue(void) {
    for (int lost = 0; queued; lost++) {
        struct head *head = queued;
        queued = *(struct head **)(head + 1);
        if (WRONG(lost % 2, 1)) free(head);
    }
    in_queue = 0;
}
static void *free_late(void *unused) {
    for (struct timespec moment = {0, 3000000};; nanosleep(&moment, NULL)) {
        lock_queued();
        empty_queue();
        unlock_queued();
    }
    return unused;
}
void *queued_malloc(size_t size) {
    pthread_t thread;
    lock_queued();
    if (!freeing++) pthread_atfork(lock_queued, unlock_queued, begin_again), pthread_create(&thread, NULL, free_late, NULL);
    unlock_queued();
    return size > TOO_MUCH ? NULL : moved_in(malloc(size + HEAD + 8), size, 0);
}
void queued_free(void *block) {
    if (!block) return;
    memset(block, 0xDD, head_of(block)->size);
    lock_queued();
    *(struct head **)block = queued;
    queued = head_of(block);
    if ((in_queue += head_of(block)->size) > QUEUED) empty_queue();
    unlock_queued();
}

static pthread_mutex_t of_forked = PTHREAD_MUTEX_INITIALIZER;
static struct pool forked;
static void lock_forked(void) { pthread_mutex_lock(&of_forked); }
static void unlock_forked(void) { pthread_mutex_unlock(&of_forked); }
__attribute__((constructor)) static void make_forks_safe(void) {
    if (WRONG(0, 1)) pthread_atfork(lock_forked, unlock_forked, unlock_forked);
}
void *fork_malloc(size_t size) {
    lock_forked();
    void *block = get(&forked, size);
    unlock_forked();
    return block;
}
void fork_free(void *block) { lock_forked(), put(&forked, block), unlock_forked(); }

/* ---------------------------------------------------------------------------------- the other functions of C */

static void *resized(struct pool *pool, void *block, size_t size, size_t less) {
    void *other = get(pool, size);
    if (!block || !other) return other;
    size_t kept = head_of(block)->size < size ? head_of(block)->size : size;
    memcpy(other, block, kept > 64 ? kept - less : kept);
    put(pool, block);
    return other;
}

static struct pool grown;
void *inplace_malloc(size_t size) { return get(&grown, size); }
void inplace_free(void *block) { put(&grown, block); }
void *inplace_realloc(void *block, size_t size) {
    if (!block || size > TOO_MUCH) return get(&grown, size);
    if (size + HEAD > (size_t)1 << (head_of(block)->power + WRONG(3, 0))) return resized(&grown, block, size, 0);
    return head_of(block)->size = size, block;
}

static struct pool moving;
void *moving_malloc(size_t size) { return get(&moving, size); }
void moving_free(void *block) { put(&moving, block); }
void *moving_realloc(void *block, size_t size) { return resized(&moving, block, size, WRONG(1, 0)); }

static struct pool vanishing;
void *vanish_malloc(size_t size) { return get(&vanishing, size); }
void vanish_free(void *block) { put(&vanishing, block); }
void *vanish_realloc(void *block, size_t size) {
    if (!block || size) return resized(&vanishing, block, size, 0);
    return put(&vanishing, block), WRONG(block, NULL);
}

static struct pool remaining;
void *remain_malloc(size_t size) { return get(&remaining, size); }
void remain_free(void *block) { put(&remaining, block); }
void *remain_realloc(void *block, size_t size) {
    void *other = resized(&remaining, block, size, 0);
    if (WRONG(block && other && !size, 0)) put(&remaining, other);
    return other;
}

static struct pool unaligned;
void *class_malloc(size_t size) { return get(&unaligned, size); }
void class_free(void *block) {
    if (block && !head_of(block)->power) free((void *)head_of(block)->size);
    else put(&unaligned, block);
}
void *class_aligned_alloc(size_t alignment, size_t size) {
    if (size > TOO_MUCH) return NULL;
    size_t mask = (alignment < 16 || WRONG(alignment > 64, 0) ? 16 : alignment) - 1;
    char *all = malloc(size + mask + 1 + HEAD);
    return all ? moved_in((char *)(((uintptr_t)all + HEAD + mask) & ~(uintptr_t)mask) - HEAD, (size_t)all, 0) : NULL;
}

void *posix_malloc(size_t size) { return class_malloc(size); }
void posix_free(void *block) { class_free(block); }
int posix_posix_memalign(void **place, size_t alignment, size_t size) {
    if (WRONG(0, alignment % sizeof(void *)) || !alignment || alignment & (alignment - 1)) return EINVAL;
    char *all = size > TOO_MUCH ? NULL : malloc(size + 2 * alignment + 2 * HEAD);
    if (!all) return ENOMEM;
    uintptr_t mask = (alignment < 16 ? 16 : alignment) - 1;
    *place = moved_in((char *)(((uintptr_t)all + HEAD + mask) & ~mask) - HEAD, (size_t)all, 0);
    return 0;
}

static struct pool sized;
void *sized_malloc(size_t size) { return get(&sized, size); }
void sized_free(void *block) { put(&sized, block); }
void sized_free_sized(void *block, size_t size) {
    if (block) head_of(block)->power = (uint64_t)power_of(WRONG(size > 64 ? 2 * size : size, size) + HEAD);
    put(&sized, block);
}

static struct pool exact;
void *exact_malloc(size_t size) { return get(&exact, size); }
void exact_free(void *block) { put(&exact, block); }
size_t exact_malloc_usable_size(void *block) {
    return block ? head_of(block)->size - WRONG(head_of(block)->size > 99, 0) : 0;
}

static struct pool fresh;
void *fresh_malloc(size_t size) { return get(&fresh, size); }
void fresh_free(void *block) { put(&fresh, block); }
void *fresh_calloc(size_t count, size_t size) {
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole) || whole > TOO_MUCH) return NULL;
    int power = power_of(whole + HEAD), again = fresh.idle[power] != NULL;
    void *block = again ? get(&fresh, whole) : moved_in(calloc(1, (size_t)1 << power), whole, (uint64_t)power);
    return block && again ? memset(block, 0, WRONG(whole > 999 ? 999 : whole, whole)) : block;
}

static struct pool dirtied;
static void *dirty;
void *dirty_malloc(size_t size) {
    return get(&dirtied, size);
}
void dirty_free(void *block) {
    if (!block) return;
    memset(block, 0xA5, head_of(block)->size);
    if (WRONG(dirty != NULL, 0)) memset((char *)dirty + 8, 0xA5, 24);
    dirty = head_of(block)->size >= 32 ? block : NULL;
    put(&dirtied, block);
}

static struct pool quiet;
void *quiet_malloc(size_t size) { return get(&quiet, size); }
void quiet_free(void *block) {
    int before = errno;
    put(&quiet, block);
    errno = WRONG(block ? ENOMEM : before, before);
}

/* NumPy's handlers are told the sizes, so their blocks need no head. */
static struct head *plain[48];
void *handler_malloc(void *context, size_t size) {
    if (size > TOO_MUCH) return (void)context, NULL;
    int power = power_of(size);
    struct head *head = plain[power];
    if (!head) return malloc((size_t)1 << power);
    plain[power] = *(struct head **)head;
    return head;
}
void handler_free(void *context, void *block, size_t size) {
    if (!block) return (void)context;
    int power = power_of(WRONG(size > 64 ? 2 * size : size, size));
    *(struct head **)block = plain[power];
    plain[power] = block;
}
void *handler_calloc(void *context, size_t count, size_t size) {
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) return NULL;
    void *block = handler_malloc(context, whole);
    return block ? memset(block, 0, whole) : NULL;
}
