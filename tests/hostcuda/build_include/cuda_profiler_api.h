/* CuPy includes this header of CUDA, but the package with CUDA's other headers does not contain it. */
#pragma once
#include <cuda_runtime_api.h>
extern "C" {
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
}
