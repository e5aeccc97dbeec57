// The glue between Blob and the blobs of syncedmem_port.h.
#include "../syncedmem_port.h"
#include "blob.hpp"
using syncedmem::Blob, syncedmem::require;

namespace {

struct AnyBlob {  // of some type
  virtual ~AnyBlob() = default;
  virtual void act(const smp_blob_arguments &asked, smp_blob_result &result) = 0;
  virtual void show(smp_blob_state &seen) const = 0;
};

template <typename T>
struct TypedBlob final : AnyBlob {
  using Part = typename Blob<T>::Part;
  TypedBlob(const smp_allocators &from, smp_launch launch) : it(from, launch) {}
  Blob<T> it;
  std::string text;

  Blob<T> &of(void *other) const {
    auto *const found = dynamic_cast<TypedBlob *>(static_cast<AnyBlob *>(other));
    require(found != nullptr, "a blob of another type");
    return found->it;
  }

  void act(const smp_blob_arguments &a, smp_blob_result &r) override {
    const syncedmem::Numbers n(a.numbers, a.count);
    const auto offset = [&] { return a.options & SMP_OPTION_SEQUENCE ? it.offset_of(n) : it.offset(n); };
    const auto among = [&a](std::uint32_t first, int each) { return static_cast<int>(a.call - first) / each; };
    const syncedmem::Argument with = {a.data, a.data_size, nullptr, a.data_kind};
    static constexpr smd_call accessors[] = {SMD_CPU_DATA, SMD_MUTABLE_CPU_DATA, SMD_GPU_DATA, SMD_MUTABLE_GPU_DATA};
    if (a.call >= SMP_BLOB_CPU_DATA && a.call <= SMP_BLOB_MUTABLE_GPU_DIFF) {
      r.view = it.access(Part(among(SMP_BLOB_CPU_DATA, 4)), accessors[among(SMP_BLOB_CPU_DATA, 1) % 4]);
      return;
    }
    switch (a.call) {
      case SMP_BLOB_RESHAPE: return it.reshape({n.begin(), n.end()});
      case SMP_BLOB_RESHAPE_LIKE: return it.reshape_like(of(a.other));
      case SMP_BLOB_SHRINK_TO_FIT: return it.shrink_to_fit();
      case SMP_BLOB_SHAPE_STRING: r.text = (text = it.shape_string()).c_str(); return;
      case SMP_BLOB_CANONICAL_AXIS_INDEX: r.number = it.canonical_axis_index(n[0]); return;
      case SMP_BLOB_COUNT_AXES: r.number = n.size() == 1 ? it.count_axes(n[0]) : it.count_axes(n[0], n[1]); return;
      case SMP_BLOB_LEGACY_SHAPE: r.number = it.legacy_shape(n[0]); return;
      case SMP_BLOB_NUM: case SMP_BLOB_CHANNELS: case SMP_BLOB_HEIGHT: case SMP_BLOB_WIDTH:
        r.number = it.legacy_shape(among(SMP_BLOB_NUM, 1));
        return;
      case SMP_BLOB_OFFSET: r.number = offset(); return;
      case SMP_BLOB_DATA_AT: r.number = it.at(Part::DATA, offset()); return;
      case SMP_BLOB_DIFF_AT: r.number = it.at(Part::DIFF, offset()); return;
      case SMP_BLOB_GPU_SHAPE: r.view = const_cast<void *>(it.gpu_shape()); return;
      case SMP_BLOB_SET_CPU_DATA: case SMP_BLOB_SET_CPU_DIFF:
        return it.adopt(Part(among(SMP_BLOB_SET_CPU_DATA, 2)), SMD_SET_CPU_DATA, with);
      case SMP_BLOB_SET_GPU_DATA: case SMP_BLOB_SET_GPU_DIFF:
        return it.adopt(Part(among(SMP_BLOB_SET_CPU_DATA, 2)), SMD_SET_GPU_DATA, with);
      case SMP_BLOB_SHARE_DATA: return it.share(Part::DATA, of(a.other));
      case SMP_BLOB_SHARE_DIFF: return it.share(Part::DIFF, of(a.other));
      case SMP_BLOB_COPY_FROM:
        return it.copy_from(of(a.other), a.options & SMP_OPTION_COPY_DIFF ? Part::DIFF : Part::DATA,
                            a.options & SMP_OPTION_RESHAPE);
      case SMP_BLOB_UPDATE: return it.update();
      case SMP_BLOB_ASUM_DATA: r.number = it.asum(Part::DATA); return;
      case SMP_BLOB_ASUM_DIFF: r.number = it.asum(Part::DIFF); return;
      case SMP_BLOB_SUMSQ_DATA: r.number = it.sumsq(Part::DATA); return;
      case SMP_BLOB_SUMSQ_DIFF: r.number = it.sumsq(Part::DIFF); return;
      case SMP_BLOB_SCALE_DATA: return it.scale(Part::DATA, static_cast<T>(a.factor));
      case SMP_BLOB_SCALE_DIFF: return it.scale(Part::DIFF, static_cast<T>(a.factor));
      default: require(false, "there is no such call");
    }
  }

  smp_blob_part part(Part which) const {
    const syncedmem::Memory &its = it.memory(which);
    return {&its, its.pointer(SMD_CPU), its.pointer(SMD_GPU), static_cast<std::uint32_t>(its.head()), its.size()};
  }
  void show(smp_blob_state &seen) const override {
    seen.axes = it.shape().size();
    std::ranges::copy(it.shape(), seen.shape);
    seen.count = it.count();
    seen.capacity = it.capacity();
    seen.data = part(Part::DATA);
    seen.diff = part(Part::DIFF);
  }
};

int create(const smp_allocators *lent, smp_launch launch, std::uint32_t type, void **blob) {
  AnyBlob *made = nullptr;
  if (type == SMP_FLOAT32) made = new TypedBlob<float>(*lent, launch);
  if (type == SMP_FLOAT64) made = new TypedBlob<double>(*lent, launch);
  if (type == SMP_INT32) made = new TypedBlob<std::int32_t>(*lent, launch);
  if (type == SMP_UINT32) made = new TypedBlob<std::uint32_t>(*lent, launch);
  *blob = made;
  return made == nullptr ? SMP_REFUSED : SMP_OK;
}

int call(void *blob, const smp_blob_arguments *asked, smp_blob_result *result) {
  static thread_local std::string message;
  try {
    syncedmem::mode = static_cast<smd_mode>(asked->mode);
    static_cast<AnyBlob *>(blob)->act(*asked, *result);
    return SMP_OK;
  } catch (const syncedmem::Refused &why) {
    result->message = (message = why.what()).c_str();
    return SMP_REFUSED;
  } catch (const syncedmem::Failed &why) {
    result->message = (message = why.what()).c_str();
    return SMP_FAILED;
  }
}

void state(const void *blob, smp_blob_state *seen) { static_cast<const AnyBlob *>(blob)->show(*seen); }

void destroy(void *blob) { delete static_cast<AnyBlob *>(blob); }

}  // namespace

static const smp_blobs blobs{SMP_BLOBS_VERSION, create, call, state, destroy};

const smp_blobs *syncedmem_blobs() { return &blobs; }
