#include "core/ops/nn/grid_sampler.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A pixel with what lies beyond the edges.
double pixel(const Doubles& image, const Longs& sizes, Longs at, int64_t padding, bool align) {
  int64_t offset = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (padding == 2) {
      // Reflected at the pixels' centres or between them, again and again.
      while (at[d] < 0 || at[d] >= sizes[d]) {
        if (align && sizes[d] == 1) at[d] = 0;
        if (at[d] < 0) at[d] = align ? -at[d] : -1 - at[d];
        if (at[d] >= sizes[d]) at[d] = align ? 2 * (sizes[d] - 1) - at[d] : 2 * sizes[d] - 1 - at[d];
      }
    }
    if (padding == 1) at[d] = std::clamp<int64_t>(at[d], 0, sizes[d] - 1);
    if (at[d] < 0 || at[d] >= sizes[d]) return 0;
    offset = offset * sizes[d] + at[d];
  }
  return image[static_cast<size_t>(offset)];
}

double tent(double x) { return std::max(0.0, 1 - std::abs(x)); }
double cubic(double x) {
  x = std::abs(x);
  if (x <= 1) return 1.25 * x * x * x - 2.25 * x * x + 1;
  return x < 2 ? -0.75 * x * x * x + 3.75 * x * x - 6 * x + 3 : 0;
}

// One image, one point, by the definition: every pixel near the point times its weight.
double sampled(const Doubles& image, const Longs& sizes, Doubles point, int64_t mode, int64_t padding, bool align) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto size = static_cast<double>(sizes[d]);
    point[d] = align ? (point[d] + 1) / 2 * (size - 1) : ((point[d] + 1) * size - 1) / 2;
    if (mode != 2 && padding == 1) point[d] = std::clamp(point[d], 0.0, size - 1);
    if (mode == 1) point[d] = std::nearbyint(point[d]);
  }
  double sum = 0;
  Longs at(sizes.size(), -10);
  for (;;) {
    double weight = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const double away = point[d] - static_cast<double>(at[d]);
      weight *= mode == 2 ? cubic(away) : tent(away);
    }
    if (weight != 0) sum += weight * pixel(image, sizes, at, padding, align);
    size_t d = 0;
    while (d < at.size() && ++at[d] > 20) at[d++] = -10;
    if (d == at.size()) return sum;
  }
}

TEST_CASE("grid_sampler equals its definition, in two and three dimensions") {
  for (const int64_t dims : {2, 3}) {
    const Longs sizes = dims == 2 ? Longs{3, 4} : Longs{2, 3, 4};
    DimVector shape = {1, 1};
    for (int64_t size : sizes) shape.push_back(size);
    const Tensor image = leaf(shape).detach();
    const Doubles pixels = values(image);
    const int64_t points = 12;
    const Tensor grid = leaf({points, dims}, 0.3).detach() * 1.6;
    DimVector grid_shape = {1, points};
    for (int64_t d = 1; d < dims; ++d) grid_shape.push_back(1);
    grid_shape.push_back(dims);
    for (const int64_t mode : {0, 1, 2}) {
      if (mode == 2 && dims == 3) continue;
      for (const int64_t padding : {0, 1, 2}) {
        for (const bool align : {false, true}) {
          // At sizes and points like these reflecting the point and reflecting the pixels are the same.
          const Tensor out = grid_sampler(image, grid.view(grid_shape), mode, padding, align);
          for (int64_t i = 0; i < points; ++i) {
            Doubles point;
            for (int64_t d = dims; d-- > 0;) point.push_back(grid.data_ptr<double>()[i * dims + d]);
            CAPTURE(mode);
            CAPTURE(padding);
            CAPTURE(align);
            CHECK(values(out)[static_cast<size_t>(i)] ==
                  doctest::Approx(sampled(pixels, sizes, point, mode, padding, align)));
          }
        }
      }
    }
  }
}

