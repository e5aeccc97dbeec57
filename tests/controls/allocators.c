/* Right allocators, each with a freedom that a standard or a known allocator takes; with -DTWIN each is wrong in one thing.

   What a freedom is, who takes it, and what its twin breaks: allocators.py.  All are over one base: lists of idle blocks of
   powers of two, with a head of sixteen bytes before each block. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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
