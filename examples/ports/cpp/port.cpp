// The glue between Memory and syncedmem_port.h.
#include "../syncedmem_port.h"
#include "syncedmem.hpp"
#ifdef SYNCEDMEM_CUDA  // all memory is CUDA's, and only heads, refusals and bytes are seen
#include "cuda.hpp"
static const smp_allocators *own = &syncedmem::cuda;
#else
static const smp_allocators *own = nullptr;
#endif
using syncedmem::Memory;

static int create(const smp_allocators *lent, std::size_t size, void **made) {
  *made = new (std::nothrow) Memory(size, own != nullptr ? *own : *lent);
  return *made == nullptr ? SMP_FAILED : SMP_OK;
}

static int call(void *memory, const smp_arguments *asked, smp_result *result) try {
  syncedmem::mode = static_cast<smd_mode>(asked->mode);
  const syncedmem::Argument with = {asked->data, asked->data_size, asked->stream, asked->data_kind};
  result->view = static_cast<Memory *>(memory)->call(static_cast<smd_call>(asked->call), with);
  return SMP_OK;
} catch (const syncedmem::Refused &why) {
  result->refusal = static_cast<unsigned>(why.reason);
  return SMP_REFUSED;
} catch (const syncedmem::Failed &) {
  return SMP_FAILED;
}

static void state(const void *memory, smp_state *seen) {
  const Memory &it = *static_cast<const Memory *>(memory);
  const unsigned known = SMP_FLAG_OWN_CPU_DATA | SMP_FLAG_OWN_GPU_DATA | SMP_FLAG_CPU_MALLOC_USE_CUDA;
  *seen = {static_cast<unsigned>(it.head()), it.facts() & known, known, it.size()};
}

static void destroy(void *memory) { delete static_cast<Memory *>(memory); }

static const smp_port port{SMP_ABI_VERSION, own ? 1u : 4u, SMP_SIDES, "C++", "caffe", own, create, call, state, destroy};

const smp_port *syncedmem_port() { return &port; }
