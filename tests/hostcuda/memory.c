/* Device memory and page-locked host memory. */
#include "hostcuda.h"
#include <sys/mman.h>
#include <unistd.h>

enum { UNIT = 512, POISONED = 1 << 20, FRESH = 0xA5, FREED = 0xDB };

static Block *pinned;
long pinned_blocks;

/* --- where an address lies */

int device_of(const void *address)
{
    for (int ordinal = 0; ordinal < device_count; ordinal++) {
        const Device *device = &devices[ordinal];
        if ((char *)address >= device->visible && (char *)address < device->visible + device->size)
            return ordinal;
    }
    return -1;
}

void *reachable(const void *address)
{
    int ordinal = device_of(address);
    if (ordinal < 0)
        return (void *)address;
    return devices[ordinal].hidden + ((char *)address - devices[ordinal].visible);
}

static int in_block(const Block *block, const char *address, size_t size)
{
    for (; block; block = block->next)
        if (address >= block->start && address < block->start + block->size)
            return size <= (size_t)(block->start + block->size - address);
    return 0;
}

int in_device_block(const void *address, size_t size)
{
    int ordinal = device_of(address);
    return ordinal >= 0 && in_block(devices[ordinal].blocks, address, size);
}

int in_pinned_block(const void *address, size_t size) { return in_block(pinned, address, size); }

/* --- device memory: a block takes the first gap that is large enough */

static size_t rounded(size_t size) { return (size + UNIT - 1) / UNIT * UNIT; }

/* A new block in the list that starts at `link`, or NULL; locked. */
static Block *insert(Block **link, char *start, size_t size)
{
    Block *block = malloc(sizeof *block);
    if (block) {
        *block = (Block){start, size, *link};
        *link = block;
    }
    return block;
}

/* Locked. */
static cudaError_t allocate(Device *device, size_t size, void **out)
{
    if (size > device->size || device->size - device->used < rounded(size))
        return cudaErrorMemoryAllocation;
    Block **link = &device->blocks;
    char *start = device->visible;
    while (*link && (size_t)((*link)->start - start) < rounded(size)) {
        start = (*link)->start + rounded((*link)->size);
        link = &(*link)->next;
    }
    if ((size_t)(device->visible + device->size - start) < rounded(size) || !insert(link, start, size))
        return cudaErrorMemoryAllocation;
    device->used += rounded(size);
    if (size <= POISONED)
        memset(reachable(start), FRESH, size); /* CUDA does not promise zeros */
    *out = start;
    return cudaSuccess;
}

/* Remove the block that starts at an address from its list; locked. */
static Block *take_out(Block **link, const void *start)
{
    for (; *link; link = &(*link)->next)
        if ((*link)->start == (char *)start) {
            Block *block = *link;
            *link = block->next;
            return block;
        }
    return NULL;
}

/* Give the whole pages of a large block back to the system; overwrite a small block. */
static void forget_bytes(char *start, size_t size)
{
    if (size <= POISONED) {
        memset(start, FREED, size);
        return;
    }
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)start + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)start + size) / page * page;
    madvise((void *)from, to - from, MADV_REMOVE);
}

EXPORTED cudaError_t cudaMalloc(void **out, size_t size)
{
    BEGIN_CALL;
    *out = NULL;
    if (!size)
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    cudaError_t error = allocate(&devices[current], size, out);
    pthread_mutex_unlock(&lock);
    return failed(error);
}

EXPORTED cudaError_t cudaFree(void *start)
{
    BEGIN_CALL;
    int ordinal = device_of(start);
    if (ordinal < 0)
        return start ? failed(cudaErrorInvalidValue) : cudaSuccess;
    pthread_mutex_lock(&lock);
    wait_for_device(ordinal); /* as cudaFree does */
    Block *block = take_out(&devices[ordinal].blocks, start);
    if (block) {
        devices[ordinal].used -= rounded(block->size);
        forget_bytes(reachable(start), block->size);
    }
    pthread_mutex_unlock(&lock);
    cudaError_t error = block ? cudaSuccess : cudaErrorInvalidValue;
    free(block);
    return failed(error);
}

EXPORTED cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    BEGIN_CALL;
    *total = devices[current].size;
    *left = *total - devices[current].used;
    return cudaSuccess;
}

/* --- page-locked memory: normal host memory, whose addresses hostcuda remembers */

EXPORTED cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    BEGIN_CALL;
    (void)flags;
    *out = NULL;
    if (!size)
        return cudaSuccess;
    if (size > (size_t)1 << 40)
        return failed(cudaErrorMemoryAllocation);
    char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return failed(cudaErrorMemoryAllocation);
    if (size <= POISONED)
        memset(start, FRESH, size);
    pthread_mutex_lock(&lock);
    Block *block = insert(&pinned, start, size);
    pinned_blocks += block != NULL;
    pthread_mutex_unlock(&lock);
    if (!block) {
        munmap(start, size);
        return failed(cudaErrorMemoryAllocation);
    }
    *out = start;
    return cudaSuccess;
}

EXPORTED cudaError_t cudaFreeHost(void *start)
{
    BEGIN_CALL;
    if (!start)
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    for (int ordinal = 0; ordinal < device_count; ordinal++)
        wait_for_device(ordinal);
    Block *block = take_out(&pinned, start);
    pinned_blocks -= block != NULL;
    pthread_mutex_unlock(&lock);
    if (!block)
        return failed(cudaErrorInvalidValue);
    munmap(block->start, block->size);
    free(block);
    return cudaSuccess;
}

/* --- the kind of memory at an address */

EXPORTED cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    BEGIN_CALL;
    int ordinal = device_of(address);
    pthread_mutex_lock(&lock);
    int is_pinned = in_pinned_block(address, 1);
    pthread_mutex_unlock(&lock);
    *attributes = (struct cudaPointerAttributes){.type = cudaMemoryTypeUnregistered, .device = cudaInvalidDeviceId};
    if (ordinal >= 0) {
        attributes->type = cudaMemoryTypeDevice;
        attributes->device = ordinal;
        attributes->devicePointer = (void *)address;
    } else if (is_pinned) {
        attributes->type = cudaMemoryTypeHost;
        attributes->device = 0;
        attributes->devicePointer = attributes->hostPointer = (void *)address;
    }
    return cudaSuccess;
}

/* The number of blocks on all devices. */
long device_blocks(void)
{
    long count = 0;
    for (int ordinal = 0; ordinal < device_count; ordinal++)
        for (const Block *block = devices[ordinal].blocks; block; block = block->next)
            count++;
    return count;
}
