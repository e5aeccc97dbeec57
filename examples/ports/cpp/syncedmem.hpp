// Caffe's mirrored memory in C++20: one buffer with a host side and a device side.
//
// The rules are in machine.h, which `syncedmem diagram --format c` writes: which actions a call takes, and which side has
// the current bytes then.  This file only performs the actions.  It promises more than Caffe: a call that fails changes
// nothing, a push in flight is waited for, and a memory's own buffer is refused.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "../syncedmem_port.h"
#include "machine.h"

namespace syncedmem {

struct Failed : std::runtime_error {  // an allocation, a copy, a fill or a free did not succeed
  using std::runtime_error::runtime_error;
};

struct Refused : std::logic_error {  // the call is not allowed now, or not with this argument
  Refused(smd_refusal why, const char *text) : std::logic_error(text), reason(why) {}
  smd_refusal reason;
};

// Where memory comes from: a table of functions, as that of CUDA in cuda.hpp.  What returns an error there throws here.
class Allocator {
 public:
  explicit Allocator(const smp_allocators &table) : it_(table) {}
  void *allocate(unsigned kind, std::size_t size) const {
    void *made = nullptr;
    return tried(it_.allocate(it_.context, kind, size, &made), "allocate"), made;
  }
  void free(unsigned kind, void *pointer) const { tried(it_.deallocate(it_.context, kind, pointer), "free"); }
  void zero(void *pointer, std::size_t size) const { tried(it_.zero(it_.context, pointer, size), "zero"); }
  void copy(void *to, const void *from, std::size_t size) const { tried(it_.copy(it_.context, to, from, size), "copy"); }
  void copy_async(void *to, const void *from, std::size_t size, void *stream) const {
    tried(it_.copy_async(it_.context, to, from, size, stream), "copy");
  }
  void synchronize(void *stream) const { tried(it_.synchronize(it_.context, stream), "wait"); }

 private:
  static void tried(int error, const char *what) {
    if (error != 0) throw Failed(std::string("cannot ") + what + ": error " + std::to_string(error));
  }
  const smp_allocators &it_;
};

// Frees a block that is dropped.  Nobody can be told if that fails.
struct Free {
  const Allocator *from = nullptr;
  unsigned kind = SMP_HOST;
  void operator()(void *pointer) const noexcept try { from->free(kind, pointer); } catch (const Failed &) {}
};
using Block = std::unique_ptr<void, Free>;

// Caffe::mode(): host memory that is allocated in mode GPU is page-locked.
inline thread_local smd_mode mode = SMD_MODE_GPU;

struct Argument {
  void *data = nullptr;
  std::size_t size = 0;
  void *stream = nullptr;
  unsigned kind = SMP_HOST;  // of the buffer
};

class Memory {
 public:
  Memory(std::size_t size, const smp_allocators &from) : from_(from), size_(size) {}
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() {
    try {
      release();
    } catch (const Failed &) {  // what could not be freed is tried once more, by Free
    }
  }

  const void *cpu_data() { return call(SMD_CPU_DATA); }
  void *mutable_cpu_data() { return call(SMD_MUTABLE_CPU_DATA); }
  const void *gpu_data() { return call(SMD_GPU_DATA); }
  void *mutable_gpu_data() { return call(SMD_MUTABLE_GPU_DATA); }
  // The buffer stays the caller's, and has to live as long as the memory uses it.
  void set_cpu_data(void *data, std::size_t size) { call(SMD_SET_CPU_DATA, {data, size}); }
  void set_gpu_data(void *data, std::size_t size) { call(SMD_SET_GPU_DATA, {data, size, nullptr, SMP_DEVICE}); }
  // The stream has to live until the next call that is not cpu_data.
  void async_gpu_push(void *stream) { call(SMD_ASYNC_GPU_PUSH, {nullptr, 0, stream}); }
  // Free what is owned; afterwards every other call is refused.
  void release() { call(SMD_RELEASE); }

  smd_head head() const { return head_; }
  std::size_t size() const { return size_; }
  unsigned facts() const { return facts_; }  // those of smd_fact that are true
  const void *pointer(smd_side side) const { return pointers_[side]; }  // where a side is, if it is anywhere

