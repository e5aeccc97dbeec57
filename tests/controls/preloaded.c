/* A right library for debugging, which is for preloading: it defines malloc itself.

   It aborts for a block that is not its own, as Electric Fence does; calloc and realloc call malloc by its name.  What is
   wrong in it is chosen by a macro: WRAPS and ABORTS, and LATER, which wraps only if it is preloaded. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct head { uint64_t mark; size_t size; };
static struct head *idle[48];
static char *at, *end;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }
__attribute__((constructor)) static void begin(void) { pthread_atfork(lock, unlock, unlock); }

static int power_of(size_t size) {
    int power = 5;
    while ((size_t)1 << power < size + sizeof(struct head)) power++;
    return power;
}

static struct head *new_block(size_t whole) {
    if ((size_t)(end - at) < whole) {
        size_t room = whole > 1 << 20 ? whole : 1 << 20;
        char *more = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (more == MAP_FAILED) return NULL;
        at = more, end = more + room;
    }
    at += whole;
    return (struct head *)(at - whole);
}

void *malloc(size_t size) {
    if (size > (size_t)1 << 40) return NULL;
    int power = power_of(size);
    lock();
    struct head *head = idle[power];
    if (head) idle[power] = *(struct head **)(head + 1);
    else head = new_block((size_t)1 << power);
    unlock();
    if (!head) return NULL;
    *head = (struct head){0x600D, size};
    return head + 1;
}

void free(void *block) {
    struct head *head = (struct head *)block - 1;
    if (!block) return;
    if (head->mark != 0x600D) abort();
#ifdef ABORTS
    if (head->size % 100 == 52) abort();
#endif
    head->mark = 0;
    lock();
    *(struct head **)block = idle[power_of(head->size)];
    idle[power_of(head->size)] = head;
    unlock();
}

void *calloc(size_t count, size_t size) {
    size_t whole = count * size;
#ifdef LATER
    if (!getenv("LD_PRELOAD") && __builtin_mul_overflow(count, size, &whole)) return NULL;
#elif !defined WRAPS
    if (__builtin_mul_overflow(count, size, &whole)) return NULL;
#endif
    void *block = malloc(whole);
    return block ? memset(block, 0, whole) : NULL;
}

void *realloc(void *block, size_t size) {
    void *larger = malloc(size);
    if (!block || !larger) return larger;
    size_t before = ((struct head *)block - 1)->size;
    memcpy(larger, block, before < size ? before : size);
    free(block);
    return larger;
}
