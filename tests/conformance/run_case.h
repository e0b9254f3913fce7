// Runs one case on one device and judges it.
#pragma once

#include <string>

#include "tests/conformance/case_file.h"

namespace conformance {

enum class Outcome { Passed, Failed, Missing };

struct Verdict {
  Outcome outcome;
  std::string reason;  // one line; empty when passed
};

/// Calls the case's operator by name. It passes when its schema is the case's, it does not throw, and every output and
/// gradient agrees; it is missing when no operator of that name is registered. Compiled, it is called and
/// differentiated in a function that rush::compile has traced before. An output that is null must be undefined; a
/// number is compared as a tensor without dimensions; where the case gives strides, an output has them, and shares
/// memory with the argument that it says or with none. A case that is `refused` passes when the call throws
/// rush::Error.
Verdict run_case(const CaseFile& file, const Case& one, rush::Device device, bool is_compiled = false);

}  // namespace conformance