  // Make a call by its number; returns the side that it is about.
  void *call(smd_call call, Argument with = {}) {
    if (released_ && call != SMD_RELEASE) throw Refused(SMD_REFUSED_NONE, "the memory is released");
    const smd_row *row = smd_find(call, head_, facts_, with.data != nullptr);
    if (row == nullptr) throw Refused(SMD_REFUSED_NONE, "this edition has no such call");
    if (row->refusal != SMD_REFUSED_NONE) throw Refused(row->refusal, row->id);
    if (with.data != nullptr) check(with, call == SMD_SET_CPU_DATA ? SMD_CPU : SMD_GPU);
    if (call != SMD_CPU_DATA) wait();
    Blocks fresh;  // what this call allocates; freed again if a later action fails
    for (unsigned i = 0; i < row->actions_count; ++i) {
      act(smd_effects[row->actions[i]], with, fresh);
      released_ = call == SMD_RELEASE;
    }
    // From here on nothing can fail.
    for (smd_side side : {SMD_CPU, SMD_GPU})
      if (fresh[side]) {
        owned_[side] = std::move(fresh[side]);
        pointers_[side] = owned_[side].get();
      }
    if (with.data != nullptr) pointers_[call == SMD_SET_CPU_DATA ? SMD_CPU : SMD_GPU] = with.data;
    facts_ = smd_facts_after(row, facts_, mode);
    head_ = row->dest;
    released_ = call == SMD_RELEASE;
    if (released_) pointers_ = {};
    return pointers_[call == SMD_CPU_DATA || call == SMD_MUTABLE_CPU_DATA ? SMD_CPU : SMD_GPU];
  }

 private:
  using Blocks = std::array<Block, 2>;

  // Caffe trusts its callers here.
  void check(Argument with, smd_side side) const {
    const char *const own = static_cast<const char *>(owned_[side].get()), *const given = static_cast<char *>(with.data);
    if (own != nullptr && std::less_equal<>()(own, given) && std::less<>()(given, own + size_))
      throw Refused(SMD_REFUSED_OWN_BUFFER, "the buffer is the memory's own");
    if ((with.kind == SMP_DEVICE) != (side == SMD_GPU)) throw Refused(SMD_REFUSED_NONE, "the buffer is of the other side");
    if (with.size < size_) throw Refused(SMD_REFUSED_NONE, "the buffer is smaller than the memory");
  }

  // A memory of zero bytes has no memory: only its head and its flags move.
  void act(const smd_effect &effect, Argument with, Blocks &fresh) {
    if (size_ == 0) return;
    const smd_side side = effect.side, other = side == SMD_CPU ? SMD_GPU : SMD_CPU;
    void *const here = fresh[side] ? fresh[side].get() : pointers_[side];
    switch (effect.verb) {
      case SMD_VERB_ALLOCATE:
        fresh[side] = Block(from_.allocate(kind(side), size_), Free{&from_, kind(side)});
        break;
      case SMD_VERB_ZERO:
        from_.zero(here, size_);
        break;
      case SMD_VERB_COPY:
        if (effect.asynchronous) {
          from_.copy_async(here, pointers_[other], size_, with.stream);
          in_flight_ = with.stream;
        } else {
          from_.copy(here, pointers_[other], size_);
        }
        break;
      case SMD_VERB_FREE:
        from_.free(owned_[side].get_deleter().kind, here);
        (void)owned_[side].release();
        facts_ &= ~effect.clears;  // at once, in case the free of the other side fails
        break;
      case SMD_VERB_ADOPT:
      case SMD_VERB_NONE:
        break;
    }
  }

  static unsigned kind(smd_side side) {
    return side == SMD_GPU ? SMP_DEVICE : mode == SMD_MODE_GPU ? SMP_PINNED : SMP_HOST;
  }

  void wait() {
    if (in_flight_) from_.synchronize(*in_flight_);
    in_flight_.reset();
  }

  const Allocator from_;
  const std::size_t size_;
  smd_head head_ = SMD_UNINITIALIZED;
  unsigned facts_ = 0;
  std::array<void *, 2> pointers_{};  // by smd_side: owned, or of the caller
  Blocks owned_;
  std::optional<void *> in_flight_;  // the stream of a push that nobody has waited for
  bool released_ = false;
};

}  // namespace syncedmem
