/* Streams: queues of operations.

   A stream has a thread while it has work, and none while it is idle.  If an operation has to wait for nothing and
   there is no lag, it runs at once, in the thread that queues it.  Operations are numbered over all streams, so an
   operation that was queued earlier has a smaller number.

   The default stream of a device waits for all blocking streams of the device, and they wait for it.  Streams that were
   made with cudaStreamNonBlocking do neither.

   With a lag, an operation runs some time after it was queued.  If the program waits for it, it runs at once: a program
   that waits cannot see how long it takes, and one that forgets to wait does not shorten the lag. */
#include "hostcuda.h"
#include <errno.h>
#include <time.h>

static Stream defaults[MOST_DEVICES];
static Stream *streams; /* all streams, also the default streams */
static uint64_t stream_ids, queued;
static long lag, fail_in;
static cudaError_t fail_with;
long live_streams, live_threads;

static Stream *add_stream(Stream *stream, int device, unsigned flags, int priority)
{
    *stream = (Stream){.next = streams, .id = ++stream_ids, .device = device, .flags = flags, .priority = priority};
    return streams = stream;
}

void start_streams(long microseconds)
{
    lag = microseconds;
    for (int device = 0; device < device_count; device++)
        add_stream(&defaults[device], device, 0, 0);
}

Stream *stream_of(cudaStream_t handle)
{
    /* hostcuda has no default stream for each thread, and uses the default stream for all threads instead. */
    if (!handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread)
        return &defaults[current];
    for (Stream *stream = streams; stream; stream = stream->next)
        if (stream == (Stream *)handle && !stream->destroyed)
            return stream;
    return NULL;
}

/* --- which work is done */

static int is_default(const Stream *stream) { return stream == &defaults[stream->device]; }

static int is_done_until(const Stream *stream, uint64_t number)
{
    return !stream->first || stream->first->number > number;
}

/* NULL: the stream was freed, so its work is done.  Locked. */
static Stream *stream_with(uint64_t id)
{
    Stream *stream = streams;
    while (stream && stream->id != id)
        stream = stream->next;
    return stream;
}

int is_done(Mark mark)
{
    const Stream *stream = stream_with(mark.stream);
    return !stream || is_done_until(stream, mark.number);
}

/* Do the rules of the default stream order the work of these two streams? */
static int are_ordered(const Stream *one, const Stream *other)
{
    return one->device == other->device && (is_default(one) || is_default(other)) &&
           !((one->flags | other->flags) & cudaStreamNonBlocking);
}

/* Is the work done that a caller has to wait for: of this stream, and of streams that the default stream waits for? */
static int is_stream_done_until(const Stream *stream, uint64_t number)
{
    for (const Stream *other = streams; other; other = other->next)
        if (other == stream || (is_default(stream) && are_ordered(stream, other)))
            if (!is_done_until(other, number))
                return 0;
    return 1;
}

int is_idle(const Stream *stream) { return is_stream_done_until(stream, queued); }

static int is_device_done_until(int device, uint64_t number)
{
    for (const Stream *stream = streams; stream; stream = stream->next)
        if (stream->device == device && !is_done_until(stream, number))
            return 0;
    return 1;
}

/* --- waiting */

/* The program waits for the work of a stream up to this number: it and what it waits for run without a lag.  Work that
   is queued later has larger numbers.  Locked. */
static void hurry(Stream *stream, uint64_t number)
{
    if (!stream || stream->awaited >= number)
        return;
    stream->awaited = number;
    for (const Operation *operation = stream->first; operation && operation->number <= number;
         operation = operation->next)
        if (operation->after.number)
            hurry(stream_with(operation->after.stream), operation->after.number);
    pthread_cond_broadcast(&progress);
}

/* A stream waits for a point in the work of another.  Locked. */
static void follow(Mark mark)
{
    while (!is_done(mark))
        pthread_cond_wait(&progress, &lock);
}

void wait_for_mark(Mark mark)
{
    hurry(stream_with(mark.stream), mark.number);
    follow(mark);
}

void wait_for_stream(const Stream *stream)
{
    uint64_t id = stream->id, until = queued;
    for (Stream *other = streams; other; other = other->next)
        if (other == stream || (is_default(stream) && are_ordered(stream, other)))
            hurry(other, until);
    while (stream && !is_stream_done_until(stream, until)) {
        pthread_cond_wait(&progress, &lock);
        stream = stream_with(id);
    }
}

void wait_for_device(int device)
{
    uint64_t until = queued;
    for (Stream *stream = streams; stream; stream = stream->next)
        if (stream->device == device)
            hurry(stream, until);
    while (!is_device_done_until(device, until))
        pthread_cond_wait(&progress, &lock);
}

/* --- doing the work */

/* The wait ends early if the program waits for the operation, or if a smaller lag is set, so that tests need no clock.
   Locked. */
static void wait_for_the_lag(const Stream *stream, const Operation *operation)
{
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (lag && stream->awaited < operation->number) {
        struct timespec end = {began.tv_sec + lag / 1000000, began.tv_nsec + lag % 1000000 * 1000};
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec))
            return;
        pthread_cond_timedwait(&progress, &lock, &end);
    }
}

/* Run an operation, or let it fail.  Locked; the lock is released while the operation runs. */
static void run(Operation *operation, const Stream *stream)
{
    Device *device = &devices[stream->device];
    wait_for_the_lag(stream, operation);
    if (fail_in > 0 && !--fail_in)
        device->error = fail_with;
    if (device->error)
        return; /* after an error, a device runs no operations */
    pthread_mutex_unlock(&lock);
    operation->run(operation);
    pthread_mutex_lock(&lock);
}

