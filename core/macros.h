// Compiler attributes under one spelling for all compilers.
#pragma once

// RUSH_HD marks a function that the CPU and a GPU run. A backend whose compiler must be told has it read a header of
// its own before each source (backends/cuda/device_code.h), which defines
//   RUSH_HD, RUSH_DEVICE_COMPILER   the mark; that there is such a compiler
//   RUSH_DEVICE_CODE                where it compiles for the GPU
//   RUSH_DEVICE_COMPLEX_MATH        a header that has the functions of complex numbers for it
//   namespace rush::device_code          what core's functions call there
#ifndef RUSH_HD
#define RUSH_HD
#endif

#define RUSH_ALWAYS_INLINE inline __attribute__((always_inline))

// Spelled without underscores: nvcc defines __noinline__ as a macro.
#define RUSH_NOINLINE __attribute__((noinline))

// Moves a function to the cold section and marks every branch that leads to a call of it as unlikely.
#define RUSH_COLD __attribute__((cold))

#define RUSH_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define RUSH_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
