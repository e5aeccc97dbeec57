/* Caffe's mirrored memory in C99: one buffer with a host side and a device side.

   The rules are in machine.h, which `syncedmem diagram --format c` writes: which actions a call takes, and which side has
   the current bytes then.  syncedmem.c only performs the actions. */
#ifndef SYNCEDMEM_H
#define SYNCEDMEM_H
#include "../syncedmem_port.h"
#include "machine.h"

typedef struct {
  const smp_allocators *from; /* where memory comes from */
  size_t size;
  smd_head head;
  unsigned facts;      /* smd_fact: pointers and flags */
  void *pointers[2];   /* by smd_side: owned, or of the caller */
  uint32_t kinds[2];   /* by smd_side: SMP_HOST, SMP_PINNED or SMP_DEVICE */
  int in_flight;       /* whether nobody has waited for the last push */
  void *stream;        /* the stream of that push */
  int released;
} syncedmem;

/* Besides a refusal of smd_refusal. */
enum { SYNCEDMEM_FAILED = -1, SYNCEDMEM_NOT_NOW = -2, SYNCEDMEM_TOO_SMALL = -3, SYNCEDMEM_WRONG_KIND = -4 };

/* The caller's buffer of set_cpu_data and set_gpu_data, which has to live as long as the memory uses it; or the stream
   of async_gpu_push, which has to live until the next call that is not cpu_data. */
typedef struct {
  void *data;
  size_t size;
  void *stream;
  uint32_t kind; /* of the buffer: SMP_HOST, SMP_PINNED or SMP_DEVICE */
} syncedmem_argument;

syncedmem syncedmem_make(size_t size, const smp_allocators *from);

/* Make a call; `mode` is Caffe::mode().  Returns 0, a refusal, or SYNCEDMEM_FAILED; unless it is 0, nothing has changed. */
int syncedmem_call(syncedmem *it, smd_call call, syncedmem_argument with, smd_mode mode);
#endif
