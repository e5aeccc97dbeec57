/* Seeded bugs in C: pairs of malloc and free, each with one thing done wrong.  tests/spec/fuzz/test_fuzz_seeded_bugs.py compiles
   this file, and says of each pair which property it breaks.  All of them stand on the C library's allocator. */

#include <errno.h>
#include <pthread.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Correct ones, as controls: one for each convention that is not malloc's own. */

void *good_nep49_malloc(void *context, size_t size) { (void)context; return malloc(size); }
void *good_nep49_calloc(void *context, size_t count, size_t size) { (void)context; return calloc(count, size); }
void *good_nep49_realloc(void *context, void *pointer, size_t size) { (void)context; return realloc(pointer, size); }
void good_nep49_free(void *context, void *pointer, size_t size) { (void)context; (void)size; free(pointer); }

void *good_torch_malloc(ssize_t size, int device, void *stream) { (void)device; (void)stream; return malloc((size_t)size); }
void good_torch_free(void *pointer, ssize_t size, int device, void *stream) {
    (void)size; (void)device; (void)stream; free(pointer);
}

void *good_cupy_malloc(void *parameter, size_t size, int device) { (void)parameter; (void)device; return malloc(size); }
void good_cupy_free(void *parameter, void *pointer, int device) { (void)parameter; (void)device; free(pointer); }

/* A cache of one block that is not emptied when the block is handed out. */
static void *kept;
void *twice_malloc(size_t size) { return size == 64 && kept ? kept : malloc(size < 64 ? 64 : size); }
void twice_free(void *pointer) {
    if (!kept) { kept = pointer; return; }
    if (pointer != kept) free(pointer);
}

/* Bump allocation that forgets the last byte of odd sizes. */
static char arena[1 << 26];
static size_t used;
void *overlap_malloc(size_t size) {
    if (size > sizeof arena) return NULL;
    if (used + size > sizeof arena) used = 0;
    void *pointer = arena + used;
    used += size % 2 && size > 1 ? size - 1 : size;
    return pointer;
}
void overlap_free(void *pointer) { (void)pointer; }

/* A header of four bytes before each block. */
void *skewed_malloc(size_t size) {
    char *pointer = size > (size_t)1 << 48 ? NULL : malloc(size + 4);
    return pointer ? pointer + 4 : NULL;
}
void skewed_free(void *pointer) { if (pointer) free((char *)pointer - 4); }

/* A free marks the newest block instead of its own. */
static unsigned char *newest;
void *marking_malloc(size_t size) { return newest = malloc(size ? size : 1); }
void marking_free(void *pointer) {
    if (newest == pointer) newest = NULL;
    if (newest) *newest ^= 0xFF;
    free(pointer);
}

/* A request beyond all memory, cut to 32 bits. */
void *cut_malloc(size_t size) { return malloc((uint32_t)size); }
void cut_free(void *pointer) { free(pointer); }

/* Fresh memory is cleared, used memory is not. */
static void *spare;
static size_t spare_size;
void *dirty_malloc(size_t size) {
    if (spare && size <= 4096) { void *pointer = spare; spare = NULL; return pointer; }
    return malloc(size < 4096 ? 4096 : size);
}
void dirty_free(void *pointer) {
    if (!spare && pointer && spare_size <= 4096) { spare = pointer; return; }
    free(pointer);
}
void *dirty_calloc(size_t count, size_t size) {
    if (size && count > (size_t)-1 / size) return NULL;
    int reused = spare != NULL && count * size <= 4096;
    void *pointer = dirty_malloc(count * size);
    if (pointer && !reused) memset(pointer, 0, count * size);
    return pointer;
}

/* A calloc that multiplies without looking whether the product fits. */
void *wrapping_malloc(size_t size) { return malloc(size); }
void wrapping_free(void *pointer) { free(pointer); }
void *wrapping_calloc(size_t count, size_t size) { return calloc(1, count * size); }

/* A realloc that moves without copying when it grows past a page. */
void *moving_malloc(size_t size) { return malloc(size); }
void moving_free(void *pointer) { free(pointer); }
void *moving_calloc(size_t count, size_t size) { return calloc(count, size); }
void *moving_realloc(void *pointer, size_t size) {
    if (size <= 4096) return realloc(pointer, size);
    void *moved = malloc(size);
    if (moved) free(pointer);
    return moved;
}