TEST_CASE("grid_sampler: shapes, points that are no numbers, bad input") {
  const Tensor image = counting({2, 3, 4, 5}), grid = zeros({2, 6, 7, 2}, kFloat64);
  CHECK(grid_sampler(image, grid, 0, 0, false).sizes() == IntArrayRef({2, 3, 6, 7}));
  CHECK(grid_sampler(empty({2, 3, 4, 5}, kMeta), empty({2, 6, 7, 2}, kMeta), 2, 2, true).sizes() ==
        IntArrayRef({2, 3, 6, 7}));
  for (const int64_t padding : {0, 1, 2}) {
    for (const double far : {1e30, -1e30, double(NAN), double(INFINITY)}) {
      grid_sampler(image, full_like(grid, far), 0, padding, false);
      grid_sampler(image, full_like(grid, far), 2, padding, true);
    }
  }
  CHECK(values(grid_sampler(image, full_like(grid, NAN), 0, 0, false).sum()) == Doubles{0});
  CHECK_THROWS_AS(grid_sampler(image, zeros({1, 6, 7, 2}, kFloat64), 0, 0, false), ValueError);
  CHECK_THROWS_AS(grid_sampler(image, zeros({2, 6, 7, 3}, kFloat64), 0, 0, false), ValueError);
  CHECK_THROWS_AS(grid_sampler(image, zeros({2, 6, 7, 2}), 0, 0, false), TypeError);
  CHECK_THROWS_AS(grid_sampler(image, grid, 3, 0, false), ValueError);
  CHECK_THROWS_AS(grid_sampler(image, grid, 0, -1, false), ValueError);
  CHECK_THROWS_AS(grid_sampler(zeros({1, 1, 2, 2, 2}), zeros({1, 1, 1, 1, 3}), 2, 0, false), ValueError);
  CHECK_THROWS_AS(grid_sampler(zeros({2, 3, 0, 5}, kFloat64), grid, 0, 0, false), ValueError);
}

// More points than a block of them has, several to a pixel, and more channels than a thread has.
TEST_CASE("grid_sampler's kernels and the operators that second derivatives go by agree") {
  for (const bool volume : {false, true}) {
    const DimVector image_sizes = volume ? DimVector{2, 21, 2, 3, 4} : DimVector{2, 21, 4, 5};
    const DimVector grid_sizes = volume ? DimVector{2, 3, 5, 7, 3} : DimVector{2, 9, 11, 2};
    for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kHalf}) {
      const Tensor image = leaf(image_sizes).detach().to(dtype).requires_grad_();
      const Tensor grid = (leaf(grid_sizes, 0.3).detach() * 1.3).to(dtype).requires_grad_();
      for (const int64_t mode : {0, 1, 2}) {
        if (mode == 2 && volume) continue;
        for (const int64_t padding : {0, 1, 2}) {
          CAPTURE(dtype);
          CAPTURE(mode);
          CAPTURE(padding);
          const bool align = padding == 1;
          const double close = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-5 : 0.05;
          const Tensor one = grid_sampler(image, grid, mode, padding, align);
          const Tensor other = rush::detail::grid_sampler_by_operators(image, grid, mode, padding, align);
          CHECK(one.allclose(other, close, close));
          if (dtype == kBFloat16 || dtype == kHalf) continue;
          const Tensor weight = leaf(one.sizes(), 0.7).detach().to(dtype);
          const Tensors a = autograd::grad({one}, {image, grid}, {weight});
          const Tensors b = autograd::grad({other}, {image, grid}, {weight});
          CHECK(a[0].allclose(b[0], 10 * close, 10 * close));
          CHECK(a[1].allclose(b[1], 100 * close, 100 * close));
          CHECK(a[0].equal(autograd::grad({grid_sampler(image, grid, mode, padding, align)}, {image}, {weight})[0]));
        }
      }
    }
  }
  // Of an image in channels_last, of grids that are views, and of nothing.
  const Tensor image = leaf({2, 5, 4, 3}).detach(), grid = leaf({2, 2, 6, 7}, 0.3).detach().permute({0, 2, 3, 1});
  const Tensor plain = grid_sampler(image, grid.contiguous(), 0, 0, false);
  CHECK(grid_sampler(image.contiguous(MemoryFormat::ChannelsLast), grid, 0, 0, false).equal(plain));
  CHECK(grid_sampler(image, grid.narrow(2, 0, 0), 0, 0, false).sizes() == IntArrayRef({2, 5, 6, 0}));
  const Tensor alone = leaf({2, 5, 4, 3});
  grid_sampler(alone, grid.narrow(2, 0, 0), 0, 0, false).sum().backward();
  CHECK(values(alone.grad().abs().sum()) == Doubles{0});
}

