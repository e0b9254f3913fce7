// Sizes, strides, paddings and counts near the ends of 64 bits: a typed error that names the operator, or the right
// shape, on the CPU and on meta alike. Under UndefinedBehaviorSanitizer no sum or product wraps around on the way.
#include <cmath>

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

constexpr int64_t kHalf = int64_t{1} << 62, kMany = int64_t{1} << 40;

// One element, seen as a tensor of any sizes.
Tensor expanded(IntArrayRef sizes, Device device, ScalarType dtype = kFloat32) {
  return ones(DimVector(sizes.size(), 1), TensorOptions(dtype).device(device)).expand(sizes);
}
Tensor none(IntArrayRef sizes, Device device) { return empty(sizes, TensorOptions(kFloat32).device(device)); }
Tensor image(Device device) { return ones({1, 1, 4, 4}, TensorOptions(kFloat32).device(device)); }

struct Refusal {
  std::string_view name;
  void (*call)(Device);
  const char* message;
};

constexpr Refusal kRefusals[] = {
    {"cat",
     [](Device d) {
       cat({expanded(kHalf, d), expanded(kHalf, d)});
     },
     "cat: sizes are too large: 4611686018427387904 + 4611686018427387904 does not fit 64 bits"},
    {"concatenate",
     [](Device d) {
       concatenate({expanded(kHalf, d), expanded(kHalf, d)});
     },
     "cat: sizes are too large"},
    {"hstack",
     [](Device d) {
       hstack({expanded(kHalf, d), expanded(kHalf, d)});
     },
     "cat: sizes are too large"},
    {"vstack",
     [](Device d) {
       vstack({expanded({kHalf, 1}, d), expanded({kHalf, 1}, d)});
     },
     "cat: sizes are too large"},
    {"dstack",
     [](Device d) {
       dstack({expanded({1, 1, kHalf}, d), expanded({1, 1, kHalf}, d)});
     },
     "cat: sizes are too large"},
    {"column_stack",
     [](Device d) {
       column_stack({expanded({1, kHalf}, d), expanded({1, kHalf}, d)});
     },
     "cat: sizes are too large"},
    {"stack",
     [](Device d) {
       stack({expanded(kHalf, d), expanded(kHalf, d)});
     },
     "hold too many elements"},
    {"block_diag",
     [](Device d) {
       block_diag({expanded({1, kHalf}, d), expanded({1, kHalf}, d)});
     },
     "block_diag: sizes are too large"},
    {"repeat", [](Device d) { expanded(kHalf, d).repeat({2}); },
     "repeat: sizes are too large: 2 * 4611686018427387904 does not fit 64 bits"},
    {"tile",
     [](Device d) {
       expanded({kHalf, 1}, d).tile({2, 1});
     },
     "repeat: sizes are too large"},
    {"repeat_interleave", [](Device d) { expanded(kHalf, d).repeat_interleave(2, 0); },
     "repeat_interleave: sizes are too large"},
    {"expand",
     [](Device d) {
       ones({1, 1}, TensorOptions(d)).expand({kHalf, 2});
     },
     "hold too many elements"},
    {"flatten",
     [](Device d) {
       none({0, kMany, kMany}, d).flatten(1);
     },
     "flatten: sizes are too large"},
    {"view",
     [](Device d) {
       expanded(4, d).view({kHalf, 4, -1});
     },
     "view: sizes are too large"},
    {"unflatten",
     [](Device d) {
       expanded(4, d).unflatten(0, {kHalf, 4});
     },
     "unflatten: sizes are too large"},
    {"zeros",
     [](Device d) {
       zeros({kHalf, 2}, TensorOptions(d));
     },
     "hold too many elements"},
    {"empty", [](Device d) { none(kHalf, d); }, "larger than the address space"},
    {"empty_strided",
     [](Device d) {
       empty_strided({3, 3}, {INT64_MAX, 1}, TensorOptions(d));
     },
     "reach too far"},
    {"as_strided",
     [](Device d) {
       image(d).as_strided({3, 2}, {kHalf, 1});
     },
     "reach too far"},
    {"arange", [](Device d) { arange(INT64_MIN, INT64_MAX, TensorOptions(d)); }, "arange: "},
    {"constant_pad_nd",
     [](Device d) {
       constant_pad_nd(image(d), {INT64_MAX, 1});
     },
     "constant_pad_nd: sizes are too large: 4 + 9223372036854775807"},
    {"reflection_pad1d",
     [](Device d) {
       ops::reflection_pad1d(expanded({1, 1, kHalf}, d), {kHalf - 1, kHalf - 1});
     },
     "reflection_pad1d: sizes are too large"},
    {"conv2d: padding", [](Device d) { conv2d(image(d), image(d), {}, 1, INT64_MAX); },
     "convolution: sizes are too large: 9223372036854775807 * 2"},
    {"conv2d: dilation", [](Device d) { conv2d(image(d), image(d), {}, 1, 0, INT64_MAX); },
     "convolution: sizes are too large: 9223372036854775807 * 3"},
    {"conv2d: padded image", [](Device d) { conv2d(image(d), image(d), {}, kMany, kHalf / 2); },
     "hold too many elements"},
    {"conv2d: same", [](Device d) { conv2d(image(d), image(d), {}, 1, "same", INT64_MAX); },
     "conv2d: sizes are too large"},
    {"conv_transpose2d: stride", [](Device d) { conv_transpose2d(image(d), image(d), {}, INT64_MAX); },
     "conv_transpose: sizes are too large: 3 * 9223372036854775807"},
    {"conv_transpose2d: padding", [](Device d) { conv_transpose2d(image(d), image(d), {}, 1, INT64_MAX); },
     "conv_transpose: sizes are too large"},
    {"im2col: padding",
     [](Device d) {
       ops::im2col(image(d), {2, 2}, {1, 1}, {kHalf, 0}, {1, 1});
     },
     "im2col: sizes are too large: 4611686018427387904 * 2"},
    {"im2col: dilation",
     [](Device d) {
       ops::im2col(image(d), {3, 2}, {INT64_MAX, 1}, {0, 0}, {1, 1});
     },
     "im2col: sizes are too large"},
    {"col2im",
     [](Device d) {
       ops::col2im(image(d)[0], {4, 4}, {2, 2}, {1, 1}, {kHalf, 0}, {1, 1});
     },
     "col2im: sizes are too large"},
    {"avg_pool2d", [](Device d) { avg_pool2d(image(d), INT64_MAX, 1, INT64_MAX / 2); },
     "avg_pool2d: kernel_size, stride and dilation must be below 2^31"},
    {"pixel_shuffle",
     [](Device d) {
       pixel_shuffle(none({0, kMany, 1}, d), int64_t{1} << 30);
     },
     "pixel_shuffle: sizes are too large"},
    {"pixel_unshuffle",
     [](Device d) {
       pixel_unshuffle(none({1024, 0, 0}, d), int64_t{1} << 30);
     },
     "hold too many elements"},
    {"tensordot",
     [](Device d) {
       tensordot(none({0, kMany, kMany}, d), none({0}, d), {0}, {0});
     },
     "tensordot: sizes are too large"},
    {"einsum",
     [](Device d) {
       einsum("abc,abc->a", {none({0, kMany, kMany}, d), none({0, kMany, kMany}, d)});
     },
     "einsum: sizes are too large"},
    {"group_norm",
     [](Device d) {
       group_norm(none({0, 1, kMany, kMany}, d), 1);
     },
     "hold too many elements"},
    {"diag_embed", [](Device d) { expanded(2, d).diag_embed(INT64_MAX); }, "diag_embed: sizes are too large"},
    {"diag", [](Device d) { expanded(2, d).diag(INT64_MIN); }, "diag_embed: offset -9223372036854775808 is too large"},
    {"fft_irfft", [](Device d) { fft::irfft(expanded(kHalf + 1, d, kComplex64)); }, "fft_irfft: sizes are too large"},
    {"fft_irfft2",
     [](Device d) {
       fft::irfft2(expanded({1, kHalf + 1}, d, kComplex64));
     },
     "sizes are too large"},
    {"upsample",
     [](Device d) {
       ops::upsample_nearest2d_vec(image(d), std::nullopt, std::vector<double>{1e300, 1});
     },
     "upsample: a scale factor of 1e+300 makes a dimension of 4 elements 4e+300"},
    {"upsample: NaN",
     [](Device d) {
       ops::upsample_nearest2d_vec(image(d), std::nullopt, std::vector<double>{NAN, 1});
     },
     "upsample: a scale factor of nan"},
    {"split", [](Device d) { expanded(kMany, d).split(1); }, "split: 1099511627776 parts of dimension 0"},
    {"chunk", [](Device d) { expanded(kMany, d).chunk(kMany); }, "split: 1099511627776 parts of dimension 0"},
    {"tensor_split", [](Device d) { expanded(kMany, d).tensor_split(kMany); }, "tensor_split: 1099511627776 parts"},
    {"unbind", [](Device d) { expanded(kMany, d).unbind(); }, "unbind: 1099511627776 parts of dimension 0"},
};

