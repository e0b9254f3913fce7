// What a lab's kernels are written in: the part of CUDA C++ that the emulated grid has as well, and a launch that both
// compilers take. nvcc compiles such a file for a GPU. Any other compiler compiles it for the emulated grid (grid.h),
// with -fsanitize=thread, which makes every access to memory visible to it.
//
// Dynamic shared memory has one name: `extern __shared__ float shared_memory[];`, of any type, in namespace rush::labs.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__

#include <cuda_bf16.h>

#include <stdexcept>
#include <string>

namespace rush::labs {

/// Ends a kernel that is not written yet. On the emulated grid, the launch throws the text.
__device__ inline void to_do(const char*) { __trap(); }

template <class... Parameters>
struct Launch {
  void (*kernel)(Parameters...);
  dim3 grid, block;
  size_t shared_bytes;

  void operator()(Parameters... arguments) const {
    constexpr size_t kWithoutAsking = 48 << 10;
    if (shared_bytes > kWithoutAsking) {
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    }
    kernel<<<grid, block, shared_bytes>>>(arguments...);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) throw std::runtime_error(std::string("launch: ") + cudaGetErrorString(status));
  }
};

}  // namespace rush::labs

#else

#include <cstring>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// One thread of the operating system runs the grid, a block at a time. Unlike `static`, this may stand beside `extern`.
#define __shared__ thread_local

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// GCC has no call before a function's result is assigned to a structure in memory. So these are assigned as one number,
// which is one access for the watch, at the line of the assignment.
#define RUSH_ASSIGNED_AS_ONE(Vector)                                          \
  __attribute__((always_inline)) Vector& operator=(const Vector& other) {     \
    typedef int Bits __attribute__((vector_size(sizeof(Vector)), may_alias)); \
    *reinterpret_cast<Bits*>(this) = *reinterpret_cast<const Bits*>(&other);  \
    return *this;                                                             \
  }
struct alignas(8) float2 {
  float x, y;
  RUSH_ASSIGNED_AS_ONE(float2)
};
struct alignas(16) float4 {
  float x, y, z, w;
  RUSH_ASSIGNED_AS_ONE(float4)
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
  RUSH_ASSIGNED_AS_ONE(uint4)
};
#undef RUSH_ASSIGNED_AS_ONE

// The upper 16 bits of a float.
struct alignas(2) __nv_bfloat16 {
  uint16_t bits;
};
// Rounds to nearest, ties to even; the value is no NaN.
inline __nv_bfloat16 __float2bfloat16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return {static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U)};
}
inline float __bfloat162float(__nv_bfloat16 value) {
  const uint32_t bits = uint32_t{value.bits} << 16U;
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// Those of the thread that runs, as in CUDA C++; a debugger's conditions can use them.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;

// By value, as in CUDA C++: what returns a reference has the greater number read again, by the lanes that have it
// there.
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}

// `line` is where the call stands, for reports.
void __syncthreads(int line = __builtin_LINE());
void __syncwarp(unsigned mask = 0xffffffffU, int line = __builtin_LINE());
unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE());
int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE());
int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE());

int atomicAdd(int* address, int value);
unsigned atomicAdd(unsigned* address, unsigned value);
unsigned long long atomicAdd(unsigned long long* address, unsigned long long value);
float atomicAdd(float* address, float value);
double atomicAdd(double* address, double value);
int atomicMax(int* address, int value);
unsigned atomicMax(unsigned* address, unsigned value);
unsigned long long atomicMax(unsigned long long* address, unsigned long long value);

namespace rush::grid {

// The bits that the lane `source` of the warp gives; every lane of the mask has to call it.
uint64_t exchange(unsigned mask, uint64_t bits, int source, const char* function, int line);
int lane();  // of the thread that runs

template <class T>
T exchange_value(unsigned mask, T value, int source, const char* function, int line) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, source, function, line);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// Calls thread(arguments) once for each thread of the grid. Throws Fault (grid.h).
void run(void* kernel, dim3 grid, dim3 block, size_t shared_bytes, void (*thread)(const void*), const void* arguments);

}  // namespace rush::grid

// A lane outside of the segment of `width` lanes gives the caller's own value, as in CUDA C++.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
  const int first = rush::grid::lane() / width * width;
  return rush::grid::exchange_value(mask, value, first + (source & (width - 1)), "__shfl_sync", line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  const int lane = rush::grid::lane(), source = lane + static_cast<int>(delta);
  return rush::grid::exchange_value(mask, value, source / width == lane / width ? source : lane, "__shfl_down_sync",
                                    line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  const int lane = rush::grid::lane(), source = lane - static_cast<int>(delta);
  return rush::grid::exchange_value(mask, value, source >= lane / width * width ? source : lane, "__shfl_up_sync",
                                    line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, int line = __builtin_LINE()) {
  const int lane = rush::grid::lane(), source = lane ^ lane_mask;
  return rush::grid::exchange_value(mask, value, source / width <= lane / width ? source : lane, "__shfl_xor_sync",
                                    line);
}

namespace rush::labs {

void to_do(const char* what);

template <class... Parameters>
struct Launch {
  void (*kernel)(Parameters...);
  dim3 grid, block;
  size_t shared_bytes;

  void operator()(Parameters... arguments) const {
    const auto call = [&]() __attribute__((no_sanitize_thread)) { kernel(arguments...); };
    rush::grid::run(reinterpret_cast<void*>(kernel), grid, block, shared_bytes, call_thread<decltype(call)>, &call);
  }

 private:
  // Not watched, nor is `call`: they read the arguments where the host has them.
  template <class Call>
  __attribute__((no_sanitize_thread)) static void call_thread(const void* call) {
    (*static_cast<const Call*>(call))();
  }
};

}  // namespace rush::labs

#endif

namespace rush::labs {

/// launch(kernel, grid, block, shared_bytes)(arguments...) is CUDA's kernel<<<grid, block,
/// shared_bytes>>>(arguments...). Throws where the launch is refused; on the emulated grid also what a thread did wrong
/// (grid::Fault).
template <class... Parameters>
Launch<Parameters...> launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes = 0) {
  return {kernel, grid, block, shared_bytes};
}

}  // namespace rush::labs
