/* Blobs of four bytes an element, over the allocators of the harness: as little as shows each request.
   MISTAKE is a number: 0 for none; see tests/spec/ports/test_libraries.py. */
#include <stdlib.h>
#include <string.h>

#include "syncedmem_port.h"

#ifndef MISTAKE
#define MISTAKE 0
#endif

struct memory {
  uint32_t head;
  size_t size;
  void *cpu, *gpu;
};

struct blob {
  size_t axes, count;
  int64_t shape[SMP_MOST_AXES];
  struct memory *data;
};

static const smp_allocators *lent;

static void drop(struct memory *it) {
  if (it == NULL) return;
  if (it->cpu) lent->deallocate(lent->context, SMP_HOST, it->cpu);
  if (it->gpu) lent->deallocate(lent->context, SMP_DEVICE, it->gpu);
  free(it);
}

static int to_cpu(struct memory *it) {
  if (it->head == SMP_UNINITIALIZED) {
    if (lent->allocate(lent->context, SMP_HOST, it->size, &it->cpu)) return 1;
    it->head = SMP_HEAD_AT_CPU;
    return lent->zero(lent->context, it->cpu, it->size);
  }
  if (it->head == SMP_HEAD_AT_GPU) {
    it->head = SMP_SYNCED;
    return lent->copy(lent->context, it->cpu, it->gpu, it->size);
  }
  return 0;
}

static int to_gpu(struct memory *it) {
  if (to_cpu(it)) return 1;
  if (it->gpu == NULL && lent->allocate(lent->context, SMP_DEVICE, it->size, &it->gpu)) return 1;
  if (it->head == SMP_HEAD_AT_CPU) {
    it->head = SMP_SYNCED;
    return lent->copy(lent->context, it->gpu, it->cpu, it->size);
  }
  return 0;
}

static int create(const smp_allocators *allocators, smp_launch run, uint32_t type, void **made) {
  (void)run;
  lent = allocators;
  if (type != SMP_FLOAT32 && type != SMP_INT32) return SMP_REFUSED;
  *made = calloc(1, sizeof(struct blob));
  return SMP_OK;
}

static int reshape(struct blob *it, const smp_blob_arguments *asked, smp_blob_result *result) {
  size_t count = 1;
  for (size_t i = 0; i < asked->count; ++i) {
    if (asked->numbers[i] < 0) {
      result->message = "a negative extent";
      return SMP_REFUSED;
    }
    count *= (size_t)asked->numbers[i];
  }
  it->axes = asked->count;
  it->count = count;
  memcpy(it->shape, asked->numbers, asked->count * sizeof *asked->numbers);
  drop(it->data);
  it->data = calloc(1, sizeof *it->data);
  it->data->size = 4 * count;
  return SMP_OK;
}

static int call(void *blob, const smp_blob_arguments *asked, smp_blob_result *result) {
  struct blob *it = blob;
  switch (asked->call) {
    case SMP_BLOB_RESHAPE: return reshape(it, asked, result);
    case SMP_BLOB_CPU_DATA:
    case SMP_BLOB_MUTABLE_CPU_DATA:
      if (to_cpu(it->data)) return SMP_FAILED;
      if (asked->call == SMP_BLOB_MUTABLE_CPU_DATA) it->data->head = SMP_HEAD_AT_CPU;
      result->view = it->data->cpu;
      return SMP_OK;
    case SMP_BLOB_GPU_DATA:
      if (to_gpu(it->data)) return SMP_FAILED;
      result->view = it->data->gpu;
      return SMP_OK;
    case SMP_BLOB_UPDATE: ((char *)it->data->cpu)[it->data->size] = 1; return SMP_OK; /* one byte too far */
    default: return 7;
  }
}

static void state(const void *blob, smp_blob_state *seen) {
  const struct blob *it = blob;
  seen->axes = it->axes;
  memcpy(seen->shape, it->shape, sizeof it->shape);
  seen->count = seen->capacity = (int64_t)it->count;
  if (it->data != NULL) {
    seen->data.memory = it->data;
    seen->data.cpu = it->data->cpu;
    seen->data.gpu = it->data->gpu;
    seen->data.head = it->data->head;
    seen->data.size = it->data->size;
  }
  seen->diff.head = SMP_UNINITIALIZED;
}

static void destroy(void *blob) {
  drop(((struct blob *)blob)->data);
  free(blob);
}

static const smp_blobs blobs = {
  MISTAKE == 1 ? 7 : SMP_BLOBS_VERSION, create, MISTAKE == 2 ? NULL : call, state, destroy,
};

const smp_blobs *syncedmem_blobs(void) { return MISTAKE == 3 ? NULL : &blobs; }

static int no_memory(const smp_allocators *allocators, size_t size, void **memory) {
  (void)allocators, (void)size, (void)memory;
  return SMP_REFUSED;
}
static int no_call(void *memory, const smp_arguments *asked, smp_result *result) {
  (void)memory, (void)asked, (void)result;
  return SMP_REFUSED;
}
static void no_state(const void *memory, smp_state *seen) { (void)memory, (void)seen; }
static void no_destroy(void *memory) { (void)memory; }

static const smp_port port = {
  SMP_ABI_VERSION, 4, SMP_SIDES, "blobs", "caffe", NULL, no_memory, no_call, no_state, no_destroy,
};

const smp_port *syncedmem_port(void) { return &port; }
