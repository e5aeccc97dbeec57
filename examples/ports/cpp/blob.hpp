// Caffe's blob in C++20: an array of numbers, its data, and their gradients, its diff.  Each of the two is a Memory.
//
// A blob asks its memories for the side that it needs, and they allocate and copy.  So this file has only shapes, and
// which side a computation is on: that of the numbers, but for copy_from, which follows Caffe's mode.  A shape may have
// as many elements as an int can count, as in Caffe.
#pragma once
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "syncedmem.hpp"

namespace syncedmem {

// Why a blob refuses a call; the reasons of smd_refusal are those of a memory.
inline void require(bool condition, const char *text) {
  if (!condition) throw Refused(SMD_REFUSED_NONE, text);
}

using Shape = std::vector<std::int64_t>;
using Numbers = std::span<const std::int64_t>;

// The questions about a shape.
class Extents {
 public:
  const Shape &shape() const { return shape_; }
  std::int64_t count() const { return count_; }

  std::string shape_string() const {
    std::string text;
    for (const std::int64_t extent : shape_) text += std::to_string(extent) + " ";
    return text + "(" + std::to_string(count_) + ")";
  }

  std::int64_t canonical_axis_index(std::int64_t axis) const {
    require(-axes() <= axis && axis < axes(), "there is no such axis");
    return axis < 0 ? axis + axes() : axis;
  }

  std::int64_t count_axes(std::int64_t start, std::int64_t end) const {
    require(0 <= start && start <= end && end <= axes(), "there are no such axes");
    std::int64_t volume = 1;
    for (std::int64_t axis = start; axis < end; ++axis) volume *= shape_[axis];
    return volume;
  }
  std::int64_t count_axes(std::int64_t start) const { return count_axes(start, axes()); }

  // num, channels, height and width are the indices 0 to 3.
  std::int64_t legacy_shape(std::int64_t index) const {
    require(axes() <= legacy, "more than four axes");
    require(-legacy <= index && index < legacy, "there is no such legacy axis");
    return index < -axes() || index >= axes() ? 1 : shape_[canonical_axis_index(index)];
  }

  // The position of an element, by up to four numbers: each may be one past the end of its axis.
  std::int64_t offset(Numbers numbers) const {
    require(numbers.size() <= static_cast<std::size_t>(legacy), "more than four numbers");
    std::int64_t position = 0;
    for (std::int64_t axis = 0; axis < legacy; ++axis) {
      const std::int64_t index = std::cmp_less(axis, numbers.size()) ? numbers[axis] : 0, extent = legacy_shape(axis);
      require(0 <= index && index <= extent, "an index is out of range");
      position = position * extent + index;
    }
    return position;
  }

  // The same by a sequence, which names an element.
  std::int64_t offset_of(Numbers indices) const {
    require(std::cmp_less_equal(indices.size(), axes()), "more indices than axes");
    std::int64_t position = 0;
    for (std::int64_t axis = 0; axis < axes(); ++axis) {
      const bool given = std::cmp_less(axis, indices.size());
      require(!given || (0 <= indices[axis] && indices[axis] < shape_[axis]), "an index is out of range");
      position = position * shape_[axis] + (given ? indices[axis] : 0);
    }
    return position;
  }

 protected:
  static constexpr std::int64_t legacy = 4;
  std::int64_t axes() const { return static_cast<std::int64_t>(shape_.size()); }

  static std::int64_t counted(const Shape &shape) {
    require(shape.size() <= SMP_MOST_AXES, "more than 32 axes");
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      require(0 <= extent && extent <= INT_MAX, "an extent is negative or too large");
      require(count == 0 || extent <= INT_MAX / count, "more elements than an int can count");
      count *= extent;
    }
    return count;
  }

  Shape shape_;
  std::int64_t count_ = 0;  // not always the product: a blob without a shape has no elements
  bool shaped_ = false;
};

template <typename T>
class Blob : public Extents {
 public:
  enum Part { DATA, DIFF };

  // `launch` runs a function on the device, which alone may touch device memory.
  Blob(const smp_allocators &from, smp_launch launch) : from_(from), launch_(launch) {}

  // What fits stays where it is; what does not gets two new memories.
  void reshape(const Shape &shape) {
    const std::int64_t count = counted(shape);
    if (count > capacity()) grow(count);
    shape_ = shape;
    count_ = count;
    shaped_ = true;
  }
  void reshape_like(const Blob &other) { reshape(other.shape_); }

  // Give back the memory after the elements.
  void shrink_to_fit() {
    std::array<Held, 2> fitting;
    for (Part part : {DATA, DIFF}) {
      fitting[part] = parts_[part];
      if (parts_[part]->size() == bytes()) continue;
      fitting[part] = made(bytes());
      if (parts_[part]->head() == SMD_UNINITIALIZED) continue;
      const bool up = on_device(part);
      moved(up ? fitting[part]->mutable_gpu_data() : fitting[part]->mutable_cpu_data(),
            up ? parts_[part]->gpu_data() : parts_[part]->cpu_data());
    }
    parts_ = fitting;
  }

  std::int64_t capacity() const {
    return static_cast<std::int64_t>(std::min(parts_[DATA]->size(), parts_[DIFF]->size()) / sizeof(T));
  }
  const Memory &memory(Part part) const { return *parts_[part]; }

