/* Calls that CuPy is linked to and hostcuda does not have.  Each returns cudaErrorNotSupported. */

enum { NOT_SUPPORTED = 801 };

/* CUDA's headers are not included, so the arguments need not be declared; they are ignored. */
#define UNSUPPORTED(name)                                                                                              \
    __attribute__((visibility("default"))) int name(void) { return NOT_SUPPORTED; }

/* other processes */
UNSUPPORTED(cudaDeviceGetByPCIBusId)
UNSUPPORTED(cudaDeviceGetPCIBusId)
UNSUPPORTED(cudaIpcCloseMemHandle)
UNSUPPORTED(cudaIpcGetEventHandle)
UNSUPPORTED(cudaIpcGetMemHandle)
UNSUPPORTED(cudaIpcOpenEventHandle)
UNSUPPORTED(cudaIpcOpenMemHandle)

/* limits, profiling and time */
UNSUPPORTED(cudaDeviceGetLimit)
UNSUPPORTED(cudaDeviceSetLimit)
UNSUPPORTED(cudaEventElapsedTime)
UNSUPPORTED(cudaProfilerStart)
UNSUPPORTED(cudaProfilerStop)

/* managed, registered and stream-ordered memory */
UNSUPPORTED(cudaMallocManaged)
UNSUPPORTED(cudaMallocAsync)
UNSUPPORTED(cudaMallocFromPoolAsync)
UNSUPPORTED(cudaHostRegister)
UNSUPPORTED(cudaHostUnregister)
UNSUPPORTED(cudaFreeAsync)
UNSUPPORTED(cudaMemPrefetchAsync)
UNSUPPORTED(cudaMemAdvise)
UNSUPPORTED(cudaDeviceGetDefaultMemPool)
UNSUPPORTED(cudaDeviceGetMemPool)
UNSUPPORTED(cudaDeviceSetMemPool)
UNSUPPORTED(cudaMemPoolCreate)
UNSUPPORTED(cudaMemPoolDestroy)
UNSUPPORTED(cudaMemPoolTrimTo)
UNSUPPORTED(cudaMemPoolGetAttribute)
UNSUPPORTED(cudaMemPoolSetAttribute)

/* arrays, textures and surfaces */
UNSUPPORTED(cudaMalloc3DArray)
UNSUPPORTED(cudaMallocArray)
UNSUPPORTED(cudaFreeArray)
UNSUPPORTED(cudaMemcpy2DFromArray)
UNSUPPORTED(cudaMemcpy2DFromArrayAsync)
UNSUPPORTED(cudaMemcpy2DToArray)
UNSUPPORTED(cudaMemcpy2DToArrayAsync)
UNSUPPORTED(cudaMemcpy2D)
UNSUPPORTED(cudaMemcpy2DAsync)
UNSUPPORTED(cudaMemcpy3D)
UNSUPPORTED(cudaMemcpy3DAsync)
UNSUPPORTED(cudaCreateTextureObject)
UNSUPPORTED(cudaDestroyTextureObject)
UNSUPPORTED(cudaGetChannelDesc)
UNSUPPORTED(cudaGetTextureObjectResourceDesc)
UNSUPPORTED(cudaGetTextureObjectTextureDesc)
UNSUPPORTED(cudaCreateSurfaceObject)
UNSUPPORTED(cudaDestroySurfaceObject)

/* callbacks, capture and graphs */
UNSUPPORTED(cudaStreamAddCallback)
UNSUPPORTED(cudaStreamBeginCapture)
UNSUPPORTED(cudaStreamEndCapture)
UNSUPPORTED(cudaGraphDestroy)
UNSUPPORTED(cudaGraphExecDestroy)
UNSUPPORTED(cudaGraphInstantiate)
UNSUPPORTED(cudaGraphLaunch)
UNSUPPORTED(cudaGraphUpload)
UNSUPPORTED(cudaGraphDebugDotPrint)
