/* What the runner lends to a port: memory between guards.  Each action is logged, and fails if it is the one that has to. */
#ifndef LENT_H
#define LENT_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "syncedmem_port.h"

enum { GUARD = 16, BLOCKS = 4096, MEMORIES = 8 };
typedef struct { unsigned char *at; size_t size; uint32_t kind; int live; const void *owner; } block;
typedef struct { void *memory; size_t size; smp_allocators lent; block *adopted[2]; void *view[2]; } mirrored;
static const char *const KINDS[] = {"pageable host memory", "page-locked host memory", "device memory"};
static block blocks[BLOCKS];
static struct { void *to; const void *from; size_t size; } queued;
static char done[1024], trouble[256]; /* the actions of a call, and what was wrong with one */
static int count, left;               /* blocks; and actions until one fails */
static uint32_t made;                 /* the kind of the last host memory */

#define TROUBLE(...) return snprintf(trouble, *trouble ? 0 : sizeof trouble, __VA_ARGS__), 1

static block *new_block(size_t size, uint32_t kind, const void *owner) {
    unsigned char *whole = count < BLOCKS ? malloc(size + 2 * GUARD) : NULL;
    if (whole == NULL) exit(2);
    blocks[count] = (block){memset(whole, 0xA5, size + 2 * GUARD), size, kind, 1, owner};
    blocks[count].at += GUARD;
    return &blocks[count++];
}
static block *find(const void *pointer, size_t size) { /* the live block that has these bytes */
    for (int k = count; k-- > 0;)
        if ((uintptr_t)pointer - (uintptr_t)blocks[k].at <= blocks[k].size && blocks[k].live)
            return (uintptr_t)pointer - (uintptr_t)blocks[k].at + size <= blocks[k].size ? &blocks[k] : NULL;
    return NULL;
}

static int act(const mirrored *own, const char *name, size_t size) {
    if (left > 0 && --left == 0) return 1;
    if (own->size && size != own->size) TROUBLE("%s of %lu bytes", name, (unsigned long)size);
    snprintf(done + strlen(done), sizeof done - strlen(done), "%s\"%s\"", *done ? "," : "", name);
    return 0;
}
static int allocate(void *own, uint32_t kind, size_t size, void **at) {
    if (act(own, kind == SMP_DEVICE ? "allocate_gpu" : "allocate_cpu", size)) return 1;
    if (kind != SMP_DEVICE) made = kind;
    return *at = new_block(size, kind, own)->at, 0;
}
static int deallocate(void *own, uint32_t kind, void *at) {
    block *it = find(at, 0);
    if (it == NULL || it->at != at || it->owner == NULL) TROUBLE("a free of memory that it has not allocated");
    if (it->kind != kind) TROUBLE("a free of %s as if it were %s", KINDS[it->kind], KINDS[kind % 3]);
    if (act(own, kind == SMP_DEVICE ? "free_gpu" : "free_cpu", it->size)) return 1;
    memset(it->at, 0xDD, it->size);
    return it->live = 0;
}
static int zero(void *own, void *at, size_t size) {
    const block *it = find(at, size);
    if (it == NULL) TROUBLE("%lu zeros where no memory is", (unsigned long)size);
    return act(own, it->kind == SMP_DEVICE ? "zero_gpu" : "zero_cpu", size) || (memset(at, 0, size), 0);
}
static int moves(void *own, const void *to, const void *from, size_t size, const char *up) {
    const block *into = find(to, size), *out = find(from, size);
    if (into == NULL || out == NULL) TROUBLE("a copy of %lu bytes where no memory is", (unsigned long)size);
    int same = (into->kind == SMP_DEVICE) == (out->kind == SMP_DEVICE);
    return act(own, same ? "copy within a side" : into->kind == SMP_DEVICE ? up : "copy_to_cpu", size);
}
static int copy(void *own, void *to, const void *from, size_t size) {
    return moves(own, to, from, size, "copy_to_gpu") || (memmove(to, from, size), 0);
}
static int synchronize(void *own, void *stream) {
    if (queued.size) memmove(queued.to, queued.from, queued.size);
    return (void)own, (void)stream, queued.size = 0, 0;
}
static int copy_async(void *own, void *to, const void *from, size_t size, void *stream) {
    if (synchronize(own, stream) || moves(own, to, from, size, "copy_to_gpu_async")) return 1;
    return queued.to = to, queued.from = from, queued.size = size, 0;
}
static int get_device(void *own, int32_t *device) { return (void)own, *device = 0; }
static int set_device(void *own, int32_t device) { return (void)own, device != 0; }
static const smp_allocators LENT = {NULL, allocate, deallocate, zero, copy, copy_async, synchronize, get_device, set_device};
#endif
