// The parts of CUDA's language that a kernel needs when g++ compiles it for the host, and the launch of a kernel.
//
// The threads of a block take turns.  Without a barrier, each thread runs to its end.  With barriers, each thread has
// its own stack (ucontext), and runs until its next barrier.  No two threads run at the same time, so atomic
// functions need no atomic instructions.
#pragma once
#include <cfloat>
#include <climits>
#include <cmath>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

// CuPy defines these for NVRTC, which has no <cfloat>.
#undef FLT_MIN
#undef FLT_MAX
#undef FLT_EPSILON
#undef FLT_MAX_EXP
#undef FLT_MANT_DIG
#undef DBL_MIN
#undef DBL_MAX
#undef DBL_EPSILON
#undef DBL_MAX_EXP
#undef DBL_MANT_DIG

// --- the language

#define __CUDACC_VER_MAJOR__ 12
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static  // one block runs at a time
#define __constant__ static
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

// --- the functions

template <class To, class From> static inline To hostcuda_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float __uint_as_float(unsigned value) { return hostcuda_bits<float>(value); }
static inline unsigned __float_as_uint(float value) { return hostcuda_bits<unsigned>(value); }
static inline int __float_as_int(float value) { return hostcuda_bits<int>(value); }
static inline float __int_as_float(int value) { return hostcuda_bits<float>(value); }
static inline long long __double_as_longlong(double value) { return hostcuda_bits<long long>(value); }
static inline double __longlong_as_double(long long value) { return hostcuda_bits<double>(value); }
static inline int __popc(unsigned value) { return __builtin_popcount(value); }
static inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }

template <class T, class U> static inline T atomicAdd(T *target, U value) {
  T old = *target;
  *target = old + value;
  return old;
}
template <class T> static inline T atomicCAS(T *target, T expected, T value) {
  T old = *target;
  if (old == expected) *target = value;
  return old;
}

using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;
using std::signbit;

// --- halves, computed with integers, because some processors and compilers do not have them

// A subnormal half is a multiple of 2^-24.  Rounding is to the nearest half, ties to even.
static inline unsigned short __float2half_rn(float value) {
  const unsigned bits = __float_as_uint(value);
  const unsigned sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | (magnitude >> 13 & 0x3ff);  // not a number
  if (magnitude >= 0x477ff000) return sign | 0x7c00;                             // rounds to infinity
  if (magnitude < 0x38800000)                                                    // the addition of floats rounds
    return sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - __float_as_uint(0.5f));
  const unsigned rebiased = magnitude - (112u << 23);
  return sign | (rebiased + 0xfff + (rebiased >> 13 & 1)) >> 13;
}

static inline float __half2float(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0x1f) return __uint_as_float(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) return __uint_as_float(sign | __float_as_uint(fraction * 0x1p-24f));
  return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
}

// --- launches

namespace hostcuda {

// The sizes of a kernel's arguments, with -1 at the end.
template <class F> struct Sizes;
template <class... A> struct Sizes<void(A...)> {
  static constexpr int value[] = {int(sizeof(A))..., -1};
};

// A call of the kernel, for one thread of one block.
struct Call {
  void (*run)(void *);
  void *with;
};

static unsigned size_of(dim3 shape) { return shape.x * shape.y * shape.z; }
static dim3 place(unsigned number, dim3 shape) {
  return {number % shape.x, number / shape.x % shape.y, number / shape.x / shape.y};
}

// --- with barriers

const size_t STACK = 64 << 10;
static Call call;
static bool *over;
// Where the scheduler and a thread go on.  A context only begins a thread: to change one takes system calls.
static jmp_buf scheduler, *running;

static void run_thread() {
  call.run(call.with);
  *over = true;
  _longjmp(scheduler, 1);
}

// A thread's turn, to its next barrier or to its end.
static void run_turn(ucontext_t *begin) {
  if (_setjmp(scheduler)) return;
  if (begin) setcontext(begin);
  _longjmp(*running, 1);
}

// Run the threads of a block in rounds: in each round, every thread runs to its next barrier.
static void run_block(std::vector<jmp_buf> &places, char *stacks) {
  const unsigned count = places.size();
  std::vector<char> ended(count, 0);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_size = STACK;
  bool first = true;
  for (unsigned left = count; left; first = false) {
    left = 0;
    for (unsigned thread = 0; thread < count; thread++) {
      if (ended[thread]) continue;
      bool now = false;
      over = &now;
      threadIdx = place(thread, blockDim);
      running = &places[thread];
      if (first) {
        context.uc_stack.ss_sp = stacks + thread * STACK;
        makecontext(&context, run_thread, 0);
      }
      run_turn(first ? &context : nullptr);
      ended[thread] = now;
      left += !now;
    }
  }
}

static void run_grid_with_barriers() {
  std::vector<jmp_buf> places(size_of(blockDim));
  std::unique_ptr<char[]> stacks(new char[places.size() * STACK]);
  for (unsigned block = 0; block < size_of(gridDim); block++) {
    blockIdx = place(block, gridDim);
    run_block(places, stacks.get());
  }
}

// --- without barriers

static void run_grid() {
  for (unsigned block = 0; block < size_of(gridDim); block++) {
    blockIdx = place(block, gridDim);
    for (unsigned thread = 0; thread < size_of(blockDim); thread++) {
      threadIdx = place(thread, blockDim);
      call.run(call.with);
    }
  }
}

template <class... A, size_t... I> void apply(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<A> *>(arguments[I])...);
}

template <class... A>
void launch(void (*kernel)(A...), void **arguments, const unsigned *grid, const unsigned *block, bool barriers) {
  struct With {
    void (*kernel)(A...);
    void **arguments;
  } with{kernel, arguments};
  call = {[](void *it) {
            auto *with = static_cast<With *>(it);
            apply(with->kernel, with->arguments, std::index_sequence_for<A...>());
          },
          &with};
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  barriers ? run_grid_with_barriers() : run_grid();
}

}  // namespace hostcuda

static inline void __syncthreads() {
  if (!_setjmp(*hostcuda::running)) _longjmp(hostcuda::scheduler, 1);
}

// nvrtc.c writes this for each kernel, and kernels.c looks up the two names.
#define HOSTCUDA_KERNEL(kernel, barriers)                                                                              \
  extern "C" {                                                                                                         \
  const int *hostcuda_sizes_##kernel() { return hostcuda::Sizes<decltype(kernel)>::value; }                            \
  void hostcuda_launch_##kernel(void **arguments, const unsigned *grid, const unsigned *block) {                       \
    hostcuda::launch(kernel, arguments, grid, block, barriers);                                                        \
  }                                                                                                                    \
  }
