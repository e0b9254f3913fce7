#include "core/ops/view/pad.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// The place of a row that a padded place shows, straight from the definition; -1 for none.
int64_t shown(int64_t place, int64_t size, std::string_view mode) {
  if (place >= 0 && place < size) return place;
  if (mode == "constant") return -1;
  if (mode == "replicate") return place < 0 ? 0 : size - 1;
  if (mode == "circular") return (place + size) % size;
  return place < 0 ? -place : 2 * (size - 1) - place;
}

TEST_CASE("pad: every mode on planes, against the definition, on several threads") {
  const int64_t pads[] = {2, 1, 1, 3};  // left, right, top, bottom
  for (const char* mode : {"constant", "reflect", "replicate", "circular"}) {
    CAPTURE(mode);
    const Tensor x = counting({60, 30, 4, 5}).transpose(0, 1);
    const bool constant = std::string_view(mode) == "constant";
    const Tensor y = pad(x, pads, mode, constant ? std::optional<double>(-7) : std::nullopt);
    REQUIRE(y.sizes() == IntArrayRef({30, 60, 8, 8}));
    bool equal = true;
    const Tensor dense = y.contiguous();
    const double* got = dense.data_ptr<double>();
    for (int64_t n = 0; n < 30; ++n) {
      for (int64_t c = 0; c < 60; ++c) {
        for (int64_t i = 0; i < 8; ++i) {
          for (int64_t j = 0; j < 8; ++j, ++got) {
            const int64_t row = shown(i - 1, 4, mode), column = shown(j - 2, 5, mode);
            const bool outside = row < 0 || column < 0;
            equal = equal && *got == (outside ? -7 : static_cast<double>(((c * 30 + n) * 4 + row) * 5 + column));
          }
        }
      }
    }
    CHECK(equal);
    CHECK(pad(empty({2, 3, 4, 5}, kMeta), pads, mode).sizes() == IntArrayRef({2, 3, 8, 8}));
  }
}

TEST_CASE("pad: one and three dimensions, negative padding, dtypes, layouts") {
  const Tensor row = counting({1, 4});
  CHECK(values(pad(row, {1, 2})) == Doubles{0, 0, 1, 2, 3, 0, 0});
  CHECK(values(pad(row, {-1, 1}, "reflect")) == Doubles{1, 2, 3, 2});
  CHECK(values(pad(row, {3, -2}, "replicate")) == Doubles{0, 0, 0, 0, 1});
  // One end may be cut by more than the size, where the other one is padded.
  CHECK(values(pad(row, {6, -5}, "replicate")) == Doubles{0, 0, 0, 0, 0});
  CHECK(values(pad(row, {-5, 3}, "replicate")) == Doubles{3, 3});
  CHECK(values(pad(row, {-1, 2}, "circular")) == Doubles{1, 2, 3, 1, 2});
  CHECK(values(pad(row, {-3, 2}, "constant", 9.0)) == Doubles{3, 9, 9});
  CHECK_THROWS_AS(pad(row, {4, -6}, "constant"), ValueError);  // as in PyTorch: it cuts off more than there is
  CHECK(pad(counting({1, 2, 2, 2}), {1, 1, 1, 1, 1, 1}, "reflect").sizes() == IntArrayRef({1, 4, 4, 4}));
  CHECK(values(pad(counting({1, 2, 1, 1}), {0, 0, 0, 0, 1, 0}, "replicate")) == Doubles{0, 0, 1});
  CHECK(pad(zeros({0, 3, 3}), {1, 1}, "reflect").sizes() == IntArrayRef({0, 3, 5}));
  CHECK(values(constant_pad_nd(counting({2}, kInt64), {1, 0}, 5)) == Doubles{5, 0, 1});
  CHECK(pad(ones({1, 2}, kBFloat16), {1, 0}, "reflect").scalar_type() == kBFloat16);
  CHECK(pad(zeros({1, 2, 3, 4}).contiguous(MemoryFormat::ChannelsLast), {1, 1})
            .is_contiguous(MemoryFormat::ChannelsLast));
}