TEST_CASE("sizes that overflow are refused on every device, by a message that names the operator") {
  for (const Device device : {Device(kCPU), Device(kMeta)}) {
    for (const Refusal& each : kRefusals) {
      CAPTURE(std::string(each.name));
      CAPTURE(device.str());
      CHECK_THROWS_WITH_AS(each.call(device), doctest::Contains(each.message), ValueError);
    }
  }
}

TEST_CASE("a stride or dilation that no window takes may be of any size") {
  const TensorOptions leaf = TensorOptions(kFloat64).requires_grad(true);
  const auto checked = [](const Tensor& huge, const Tensor& small, TensorList inputs) {
    CHECK(values(huge) == values(small));
    const auto of_huge = autograd::grad({huge.sum()}, inputs.vec()),
               of_small = autograd::grad({small.sum()}, inputs.vec());
    for (size_t i = 0; i < inputs.size(); ++i) CHECK(values(of_huge[i]) == values(of_small[i]));
  };
  const Tensor x = counting({2, 2, 3, 4}).to(kFloat64).detach().requires_grad_(), w = ones({2, 2, 2, 2}, leaf);
  checked(conv2d(x, w, {}, INT64_MAX), conv2d(x, w, {}, 4), {x, w});
  checked(conv2d(x, w, {}, {1, INT64_MAX}, 1), conv2d(x, w, {}, {1, 9}, 1), {x, w});
  const Tensor points = ones({2, 2, 1, 1}, leaf), pixel = ones({1, 2, 1, 1}, leaf);
  checked(conv2d(x, points, {}, 1, 0, INT64_MAX), conv2d(x, points), {x, points});
  checked(conv_transpose2d(pixel, w, {}, INT64_MAX), conv_transpose2d(pixel, w, {}, 2), {pixel, w});
  checked(ops::im2col(x, {2, 2}, {1, 1}, {1, 1}, {INT64_MAX, INT64_MAX}),
          ops::im2col(x, {2, 2}, {1, 1}, {1, 1}, {9, 9}), {x});
  CHECK(avg_pool2d(x, 2, INT32_MAX, 0, true).sizes() == IntArrayRef({2, 2, 1, 1}));
}

