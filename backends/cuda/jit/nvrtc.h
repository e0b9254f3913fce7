// NVRTC, the compiler of CUDA C++ that is a library. It is looked up when a program first compiles something.
#pragma once
#include "backends/cuda/jit/source.h"

namespace rush::cuda::jit {

// Note [Compiling at run time]
// nvcc compiles what stands in this tree. What is known only when a program runs, a fused chain of operators or a
// kernel in the program's own string, is compiled by NVRTC, and goes through four hands:
//   headers.h          the functors' own headers, which the library carries as text
//   nvrtc.h            the compiler: a Source to a Cubin, for an architecture
//   compiled.h         one compilation of each Source in a process, whichever threads ask, or none: cubins of earlier
//                      runs lie in a folder
//   kernel.h           a function of a cubin, loaded on the devices that it is launched on
// The options are nvcc's defaults, as the library itself is compiled with: products and sums are contracted to fused
// multiply-adds, division and square roots are exact. So a functor gives the same bits either way.

// 13000 for NVRTC 13.0. Throws CudaError, saying which library was looked for, where there is none.
int nvrtc_version();

// All that a source is compiled with: the options of every source, and its own.
std::vector<std::string> options_of(const Source& source, int architecture);

// Compiles for `architecture`, 90 for sm_90; no device is needed. Throws CompileError, and CudaError for what NVRTC
// itself reports, or where it is missing. From any thread.
Cubin compile(const Source& source, int architecture);

}  // namespace rush::cuda::jit