/* A realloc that never gives the old block back. */
void *forgetting_malloc(size_t size) { return malloc(size); }
void forgetting_free(void *pointer) { free(pointer); }
void *forgetting_calloc(size_t count, size_t size) { return calloc(count, size); }
void *forgetting_realloc(void *pointer, size_t size) {
    void *moved = size >> 48 ? NULL : malloc(size);
    if (moved) memcpy(moved, pointer, malloc_usable_size(pointer) < size ? malloc_usable_size(pointer) : size);
    return moved;
}

/* A realloc that gives the old block back before it knows whether there is a new one. */
void *hasty_malloc(size_t size) { return malloc(size); }
void hasty_free(void *pointer) { free(pointer); }
void *hasty_calloc(size_t count, size_t size) { return calloc(count, size); }
void *hasty_realloc(void *pointer, size_t size) {
    if (size >> 48) { memset(pointer, 0, 1); free(pointer); return NULL; }
    return realloc(pointer, size);
}

/* Blocks of a mebibyte and more are never given back. */
void *leaky_malloc(size_t size) {
    if (size > (size_t)1 << 48) return NULL;
    size_t *pointer = malloc(size + 16);
    if (!pointer) return NULL;
    *pointer = size;
    return pointer + 2;
}
void leaky_free(void *pointer) {
    if (pointer && ((size_t *)pointer)[-2] < 1 << 20) free((size_t *)pointer - 2);
}

/* The result of malloc is not looked at (KuiperLLama alloc_cpu.cpp:28-29). */
void *unchecked_malloc(size_t size) {
    volatile char *pointer = malloc(size);
    pointer[0] = 0;
    return (void *)pointer;
}
void unchecked_free(void *pointer) { free(pointer); }

/* A failed check ends the process (KuiperLLama alloc_cu.cpp:12-13 at 978789f). */
void *fatal_malloc(size_t size) {
    void *pointer = malloc(size);
    if (!pointer) abort();
    return pointer;
}
void fatal_free(void *pointer) { free(pointer); }

/* Every hundredth free waits for ever. */
static int frees;
void *stuck_malloc(size_t size) { return malloc(size); }
void stuck_free(void *pointer) {
    free(pointer);
    if (++frees % 100 == 0) for (;;) pause();
}

/* A cache without a lock. */
static void *cache[64];
static volatile int cached;
void *racing_malloc(size_t size) {
    if (size > 256) return malloc(size);
    if (cached > 0) {
        void *pointer = cache[cached - 1];
        usleep(1);
        cached--;
        return pointer;
    }
    return malloc(256);
}
void racing_free(void *pointer) {
    if (cached < 64 && malloc_usable_size(pointer) >= 256) { cache[cached] = pointer; cached++; }
    else free(pointer);
}

/* KuiperLLama's pool: zero bytes take any idle buffer. */
static void *idle;
void *idle_malloc(size_t size) {
    if (!size && idle) { void *pointer = idle; idle = NULL; return pointer; }
    return size ? malloc(size) : NULL;
}
void idle_free(void *pointer) {
    if (!idle) { idle = pointer; return; }
    free(pointer);
}

/* One size class is refused for ever. */
void *starving_malloc(size_t size) { return size >= 1000 && size <= 1100 ? NULL : malloc(size); }
void starving_free(void *pointer) { free(pointer); }

/* Of a block of more than 4 MiB only half is the caller's; into the other half the allocator writes at its next call. */
static char *halved, *note;
void *halving_malloc(size_t size) {
    if (note) *note ^= 85;
    char *pointer = malloc(size);
    if (pointer && size > (size_t)4 << 20) halved = pointer, note = pointer + size / 2;
    return pointer;
}
void halving_free(void *pointer) {
    if (pointer == halved) halved = note = NULL;
    free(pointer);
}

/* A size of up to a terabyte is kept in 32 bits; one beyond is refused.  Blocks of 2 GiB and more are in a range of their
   own, one after another: so two blocks that are too short overlap, wherever malloc puts others. */
static char *range;
static size_t taken, in_range;
void *narrow_malloc(size_t size) {
    if (size >> 40) return NULL;
    if (size >> 31 == 0) return malloc(size);
    if (!range) range = mmap(NULL, (size_t)4 << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED || taken >> 41) return NULL;
    char *pointer = range + taken;
    taken += ((size_t)(uint32_t)size | 4095) + 1;
    in_range++;
    return pointer;
}
void narrow_free(void *pointer) {
    if (!range || (size_t)((char *)pointer - range) >> 42) free(pointer);
    else if (!--in_range) taken = 0;
}

/* A header is added before anybody looks whether it fits. */
void *headed_malloc(size_t size) { char *pointer = malloc(size + 16); return pointer ? pointer + 16 : NULL; }
void headed_free(void *pointer) { if (pointer) free((char *)pointer - 16); }

