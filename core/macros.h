// Compiler attributes under one spelling for g++, clang and nvcc.
#pragma once

// A function that both processors run. Functors are compiled by g++ for the CPU and by nvcc for the GPU.
#ifdef __CUDACC__
#define RUSH_HD __host__ __device__
#else
#define RUSH_HD
#endif

#define RUSH_ALWAYS_INLINE inline __attribute__((always_inline))

// Spelled without underscores: nvcc defines __noinline__ as a macro.
#define RUSH_NOINLINE __attribute__((noinline))

// Moves a function to the cold section and marks every branch that leads to a call of it as unlikely.
#define RUSH_COLD __attribute__((cold))

#define RUSH_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define RUSH_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
