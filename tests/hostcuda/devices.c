/* The devices, and the current device of each thread. */
#include "hostcuda.h"
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t progress;
Device devices[MOST_DEVICES];
int device_count;
__thread int current;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pid_t maker;

void give_up(const char *what, int error)
{
    fprintf(stderr, "hostcuda: %s: %s\n", what, strerror(error));
    exit(2);
}

/* A number from an environment variable. */
static long setting(const char *name, long least, long most, long otherwise)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return otherwise;
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < least || value > most) {
        fprintf(stderr, "hostcuda: %s must be a number from %ld to %ld, got %s\n", name, least, most, text);
        exit(2);
    }
    return value;
}

/* One file in memory, mapped twice.  A read of the visible mapping faults, as a host read of a GPU's memory does. */
static void make_device(Device *device, size_t size)
{
    int file = memfd_create("hostcuda", 0);
    if (file < 0 || ftruncate(file, (off_t)size))
        give_up("no memory for a device", errno);
    device->visible = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    device->hidden = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (device->visible == MAP_FAILED || device->hidden == MAP_FAILED)
        give_up("no memory for a device", errno);
    close(file);
    device->size = size;
}

static void make_devices(void)
{
    pthread_condattr_t monotonic; /* a change of the system's clock does not change the lag */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&progress, &monotonic);
    device_count = (int)setting("HOSTCUDA_DEVICES", 0, MOST_DEVICES, 2);
    size_t size = (size_t)setting("HOSTCUDA_MIB", 1, 1 << 20, 1024) << 20;
    for (int ordinal = 0; ordinal < device_count; ordinal++)
        make_device(&devices[ordinal], size);
    start_streams(setting("HOSTCUDA_LAG", 0, 1000000000, 0));
    maker = getpid();
}

cudaError_t start(void)
{
    pthread_once(&once, make_devices);
    return getpid() == maker ? cudaSuccess : cudaErrorInitializationError;
}

int is_device(int ordinal) { return ordinal >= 0 && ordinal < device_count; }

/* Forget the errors of failed operations.  A real GPU has no such call: there the process has to end. */
EXPORTED void hostcuda_recover(void)
{
    for (int ordinal = 0; ordinal < device_count; ordinal++)
        devices[ordinal].error = cudaSuccess;
}

/* --- CUDA's calls */

EXPORTED cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

EXPORTED cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

EXPORTED cudaError_t cudaGetDeviceCount(int *count)
{
    BEGIN_CALL;
    *count = device_count;
    return cudaSuccess;
}

EXPORTED cudaError_t cudaGetDevice(int *ordinal)
{
    BEGIN_CALL;
    *ordinal = current;
    return cudaSuccess;
}

EXPORTED cudaError_t cudaSetDevice(int ordinal)
{
    BEGIN_CALL;
    if (!is_device(ordinal))
        return failed(cudaErrorInvalidDevice);
    current = ordinal;
    return failed(devices[ordinal].error);
}

EXPORTED cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int ordinal)
{
    BEGIN_CALL;
    if (!is_device(ordinal))
        return failed(cudaErrorInvalidDevice);
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxGridDimX: *value = 1 << 30; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = 4; break;
    /* CUDA never chooses a device with this mode by itself, and programs that look for a GPU ignore it. */
    case cudaDevAttrComputeMode: *value = cudaComputeModeProhibited; break;
    default: *value = 0;
    }
    return cudaSuccess;
}

EXPORTED cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int ordinal)
{
    BEGIN_CALL;
    if (!is_device(ordinal))
        return failed(cudaErrorInvalidDevice);
    *properties = (struct cudaDeviceProp){
        .name = NAME,
        .totalGlobalMem = devices[ordinal].size,
        .major = 9,
        .warpSize = 32,
        .maxThreadsPerBlock = 1024,
        .multiProcessorCount = 4,
        .unifiedAddressing = 1,
        .computeMode = cudaComputeModeProhibited,
    };
    return cudaSuccess;
}

EXPORTED cudaError_t cudaDeviceCanAccessPeer(int *yes, int ordinal, int peer)
{
    BEGIN_CALL;
    *yes = ordinal != peer;
    return cudaSuccess;
}

EXPORTED cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    BEGIN_CALL;
    (void)flags;
    return is_device(peer) ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

EXPORTED cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    BEGIN_CALL;
    return is_device(peer) ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

EXPORTED cudaError_t cudaDeviceSynchronize(void)
{
    BEGIN_CALL;
    pthread_mutex_lock(&lock);
    wait_for_device(current);
    pthread_mutex_unlock(&lock);
    return failed(devices[current].error);
}
