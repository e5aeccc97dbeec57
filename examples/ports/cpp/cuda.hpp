// Memory of CUDA, by the calls of its runtime.  Each function returns CUDA's error code.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "../syncedmem_port.h"

namespace syncedmem {

// The harness gives streams as numbers, in place of pointers.
inline cudaStream_t stream_of(void *number) {
  static std::map<void *, cudaStream_t> streams{{nullptr, nullptr}};
  const auto [place, fresh] = streams.try_emplace(number);
  if (fresh) cudaStreamCreateWithFlags(&place->second, cudaStreamDefault);
  return place->second;
}

inline const smp_allocators cuda{
    nullptr,
    [](void *, std::uint32_t kind, std::size_t size, void **made) -> int {
      if (kind == SMP_DEVICE) return cudaMalloc(made, size == 0 ? 1 : size);  // of no bytes CUDA makes a null pointer
      if (kind == SMP_PINNED) return cudaHostAlloc(made, size, cudaHostAllocDefault);
      return (*made = std::malloc(size)) == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
    },
    [](void *, std::uint32_t kind, void *pointer) -> int {
      if (kind == SMP_DEVICE) return cudaFree(pointer);
      if (kind == SMP_PINNED) return cudaFreeHost(pointer);
      return std::free(pointer), cudaSuccess;
    },
    [](void *, void *pointer, std::size_t size) -> int {
      cudaPointerAttributes found{};
      if (const cudaError_t error = cudaPointerGetAttributes(&found, pointer)) return error;
      if (found.type == cudaMemoryTypeDevice) return cudaMemset(pointer, 0, size);
      return std::memset(pointer, 0, size), cudaSuccess;
    },
    [](void *, void *to, const void *from, std::size_t size) -> int {
      return cudaMemcpy(to, from, size, cudaMemcpyDefault);
    },
    [](void *, void *to, const void *from, std::size_t size, void *stream) -> int {
      return cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, stream_of(stream));
    },
    [](void *, void *stream) -> int { return cudaStreamSynchronize(stream_of(stream)); },
    nullptr,
    nullptr,
};

}  // namespace syncedmem
