/* syncedmem_port.h, version 2: how a library shows its memories to `syncedmem conform ./libport.so`.
   Made by `syncedmem diagram --format port-header`.  docs/port-abi.md explains it.

   A library exports syncedmem_port(), and one with blobs syncedmem_blobs() too.  The first returns a table of functions:
   create, call, state and destroy.  The program that tests the library is called the harness.  It calls one function at a time. */
#ifndef SYNCEDMEM_PORT_H
#define SYNCEDMEM_PORT_H
#include <stddef.h>
#include <stdint.h>

#define SMP_ABI_VERSION 2u
#define SMP_SIDES 2u

#ifdef __cplusplus
extern "C" {
#endif

/* What `create` and `call` return. */
enum {
  SMP_OK = 0,
  SMP_REFUSED = 1, /* the call is not allowed now, or not with these arguments */
  SMP_FAILED = 2   /* an action of the call failed, such as an allocation */
};

/* The head: which side has the current bytes. */
enum {
  SMP_UNINITIALIZED = 0,
  SMP_HEAD_AT_CPU = 1,
  SMP_HEAD_AT_GPU = 2,
  SMP_SYNCED = 3
};

/* The calls of a memory.  SMP_CALL_RELEASE is Caffe's destructor: it frees what the memory owns.  After it the harness
   asks a port that promises more than Caffe for other calls too, which must be refused. */
enum {
  SMP_CALL_CPU_DATA = 0,
  SMP_CALL_MUTABLE_CPU_DATA = 1,
  SMP_CALL_GPU_DATA = 2,
  SMP_CALL_MUTABLE_GPU_DATA = 3,
  SMP_CALL_SET_CPU_DATA = 4,
  SMP_CALL_SET_GPU_DATA = 5,
  SMP_CALL_ASYNC_GPU_PUSH = 6,
  SMP_CALL_RELEASE = 7
};

/* Why a call was refused. */
enum {
  SMP_REFUSED_NULL_DATA = 1,
  SMP_REFUSED_NOT_HEAD_AT_CPU = 2,
  SMP_REFUSED_NO_GPU = 3,
  SMP_REFUSED_OTHER = 255
};

/* Caffe::mode().  Host memory that is allocated in mode GPU is SMP_PINNED, in mode CPU it is SMP_HOST. */
enum {
  SMP_MODE_CPU = 0,
  SMP_MODE_GPU = 1
};

/* Flags of a memory. */
enum {
  SMP_FLAG_OWN_CPU_DATA = 4,
  SMP_FLAG_OWN_GPU_DATA = 8,
  SMP_FLAG_CPU_MALLOC_USE_CUDA = 16
};

/* Kinds of memory.  SMP_PINNED is page-locked host memory, as from cudaMallocHost.  Sides are counted from 0, the host;
   memory of side n, from 1 on, is of kind n + 1. */
enum {
  SMP_HOST = 0,
  SMP_PINNED = 1,
  SMP_DEVICE = 2
};

/* Where memory comes from.  Each function returns 0, or another number if it failed; then it changed nothing, except
   that a copy or a fill may have written a part of its destination.  Pass `context` on as it is. */
typedef struct smp_allocators {
  void *context;
  int (*allocate)(void *context, uint32_t kind, size_t size, void **pointer); /* not zeroed */
  int (*deallocate)(void *context, uint32_t kind, void *pointer);
  int (*zero)(void *context, void *pointer, size_t size);
  /* Between any two kinds of memory; done when it returns. */
  int (*copy)(void *context, void *destination, const void *source, size_t size);
  /* Only queued: it is done at the latest when `synchronize` returns for this stream.  NULL, the default stream, is a
     queue like any other. */
  int (*copy_async)(void *context, void *destination, const void *source, size_t size, void *stream);
  int (*synchronize)(void *context, void *stream);
  int (*get_device)(void *context, int32_t *device); /* the number of the current device; there is one, 0 */
  int (*set_device)(void *context, int32_t device);
} smp_allocators;

/* The arguments of a call: the harness fills them, and what the call does not use is zero. */
typedef struct smp_arguments {
  uint32_t call;           /* SMP_CALL_... */
  uint32_t mode;           /* SMP_MODE_... that is in force */
  void *data;              /* set_cpu_data, set_gpu_data: the caller's buffer, or NULL */
  size_t data_size;        /* its size in bytes */
  uint32_t data_kind;      /* SMP_HOST, SMP_PINNED or SMP_DEVICE */
  void *stream;            /* async_gpu_push: for `copy_async` and `synchronize` */
} smp_arguments;

/* The result of a call, all zero before it. */
typedef struct smp_result {
  void *view;          /* cpu_data, mutable_cpu_data, gpu_data, mutable_gpu_data: the pointer */
  uint32_t refusal;    /* after SMP_REFUSED: SMP_REFUSED_..., or 0 */
  const char *message; /* NULL, or why it was refused or failed; valid until the next call */
} smp_result;

/* What a memory says of itself, all zero before `state` is called. */
typedef struct smp_state {
  uint32_t head;        /* SMP_UNINITIALIZED ... SMP_SYNCED */
  uint32_t flags;       /* those SMP_FLAG_... that are true */
  uint32_t known_flags; /* those SMP_FLAG_... that this port has; the others are not compared */
  size_t size;          /* in bytes */
} smp_state;

/* What a port is: the port fills it. */
typedef struct smp_port {
  uint32_t abi_version; /* SMP_ABI_VERSION */
  uint32_t level;       /* how much it shows: 0 heads and refusals, 1 and bytes, 2 and actions, 3 and failures,
                           4 and streams */
  uint32_t sides;       /* how many sides a memory has: SMP_SIDES */
  const char *name;
  const char *edition;  /* caffe, early, cpu_only */
  /* NULL if every pointer can be read and written as host memory, or is from the allocators that `create` was given.
     A port with device memory of its own, at level 0 or 1, has its allocators here: the harness calls them. */
  const smp_allocators *own;
  /* Make a memory of `size` bytes.  `allocators` live longer than the memory.  From level 2 on, all memory comes from
     them, and all copies and fills go through them. */
  int (*create)(const smp_allocators *allocators, size_t size, void **memory);
  int (*call)(void *memory, const smp_arguments *arguments, smp_result *result);
  void (*state)(const void *memory, smp_state *state);
  /* Drop a memory, released or not.  After that, its address is not used again. */
  void (*destroy)(void *memory);
} smp_port;

#if defined(_WIN32)
#define SMP_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define SMP_EXPORT __attribute__((visibility("default")))
#else
#define SMP_EXPORT
#endif

/* What every port exports.  The table stays as it is while the library is loaded. */
SMP_EXPORT const smp_port *syncedmem_port(void);

/* --- Blobs.  A port that has none needs nothing of what follows. */

#define SMP_BLOBS_VERSION 1u
#define SMP_MOST_AXES 32

/* The types of the elements. */
enum {
  SMP_FLOAT32 = 0,
  SMP_FLOAT64 = 1,
  SMP_INT32 = 2,
  SMP_UINT32 = 3,
  SMP_FLOAT16 = 4
};

/* The calls of a blob.  docs/conformance.md says what each does. */
enum {
  SMP_BLOB_RESHAPE = 0,
  SMP_BLOB_RESHAPE_LIKE = 1,
  SMP_BLOB_SHRINK_TO_FIT = 2,
  SMP_BLOB_SHAPE_STRING = 3,
  SMP_BLOB_CANONICAL_AXIS_INDEX = 4,
  SMP_BLOB_COUNT_AXES = 5,
  SMP_BLOB_LEGACY_SHAPE = 6,
  SMP_BLOB_NUM = 7,
  SMP_BLOB_CHANNELS = 8,
  SMP_BLOB_HEIGHT = 9,
  SMP_BLOB_WIDTH = 10,
  SMP_BLOB_OFFSET = 11,
  SMP_BLOB_DATA_AT = 12,
  SMP_BLOB_DIFF_AT = 13,
  SMP_BLOB_GPU_SHAPE = 14,
  SMP_BLOB_CPU_DATA = 15,
  SMP_BLOB_MUTABLE_CPU_DATA = 16,
  SMP_BLOB_GPU_DATA = 17,
  SMP_BLOB_MUTABLE_GPU_DATA = 18,
  SMP_BLOB_CPU_DIFF = 19,
  SMP_BLOB_MUTABLE_CPU_DIFF = 20,
  SMP_BLOB_GPU_DIFF = 21,
  SMP_BLOB_MUTABLE_GPU_DIFF = 22,
  SMP_BLOB_SET_CPU_DATA = 23,
  SMP_BLOB_SET_GPU_DATA = 24,
  SMP_BLOB_SET_CPU_DIFF = 25,
  SMP_BLOB_SET_GPU_DIFF = 26,
  SMP_BLOB_SHARE_DATA = 27,
  SMP_BLOB_SHARE_DIFF = 28,
  SMP_BLOB_COPY_FROM = 29,
  SMP_BLOB_UPDATE = 30,
  SMP_BLOB_ASUM_DATA = 31,
  SMP_BLOB_ASUM_DIFF = 32,
  SMP_BLOB_SUMSQ_DATA = 33,
  SMP_BLOB_SUMSQ_DIFF = 34,
  SMP_BLOB_SCALE_DATA = 35,
  SMP_BLOB_SCALE_DIFF = 36
};

/* Options of a call. */
enum {
  SMP_OPTION_SEQUENCE = 1,  /* reshape, offset, data_at, diff_at: the numbers are one argument, a sequence */
  SMP_OPTION_COPY_DIFF = 2, /* copy_from: the diff is copied, not the data */
  SMP_OPTION_RESHAPE = 4    /* copy_from: take the shape of the other blob */
};

/* Runs kernel(argument).  Only inside it may a port touch device memory: a port's own arithmetic is done there, as in
   a kernel of CUDA.  `context` is that of the allocators.  Returns 0, or another number if it failed. */
typedef int (*smp_launch)(void *context, void (*kernel)(void *argument), void *argument);

/* The arguments of a call of a blob: the harness fills them, and what the call does not use is zero. */
typedef struct smp_blob_arguments {
  uint32_t call;          /* SMP_BLOB_... */
  uint32_t mode;          /* SMP_MODE_... that is in force */
  uint32_t options;       /* SMP_OPTION_..., added */
  size_t count;           /* how many numbers there are */
  const int64_t *numbers; /* extents, indices or axes */
  double factor;          /* scale_data, scale_diff */
  void *other;            /* reshape_like, share_data, share_diff, copy_from: a blob */
  void *data;             /* set_cpu_data and its like: the caller's buffer, or NULL */
  size_t data_size;       /* its size in bytes */
  uint32_t data_kind;     /* SMP_HOST, SMP_PINNED or SMP_DEVICE */
} smp_blob_arguments;

/* The result of a call of a blob, all zero before it. */
typedef struct smp_blob_result {
  void *view;          /* accessors and gpu_shape: the pointer */
  double number;       /* norms, elements, offsets, axes, extents */
  const char *text;    /* shape_string; valid until the next call */
  const char *message; /* NULL, or why it was refused or failed; valid until the next call */
} smp_blob_result;

/* The data or the diff of a blob. */
typedef struct smp_blob_part {
  const void *memory; /* the same for all blobs that share it, and for no others; NULL if there is none yet */
  const void *cpu;    /* its sides, or NULL */
  const void *gpu;
  uint32_t head;      /* SMP_UNINITIALIZED ... SMP_SYNCED */
  size_t size;        /* in bytes */
} smp_blob_part;

/* What a blob says of itself, all zero before `state` is called. */
typedef struct smp_blob_state {
  size_t axes;
  int64_t shape[SMP_MOST_AXES];
  int64_t count;
  int64_t capacity; /* how many elements fit */
  smp_blob_part data, diff;
} smp_blob_state;

/* The blobs of a port: the port fills it. */
typedef struct smp_blobs {
  uint32_t version; /* SMP_BLOBS_VERSION */
  /* Make a blob without a shape.  Returns SMP_REFUSED for a type that the port does not have. */
  int (*create)(const smp_allocators *allocators, smp_launch launch, uint32_t type, void **blob);
  int (*call)(void *blob, const smp_blob_arguments *arguments, smp_blob_result *result);
  void (*state)(const void *blob, smp_blob_state *state);
  void (*destroy)(void *blob);
} smp_blobs;

/* A port that has blobs exports this function too. */
SMP_EXPORT const smp_blobs *syncedmem_blobs(void);

#ifdef __cplusplus
}
#endif
#endif
