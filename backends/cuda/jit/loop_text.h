// What the sources of fused kernels have in common, and how these are launched.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/compile/element_wise_loop.h"

namespace rush::cuda::jit {

inline constexpr int kLoopThreads = 256;  // of a block
inline constexpr int64_t kVectorBytes = 16;

// What of a place is where in the kernel's parameters.
struct Externals {
  explicit Externals(const LoopDescription& loop);
  std::vector<size_t> device, host;  // places
};

const char* type_of(const LoopDescription& loop, size_t place);
bool is_written(const LoopDescription& loop, size_t place);
bool has_reader(const LoopDescription& loop, size_t place);  // among the steps
// Whether all elements of dimension 0 are one.
bool repeats_along_lanes(const LoopDescription& loop, size_t place);

// What profilers show: "fused" and the loop's kernels, as many as fit a line.
std::string kernel_name(const LoopDescription& loop);
// The headers, what the text below calls, and `Where`, the kernel's parameter.
std::string prologue_text(const LoopDescription& loop, const Externals& externals, int lanes);
// The addresses at0, at1, ... of the operands' elements at `index`, which counts in dimensions `first_dim` and further;
// in dimension 1 by `positions`.
std::string addresses_text(const LoopDescription& loop, const Externals& externals, size_t first_dim, const char* index,
                           int positions = 1);
// What a kernel's functor is called with, joined by commas; lane(place) is "[l]" for a place with several elements.
std::string inputs_text(const LoopDescription& loop, const LoopDescription::Step& step,
                        const std::function<const char*(size_t)>& lane);
// One kernel's functor, called with its inputs; or, of a reduction, the functor itself.
std::string functor_call(const LoopDescription& loop, const LoopDescription::Step& step, const std::string& inputs);
std::string functor_object(const LoopDescription& loop, const LoopDescription::Step& step);
// A step's statement, with the number of the program's line that it comes from, where that is known.
std::string at_program_line(const LoopDescription::Step& step, const std::string& statement);
// The values of a place in `lanes` neighbours: in the type to compute in, or, where they are only stored, in its own.
std::string declaration_text(const LoopDescription& loop, size_t place);
// `lanes` neighbours from or to the address `at`, which is an expression.
std::string load_text(const LoopDescription& loop, size_t place, const std::string& at);
std::string store_text(const LoopDescription& loop, size_t place, const std::string& at);

// Whether `lanes` neighbours of a place may be read at a time, where it begins at a multiple of `alignment`.
bool fits_lanes(const LoopDescription& loop, size_t place, int lanes);
int64_t alignment(const LoopDescription& loop, size_t place, int lanes);
// Whether those of `places` that do not repeat begin there.
bool are_aligned(const LoopDescription& loop, const std::vector<size_t>& places, char* const* data, int lanes);

// A `Where` for operands at `data` and a loop of `shape`, of which dimension 0 is walked by `lanes`, and dimension 1 by
// `positions`.
std::vector<uint64_t> where_of(const LoopDescription& loop, const Externals& externals, char* const* data,
                               const DimVector& shape, int lanes, int positions = 1);

}  // namespace rush::cuda::jit