TEST_CASE("pad: channels-last images are padded as they lie, with crops too") {
  for (const ScalarType dtype : {kFloat64, kBFloat16, kUInt8}) {
    const Tensor x = counting({2, 3, 5, 7}).remainder(200).to(dtype);
    const Tensor last = x.contiguous(MemoryFormat::ChannelsLast);
    for (const char* mode : {"reflect", "replicate"}) {
      for (const auto& pads : std::vector<std::vector<int64_t>>{{1, 2, 3, 0}, {-1, 2, 0, -2}, {-3, -3, 2, 1}}) {
        const Tensor padded = pad(last, pads, mode);
        CHECK(padded.is_contiguous(MemoryFormat::ChannelsLast));
        CHECK(equal(padded, pad(x, pads, mode)));
      }
    }
  }
}

TEST_CASE("pad: what does not fit is a typed error") {
  const Tensor x = counting({1, 3});
  // Nothing to fill, in however many places.
  CHECK(ops::replication_pad1d(zeros({2, 0, 1}), {INT64_MAX / 4, INT64_MAX / 4}).numel() == 0);
  CHECK_THROWS_AS(pad(x, {1}), ValueError);
  CHECK_THROWS_AS(pad(x, {1, 1, 1, 1, 1, 1}), ValueError);
  CHECK_THROWS_AS(pad(x, {-2, -2}), ValueError);
  CHECK_THROWS_AS(pad(x, {INT64_MAX, 1}), ValueError);
  CHECK_THROWS_AS(pad(x, {-9, 10}), ValueError);
  CHECK_THROWS_AS(pad(x, {INT64_MIN, INT64_MAX}, "circular"), ValueError);
  CHECK_THROWS_AS(pad(x, {INT64_MIN, INT64_MAX}, "replicate"), ValueError);
  CHECK_THROWS_AS(pad(x, {-4, 1}, "replicate"), ValueError);
  CHECK(pad(zeros({0, 2}), {int64_t{1} << 32, 2, 0, 0}).sizes() == IntArrayRef({0, (int64_t{1} << 32) + 4}));
  CHECK_THROWS_AS(pad(x, {1, 1}, "mirror"), ValueError);
  CHECK_THROWS_AS(pad(x, {3, 0}, "reflect"), ValueError);
  CHECK_THROWS_AS(pad(x, {4, 0}, "circular"), ValueError);
  CHECK_THROWS_AS(pad(x, {1, 1}, "reflect", 1.0), ValueError);
  CHECK_THROWS_AS(pad(x, {1, 1, 1, 1}, "reflect"), NotImplementedError);
  CHECK_THROWS_AS(pad(zeros({1, 0}), {1, 1}, "replicate"), ValueError);
  CHECK_THROWS_AS(ops::reflection_pad2d(zeros({1, 3, 3}), {1, 1}), ValueError);
  CHECK_THROWS_AS(ops::reflection_pad1d_backward(zeros({1, 3}), x, {1, 1}), ValueError);
}

TEST_CASE("derivatives of pad") {
  const struct {
    const char* mode;
    DimVector input, pad;
  } cases[] = {
      {"constant", {2, 3}, {1, 2, -1, 0}},
      {"constant", {2}, {-1, 3}},
      {"reflect", {2, 3}, {2, 1}},
      {"reflect", {1, 3, 2}, {1, 0, -1, 2}},
      {"reflect", {1, 2, 2, 2}, {1, 1, 0, 1, 1, 0}},
      {"replicate", {2, 3}, {4, 1}},
      {"replicate", {1, 2, 2}, {1, 2, -1, 3}},
      {"replicate", {1, 2, 3}, {4, -3, -4, 3}},
      {"replicate", {1, 2, 1, 2}, {1, 1, 0, 1, 1, 0}},
      {"circular", {2, 3}, {2, 3}},
      {"circular", {1, 3, 2}, {1, 0, -1, 2}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.mode);
    CAPTURE(to_string(tensor(std::vector<int64_t>(c.pad.begin(), c.pad.end()))));
    const auto squared = [&](const Tensors& x) {
      const Tensor y = pad(x[0], c.pad, c.mode);
      return Tensors{y * y};
    };
    check_gradients(squared, {leaf(c.input)});
  }
  check_gradients(
      [](const Tensors& x) {
        return Tensors{pad(x[0].transpose(0, 1), {1, 1}, "reflect")};
      },
      {leaf({3, 2})});
}

}  // namespace
