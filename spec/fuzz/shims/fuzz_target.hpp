// Exports C++ allocators, so that `syncedmem fuzz` can call them.  In one file of yours:
//
//     #include "fuzz_target.hpp"
//     SYNCEDMEM_RESOURCE(pool, new std::pmr::unsynchronized_pool_resource())
//     SYNCEDMEM_DEVICE_ALLOCATOR(cpu, new CPUDeviceAllocator())
//
//     c++ -std=c++17 -shared -fPIC -o libmine.so mine.cpp
//     syncedmem fuzz './libmine.so:pool_*?abi=resource'
//     syncedmem fuzz './libmine.so:cpu_*?abi=nep49'
//
// Each round begins with a new object.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory_resource>
#include <new>

namespace syncedmem_fuzz {

// What the last call threw; empty after std::bad_alloc, which only means out of memory.
inline thread_local char thrown[256];

template <typename Call>
auto guarded(Call call) -> decltype(call()) {
    thrown[0] = '\0';
    try {
        return call();
    } catch (const std::bad_alloc &) {
    } catch (const std::exception &error) {
        std::snprintf(thrown, sizeof thrown, "%s", error.what());
    } catch (...) {
        std::snprintf(thrown, sizeof thrown, "%s", "an exception that is no std::exception");
    }
    return decltype(call())();
}

}  // namespace syncedmem_fuzz

#if defined(_WIN32)
#define SYNCEDMEM_EXPORT extern "C" __declspec(dllexport)
#else
#define SYNCEDMEM_EXPORT extern "C" __attribute__((visibility("default")))
#endif

// A std::pmr::memory_resource; the second argument is an expression that makes one with `new`.
#define SYNCEDMEM_RESOURCE(name, ...)                                                                                  \
    SYNCEDMEM_EXPORT void *name##_make() {                                                                             \
        return syncedmem_fuzz::guarded([]() -> void * { return static_cast<std::pmr::memory_resource *>(__VA_ARGS__); }); \
    }                                                                                                                  \
    SYNCEDMEM_EXPORT void name##_drop(void *self) { delete static_cast<std::pmr::memory_resource *>(self); }           \
    SYNCEDMEM_EXPORT void *name##_allocate(void *self, std::size_t size, std::size_t alignment) {                      \
        return syncedmem_fuzz::guarded(                                                                                \
            [=] { return static_cast<std::pmr::memory_resource *>(self)->allocate(size, alignment); });                \
    }                                                                                                                  \
    SYNCEDMEM_EXPORT void name##_deallocate(void *self, void *block, std::size_t size, std::size_t alignment) {        \
        syncedmem_fuzz::guarded(                                                                                       \
            [=] { static_cast<std::pmr::memory_resource *>(self)->deallocate(block, size, alignment); });              \
    }                                                                                                                  \
    SYNCEDMEM_EXPORT int name##_is_equal(void *self, void *other) {                                                    \
        return static_cast<std::pmr::memory_resource *>(self)->is_equal(                                               \
            *static_cast<std::pmr::memory_resource *>(other));                                                         \
    }                                                                                                                  \
    SYNCEDMEM_EXPORT const char *name##_error() { return syncedmem_fuzz::thrown; }

// A class with `void *allocate(size)` and `release(void *)`, const or not: the shape of KuiperLLama's DeviceAllocator.
#define SYNCEDMEM_DEVICE_ALLOCATOR(name, ...)                                                                          \
    using name##_type = decltype(__VA_ARGS__);                                                                         \
    SYNCEDMEM_EXPORT void *name##_make() { return static_cast<void *>(__VA_ARGS__); }                                  \
    SYNCEDMEM_EXPORT void name##_drop(void *self) { delete static_cast<name##_type>(self); }                           \
    SYNCEDMEM_EXPORT void *name##_malloc(void *self, std::size_t size) {                                               \
        return syncedmem_fuzz::guarded([=] { return static_cast<name##_type>(self)->allocate(size); });                \
    }                                                                                                                  \
    SYNCEDMEM_EXPORT void name##_free(void *self, void *block, std::size_t) {                                          \
        static_cast<name##_type>(self)->release(block);                                                                \
    }
