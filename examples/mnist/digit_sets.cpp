#include "examples/mnist/digit_sets.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include "examples/mnist/synthetic_digits.h"
#include "nn/data/datasets/mnist.h"
#include "rushlight.h"

namespace examples {
namespace {

using rush::data::datasets::MNIST;

// Where MNIST is looked for: in a folder that is named nowhere else.
std::vector<std::string> candidate_folders(const std::string& data) {
  if (!data.empty()) return {data};
  std::vector<std::string> folders;
  if (const char* shared = std::getenv("RUSH_DATA")) folders.push_back(std::string(shared) + "/mnist");
  const char* house = std::getenv("RUSH_ROOT");
  folders.push_back(std::string(house ? house : ".") + "/data/mnist");
  return folders;
}

bool has_mnist(const std::string& folder) {
  const std::string first = folder + "/train-images-idx3-ubyte";
  return std::filesystem::exists(first) || std::filesystem::exists(first + ".gz");
}

DigitSet read(const std::string& folder, MNIST::Mode mode, size_t most) {
  const MNIST set(folder, mode);
  const int64_t count = std::min(set.targets().size(0), static_cast<int64_t>(most));
  return {set.images().narrow(0, 0, count), set.targets().narrow(0, 0, count)};
}

DigitSet draw(size_t count, uint64_t seed) {
  Digits digits = draw_digits(count, seed);
  const auto n = static_cast<int64_t>(count);
  return {
      rush::from_blob(digits.pixels.data(), {n, 1, kDigitSize, kDigitSize}, rush::kUInt8).to(rush::kFloat32).div_(255),
      rush::from_blob(digits.labels.data(), {n}, rush::kInt64).clone()};
}

std::string counts(const DigitSets& sets) {
  return rush::str(sets.train.size(), " to train on, ", sets.test.size(), " to test with");
}

}  // namespace

DigitSets load_digits(const std::string& data, uint64_t seed, size_t for_training, size_t for_test) {
  std::string searched;
  DigitSets sets;
  for (const std::string& folder : candidate_folders(data)) {
    if (has_mnist(folder)) {
      sets = {read(folder, MNIST::Mode::kTrain, for_training), read(folder, MNIST::Mode::kTest, for_test), ""};
      sets.description = rush::str("MNIST from ", folder, ": ", counts(sets));
      return sets;
    }
    searched += (searched.empty() ? "" : ", ") + folder;
  }
  RUSH_CHECK_IO(data.empty(), data,
                ": there is no train-images-idx3-ubyte or train-images-idx3-ubyte.gz of MNIST here; ",
                "`./rush fetch mnist` downloads it to data/mnist, and without --data the program draws digits");
  sets = {draw(for_training, seed), draw(for_test, ~seed), ""};  // ~: no image of one set is in the other
  sets.description =
      rush::str("No MNIST in ", searched, " (`./rush fetch mnist` downloads it): drawing digits, ", counts(sets));
  return sets;
}

}  // namespace examples
