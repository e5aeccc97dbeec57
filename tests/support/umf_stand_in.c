/* A stand-in for libumf, for machines without it: its functions over tables of operations with fewer entries than those
   of libumf.  tests/spec/fuzz/test_fuzz_conventions.py says of each pool and provider what it does wrong. */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, NO_MEMORY, SPECIFIC, INVALID, MISALIGNED, UNSUPPORTED };
static int last;

typedef struct { int (*alloc)(size_t, size_t, void **); int (*free)(void *, size_t); } provider_ops;
typedef struct { void *(*malloc)(size_t); void *(*realloc)(void *, size_t); size_t header; int writes_size, needs; } pool_ops;

static int plain_alloc(size_t size, size_t alignment, void **out) {
    if (!size) return INVALID;
    if (size >> 47) return NO_MEMORY;
    return posix_memalign(out, alignment < 16 ? 16 : alignment, size) ? SPECIFIC : SUCCESS;
}
static int crooked_alloc(size_t size, size_t alignment, void **out) {
    (void)alignment;
    if (!size) return INVALID;
    return (*out = size >> 47 ? NULL : malloc(size)) ? SUCCESS : NO_MEMORY;
}
static int broken_alloc(size_t size, size_t alignment, void **out) {
    return size > 4096 ? UNSUPPORTED : plain_alloc(size, alignment, out);
}
static int plain_free(void *pointer, size_t size) { (void)size; free(pointer); return SUCCESS; }
static int strict_free(void *pointer, size_t size) {
    if (malloc_usable_size(pointer) - size >= 16) return INVALID; /* a size that is rounded up is too much for it */
    return plain_free(pointer, size);
}

static provider_ops umfos = {plain_alloc, plain_free}, crooked = {crooked_alloc, plain_free}, broken = {broken_alloc, plain_free},
                    strict = {plain_alloc, strict_free};
provider_ops *umfOsMemoryProviderOps(void) { return &umfos; }
provider_ops *crookedProviderOps(void) { return &crooked; }
provider_ops *brokenProviderOps(void) { return &broken; }
provider_ops *strictProviderOps(void) { return &strict; }
int umfOsMemoryProviderParamsCreate(void **out) { return (*out = malloc(1)) ? SUCCESS : NO_MEMORY; }

static void *plain_malloc(size_t size) { return size >> 47 ? NULL : malloc(size); }
static void *plain_realloc(void *pointer, size_t size) { return size >> 47 ? NULL : realloc(pointer, size); }
static void *moving_realloc(void *pointer, size_t size) {
    void *moved = size >> 47 ? NULL : malloc(size);
    if (moved) free(pointer);
    return moved;
}
static pool_ops good_pool = {plain_malloc, plain_realloc, 0, 1, 0}, old_pool = {plain_malloc, plain_realloc, 0, 0, 0},
                moving_pool = {plain_malloc, moving_realloc, 0, 1, 0}, bare_pool = {plain_malloc, NULL, 0, 1, 0},
                needy_pool = {plain_malloc, NULL, 0, 1, 1};
pool_ops *goodPoolOps(void) { return &good_pool; }
pool_ops *oldPoolOps(void) { return &old_pool; }
pool_ops *movingPoolOps(void) { return &moving_pool; }
pool_ops *barePoolOps(void) { return &bare_pool; }
pool_ops *needyPoolOps(void) { return &needy_pool; }
pool_ops *absentPoolOps(void) { return NULL; }

int umfMemoryProviderCreate(const void *ops, void *params, void **out) { free(params); *out = (void *)ops; return SUCCESS; }
void umfMemoryProviderDestroy(void *provider) { (void)provider; }
int umfMemoryProviderAlloc(provider_ops *it, size_t size, size_t alignment, void **out) { return it->alloc(size, alignment, out); }
int umfMemoryProviderFree(provider_ops *it, void *pointer, size_t size) { return it->free(pointer, size); }

int umfPoolCreate(pool_ops *ops, void *provider, void *params, unsigned flags, void **out) {
    (void)provider; (void)params; (void)flags;
    *out = ops;
    return ops->needs ? 7 : SUCCESS;
}
void umfPoolDestroy(void *pool) { (void)pool; }
void *umfPoolMalloc(pool_ops *it, size_t size) { return it->malloc(size); }
int umfPoolFree(pool_ops *it, void *pointer) { (void)it; free(pointer); return SUCCESS; }
void *umfPoolCalloc(pool_ops *it, size_t count, size_t size) {
    last = it->realloc ? NO_MEMORY : UNSUPPORTED;
    return it->realloc ? calloc(count, size) : NULL;
}
void *umfPoolRealloc(pool_ops *it, void *pointer, size_t size) {
    last = it->realloc ? NO_MEMORY : UNSUPPORTED;
    return it->realloc ? it->realloc(pointer, size) : NULL;
}
void *umfPoolAlignedMalloc(pool_ops *it, size_t size, size_t alignment) {
    (void)it;
    return size >> 47 ? NULL : aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
size_t umfPoolMallocUsableSize(pool_ops *it, void *pointer, size_t *size) {
    if (!it->writes_size) return malloc_usable_size(pointer);
    *size = malloc_usable_size(pointer);
    return SUCCESS;
}
int umfPoolGetLastAllocationError(void *pool) { (void)pool; return last; }
