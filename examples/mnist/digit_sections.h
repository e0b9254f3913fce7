// What the demo's report shows of the test digits.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/report.h"

namespace examples {

/// The test set and what the net says about it.
struct ReadDigits {
  std::vector<uint8_t> pixels;     // (N, 28, 28), grey: 255 is ink
  std::vector<int64_t> labels;     // (N), 0 to 9
  std::vector<int64_t> predicted;  // (N), 0 to 9
  std::vector<float> confidence;   // (N), probability given to the predicted digit
};

/// A grid of test digits with their predictions, the worst mistakes (wrong with the highest confidence first) and a
/// table of which digit is taken for which. Throws rush::ValueError if the test set is empty, its vectors disagree in
/// length or a digit is not 0 to 9.
std::vector<Report::Section> digit_sections(const ReadDigits& digits);

}  // namespace examples
