/* The start of every call: it counts and records the call, and lets it fail if a test wants that.  And the errors. */
#include "hostcuda.h"
#include <stdio.h>

enum { REMEMBERED = 4096 };

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static const char *names[REMEMBERED];
static long calls;
static char fail_name[64];
static long fail_in;
static cudaError_t fail_with;

__thread int in_host_function;
static __thread cudaError_t last_error;

/* Does this call fail?  The caller holds `counting`. */
static int is_chosen(const char *name)
{
    if (fail_in <= 0 || (strcmp(fail_name, "*") && strcmp(fail_name, name)))
        return 0;
    return --fail_in == 0;
}

cudaError_t begin_call(const char *name)
{
    cudaError_t error = start();
    if (error)
        return error;
    if (!device_count)
        return cudaErrorNoDevice;
    if (in_host_function)
        return cudaErrorNotPermitted;
    pthread_mutex_lock(&counting);
    names[calls++ % REMEMBERED] = name;
    error = is_chosen(name) ? fail_with : devices[current].error;
    pthread_mutex_unlock(&counting);
    return error;
}

cudaError_t failed(cudaError_t error)
{
    if (error)
        last_error = error;
    return error;
}

/* --- for tests */

EXPORTED long hostcuda_calls(void) { return calls; }

/* The name of a call.  Calls are numbered from 0, and the last 4096 are remembered. */
EXPORTED const char *hostcuda_call_name(long number)
{
    return number >= 0 && number < calls && number >= calls - REMEMBERED ? names[number % REMEMBERED] : "";
}

/* Make the k-th call from now on fail; the name "*" stands for every function.  With k = 0, no call fails. */
EXPORTED void hostcuda_fail(const char *name, long k, int error)
{
    pthread_mutex_lock(&counting);
    snprintf(fail_name, sizeof fail_name, "%s", name);
    fail_in = k;
    fail_with = error;
    pthread_mutex_unlock(&counting);
}

/* The number of live objects of a kind; -1 for an unknown kind. */
EXPORTED long hostcuda_live(const char *kind)
{
    pthread_mutex_lock(&lock);
    const struct {
        const char *kind;
        long count;
    } LIVE[] = {
        {"device blocks", device_blocks()}, {"pinned blocks", pinned_blocks}, {"streams", live_streams},
        {"events", live_events},            {"threads", live_threads},        {"modules", live_modules},
    };
    long count = -1;
    for (size_t i = 0; i < sizeof LIVE / sizeof LIVE[0]; i++)
        if (!strcmp(LIVE[i].kind, kind))
            count = LIVE[i].count;
    pthread_mutex_unlock(&lock);
    return count;
}

/* --- errors */

static const struct {
    cudaError_t error;
    const char *name, *text;
} ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument (" NAME ")"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory (" NAME ")"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error (" NAME ")"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected (" NAME ")"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal (" NAME ")"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", "device kernel image is invalid (" NAME ")"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle (" NAME ")"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found (" NAME ")"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready (" NAME ")"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered (" NAME ")"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure (" NAME ")"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted (" NAME ")"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported (" NAME ")"},
};
enum { ERROR_COUNT = sizeof ERRORS / sizeof ERRORS[0] };

EXPORTED const char *cudaGetErrorName(cudaError_t error)
{
    for (int i = 0; i < ERROR_COUNT; i++)
        if (ERRORS[i].error == error)
            return ERRORS[i].name;
    return "cudaErrorUnknown";
}

EXPORTED const char *cudaGetErrorString(cudaError_t error)
{
    for (int i = 0; i < ERROR_COUNT; i++)
        if (ERRORS[i].error == error)
            return ERRORS[i].text;
    return "unknown error (" NAME ")";
}

EXPORTED cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* The errors of the driver have the same numbers as those of the runtime. */
EXPORTED CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = cudaGetErrorName((cudaError_t)error);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = cudaGetErrorString((cudaError_t)error);
    return CUDA_SUCCESS;
}
