// Safetensors files that are nearly right, for the fuzzers of safetensors and checkpoints.
#pragma once

#include <string>

#include "tests/fuzz/random.h"

namespace fuzz {

/// Changes the header's JSON (names, dtypes, shapes, ranges, metadata), or the values of a tensor; mostly lays the
/// tensors out anew, so that the ranges agree with the shapes.
std::string mutate_safetensors(const std::string& file, Random& random);
/// Makes the header as long as it says.
void repair_length(std::string& file);
/// Makes the last four bytes the checksum of all before them.
void repair_checksum(std::string& file);

}  // namespace fuzz
