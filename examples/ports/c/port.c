/* The glue between syncedmem.h and syncedmem_port.h. */
#include <stdlib.h>

#include "syncedmem.h"

static int create(const smp_allocators *from, size_t size, void **memory) {
  syncedmem *it = *memory = malloc(sizeof *it);
  if (it != NULL) *it = syncedmem_make(size, from);
  return it != NULL ? SMP_OK : SMP_FAILED;
}

static int call(void *memory, const smp_arguments *asked, smp_result *result) {
  const syncedmem_argument with = {asked->data, asked->data_size, asked->stream, asked->data_kind};
  syncedmem *it = memory;
  const int outcome = syncedmem_call(it, (smd_call)asked->call, with, (smd_mode)asked->mode);
  if (outcome == SYNCEDMEM_FAILED) return SMP_FAILED;
  result->refusal = outcome >= 0 ? (uint32_t)outcome : (uint32_t)SMP_REFUSED_OTHER;
  result->view = it->pointers[asked->call <= SMP_CALL_MUTABLE_CPU_DATA ? SMD_CPU : SMD_GPU];
  return outcome == 0 ? SMP_OK : SMP_REFUSED;
}

static void state(const void *memory, smp_state *seen) {
  const syncedmem *it = memory;
  seen->head = (uint32_t)it->head;
  seen->known_flags = SMP_FLAG_OWN_CPU_DATA | SMP_FLAG_OWN_GPU_DATA | SMP_FLAG_CPU_MALLOC_USE_CUDA;
  seen->flags = it->facts & seen->known_flags;
  seen->size = it->size;
}

static void destroy(void *memory) {
  const syncedmem_argument nothing = {NULL, 0, NULL, SMP_HOST};
  syncedmem_call(memory, SMD_RELEASE, nothing, SMD_MODE_CPU);
  free(memory);
}

static const smp_port port = {SMP_ABI_VERSION, 4, SMP_SIDES, "C", "caffe", NULL, create, call, state, destroy};

const smp_port *syncedmem_port(void) { return &port; }
