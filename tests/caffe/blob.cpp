// Caffe's Blob as a port: the glue between its class and the blobs of syncedmem_port.h.
#include "shim.hpp"
#define private public  // what the state shows has no accessors
#define protected public
#include "caffe/blob.hpp"
#undef protected
#undef private
#include "caffe/util/math_functions.hpp"

static thread_local smp_launch launch;

#ifndef CPU_ONLY
// Runs a function as a kernel on the device.
template <typename F>
static void on_device(F body) {
  CHECK(!launch(lent->context, [](void *it) { (*static_cast<F *>(it))(); }, &body));
}
#endif

// What BLAS does, by hand.
template <typename T>
static void scaled(int n, T factor, T *x) { for (int i = 0; i < n; ++i) x[i] = factor * x[i]; }
template <typename T>
static void added(int n, T factor, const T *x, T *y) { for (int i = 0; i < n; ++i) y[i] = y[i] + factor * x[i]; }
template <typename T>
static T magnitudes(int n, const T *x) {
  T sum = 0;
  for (int i = 0; i < n; ++i) sum += std::fabs(x[i]);
  return sum;
}
template <typename T>
static T product(int n, const T *x, const T *y) {
  T sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

namespace caffe {
// As in math_functions.cpp:86-98.
template <typename Dtype>
void caffe_copy(const int N, const Dtype *X, Dtype *Y) {
  if (X != Y) {
    if (Caffe::mode() == Caffe::GPU) {
#ifndef CPU_ONLY
      CUDA_CHECK(cudaMemcpy(Y, X, sizeof(Dtype) * N, cudaMemcpyDefault));
#else
      NO_GPU;
#endif
    } else {
      memcpy(Y, X, sizeof(Dtype) * N);
    }
  }
}
template <typename T> void caffe_axpy(const int n, const T a, const T *x, T *y) { added(n, a, x, y); }
template <typename T> void caffe_scal(const int n, const T a, T *x) { scaled(n, a, x); }
template <typename T> T caffe_cpu_asum(const int n, const T *x) { return magnitudes(n, x); }
template <typename T> T caffe_cpu_dot(const int n, const T *x, const T *y) { return product(n, x, y); }
#ifndef CPU_ONLY
template <typename T> void caffe_gpu_axpy(const int n, const T a, const T *x, T *y) {
  on_device([=] { added(n, a, x, y); });
}
template <typename T> void caffe_gpu_scal(const int n, const T a, T *x) {
  on_device([=] { scaled(n, a, x); });
}
template <typename T> void caffe_gpu_asum(const int n, const T *x, T *sum) {
  on_device([=] { *sum = magnitudes(n, x); });
}
template <typename T> void caffe_gpu_dot(const int n, const T *x, const T *y, T *sum) {
  on_device([=] { *sum = product(n, x, y); });
}
#define ON_DEVICE(T)                                                   \
  template void caffe_gpu_axpy<T>(int, T, const T *, T *);             \
  template void caffe_gpu_scal<T>(int, T, T *);                        \
  template void caffe_gpu_asum<T>(int, const T *, T *);                \
  template void caffe_gpu_dot<T>(int, const T *, const T *, T *);
ON_DEVICE(float)
ON_DEVICE(double)
#endif
#define ON_HOST(T)                                         \
  template void caffe_axpy<T>(int, T, const T *, T *);     \
  template void caffe_scal<T>(int, T, T *);                \
  template T caffe_cpu_asum<T>(int, const T *);            \
  template T caffe_cpu_dot<T>(int, const T *, const T *);
ON_HOST(float)
ON_HOST(double)
template void caffe_copy<bool>(int, const bool *, bool *);
template void caffe_copy<int>(int, const int *, int *);
template void caffe_copy<unsigned>(int, const unsigned *, unsigned *);
template void caffe_copy<float>(int, const float *, float *);
template void caffe_copy<double>(int, const double *, double *);
}  // namespace caffe

// A blob of some type.
struct AnyBlob {
  explicit AnyBlob(uint32_t type) : type(type) {}
  virtual ~AnyBlob() {}
  virtual void act(const smp_blob_arguments &asked, smp_blob_result &result) = 0;
  virtual void show(smp_blob_state &seen) const = 0;
  const uint32_t type;
};

static smp_blob_part shown(const caffe::SyncedMemory *it) {
  if (it == nullptr) return {nullptr, nullptr, nullptr, SMP_UNINITIALIZED, 0};
  return {it, it->cpu_ptr_, it->gpu_ptr_, static_cast<uint32_t>(it->head_), it->size_};
}

template <typename T>
struct TypedBlob : AnyBlob {
  explicit TypedBlob(uint32_t type) : AnyBlob(type) {}
  caffe::Blob<T> it;
  std::string text;

  caffe::Blob<T> &of(void *other) const {
    AnyBlob *found = static_cast<AnyBlob *>(other);
    CHECK(found->type == type) << "a blob of another type";  // which no compiler takes
    return static_cast<TypedBlob *>(found)->it;
  }

  void act(const smp_blob_arguments &a, smp_blob_result &r) override {
    const std::vector<int> all(a.numbers, a.numbers + a.count);
    int n[4] = {0, 0, 0, 0};
    std::copy_n(all.begin(), std::min(all.size(), sizeof n / sizeof *n), n);
    const bool sequence = a.options & SMP_OPTION_SEQUENCE;
    T *const data = static_cast<T *>(a.data);
    switch (a.call) {
      case SMP_BLOB_RESHAPE:
        if (sequence) return it.Reshape(all);
        CHECK(all.size() == 4) << "Caffe takes four numbers";
        return it.Reshape(n[0], n[1], n[2], n[3]);
      case SMP_BLOB_RESHAPE_LIKE: return it.ReshapeLike(of(a.other));
      case SMP_BLOB_SHRINK_TO_FIT: LOG(FATAL) << "Caffe has no such call"; break;
      case SMP_BLOB_SHAPE_STRING: r.text = (text = it.shape_string()).c_str(); break;
      case SMP_BLOB_CANONICAL_AXIS_INDEX: r.number = it.CanonicalAxisIndex(n[0]); break;
      case SMP_BLOB_COUNT_AXES: r.number = all.size() == 1 ? it.count(n[0]) : it.count(n[0], n[1]); break;
      case SMP_BLOB_LEGACY_SHAPE: r.number = it.LegacyShape(n[0]); break;
      case SMP_BLOB_NUM: r.number = it.num(); break;
      case SMP_BLOB_CHANNELS: r.number = it.channels(); break;
      case SMP_BLOB_HEIGHT: r.number = it.height(); break;
      case SMP_BLOB_WIDTH: r.number = it.width(); break;
      case SMP_BLOB_OFFSET: r.number = sequence ? it.offset(all) : it.offset(n[0], n[1], n[2], n[3]); break;
      case SMP_BLOB_DATA_AT: r.number = sequence ? it.data_at(all) : it.data_at(n[0], n[1], n[2], n[3]); break;
      case SMP_BLOB_DIFF_AT: r.number = sequence ? it.diff_at(all) : it.diff_at(n[0], n[1], n[2], n[3]); break;
      case SMP_BLOB_GPU_SHAPE: r.view = const_cast<int *>(it.gpu_shape()); break;
      case SMP_BLOB_CPU_DATA: r.view = const_cast<T *>(it.cpu_data()); break;
      case SMP_BLOB_MUTABLE_CPU_DATA: r.view = it.mutable_cpu_data(); break;
      case SMP_BLOB_GPU_DATA: r.view = const_cast<T *>(it.gpu_data()); break;
      case SMP_BLOB_MUTABLE_GPU_DATA: r.view = it.mutable_gpu_data(); break;
      case SMP_BLOB_CPU_DIFF: r.view = const_cast<T *>(it.cpu_diff()); break;
      case SMP_BLOB_MUTABLE_CPU_DIFF: r.view = it.mutable_cpu_diff(); break;
      case SMP_BLOB_GPU_DIFF: r.view = const_cast<T *>(it.gpu_diff()); break;
      case SMP_BLOB_MUTABLE_GPU_DIFF: r.view = it.mutable_gpu_diff(); break;
      case SMP_BLOB_SET_CPU_DATA: return it.set_cpu_data(data);
      // This form of Caffe has only the one above; it adopts others as parallel.cpp:39-49 does.
      case SMP_BLOB_SET_GPU_DATA: return it.data()->set_gpu_data(data);
      case SMP_BLOB_SET_CPU_DIFF: return it.diff()->set_cpu_data(data);
      case SMP_BLOB_SET_GPU_DIFF: return it.diff()->set_gpu_data(data);
      case SMP_BLOB_SHARE_DATA: return it.ShareData(of(a.other));
      case SMP_BLOB_SHARE_DIFF: return it.ShareDiff(of(a.other));
      case SMP_BLOB_COPY_FROM:
        return it.CopyFrom(of(a.other), a.options & SMP_OPTION_COPY_DIFF, a.options & SMP_OPTION_RESHAPE);
      case SMP_BLOB_UPDATE: return it.Update();
      case SMP_BLOB_ASUM_DATA: r.number = it.asum_data(); break;
      case SMP_BLOB_ASUM_DIFF: r.number = it.asum_diff(); break;
      case SMP_BLOB_SUMSQ_DATA: r.number = it.sumsq_data(); break;
      case SMP_BLOB_SUMSQ_DIFF: r.number = it.sumsq_diff(); break;
      case SMP_BLOB_SCALE_DATA: return it.scale_data(static_cast<T>(a.factor));
      case SMP_BLOB_SCALE_DIFF: return it.scale_diff(static_cast<T>(a.factor));
    }
  }

  void show(smp_blob_state &seen) const override {
    seen.axes = it.shape_.size();
    std::copy(it.shape_.begin(), it.shape_.end(), seen.shape);
    seen.count = it.count_;
    seen.capacity = it.capacity_;
    seen.data = shown(it.data_.get());
    seen.diff = shown(it.diff_.get());
  }
};

static AnyBlob *made(uint32_t type) {
  switch (type) {
    case SMP_FLOAT32: return new TypedBlob<float>(type);
    case SMP_FLOAT64: return new TypedBlob<double>(type);
    case SMP_INT32: return new TypedBlob<int>(type);
    case SMP_UINT32: return new TypedBlob<unsigned>(type);
    default: return nullptr;
  }
}

static int create(const smp_allocators *allocators, smp_launch run, uint32_t type, void **blob) {
  lent = allocators;
  launch = run;
  *blob = made(type);
  return *blob == nullptr ? SMP_REFUSED : SMP_OK;
}

static int call(void *blob, const smp_blob_arguments *asked, smp_blob_result *result) {
  static thread_local std::string message;
#ifdef CPU_ONLY  // it refuses to copy in mode GPU, which the kit does not know
  caffe::Caffe::set_mode(caffe::Caffe::CPU);
#else
  caffe::Caffe::set_mode(asked->mode == SMP_MODE_GPU ? caffe::Caffe::GPU : caffe::Caffe::CPU);
#endif
  failed = false;
  try {
    static_cast<AnyBlob *>(blob)->act(*asked, *result);
    return SMP_OK;
  } catch (const std::exception &error) {
    result->message = (message = error.what()).c_str();
    return failed ? SMP_FAILED : SMP_REFUSED;
  }
}

static void state(const void *blob, smp_blob_state *seen) { static_cast<const AnyBlob *>(blob)->show(*seen); }

static void destroy(void *blob) { delete static_cast<AnyBlob *>(blob); }

static const smp_blobs blobs = {SMP_BLOBS_VERSION, create, call, state, destroy};

const smp_blobs *syncedmem_blobs() { return &blobs; }
