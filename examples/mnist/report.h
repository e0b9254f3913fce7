// The page that the demo leaves behind: one HTML file that needs nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "examples/svg_chart.h"

namespace examples {

struct MnistReport {
  std::string dataset;  // "MNIST, 60,000 images for training and 10,000 for the test"
  std::vector<std::pair<std::string, std::string>> facts;  // shown as tiles: ("training time", "41 s")

  // Curves; x is in epochs (0.5: half of the first one), accuracies are shares of 1.
  std::vector<ChartPoint> train_loss, test_loss;
  std::vector<ChartPoint> train_accuracy, test_accuracy;

  // The test set and what the net says about it.
  std::vector<uint8_t> pixels;     // (N, 28, 28), grey: 255 is ink
  std::vector<int64_t> labels;     // (N), 0 to 9
  std::vector<int64_t> predicted;  // (N), 0 to 9
  std::vector<float> confidence;   // (N), probability given to the predicted digit
};

/// The report as an HTML page, with the accuracy, the curves, a grid of test digits with their predictions, the worst
/// mistakes (wrong with the highest confidence first) and a table of which digit is taken for which.
/// Throws rush::ValueError if the test set is empty, its vectors disagree in length or a digit is not 0 to 9.
std::string render_report(const MnistReport& report);

}  // namespace examples
