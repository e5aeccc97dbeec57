/* The relatives of malloc: one correct set of functions, and sets of which one function is wrong.
   tests/spec/fuzz/test_fuzz_conventions.py compiles this file, and says of each set which requirement it breaks. */

#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN(name)                                                    \
    void *name##_malloc(size_t size) { return malloc(size); }          \
    void name##_free(void *pointer) { free(pointer); }

/* All correct. */
PLAIN(good)
void *good_calloc(size_t count, size_t size) { return calloc(count, size); }
void *good_realloc(void *pointer, size_t size) { return realloc(pointer, size); }
void *good_aligned_alloc(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
int good_posix_memalign(void **pointer, size_t alignment, size_t size) { return posix_memalign(pointer, alignment, size); }
size_t good_malloc_usable_size(void *pointer) { return malloc_usable_size(pointer); }
void *good_reallocarray(void *pointer, size_t count, size_t size) { return reallocarray(pointer, count, size); }
void good_free_sized(void *pointer, size_t size) { (void)size; free(pointer); }
void good_free_aligned_sized(void *pointer, size_t alignment, size_t size) { (void)alignment; (void)size; free(pointer); }

/* Without calloc and realloc: reallocarray alone. */
PLAIN(lean)
void *lean_reallocarray(void *pointer, size_t count, size_t size) { return reallocarray(pointer, count, size); }
int lean_posix_memalign(void **pointer, size_t alignment, size_t size) { return posix_memalign(pointer, alignment, size); }
void lean_free_sized(void *pointer, size_t size) { (void)size; free(pointer); }

/* A posix_memalign that reports success and writes no pointer when it fails. */
PLAIN(mute)
int mute_posix_memalign(void **pointer, size_t alignment, size_t size) {
    void *found = size > 2048 ? NULL : aligned_alloc(alignment, size);
    if (found) *pointer = found;
    return 0;
}

/* A posix_memalign that writes ENOMEM for each refusal, as it should; and refuses much. */
PLAIN(tight)
int tight_posix_memalign(void **pointer, size_t alignment, size_t size) {
    return size > 2048 ? ENOMEM : posix_memalign(pointer, alignment, size);
}

/* A malloc_usable_size that forgets the last word. */
PLAIN(modest)
size_t modest_malloc_usable_size(void *pointer) { return malloc_usable_size(pointer) - 24; }

/* A free_sized that keeps a block for the next power of two above its size, which it may not hold. */
static void *kept[64];
static int class_of(size_t size) { int k = 4; while (k < 63 && (size_t)1 << k < size) k++; return k; }
void *rounding_malloc(size_t size) {
    int k = class_of(size);
    void *found = kept[k];
    kept[k] = NULL;
    return found ? found : malloc(size);
}
void rounding_free(void *pointer) { free(pointer); }
void rounding_free_sized(void *pointer, size_t size) {
    int k = class_of(size);
    if (kept[k]) free(pointer); else kept[k] = pointer;
}

/* A reallocarray that multiplies without looking whether the product fits. */
PLAIN(wrapping)
void *wrapping_reallocarray(void *pointer, size_t count, size_t size) { return realloc(pointer, count * size); }

/* A reallocarray that reads the size of an element as the size of all when it moves. */
PLAIN(partial)
void *partial_realloc(void *pointer, size_t size) { return realloc(pointer, size); }
void *partial_reallocarray(void *pointer, size_t count, size_t size) {
    size_t old = pointer ? malloc_usable_size(pointer) : 0;
    if (size && count > SIZE_MAX / size) return NULL;
    void *moved = count * size >> 48 ? NULL : malloc(count * size);
    if (moved && pointer) { memcpy(moved, pointer, old < size / 2 ? old : size / 2); free(pointer); }
    return moved;
}

/* A pool that never frees a large buffer while it has no small one.  Only a new state shows it: KuiperLLama's release. */
static int small_ones;
void stale_reset(void) { small_ones = 0; }
void *stale_malloc(size_t size) {
    if (size < 1 << 20) small_ones = 1;
    return malloc(size);
}
void stale_free(void *pointer) { if (small_ones) free(pointer); }

/* NumPy's convention with a context of its own. */
void *counted_make(void) { return calloc(1, sizeof(size_t)); }
void counted_drop(void *context) { free(context); }
void *counted_malloc(void *context, size_t size) { ++*(size_t *)context; return malloc(size); }
void counted_free(void *context, void *pointer, size_t size) { (void)size; --*(size_t *)context; free(pointer); }
void *failing_make(void) { return NULL; }
void *failing_malloc(void *context, size_t size) { (void)context; return malloc(size); }
void failing_free(void *context, void *pointer, size_t size) { (void)context; (void)size; free(pointer); }

/* An object whose calls take an alignment, with all that it may have but a comparison, a drop and an error. */
static int made;
void *object_make(void) { return &made; }
void *object_allocate(void *self, size_t size, size_t alignment) { (void)self; return aligned_alloc(alignment, size); }
void object_deallocate(void *self, void *block, size_t size, size_t alignment) {
    (void)self; (void)size; (void)alignment; free(block);
}
void *object_zeroed(void *self, size_t size, size_t alignment) {
    void *found = object_allocate(self, size, alignment);
    return found ? memset(found, 0, size) : NULL;
}
void *object_resize(void *self, void *block, size_t old, size_t alignment, size_t size) {
    void *found = size >> 47 ? NULL : object_allocate(self, size, alignment);
    if (found) { memcpy(found, block, old < size ? old : size); free(block); }
    return found;
}
