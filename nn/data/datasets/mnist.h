// MNIST: 60,000 handwritten digits to train on and 10,000 to test with (LeCun, Cortes and Burges,
// http://yann.lecun.com/exdb/mnist).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "core/tensor.h"
#include "nn/data/datasets/base.h"

namespace rush::data::datasets {

/// The whole of MNIST's training or test set in memory. Mirrors torch::data::datasets::MNIST.
class MNIST final : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };

  /// Reads the files of the original distribution ("train-images-idx3-ubyte", ...) from the folder
  /// `root`, plain or with ".gz". Throws IOError, one line that names the file, if one is missing, damaged, or not the
  /// published one by the md5 of its decompressed content.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);

  /// An image (1, 28, 28) and its target (). Throws IndexError beyond the last.
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override { return static_cast<size_t>(targets_.size(0)); }
  bool is_train() const { return mode_ == Mode::kTrain; }
  /// (N, 1, 28, 28) float32: 0 is paper, 1 is ink.
  const Tensor& images() const { return images_; }
  /// (N) int64, 0 to 9.
  const Tensor& targets() const { return targets_; }

 private:
  Mode mode_;
  Tensor images_, targets_;
};

namespace detail {

/// A published IDX file: its name without ".gz", and the md5 of its decompressed content.
struct IdxSource {
  std::string name, md5;
};

/// Images and their labels from the folder `root`, as MNIST holds them; throws as its constructor does, also if the two
/// files disagree in number or a label is not 0 to 9.
std::pair<Tensor, Tensor> read_digits(const std::string& root, const IdxSource& images, const IdxSource& labels);

}  // namespace detail

}  // namespace rush::data::datasets