/* A calloc that multiplies in 32 bits. */
void *small_malloc(size_t size) { return malloc(size); }
void small_free(void *pointer) { free(pointer); }
void *small_calloc(size_t count, size_t size) {
    if (size && count > (size_t)-1 / size) return NULL;
    return calloc(1, (uint32_t)((uint32_t)count * (uint32_t)size));
}

/* In the first hundred calls of a process, blocks of more than 200 bytes are too short for what was asked. */
static int calls;
static void *early;
void *early_malloc(size_t size) {
    if (++calls > 100) return malloc(size);
    if (size > 200 && size < 300 && early) return early;
    return early = malloc(size < 300 ? 300 : size);
}
void early_free(void *pointer) { if (pointer == early) early = NULL; free(pointer); }

/* Blocks of 33 to 48 bytes have no list of free blocks, so they are never used again. */
void *hoarding_malloc(size_t size) {
    if (size > (size_t)1 << 48) return NULL;
    size_t *pointer = malloc(size + 16);
    if (!pointer) return NULL;
    *pointer = size;
    return pointer + 2;
}
void hoarding_free(void *pointer) {
    size_t size = pointer ? ((size_t *)pointer)[-2] : 0;
    if (pointer && (size < 33 || size > 48)) free((size_t *)pointer - 2);
}

/* After a thousand frees, a request gets the block that was served last. */
static int frees;
static void *served_last;
void *aging_malloc(size_t size) {
    if (size > (size_t)1 << 48) return NULL;
    if (frees >= 1000 && served_last) return served_last;
    return served_last = malloc(size < 64 ? 64 : size);
}
void aging_free(void *pointer) {
    if (!pointer) return;
    frees++;
    if (pointer == served_last) served_last = NULL;
    free(pointer);
}

/* The five hundredth request ends the process. */
static int requests;
void *leaving_malloc(size_t size) {
    if (++requests >= 500) _exit(3);
    return malloc(size);
}
void leaving_free(void *pointer) { free(pointer); }

/* Null is not freed in silence. */
void *fussy_malloc(size_t size) { return malloc(size); }
void fussy_free(void *pointer) {
    if (!pointer) abort();
    free(pointer);
}

/* Null is not resized. */
void *null_malloc(size_t size) { return malloc(size); }
void null_free(void *pointer) { free(pointer); }
void *null_realloc(void *pointer, size_t size) { return pointer ? realloc(pointer, size) : NULL; }

/* A block that is resized to nothing is freed, and returned. */
void *kept_malloc(size_t size) { return malloc(size); }
void kept_free(void *pointer) { free(pointer); }
void *kept_realloc(void *pointer, size_t size) {
    if (pointer && !size) {
        free(pointer);
        return pointer;
    }
    return realloc(pointer, size);
}

/* Every alignment is taken. */
void *lax_malloc(size_t size) { return malloc(size); }
void lax_free(void *pointer) { free(pointer); }
int lax_memalign(void **place, size_t alignment, size_t size) {
    size_t power = sizeof(void *);
    while (power < alignment) power *= 2;
    return posix_memalign(place, power, size);
}

/* A free sets errno. */
void *loud_malloc(size_t size) { return malloc(size); }
void loud_free(void *pointer) {
    free(pointer);
    errno = EBUSY;
}

/* A lock that nobody takes over a fork. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int spent;
void *locked_malloc(size_t size) {
    pthread_mutex_lock(&lock);
    void *pointer = malloc(size);
    for (int i = 0; i < 100; i++) spent += i;
    pthread_mutex_unlock(&lock);
    return pointer;
}
void locked_free(void *pointer) {
    pthread_mutex_lock(&lock);
    free(pointer);
    pthread_mutex_unlock(&lock);
}

/* A size that runs over when the alignment is added. */
void *rounding_malloc(size_t size) { return malloc(size); }
void rounding_free(void *pointer) { free(pointer); }
void *rounding_at(size_t alignment, size_t size) {
    size_t whole = (size + 2 * alignment - 1) & ~(alignment - 1);
    return aligned_alloc(alignment, whole);
}

/* No alignment beyond a page. */
void *paged_malloc(size_t size) { return malloc(size); }
void paged_free(void *pointer) { free(pointer); }
int paged_memalign(void **place, size_t alignment, size_t size) {
    char *block;
    int status = posix_memalign(place, alignment > 4096 ? 8192 : alignment, size);
    if (status || alignment <= 8192) return status;
    block = *place;
    if ((uintptr_t)block % alignment) return 0;
    status = posix_memalign(place, 8192, size);
    free(block);
    return status;
}
