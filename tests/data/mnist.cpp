#include "nn/data/datasets/mnist.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/io/md5.h"
#include "rushlight.h"
#include "tests/gzip_file.h"
#include "tests/temporary_folder.h"
#include "tests/text.h"

using rush::data::datasets::MNIST;
using rush::data::datasets::detail::IdxSource;
using rush::data::datasets::detail::read_digits;
using rush::testing::contains;
using rush::testing::gzip;
using rush::testing::TemporaryFolder;
using Bytes = std::vector<uint8_t>;

namespace {

// Two images: every pixel of the first is 0, those of the second count up modulo 256.
Bytes images_file(uint8_t rows = 28) {
  Bytes bytes{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, rows, 0, 0, 0, 28};
  bytes.resize(bytes.size() + size_t{rows} * 28);
  for (int i = 0; i < rows * 28; ++i) bytes.push_back(static_cast<uint8_t>(i));
  return bytes;
}

Bytes labels_file(Bytes labels) {
  Bytes bytes{0, 0, 8, 1, 0, 0, 0, static_cast<uint8_t>(labels.size())};
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

// What read_digits says about a folder with these files, whose md5s it is told.
std::string digits_failure(const Bytes& images, const Bytes& labels) {
  TemporaryFolder folder;
  folder.write("images", images);
  folder.write("labels", labels);
  try {
    read_digits(folder.path(), {"images", rush::io::md5_hex(images)}, {"labels", rush::io::md5_hex(labels)});
  } catch (const rush::IOError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("read_digits: plain and gzipped files give floats from 0 to 1 and int64 labels") {
  const Bytes images = images_file(), labels = labels_file({3, 9});
  const IdxSource images_source{"images", rush::io::md5_hex(images)},
      labels_source{"labels", rush::io::md5_hex(labels)};
  TemporaryFolder folder;
  folder.write("labels", labels);
  folder.write("images.gz", gzip(images));
  const auto [pixels, targets] = read_digits(folder.path(), images_source, labels_source);
  CHECK(pixels.sizes() == rush::IntArrayRef{2, 1, 28, 28});
  CHECK(pixels.scalar_type() == rush::kFloat32);
  const float* values = pixels.data_ptr<float>();
  CHECK(values[0] == 0);
  CHECK(values[784 + 255] == 1);
  CHECK(values[784 + 51] == doctest::Approx(0.2f));
  CHECK(targets.sizes() == rush::IntArrayRef{2});
  CHECK(targets.data_ptr<int64_t>()[0] == 3);
  CHECK(targets.data_ptr<int64_t>()[1] == 9);
}

TEST_CASE("read_digits: files that are missing, changed or do not fit are refused") {
  const Bytes images = images_file(), labels = labels_file({3, 9});
  CHECK(digits_failure(images, labels) == "");
  CHECK(contains(digits_failure(images_file(27), labels),
                 "images: expected N x 28 x 28 bytes, got dimensions (2, 27, 28)"));
  CHECK(contains(digits_failure(labels, labels), "images: expected N x 28 x 28 bytes, got dimensions (2)"));
  CHECK(contains(digits_failure(images, images), "labels: expected N bytes, got dimensions (2, 28, 28)"));
  CHECK(contains(digits_failure(images, labels_file({3, 10})), "labels: holds a label that is not a digit"));
  CHECK(contains(digits_failure(images, labels_file({3})), "images: has 2 images for 1 labels"));

  TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(MNIST(folder.path()),
                       doctest::Contains("has neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz"),
                       rush::IOError);
  folder.write("t10k-images-idx3-ubyte", images);
  CHECK_THROWS_WITH_AS(MNIST(folder.path(), MNIST::Mode::kTest),
                       doctest::Contains("t10k-images-idx3-ubyte: not the published file: its content has md5"),
                       rush::IOError);
}

// Where the real files are at hand: their counts of each digit are published.
TEST_CASE("MNIST: the published files") {
  const char *data = std::getenv("RUSH_DATA"), *house = std::getenv("RUSH_ROOT");
  const std::string root = data ? std::string(data) + "/mnist" : std::string(house ? house : ".") + "/data/mnist";
  const std::string images = root + "/t10k-images-idx3-ubyte";  // a download that failed leaves the folder alone
  if (!std::filesystem::exists(images) && !std::filesystem::exists(images + ".gz")) return;
  MNIST test(root, MNIST::Mode::kTest);
  CHECK(!test.is_train());
  CHECK(test.size() == 10000u);
  std::vector<int> counts(10);
  for (int64_t i = 0; i < 10000; ++i) ++counts[static_cast<size_t>(test.targets().data_ptr<int64_t>()[i])];
  CHECK(counts == std::vector<int>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
  CHECK(test.images().sizes() == rush::IntArrayRef{10000, 1, 28, 28});
  const rush::data::Example<> first = test.get(0);
  CHECK(first.data.sizes() == rush::IntArrayRef{1, 28, 28});
  CHECK(first.target.item<int64_t>() == 7);
  CHECK_THROWS_AS(test.get(10000), rush::IndexError);
}