  // One of the four accessors of a part.
  void *access(Part part, smd_call call) { return parts_[part]->call(call); }

  // The extents on the device, as 32-bit integers.
  const void *gpu_shape() {
    require(shaped_, "a blob without a shape");
    if (known_ != shape_) {
      const std::size_t size = shape_.size() * sizeof(std::int32_t);
      if (extents_->size() != size) extents_ = made(size);
      std::ranges::copy(shape_, static_cast<std::int32_t *>(extents_->mutable_cpu_data()));
      known_ = shape_;
    }
    return extents_->gpu_data();
  }

  // Use a buffer of the caller.  A memory of another size than the blob is replaced; for the data, both are.
  void adopt(Part part, smd_call call, Argument with) {
    require(with.data != nullptr, "NULL is not adopted");
    require(with.size >= bytes(), "the buffer is smaller than the blob");
    if (parts_[part]->size() == bytes()) {
      parts_[part]->call(call, with);
      return;
    }
    const Held fresh = made(bytes()), diff = made(bytes());
    fresh->call(call, with);
    parts_[part] = fresh;
    if (part == DATA) parts_[DIFF] = diff;
  }

  void share(Part part, const Blob &other) {
    require(count_ == other.count_, "sharing needs as many elements");
    parts_[part] = other.parts_[part];
  }

  // On the side of Caffe's mode, whatever the heads are.
  void copy_from(Blob &source, Part part, bool take_shape) {
    require(take_shape || shape_ == source.shape_, "a copy from another shape");
    if (take_shape) reshape_like(source);
    const bool up = mode == SMD_MODE_GPU;
    const void *const from = up ? source.parts_[part]->gpu_data() : source.parts_[part]->cpu_data();
    moved(up ? parts_[part]->mutable_gpu_data() : parts_[part]->mutable_cpu_data(), from);
  }

  T at(Part part, std::int64_t position) const {
    require(0 <= position && position < count_, "there is no such element");
    return static_cast<const T *>(parts_[part]->cpu_data())[position];
  }

  // --- arithmetic, on the side of the numbers: the device, if they are fresh there

  void update() {
    require(std::is_floating_point_v<T>, "arithmetic with integers");
    require(parts_[DATA]->head() != SMD_UNINITIALIZED, "the data was never written");
    const bool up = on_device(DATA);
    const T *const diff = static_cast<const T *>(up ? parts_[DIFF]->gpu_data() : parts_[DIFF]->cpu_data());
    T *const data = static_cast<T *>(up ? parts_[DATA]->mutable_gpu_data() : parts_[DATA]->mutable_cpu_data());
    run(up, [=, this] { for (std::int64_t k = 0; k < count_; ++k) data[k] -= diff[k]; });
  }

  void scale(Part part, T factor) {
    require(std::is_floating_point_v<T>, "arithmetic with integers");
    if (parts_[part]->head() == SMD_UNINITIALIZED) return;
    const bool up = on_device(part);
    T *const at = static_cast<T *>(up ? parts_[part]->mutable_gpu_data() : parts_[part]->mutable_cpu_data());
    run(up, [=, this] { for (std::int64_t k = 0; k < count_; ++k) at[k] *= factor; });
  }

  double asum(Part part) {
    return sum(part, [](double number) { return std::fabs(number); });
  }
  double sumsq(Part part) {
    return sum(part, [](double number) { return number * number; });
  }

 private:
  using Held = std::shared_ptr<Memory>;

  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }
  Held made(std::size_t size) const { return std::make_shared<Memory>(size, from_); }
  void grow(std::int64_t count) {
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(T);
    parts_ = {made(size), made(size)};
  }
  bool on_device(Part part) const {
    return parts_[part]->head() == SMD_HEAD_AT_GPU || parts_[part]->head() == SMD_SYNCED;
  }

  // Between two pointers to the same side.
  void moved(void *to, const void *from) const {
    if (to != from && count_ > 0) Allocator(from_).copy(to, from, bytes());
  }

  template <typename Body>
  void run(bool up, Body body) const {
    if (count_ == 0) return;
    if (!up) return body();
    const auto kernel = [](void *it) { (*static_cast<Body *>(it))(); };
    if (launch_(from_.context, kernel, &body) != 0) throw Failed("cannot launch a kernel");
  }

  // Of what was never written: 0.
  template <typename Term>
  double sum(Part part, Term term) const {
    require(std::is_floating_point_v<T>, "arithmetic with integers");
    if (parts_[part]->head() == SMD_UNINITIALIZED) return 0;
    const bool up = on_device(part);
    const T *const at = static_cast<const T *>(up ? parts_[part]->gpu_data() : parts_[part]->cpu_data());
    double total = 0;
    run(up, [=, this, &total] { for (std::int64_t k = 0; k < count_; ++k) total += term(at[k]); });
    return total;
  }

  const smp_allocators &from_;
  const smp_launch launch_;
  std::array<Held, 2> parts_{made(0), made(0)};
  Held extents_ = made(0);  // the memory of gpu_shape
  Shape known_;             // what is there
};

}  // namespace syncedmem
