// Each source is compiled once in a process, or taken from the cache of earlier runs.
#pragma once
#include <memory>

#include "backends/cuda/jit/source.h"

namespace rush::cuda::jit {

// The machine code of `source` for `architecture` (90 for sm_90). One thread compiles it, others that ask meanwhile
// wait for that one. Throws as `compile`; a later call tries again. RUSH_COMPILE_DEBUG=FOLDER writes the text into
// FOLDER, and compiles it from there with line numbers for profilers and debuggers.
std::shared_ptr<const Cubin> compiled(const Source& source, int architecture);

// `#line 41 "train.cpp"` and a new line.
std::string line_directive(int64_t line, const std::string& file);

// A line of a source that gives those after it their own numbers again, after a line_directive: only under
// RUSH_COMPILE_DEBUG.
inline constexpr const char* kOwnLines = "#line 0\n";

// How many compilations of this process NVRTC has done; what a cache served is not among them.
int64_t compilations();

}  // namespace rush::cuda::jit
