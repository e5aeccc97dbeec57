/* CuPy includes this header of CUDA's, and the package that has the others lacks it. */
#pragma once
#include <cuda_runtime_api.h>
extern "C" {
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
}
