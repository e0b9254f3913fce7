// libtorch's macros of attributes. Headers of device code include this one first: nvcc must have read
// backends/cuda/device_code.h before any header of core.
#pragma once
#include <cassert>

#include "c10/macros/Export.h"
#if defined(__CUDACC__) && !defined(RUSH_HD)
#include "backends/cuda/device_code.h"
#endif
#include "core/macros.h"

#define C10_LIKELY(condition) RUSH_LIKELY(condition)
#define C10_UNLIKELY(condition) RUSH_UNLIKELY(condition)
#define C10_NOINLINE RUSH_NOINLINE
#define C10_ALWAYS_INLINE RUSH_ALWAYS_INLINE
#define C10_NODISCARD [[nodiscard]]
#define C10_UNUSED [[maybe_unused]]
#define C10_USED __attribute__((__used__))
#define C10_FALLTHROUGH [[fallthrough]]
#define C10_RESTRICT __restrict
#define C10_HOST_DEVICE RUSH_HD
#ifdef __CUDACC__
#define C10_HOST __host__
#define C10_DEVICE __device__
#define C10_WARP_SIZE 32
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#else
#define C10_HOST
#define C10_DEVICE
#endif
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define C10_STRINGIZE_(text) #text
#define C10_STRINGIZE(text) C10_STRINGIZE_(text)
#define C10_CONCATENATE_(first, second) first##second
#define C10_CONCATENATE(first, second) C10_CONCATENATE_(first, second)
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(name) C10_CONCATENATE(name, C10_UID)
