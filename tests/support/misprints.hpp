// The C++ code of the source texts, shortened and without their misprints.  tests/spec/test_errata.py puts each misprint
// into it.
#include <cstddef>
#include <cstdlib>

class DeviceAllocator {
public:
  virtual ~DeviceAllocator() = default;
  virtual void memcpy(const void* src, void* dest, size_t n, int kind, void* stream, bool need_sync) const = 0;
};
class CPUDeviceAllocator : public DeviceAllocator {
  void memcpy(const void*, void*, size_t, int, void*, bool) const override {}
};

inline int cudaFree(void*) { return 0; }
inline void caffe_gpu_memcpy(size_t, const void*, void*) {}
inline void CaffeMallocHost(void** ptr, size_t size, bool*) { *ptr = malloc(size); }
inline void CaffeFreeHost(void* ptr, bool use_cuda) { if (!use_cuda) free(ptr); }

class SyncedMemory {
public:
  SyncedMemory();
  ~SyncedMemory();
  enum SyncedHead { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED };
  SyncedHead head() const { return head_; }
  size_t size() const { return size_; }
  const void* cpu_data();
  void* mutable_cpu_data();
  void* mutable_gpu_data();

private:
  void check_device() {}
  void *cpu_ptr_, *gpu_ptr_;
  size_t size_;
  SyncedHead head_;
  bool cpu_malloc_use_cuda_;
};

inline SyncedMemory::SyncedMemory()
    : cpu_ptr_(NULL), gpu_ptr_(NULL), size_(0), head_(UNINITIALIZED), cpu_malloc_use_cuda_(false) {}
inline SyncedMemory::~SyncedMemory() {
  CaffeFreeHost(cpu_ptr_, cpu_malloc_use_cuda_);
  cudaFree(gpu_ptr_);
}
inline const void* SyncedMemory::cpu_data() {
  CaffeMallocHost(&cpu_ptr_, size_, &cpu_malloc_use_cuda_);
  caffe_gpu_memcpy(size_, gpu_ptr_, cpu_ptr_);
  return cpu_ptr_;
}
inline void* SyncedMemory::mutable_cpu_data() {
  head_ = HEAD_AT_CPU;
  return cpu_ptr_;
}
inline void* SyncedMemory::mutable_gpu_data() {
  check_device();
  return gpu_ptr_;
}
inline size_t seen(const SyncedMemory& memory) { return memory.size() + memory.head(); }
inline CPUDeviceAllocator* made() { return new CPUDeviceAllocator; }
