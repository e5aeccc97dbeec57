/* Copies and fills.

   Pageable memory is read and written before the call returns.  Page-locked memory is read and written when the stream
   runs the operation.  An address that is not in a block, or not on the side that the call says, is an error here; CUDA
   itself does not check it. */
#include "hostcuda.h"

static void run_copy(Operation *copy)
{
    memmove(reachable(copy->to), copy->owned ? copy->owned : reachable(copy->from), copy->size);
}

static void run_fill(Operation *fill) { memset(reachable(fill->to), fill->value, fill->size); }

/* Are these bytes on the side that the call says?  Locked. */
static int is_placed(const void *address, size_t size, int on_device)
{
    return on_device ? in_device_block(address, size) : device_of(address) < 0;
}

/* The kind of copy that the addresses imply: 1 if the target is on a device, plus 2 if the source is. */
static int kind_of(const void *to, const void *from) { return (device_of(to) >= 0) | (device_of(from) >= 0) << 1; }

/* Queue a copy, and wait until it is done if CUDA would return only then.  Locked. */
static cudaError_t copy(void *to, const void *from, size_t size, int kind, Stream *stream, int blocking)
{
    int up = kind == cudaMemcpyHostToDevice, down = kind == cudaMemcpyDeviceToHost;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDeviceToDevice)
        return cudaErrorInvalidValue;
    if (!is_placed(to, size, kind & 1) || !is_placed(from, size, kind >> 1))
        return cudaErrorInvalidValue;
    Operation *operation = new_operation(run_copy);
    if (!operation)
        return cudaErrorMemoryAllocation;
    operation->to = to;
    operation->from = from;
    operation->size = size;
    if (up && !in_pinned_block(from, size)) {
        operation->owned = malloc(size);
        if (!operation->owned) {
            free(operation);
            return cudaErrorMemoryAllocation;
        }
        memcpy(operation->owned, from, size);
    }
    int device = stream->device;
    Mark mark = enqueue(stream, operation);
    if (!blocking && kind != cudaMemcpyHostToHost && !(down && !in_pinned_block(to, size)))
        return cudaSuccess;
    wait_for_mark(mark);
    return devices[device].error;
}

static cudaError_t copy_call(void *to, const void *from, size_t size, int kind, cudaStream_t handle, int blocking)
{
    if (!size)
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(handle);
    cudaError_t error = cudaErrorInvalidResourceHandle;
    if (stream)
        error = copy(to, from, size, kind == cudaMemcpyDefault ? kind_of(to, from) : kind, stream, blocking);
    pthread_mutex_unlock(&lock);
    return failed(error);
}

EXPORTED cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                                     cudaStream_t stream)
{
    BEGIN_CALL;
    return copy_call(to, from, size, kind, stream, 0);
}

EXPORTED cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    BEGIN_CALL;
    return copy_call(to, from, size, kind, NULL, 1);
}

/* The addresses show which devices are meant; the ordinals have to agree with them. */
static int are_peers(const void *to, int to_device, const void *from, int from_device)
{
    return device_of(to) == to_device && device_of(from) == from_device;
}

EXPORTED cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                                         cudaStream_t stream)
{
    BEGIN_CALL;
    if (!are_peers(to, to_device, from, from_device))
        return failed(cudaErrorInvalidDevice);
    return copy_call(to, from, size, cudaMemcpyDeviceToDevice, stream, 0);
}

EXPORTED cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size)
{
    BEGIN_CALL;
    if (!are_peers(to, to_device, from, from_device))
        return failed(cudaErrorInvalidDevice);
    return copy_call(to, from, size, cudaMemcpyDeviceToDevice, NULL, 1);
}

/* Locked. */
static cudaError_t fill(void *start, int value, size_t size, Stream *stream)
{
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (!is_placed(start, size, 1))
        return cudaErrorInvalidValue;
    Operation *operation = new_operation(run_fill);
    if (!operation)
        return cudaErrorMemoryAllocation;
    operation->to = start;
    operation->value = value;
    operation->size = size;
    enqueue(stream, operation);
    return cudaSuccess;
}

EXPORTED cudaError_t cudaMemsetAsync(void *start, int value, size_t size, cudaStream_t handle)
{
    BEGIN_CALL;
    if (!size)
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    cudaError_t error = fill(start, value, size, stream_of(handle));
    pthread_mutex_unlock(&lock);
    return failed(error);
}

EXPORTED cudaError_t cudaMemset(void *start, int value, size_t size) { return cudaMemsetAsync(start, value, size, NULL); }
