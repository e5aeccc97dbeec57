/* A pool of UMF as functions in C, so that it can be fuzzed: docs/fuzz-an-allocator.md.  Put in the pool that you mean. */
#include <umf.h>
#include <umf/pools/pool_disjoint.h>
#include <umf/providers/provider_os_memory.h>

static umf_memory_pool_handle_t pool;

__attribute__((constructor)) static void make(void) {
    umf_os_memory_provider_params_handle_t memory;
    umf_disjoint_pool_params_handle_t params;
    umf_memory_provider_handle_t provider;
    if (umfOsMemoryProviderParamsCreate(&memory) || umfDisjointPoolParamsCreate(&params)) return;
    if (umfMemoryProviderCreate(umfOsMemoryProviderOps(), memory, &provider)) return;
    umfPoolCreate(umfDisjointPoolOps(), provider, params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool);
}

void *mine_malloc(size_t size) { return umfPoolMalloc(pool, size); }
void *mine_aligned_alloc(size_t alignment, size_t size) { return umfPoolAlignedMalloc(pool, size, alignment); }
void mine_free(void *pointer) { umfPoolFree(pool, pointer); }
