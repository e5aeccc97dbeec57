/* Modules, functions and launches.  A module is a shared object for the host, made by nvrtc.c.  kernel.hpp describes
   its contents. */
#include "hostcuda.h"
#include "image.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void LaunchFunction(void **arguments, const unsigned *grid, const unsigned *block);
typedef const int *SizesFunction(void);

typedef struct Function {
    struct Function *next;
    LaunchFunction *launch;
    const int *sizes; /* the sizes of the arguments in bytes, with -1 at the end */
} Function;

typedef struct Module {
    void *library;
    Function *functions;
} Module;

typedef struct Launch {
    Function *function;
    unsigned grid[3], block[3];
    void *arguments[]; /* the values follow them */
} Launch;

enum { ALIGNMENT = 16 };

long live_modules;

/* Shared variables of a block are static variables of the module, so kernels run one at a time. */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;

/* --- modules */

static int write_whole(int file, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(file, bytes, size);
        if (written < 0)
            return 0;
        bytes += written;
        size -= (size_t)written;
    }
    return 1;
}

/* Load a shared object from memory, through a file that is removed before this returns. */
static void *load(const char *bytes, size_t size)
{
    char path[PATH_MAX];
    const char *parent = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/hostcuda-module-XXXXXX", parent ? parent : "/tmp");
    int file = mkstemp(path);
    if (file < 0)
        return NULL;
    void *library = write_whole(file, bytes, size) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    close(file);
    unlink(path);
    return library;
}

EXPORTED CUresult cuModuleLoadData(CUmodule *out, const void *data)
{
    BEGIN_CALL_OF_DRIVER;
    const Image *image = data;
    if (memcmp(image->magic, IMAGE_MAGIC, sizeof IMAGE_MAGIC))
        return CUDA_ERROR_INVALID_IMAGE;
    Module *module = calloc(1, sizeof *module);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->library = load((const char *)(image + 1), image->size);
    if (!module->library) {
        fprintf(stderr, "hostcuda: %s\n", dlerror());
        free(module);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    pthread_mutex_lock(&lock);
    live_modules++;
    pthread_mutex_unlock(&lock);
    *out = (CUmodule)module;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuModuleUnload(CUmodule handle)
{
    BEGIN_CALL_OF_DRIVER;
    Module *module = (Module *)handle;
    pthread_mutex_lock(&lock);
    for (int ordinal = 0; ordinal < device_count; ordinal++)
        wait_for_device(ordinal); /* a kernel of the module may be queued */
    live_modules--;
    pthread_mutex_unlock(&lock);
    for (Function *function = module->functions, *next; function; function = next) {
        next = function->next;
        free(function);
    }
    dlclose(module->library);
    free(module);
    return CUDA_SUCCESS;
}

static void *symbol(void *library, const char *prefix, const char *name)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    return dlsym(library, whole);
}

EXPORTED CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    BEGIN_CALL_OF_DRIVER;
    Module *module = (Module *)handle;
    LaunchFunction *launch = (LaunchFunction *)symbol(module->library, "hostcuda_launch_", name);
    SizesFunction *sizes = (SizesFunction *)symbol(module->library, "hostcuda_sizes_", name);
    if (!launch || !sizes)
        return CUDA_ERROR_NOT_FOUND;
    Function *function = malloc(sizeof *function);
    if (!function)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *function = (Function){module->functions, launch, sizes()};
    module->functions = function;
    *out = (CUfunction)function;
    return CUDA_SUCCESS;
}

/* --- launches */

/* A kernel uses the program's addresses, so reading and writing there are allowed while a kernel runs. */
static void protect_devices(int protection)
{
    for (int ordinal = 0; ordinal < device_count; ordinal++)
        mprotect(devices[ordinal].visible, devices[ordinal].size, protection);
}

static void run_kernel(Operation *operation)
{
    Launch *launch = operation->owned;
    pthread_mutex_lock(&running);
    protect_devices(PROT_READ | PROT_WRITE);
    launch->function->launch(launch->arguments, launch->grid, launch->block);
    protect_devices(PROT_NONE);
    pthread_mutex_unlock(&running);
}

static size_t aligned(size_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* A launch with copies of its arguments, because the caller may free them before it runs.  NULL: no memory. */
static Launch *new_launch(Function *function, void **arguments)
{
    size_t count = 0, bytes = 0;
    while (function->sizes[count] >= 0)
        bytes += aligned((size_t)function->sizes[count++]);
    size_t head = aligned(sizeof(Launch) + count * sizeof(void *));
    Launch *launch = calloc(1, head + bytes);
    if (!launch)
        return NULL;
    launch->function = function;
    char *at = (char *)launch + head;
    for (size_t i = 0; i < count; i++) {
        memcpy(at, arguments[i], (size_t)function->sizes[i]);
        launch->arguments[i] = at;
        at += aligned((size_t)function->sizes[i]);
    }
    return launch;
}

static unsigned long most_blocks;

/* The largest number of blocks of a launch since the last call of this function.  It shows whether kernels would keep a
   whole GPU busy. */
EXPORTED unsigned long hostcuda_most_blocks(void)
{
    pthread_mutex_lock(&lock);
    unsigned long most = most_blocks;
    most_blocks = 0;
    pthread_mutex_unlock(&lock);
    return most;
}

EXPORTED CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared_size, CUstream stream_handle,
                                 void **arguments, void **extra)
{
    BEGIN_CALL_OF_DRIVER;
    if (extra || shared_size)
        return CUDA_ERROR_NOT_SUPPORTED;
    Operation *operation = new_operation(run_kernel);
    Launch *launch = new_launch((Function *)handle, arguments);
    if (!operation || !launch) {
        free(operation);
        free(launch);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(launch->grid, (unsigned[]){grid_x, grid_y, grid_z}, sizeof launch->grid);
    memcpy(launch->block, (unsigned[]){block_x, block_y, block_z}, sizeof launch->block);
    operation->owned = launch;
    unsigned long blocks = (unsigned long)grid_x * grid_y * grid_z;
    pthread_mutex_lock(&lock);
    most_blocks = blocks > most_blocks ? blocks : most_blocks;
    Stream *stream = stream_of((cudaStream_t)stream_handle);
    int fits = stream && stream->device == current;
    if (fits)
        enqueue(stream, operation);
    pthread_mutex_unlock(&lock);
    if (fits)
        return CUDA_SUCCESS;
    free(launch);
    free(operation);
    return CUDA_ERROR_INVALID_HANDLE;
}