// Neighbours outside of the image are read from any pixel, and gradients for them are written past its end.
TEST_CASE("grid_sampler: infinite pixels and gradients do not reach what they have no part in") {
  Tensor image = ones({1, 3, 7, 7}, kFloat32), grid = full({1, 10, 13, 2}, 3.0, kFloat32), grad = ones({1, 3, 10, 13});
  image[0][0][0][0].fill_(kInfinity);
  image[0][2][6][6].fill_(kInfinity);
  grad[0][1][9][12].fill_(kInfinity);
  grid[0][4][5].zero_();  // the centre
  for (const int64_t mode : {0, 1, 2}) {
    CAPTURE(mode);
    const Tensor x = image.clone().requires_grad_(), points = grid.clone().requires_grad_();
    const Tensor y = grid_sampler(x, points, mode, 0, true);
    CHECK(y.sum().item<float>() == 3);
    CHECK(y[0][2][4][5].item<float>() == 1);
    const Tensors grads = autograd::grad({y}, {x, points}, {grad});
    CHECK(grads[0].sum().item<float>() == 3);
    CHECK(grads[0][0][1][3][3].item<float>() == 1);
    CHECK(grads[1].abs().sum().item<float>() == 0);
  }
}

TEST_CASE("derivatives of grid_sampler") {
  const auto check = [](const Tensors& image_and_grid, int64_t mode, int64_t padding) {
    CAPTURE(mode);
    CAPTURE(padding);
    check_gradients([&](const Tensors& x) { return Tensors{grid_sampler(x[0], x[1], mode, padding, padding == 1)}; },
                    image_and_grid);
  };
  for (const int64_t padding : {0, 1, 2}) {
    for (const int64_t mode : {0, 1, 2}) check({leaf({1, 2, 3, 2}), leaf({1, 2, 1, 2}, 0.4)}, mode, padding);
    check({leaf({2, 1, 2, 3}), leaf({2, 1, 2, 2}, 0.4)}, 0, padding);
  }
  check({leaf({1, 1, 2, 3, 2}), leaf({1, 1, 2, 1, 3}, 0.4)}, 0, 2);
  check({leaf({2, 2, 1, 2, 2}), leaf({2, 1, 1, 2, 3}, 0.4)}, 0, 0);
}

TEST_CASE("affine_grid_generator: the identity is every pixel's place, a map moves it") {
  const Tensor identity = tensor({1., 0., 0., 0., 1., 0.}, kFloat64).view({1, 2, 3});
  CHECK(values(affine_grid_generator(identity, {1, 1, 2, 3}, true)) ==
        Doubles{-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1});
  CHECK(values(affine_grid_generator(identity, {1, 1, 1, 2}, false)) == Doubles{-0.5, 0, 0.5, 0});
  const Tensor image = leaf({1, 2, 4, 5}).detach();
  for (const bool align : {true, false}) {
    const Tensor same = grid_sampler(image, affine_grid_generator(identity, image.sizes(), align), 0, 0, align);
    CHECK(same.allclose(image, 1e-12, 1e-12));
    const Tensor flip = tensor({-1., 0., 0., 0., 1., 0.}, kFloat64).view({1, 2, 3});
    const Tensor flipped = grid_sampler(image, affine_grid_generator(flip, image.sizes(), align), 0, 0, align);
    CHECK(flipped.allclose(image.flip({3}), 1e-12, 1e-12));
  }
  CHECK(affine_grid_generator(empty({2, 3, 4}, kMeta), {2, 1, 3, 4, 5}, false).sizes() == IntArrayRef({2, 3, 4, 5, 3}));
  check_gradients(
      [](const Tensors& in) {
        return Tensors{affine_grid_generator(in[0], {2, 1, 2, 3}, false)};
      },
      {leaf({2, 2, 3})});
  CHECK_THROWS_AS(affine_grid_generator(identity, {1, 1, 2}, false), ValueError);
  CHECK_THROWS_AS(affine_grid_generator(identity, {2, 1, 2, 2}, false), ValueError);
  CHECK_THROWS_AS(affine_grid_generator(identity, {1, 1, -2, 2}, false), ValueError);
  CHECK_THROWS_AS(affine_grid_generator(identity.to(kInt64), {1, 1, 2, 2}, false), TypeError);
}

}  // namespace
