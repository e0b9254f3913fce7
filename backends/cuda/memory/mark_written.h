// What libraries have written, for compute-sanitizer.
#pragma once
#include "backends/cuda/memory/scratch.h"
#include "core/tensor.h"

namespace rush::cuda {

// Note [What initcheck does not see]
// Kernels of cuBLAS, cuDNN and cuSPARSELt for Hopper and newer GPUs store their results in bulk (TMA), and
// compute-sanitizer's initcheck does not count that as writing: it reported every kernel that read a product. From
// 2026 on it can (--check-tensor-ops), except for cuDNN's attention. The caller of such a library tells initcheck which
// memory it has written, through NVTX. It does so only if every block comes from the driver
// (RUSH_CUDA_ALLOC_CONF=passthrough:True).
// https://docs.nvidia.com/compute-sanitizer/SanitizerNvtxGuide

// A library's kernel on the current stream writes all of `result`, or of nothing where it is undefined.
void mark_written(const Tensor& result);

// A library's workspace, before a call: initcheck misses some of what the library writes there, and reports its copies.
void mark_written(const Scratch& workspace);

}  // namespace rush::cuda
