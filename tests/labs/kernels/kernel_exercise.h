// Exercises of the labs that write CUDA kernels. A call on the emulated grid is watched: races, bounds and barriers,
// then its numbers, then what its warps asked of memory, tell mistakes by what they do.
#pragma once
#include <optional>

#include "tests/labs/exercise.h"
#include "tests/labs/grid/grid.h"
#include "tests/labs/kernels/kernel_call.h"

namespace rush::labs {

// What is wrong with a call, and the mistake that is known to do so.
struct Finding {
  std::string fault, mistake;
};

inline constexpr const char* kNarrowIndex =
    "an index is computed in 32 bits: blockIdx.x times a size goes beyond 2^31, so make it an int64_t first";

// The outputs of a kernel with a mistake, as far as these are known.
struct ModelOfMistake {
  std::string name;
  std::function<std::vector<double>()> outputs;
};

inline constexpr const char* kMaximumFromZero =
    "the maximum begins at 0, at least in threads without elements: of numbers far below every exp is 0";

// A call, and all that is known of it.
struct CheckedCall {
  KernelCall call;
  const char* out;  // what its outputs are called
  std::function<std::vector<double>()> right;
  std::vector<ModelOfMistake> mistakes;
  // Whether its warps ask too much of memory at one of the places of its kernel.
  std::function<std::optional<Finding>(const grid::Traffic&)> slow;
};

/// Calls `launches`, and gives what stopped it. `whole` as in KernelCall.
std::optional<Finding> stopped(bool whole, const std::function<void()>& launches);

/// The first output that is wrong, and the mistake whose model gives what came.
std::optional<Finding> wrong_element(const CheckedCall& checked, const std::vector<float>& got);

/// Makes the call: what is wrong with it; an empty finding when nothing is.
Finding check_call(const CheckedCall& checked);

/// Outputs of a call with more than 2^32 elements, of which the grid's last block ran alone: out[at[i]] has to be
/// right[i].
struct HugeCall {
  std::function<void()> make;
  const grid::Buffer<float>& out;
  std::vector<int64_t> at;
  std::vector<double> right;
};
Finding check_huge(const HugeCall& call);

/// Warps that read or write global memory in more sectors than their elements fill.
std::optional<Finding> uncoalesced(const grid::Traffic& traffic);

/// Warps for which shared memory takes more passes than requests.
std::optional<Finding> conflicting(const grid::Traffic& traffic);

/// "the numbers are right; but a warp's request to read tile, at kernels.cu:44, "
std::string request_of(const grid::Traffic& traffic);

struct NamedCheck {
  std::string text;
  std::function<Finding()> check;
};
/// The exercise of a kernel, whose calls are these.
Exercise kernel_exercise(const std::string& function, const std::vector<NamedCheck>& checks);

}  // namespace rush::labs
