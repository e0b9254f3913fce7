#include "nn/data/datasets/mnist.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <tuple>

#include "core/error/error.h"
#include "core/io/md5.h"
#include "core/ops/basic.h"
#include "nn/data/datasets/idx.h"

namespace rush::data::datasets {
namespace {

constexpr int64_t kImageSize = 28;
constexpr int64_t kDigits = 10;

const detail::IdxSource kTrainImages{"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"};
const detail::IdxSource kTrainLabels{"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"};
const detail::IdxSource kTestImages{"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"};
const detail::IdxSource kTestLabels{"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"};

// The file of this name in `root`, plain or gzipped, if its content is the published one.
std::pair<std::string, IdxFile> read_published(const std::string& root, const detail::IdxSource& source) {
  std::string path = root + "/" + source.name;
  if (!std::filesystem::exists(path)) path += ".gz";
  RUSH_CHECK_IO(std::filesystem::exists(path), root, ": has neither ", source.name, " nor ", source.name, ".gz");
  IdxFile file = read_idx(path);
  const std::string md5 = io::md5_hex(file.content);
  RUSH_CHECK_IO(md5 == source.md5, path, ": not the published file: its content has md5 ", md5, ", expected ",
                source.md5);
  return {path, std::move(file)};
}

// (N, 28, 28) bytes -> (N, 1, 28, 28) floats from 0 to 1
Tensor to_images(const std::string& path, IdxFile& file) {
  RUSH_CHECK_IO(
      file.type == IdxType::UInt8 && file.dims.size() == 3 && file.dims[1] == kImageSize && file.dims[2] == kImageSize,
      path, ": expected N x 28 x 28 bytes, got dimensions ", file.dims);
  void* pixels = file.content.data() + file.header_size;
  return from_blob(pixels, {file.dims[0], 1, kImageSize, kImageSize}, kUInt8).to(kFloat32).div_(255);
}

// (N) bytes -> (N) int64
Tensor to_targets(const std::string& path, IdxFile& file) {
  RUSH_CHECK_IO(file.type == IdxType::UInt8 && file.dims.size() == 1, path, ": expected N bytes, got dimensions ",
                file.dims);
  const std::span<const uint8_t> labels = file.values();
  RUSH_CHECK_IO(std::all_of(labels.begin(), labels.end(), [](uint8_t label) { return label < kDigits; }), path,
                ": holds a label that is not a digit");
  return from_blob(file.content.data() + file.header_size, {file.dims[0]}, kUInt8).to(kInt64);
}

}  // namespace

namespace detail {

std::pair<Tensor, Tensor> read_digits(const std::string& root, const IdxSource& images, const IdxSource& labels) {
  auto [images_path, images_file] = read_published(root, images);
  auto [labels_path, labels_file] = read_published(root, labels);
  Tensor pixels = to_images(images_path, images_file), targets = to_targets(labels_path, labels_file);
  RUSH_CHECK_IO(pixels.size(0) == targets.size(0), images_path, ": has ", pixels.size(0), " images for ",
                targets.size(0), " labels");
  return {pixels, targets};
}

}  // namespace detail

MNIST::MNIST(const std::string& root, Mode mode) : mode_(mode) {
  std::tie(images_, targets_) = is_train() ? detail::read_digits(root, kTrainImages, kTrainLabels)
                                           : detail::read_digits(root, kTestImages, kTestLabels);
}

Example<> MNIST::get(size_t index) {
  const auto i = static_cast<int64_t>(index);
  return {images_.select(0, i), targets_.select(0, i)};
}

}  // namespace rush::data::datasets