TEST_CASE("shapes of more elements than there is memory are known at once on meta") {
  const auto meta = [](IntArrayRef sizes) { return expanded(sizes, kMeta); };
  CHECK(max_pool1d(meta({1, 1, int64_t{1} << 50}), 2, 2, 1).sizes() == IntArrayRef({1, 1, (int64_t{1} << 49) + 1}));
  CHECK(meta(INT64_MAX / 4).roll(INT64_MAX, 0).numel() == INT64_MAX / 4);
  constexpr int64_t points = int64_t{1} << 29;
  CHECK(ops::pdist(meta({points, 2}), 2).sizes() == IntArrayRef(points * (points - 1) / 2));
  CHECK(cat({meta(kMany), meta(kMany)}).sizes() == IntArrayRef(2 * kMany));
}

TEST_CASE("iterators of tensors that nobody could visit, on meta and of no elements") {
  const Tensor rows = expanded({2, kHalf / 2}, kMeta, kUInt8), columns = expanded({kHalf / 2, 1}, kMeta, kUInt8).t();
  CHECK_THROWS_AS(rows.mul(columns.to(kFloat64)), ValueError);  // 2^62 elements of eight bytes
  CHECK(rows.slice(1, 0, kMany).mul(rows.slice(1, 0, kMany)).sizes() == IntArrayRef({2, kMany}));
  CHECK(none({0, kMany, kMany}, kCPU).add(1).sizes() == IntArrayRef({0, kMany, kMany}));
}

TEST_CASE("view_strides: a stride times a size that overflows continues no run") {
  CHECK_FALSE(view_strides({4, 4}, {0, kHalf}, {16}));  // 4 kHalf is 2^64, which is no stride of 0
  CHECK(view_strides({4, 4}, {4, 1}, {16}));
}

}  // namespace
