/* The declarations that the files of hostcuda share.  hostcuda implements CUDA's calls with host memory, for tests.  It
   is not a GPU.

   One lock guards the devices, their blocks, and the streams.  If the comment of a function says "locked", its callers
   hold the lock.  The functions of CUDA take it themselves, after BEGIN_CALL. */
#pragma once
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define NAME "hostcuda, not a GPU"
enum { MOST_DEVICES = 8 };

/* --- calls.c: what happens at the start and at the end of every call */

/* Count a call, and return the error that it has to fail with, or cudaSuccess. */
cudaError_t begin_call(const char *name);

#define BEGIN_CALL                                                                                                     \
    do {                                                                                                               \
        cudaError_t refused = begin_call(__func__);                                                                    \
        if (refused)                                                                                                   \
            return failed(refused);                                                                                    \
    } while (0)

/* The errors of the driver have the same numbers as those of the runtime. */
#define BEGIN_CALL_OF_DRIVER                                                                                           \
    do {                                                                                                               \
        cudaError_t refused = begin_call(__func__);                                                                    \
        if (refused)                                                                                                   \
            return (CUresult)refused;                                                                                  \
    } while (0)

/* Remember an error for cudaGetLastError, and return it.  cudaSuccess is returned and not remembered. */
cudaError_t failed(cudaError_t error);

/* True while a host function of a stream runs.  CUDA forbids calls there. */
extern __thread int in_host_function;

/* --- devices.c */

typedef struct Block {
    char *start;
    size_t size;
    struct Block *next; /* in the order of addresses */
} Block;

typedef struct Device {
    char *visible; /* the program gets addresses of this mapping, where reading and writing are forbidden */
    char *hidden;  /* the same memory again, for copies, fills and kernels */
    size_t size, used;
    Block *blocks;
    cudaError_t error; /* the error of a failed operation; every call returns it until hostcuda_recover() */
} Device;

extern pthread_mutex_t lock;
extern pthread_cond_t progress; /* signalled when an operation is done or the lag changes */
extern Device devices[MOST_DEVICES];
extern int device_count;
extern __thread int current;

/* Make the devices, once.  Returns cudaErrorInitializationError in a child of the process that made them. */
cudaError_t start(void);
int is_device(int ordinal);

/* End the program after an error that a test cannot survive. */
__attribute__((noreturn)) void give_up(const char *what, int error);

/* --- memory.c */

int device_of(const void *address);        /* -1: host memory */
void *reachable(const void *address);      /* the address where hostcuda itself reads and writes these bytes */
int in_device_block(const void *address, size_t size); /* locked */
int in_pinned_block(const void *address, size_t size); /* locked */

/* --- streams.c */

/* A point in the work of a stream.  Number 0 is always reached. */
typedef struct Mark {
    uint64_t stream, number;
} Mark;

typedef struct Operation {
    struct Operation *next;
    uint64_t number;                 /* in the order of the calls, over all streams */
    Mark after;                      /* the point that has to be reached first */
    void (*run)(struct Operation *); /* NULL: the operation only waits */
    int needs_thread;                /* it must not run in the thread that queues it */
    char *to;
    const char *from;
    size_t size;
    int value;
    void *owned; /* freed with the operation */
    cudaHostFn_t function;
} Operation;

typedef struct Stream {
    struct Stream *next;
    uint64_t id;
    int device, priority;
    unsigned flags;
    int destroyed;           /* the stream is freed when its work is done */
    int busy;                /* a thread does its work */
    Operation *first, *last; /* the work that is not done */
    uint64_t awaited;        /* the program waits for the work up to this number */
} Stream;

void start_streams(long microseconds); /* makes the default streams, and sets the lag */
Stream *stream_of(cudaStream_t handle);             /* NULL: there is no such stream; locked */
Operation *new_operation(void (*run)(Operation *)); /* NULL: no memory */
Mark enqueue(Stream *stream, Operation *operation); /* follows the rules of the default stream; locked */
int is_done(Mark mark);                             /* locked */
int is_idle(const Stream *stream);                  /* locked */
/* The program waits, which ends the lag of that work. */
void wait_for_mark(Mark mark);                      /* locked */
void wait_for_stream(const Stream *stream);         /* locked */
void wait_for_device(int device);                   /* locked */

/* --- the numbers of live objects, for hostcuda_live() */

long device_blocks(void); /* locked */
extern long pinned_blocks, live_streams, live_events, live_threads, live_modules;