/* Locked. */
static void do_first(Stream *stream)
{
    Operation *operation = stream->first;
    follow(operation->after);
    if (operation->run)
        run(operation, stream);
    stream->first = operation->next;
    if (!stream->first)
        stream->last = NULL;
    free(operation->owned);
    free(operation);
    pthread_cond_broadcast(&progress);
}

/* The work of a stream is done: if the stream was destroyed, free it.  Locked. */
static void leave(Stream *stream)
{
    stream->busy = 0;
    if (!stream->destroyed)
        return;
    Stream **link = &streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    free(stream);
}

static void *work(void *argument)
{
    Stream *stream = argument;
    pthread_mutex_lock(&lock);
    while (stream->first)
        do_first(stream);
    leave(stream);
    live_threads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Locked. */
static void start_thread(Stream *stream)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, work, stream);
    if (error)
        give_up("no thread for a stream", error);
    pthread_detach(thread);
    live_threads++;
}

/* Locked. */
static Mark push(Stream *stream, Operation *operation)
{
    Mark mark = {stream->id, ++queued};
    operation->number = queued;
    if (stream->last)
        stream->last->next = operation;
    else
        stream->first = operation;
    stream->last = operation;
    if (stream->busy)
        return mark; /* the thread that does the stream's work will do it */
    stream->busy = 1;
    int waits = !is_done(operation->after) || (operation->run && lag) || operation->needs_thread;
    if (!waits)
        do_first(stream);
    if (stream->first)
        start_thread(stream);
    else
        leave(stream);
    return mark;
}

Operation *new_operation(void (*run)(Operation *))
{
    Operation *operation = calloc(1, sizeof *operation);
    if (operation)
        operation->run = run;
    return operation;
}

Mark enqueue(Stream *stream, Operation *operation)
{
    for (const Stream *other = streams; other; other = other->next) {
        if (other == stream || !other->last || !are_ordered(stream, other))
            continue;
        Operation *wait = new_operation(NULL);
        if (!wait)
            give_up("no memory for an operation", errno);
        wait->after = (Mark){other->id, other->last->number};
        push(stream, wait);
    }
    return push(stream, operation);
}

/* --- for tests */

/* Set the microseconds of the lag before each queued operation, and return the old number. */
EXPORTED long hostcuda_lag(long microseconds)
{
    pthread_mutex_lock(&lock);
    long before = lag;
    lag = microseconds;
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&lock);
    return before;
}

/* Make the k-th operation from now on fail like a kernel that reads a wrong address.  With k = 0, none fails. */
EXPORTED void hostcuda_fail_operation(long k, int error)
{
    pthread_mutex_lock(&lock);
    fail_in = k;
    fail_with = error;
    pthread_mutex_unlock(&lock);
}

/* --- CUDA's calls */

EXPORTED cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    BEGIN_CALL;
    Stream *stream = malloc(sizeof *stream);
    if (!stream)
        return failed(cudaErrorMemoryAllocation);
    pthread_mutex_lock(&lock);
    *out = (cudaStream_t)add_stream(stream, current, flags, priority);
    live_streams++;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

EXPORTED cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    return cudaStreamCreateWithPriority(out, flags, 0);
}

EXPORTED cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithPriority(out, 0, 0); }

EXPORTED cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    BEGIN_CALL;
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(handle);
    int known = stream && !is_default(stream);
    if (known) {
        stream->destroyed = 1;
        live_streams--;
        if (!stream->busy)
            leave(stream);
    }
    pthread_mutex_unlock(&lock);
    return known ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
}

EXPORTED cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags)
{
    BEGIN_CALL;
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(handle);
    if (stream)
        *flags = stream->flags;
    pthread_mutex_unlock(&lock);
    return stream ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
}

EXPORTED cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    BEGIN_CALL;
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(handle);
    if (stream)
        *priority = stream->priority;
    pthread_mutex_unlock(&lock);
    return stream ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
}

EXPORTED cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    BEGIN_CALL;
    (void)handle;
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

EXPORTED cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    BEGIN_CALL;
    cudaError_t error = cudaErrorInvalidResourceHandle;
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(handle);
    if (stream) {
        int device = stream->device;
        wait_for_stream(stream);
        error = devices[device].error;
    }
    pthread_mutex_unlock(&lock);
    return failed(error);
}

EXPORTED cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    BEGIN_CALL;
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(handle);
    cudaError_t error = !stream            ? cudaErrorInvalidResourceHandle
                        : !is_idle(stream) ? cudaErrorNotReady
                                           : devices[stream->device].error;
    pthread_mutex_unlock(&lock);
    return failed(error);
}

static void run_host_function(Operation *operation)
{
    in_host_function = 1;
    operation->function(operation->to);
    in_host_function = 0;
}

EXPORTED cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *argument)
{
    BEGIN_CALL;
    Operation *operation = new_operation(run_host_function);
    if (!operation)
        return failed(cudaErrorMemoryAllocation);
    operation->function = function;
    operation->to = argument;
    operation->needs_thread = 1;
    pthread_mutex_lock(&lock);
    Stream *stream = stream_of(handle);
    if (stream)
        enqueue(stream, operation);
    pthread_mutex_unlock(&lock);
    if (stream)
        return cudaSuccess;
    free(operation);
    return failed(cudaErrorInvalidResourceHandle);
}
