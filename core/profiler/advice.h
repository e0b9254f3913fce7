// What a profile says about a program: what bounds it, and what to try.
#pragma once
#include <string>
#include <vector>

namespace rush::profiler {

// Note [What advice goes by]
// A GPU that is idle for a tenth of the time or more has a cause: a loader that is late, an operator that waits for the
// device again and again, or calls that take longer than the kernels which they launch. One that is busy may be busy
// with what need not be: products of 32-bit numbers, copies between layouts, attention in parts, kernels too small for
// the card. Each rule looks for one such flaw in the sums of a recording, and stays silent where the gain would be
// small. A gain is an estimate from those sums: the time that would be left out.

/// One flaw that was found.
struct Advice {
  std::string flaw;  // "sync", "loader", "launches", "float32", "layout", "pageable", "attention", "small kernels"
  std::string text;  // one line: what was seen, and what to try
  double gain = 0;   // of the time from the first recorded event to the last, as a share
};

/// As lines for a terminal, the largest gain first; one line that says so where there is none.
std::string to_text(const std::vector<Advice>& advice);

}  // namespace rush::profiler
