// The glue between Memory and syncedmem_port.h.
#include "../syncedmem_port.h"
#include "syncedmem.hpp"
#ifdef SYNCEDMEM_CUDA  // all memory is CUDA's, and only heads, refusals and bytes are seen
#include "cuda.hpp"
static const smp_allocators *own = &syncedmem::cuda;
constexpr unsigned level = 1;
#else
static const smp_allocators *own = nullptr;
constexpr unsigned level = 4;
#endif
using namespace syncedmem;

static int create(const smp_allocators *lent, std::size_t size, void **made) {
  *made = new (std::nothrow) Memory(size, own != nullptr ? *own : *lent);
  return *made == nullptr ? SMP_FAILED : SMP_OK;
}

static void *perform(Memory &it, const smp_arguments &asked) {
  switch (asked.call) {
    case SMP_CALL_CPU_DATA: return const_cast<void *>(it.cpu_data());
    case SMP_CALL_MUTABLE_CPU_DATA: return it.mutable_cpu_data();
    case SMP_CALL_GPU_DATA: return const_cast<void *>(it.gpu_data());
    case SMP_CALL_MUTABLE_GPU_DATA: return it.mutable_gpu_data();
    case SMP_CALL_SET_CPU_DATA: return it.set_cpu_data(asked.data, asked.data_size), nullptr;
    case SMP_CALL_SET_GPU_DATA: return it.set_gpu_data(asked.data, asked.data_size), nullptr;
    case SMP_CALL_ASYNC_GPU_PUSH: return it.async_gpu_push(asked.stream), nullptr;
    default: return it.release(), nullptr;
  }
}

static int call(void *memory, const smp_arguments *asked, smp_result *result) try {
  mode = static_cast<smd_mode>(asked->mode);
  result->view = perform(*static_cast<Memory *>(memory), *asked);
  return SMP_OK;
} catch (const Refused &why) {
  result->refusal = static_cast<unsigned>(why.reason);
  return SMP_REFUSED;
} catch (const Failed &) {
  return SMP_FAILED;
}

static void state(const void *memory, smp_state *seen) {
  const Memory &it = *static_cast<const Memory *>(memory);
  const unsigned flags[] = {SMP_FLAG_OWN_CPU_DATA, SMP_FLAG_OWN_GPU_DATA, SMP_FLAG_CPU_MALLOC_USE_CUDA};
  *seen = {static_cast<unsigned>(it.head()), 0, flags[0] | flags[1] | flags[2], it.size()};
  for (unsigned flag : flags) seen->flags |= it.is(static_cast<smd_fact>(flag)) ? flag : 0;
}

static void destroy(void *memory) { delete static_cast<Memory *>(memory); }

static const smp_port port{SMP_ABI_VERSION, level, "C++", "caffe", own, create, call, state, destroy};

const smp_port *syncedmem_port() { return &port; }
