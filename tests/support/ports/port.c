/* The smallest port in C: what the actions of the generated table do, and 40 lines of glue.  It keeps Caffe's promises. */
#include <stdlib.h>

#include "machine.h"
#include "syncedmem_port.h"

typedef struct {
  const smp_allocators *from;
  size_t size;
  smd_head head;
  unsigned facts;
  void *cpu, *gpu;
} memory;

static int act(memory *it, smd_action action, const smp_arguments *asked) {
  const smp_allocators *from = it->from;
  void *const own = from->context;
  const uint32_t fresh = asked->mode == SMP_MODE_GPU ? SMP_PINNED : SMP_HOST;
  const uint32_t kept = it->facts & SMD_CPU_MALLOC_USE_CUDA ? SMP_PINNED : SMP_HOST;
  switch (action) {
    case SMD_ALLOCATE_CPU: return from->allocate(own, fresh, it->size, &it->cpu);
    case SMD_ALLOCATE_GPU: return from->allocate(own, SMP_DEVICE, it->size, &it->gpu);
    case SMD_ZERO_CPU: return from->zero(own, it->cpu, it->size);
    case SMD_ZERO_GPU: return from->zero(own, it->gpu, it->size);
    case SMD_COPY_TO_CPU: return from->copy(own, it->cpu, it->gpu, it->size);
    case SMD_COPY_TO_GPU: return from->copy(own, it->gpu, it->cpu, it->size);
    case SMD_COPY_TO_GPU_ASYNC: return from->copy_async(own, it->gpu, it->cpu, it->size, asked->stream);
    case SMD_FREE_CPU: return from->deallocate(own, kept, it->cpu);
    case SMD_FREE_GPU: return from->deallocate(own, SMP_DEVICE, it->gpu);
    case SMD_ADOPT_CPU: it->cpu = asked->data; return 0;
    case SMD_ADOPT_GPU: it->gpu = asked->data; return 0;
    case SMD_NONE: return 0;
  }
  return 1;
}

/* --- the glue */

static int create(const smp_allocators *from, size_t size, void **made) {
  memory *it = calloc(1, sizeof *it);
  if (it == NULL) return SMP_FAILED;
  it->from = from;
  it->size = size;
  *made = it;
  return SMP_OK;
}

static int call(void *memory_, const smp_arguments *asked, smp_result *result) {
  memory *it = memory_;
  const smd_row *row = smd_find((smd_call)asked->call, it->head, it->facts, asked->data != NULL);
  if (row == NULL || row->refusal != SMD_REFUSED_NONE) {
    result->refusal = row == NULL ? SMP_REFUSED_OTHER : (uint32_t)row->refusal;
    return SMP_REFUSED;
  }
  for (unsigned i = 0; i < row->actions_count; ++i)
    if (act(it, row->actions[i], asked) != 0) return SMP_FAILED;
  it->facts = smd_facts_after(row, it->facts, (smd_mode)asked->mode);
  it->head = row->dest;
  result->view = asked->call <= SMP_CALL_MUTABLE_CPU_DATA ? it->cpu : it->gpu;
  return SMP_OK;
}

static void state(const void *memory_, smp_state *seen) {
  const memory *it = memory_;
  seen->head = (uint32_t)it->head;
  seen->known_flags = SMP_FLAG_OWN_CPU_DATA | SMP_FLAG_OWN_GPU_DATA | SMP_FLAG_CPU_MALLOC_USE_CUDA;
  seen->flags = it->facts & seen->known_flags;
  seen->size = it->size;
}

static void destroy(void *memory_) {
  const smp_arguments last = {.call = SMP_CALL_RELEASE};
  smp_result result;
  call(memory_, &last, &result);
  free(memory_);
}

static const smp_port port = {SMP_ABI_VERSION, 4, SMP_SIDES, "C", "caffe", NULL, create, call, state, destroy};

const smp_port *syncedmem_port(void) { return &port; }
