/* Events: points in the work of a stream. */
#include "hostcuda.h"

typedef struct Event {
    int device;
    Mark mark; /* number 0: the event was never recorded, and counts as done */
} Event;

long live_events;

EXPORTED cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    BEGIN_CALL;
    (void)flags;
    Event *event = calloc(1, sizeof *event);
    if (!event)
        return failed(cudaErrorMemoryAllocation);
    event->device = current;
    pthread_mutex_lock(&lock);
    live_events++;
    pthread_mutex_unlock(&lock);
    *out = (cudaEvent_t)event;
    return cudaSuccess;
}

EXPORTED cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }

EXPORTED cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    BEGIN_CALL;
    pthread_mutex_lock(&lock);
    live_events--;
    pthread_mutex_unlock(&lock);
    free((Event *)handle);
    return cudaSuccess;
}

EXPORTED cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle)
{
    BEGIN_CALL;
    Event *event = (Event *)handle;
    Operation *nothing = new_operation(NULL); /* the event is done when the stream has done this operation */
    if (!nothing)
        return failed(cudaErrorMemoryAllocation);
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(stream_handle);
    int fits = stream && stream->device == event->device;
    if (fits)
        event->mark = enqueue(stream, nothing);
    pthread_mutex_unlock(&lock);
    if (fits)
        return cudaSuccess;
    free(nothing);
    return failed(cudaErrorInvalidResourceHandle);
}

EXPORTED cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    BEGIN_CALL;
    const Event *event = (Event *)handle;
    pthread_mutex_lock(&lock);
    cudaError_t error = is_done(event->mark) ? devices[event->device].error : cudaErrorNotReady;
    pthread_mutex_unlock(&lock);
    return failed(error);
}

EXPORTED cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    BEGIN_CALL;
    const Event *event = (Event *)handle;
    pthread_mutex_lock(&lock);
    wait_for_mark(event->mark);
    cudaError_t error = devices[event->device].error;
    pthread_mutex_unlock(&lock);
    return failed(error);
}

EXPORTED cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
    BEGIN_CALL;
    (void)flags;
    Operation *wait = new_operation(NULL);
    if (!wait)
        return failed(cudaErrorMemoryAllocation);
    wait->after = ((Event *)event)->mark;
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(handle);
    if (stream)
        enqueue(stream, wait);
    pthread_mutex_unlock(&lock);
    if (stream)
        return cudaSuccess;
    free(wait);
    return failed(cudaErrorInvalidResourceHandle);
}
