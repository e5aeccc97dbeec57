// What Caffe's files need of other libraries, and nothing of Caffe's: glog, gflags, boost, CUDA, BLAS, protobuf.
// Every header of these libraries that they include is this one.  A failed CHECK is an exception; memory comes from the
// allocators of the harness.
#ifndef SYNCEDMEM_TESTS_CAFFE_SHIM_HPP_
#define SYNCEDMEM_TESTS_CAFFE_SHIM_HPP_
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "syncedmem_port.h"

// --- glog

struct Fatal {
  std::ostringstream text;
  ~Fatal() noexcept(false) { throw std::runtime_error(text.str()); }
  std::ostream &stream(const char *what) { return text << what; }
};
#define LOG(severity) Fatal().stream("")
#define CHECK(condition) while (!(condition)) Fatal().stream("Check failed: " #condition " ")
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))

// --- boost and gflags

#define GFLAGS_GFLAGS_H_
namespace boost { using std::shared_ptr; }

// --- malloc, memset and CUDA: what the harness lends

extern thread_local const smp_allocators *lent;
extern thread_local bool failed;  // whether an allocator has failed in this call

inline int tried(int error) { return failed = failed || error != 0, error; }
inline void *lent_malloc(size_t size) {
  void *made = nullptr;
  return tried(lent->allocate(lent->context, SMP_HOST, size, &made)) ? nullptr : made;
}
inline void lent_free(void *pointer) { CHECK(!tried(lent->deallocate(lent->context, SMP_HOST, pointer))); }
inline void lent_zero(void *pointer, int, size_t size) { CHECK(!tried(lent->zero(lent->context, pointer, size))); }
#define malloc(size) lent_malloc(size)
#define free(pointer) lent_free(pointer)
#define memset(pointer, value, size) lent_zero(pointer, value, size)

typedef int cudaError_t;
typedef void *cudaStream_t, *cublasHandle_t, *curandGenerator_t;
typedef int cublasStatus_t, curandStatus_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDefault = 4 };
enum { cudaSuccess = 0 };
inline const char *cudaGetErrorString(cudaError_t) { return "told to fail"; }
inline int cudaMalloc(void **made, size_t size) {
  return tried(lent->allocate(lent->context, SMP_DEVICE, size, made));
}
inline int cudaMallocHost(void **made, size_t size) {
  return tried(lent->allocate(lent->context, SMP_PINNED, size, made));
}
inline int cudaFree(void *pointer) { return tried(lent->deallocate(lent->context, SMP_DEVICE, pointer)); }
inline int cudaFreeHost(void *pointer) { return tried(lent->deallocate(lent->context, SMP_PINNED, pointer)); }
inline int cudaMemset(void *pointer, int, size_t size) { return tried(lent->zero(lent->context, pointer, size)); }
inline int cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind) {
  return tried(lent->copy(lent->context, to, from, size));
}
inline int cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t stream) {
  return tried(lent->copy_async(lent->context, to, from, size, stream));
}
inline int cudaGetDevice(int *device) { return lent->get_device(lent->context, device); }
inline int cudaSetDevice(int device) { return lent->set_device(lent->context, device); }

// --- protobuf: a message as FromProto and ToProto use it; no test calls these

namespace caffe {
struct BlobShape {
  std::vector<long> dims;
  int dim_size() const { return static_cast<int>(dims.size()); }
  long dim(int i) const { return dims[i]; }
  void add_dim(long it) { dims.push_back(it); }
};
struct BlobProto {
  BlobShape shape_;
  const BlobShape &shape() const { return shape_; }
  BlobShape *mutable_shape() { return &shape_; }
  void clear_shape() { shape_ = BlobShape(); }
#define OLD(name)                              \
  int name##_ = 0;                             \
  bool has_##name() const { return name##_; }  \
  int name() const { return name##_; }
  OLD(num) OLD(channels) OLD(height) OLD(width)
#undef OLD
#define NUMBERS(T, name)                                                   \
  std::vector<T> name##_;                                                  \
  int name##_size() const { return static_cast<int>(name##_.size()); }     \
  T name(int i) const { return name##_[i]; }                               \
  void add_##name(T it) { name##_.push_back(it); }                         \
  void clear_##name() { name##_.clear(); }
  NUMBERS(float, data) NUMBERS(float, diff) NUMBERS(double, double_data) NUMBERS(double, double_diff)
#undef NUMBERS
};
}  // namespace caffe

// --- BLAS: only named in declarations

enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 };
void cblas_sscal(int, float, float *, int);
void cblas_dscal(int, double, double *, int);
void cblas_saxpy(int, float, const float *, int, float *, int);
void cblas_daxpy(int, double, const double *, int, double *, int);
#endif
