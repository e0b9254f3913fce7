// .npy files that are nearly right, for the fuzzers of npy and npz.
#pragma once

#include <string>

#include "tests/fuzz/random.h"

namespace fuzz {

/// A file with a header of the form that NumPy writes; most are valid.
std::string random_npy(Random& random);
/// Changes the header's text, or the values, or their number.
std::string mutate_npy(const std::string& file, Random& random);
/// Makes the header as long as it says.
void repair_npy(std::string& file);

}  // namespace fuzz
