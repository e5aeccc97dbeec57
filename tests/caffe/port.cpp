// Caffe's SyncedMemory as a port: the glue between its class and syncedmem_port.h.
#include "shim.hpp"
#define private public  // the flags have no accessors
#include "caffe/syncedmem.hpp"
#undef private
#include "caffe/util/math_functions.hpp"

#ifdef CPU_ONLY
#define EDITION "cpu_only"
#else
#define EDITION "caffe"
#endif

thread_local const smp_allocators *lent;
thread_local bool failed;

namespace caffe {
Caffe::Caffe() : mode_(CPU), solver_count_(1), root_solver_(true) {}
Caffe::~Caffe() {}
Caffe &Caffe::Get() {
  static thread_local Caffe it;
  return it;
}
#ifndef CPU_ONLY
// As in math_functions.cu:77-81, which no C++ compiler takes.
void caffe_gpu_memcpy(const size_t N, const void *X, void *Y) {
  if (X != Y) { CUDA_CHECK(cudaMemcpy(Y, X, N, cudaMemcpyDefault)); }
}
#endif
}  // namespace caffe

typedef caffe::SyncedMemory Memory;

static int create(const smp_allocators *allocators, size_t size, void **made) {
  lent = allocators;
  *made = new Memory *(new Memory(size));
  return SMP_OK;
}

static void act(Memory *&it, const smp_arguments *asked, smp_result *result) {
  switch (asked->call) {
    case SMP_CALL_CPU_DATA: result->view = const_cast<void *>(it->cpu_data()); break;
    case SMP_CALL_MUTABLE_CPU_DATA: result->view = it->mutable_cpu_data(); break;
    case SMP_CALL_GPU_DATA: result->view = const_cast<void *>(it->gpu_data()); break;
    case SMP_CALL_MUTABLE_GPU_DATA: result->view = it->mutable_gpu_data(); break;
    case SMP_CALL_SET_CPU_DATA: it->set_cpu_data(asked->data); break;
    case SMP_CALL_SET_GPU_DATA: it->set_gpu_data(asked->data); break;
#ifndef CPU_ONLY
    case SMP_CALL_ASYNC_GPU_PUSH: it->async_gpu_push(asked->stream); break;
#else
    case SMP_CALL_ASYNC_GPU_PUSH: NO_GPU; break;
#endif
    case SMP_CALL_RELEASE: delete it; it = nullptr; break;
  }
}

static int call(void *memory, const smp_arguments *asked, smp_result *result) {
  static thread_local std::string message;
  Memory *&it = *static_cast<Memory **>(memory);
  caffe::Caffe::set_mode(asked->mode == SMP_MODE_GPU ? caffe::Caffe::GPU : caffe::Caffe::CPU);
  failed = false;
  try {
    if (asked->call != SMP_CALL_RELEASE) CHECK(it) << "the memory is released";
    act(it, asked, result);
    return SMP_OK;
  } catch (const std::exception &error) {
    result->message = (message = error.what()).c_str();
    return failed ? SMP_FAILED : SMP_REFUSED;
  }
}

static void state(const void *memory, smp_state *seen) {
  Memory *it = *static_cast<Memory *const *>(memory);
  seen->head = it->head();
  seen->size = it->size();
  seen->known_flags = SMP_FLAG_OWN_CPU_DATA | SMP_FLAG_OWN_GPU_DATA | SMP_FLAG_CPU_MALLOC_USE_CUDA;
  seen->flags = it->own_cpu_data_ * SMP_FLAG_OWN_CPU_DATA | it->own_gpu_data_ * SMP_FLAG_OWN_GPU_DATA |
                it->cpu_malloc_use_cuda_ * SMP_FLAG_CPU_MALLOC_USE_CUDA;
}

static void destroy(void *memory) {
  Memory **it = static_cast<Memory **>(memory);
  delete *it;
  delete it;
}

static const smp_port port = {SMP_ABI_VERSION, 4, SMP_SIDES, "Caffe, " EDITION, EDITION, nullptr, create, call, state, destroy};

const smp_port *syncedmem_port() { return &port; }
