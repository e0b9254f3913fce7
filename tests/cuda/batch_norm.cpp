// Batch norm in channels_last on a GPU, alone and with a residual and relu behind it, against the formulas in double
// precision on the CPU.
#include <cmath>

#include "core/ops/nn/norm.h"
#include "tests/cuda/same_gradient.h"

using namespace rush;
using namespace rush::testing;

namespace {

constexpr double kEps = 1e-3, kMomentum = 0.25;

struct Problem {
  Tensor x, residual, w, b, dy;  // on the GPU; the residual may be undefined
  bool relu;
};

double batch_norm_tolerance(ScalarType dtype) { return dtype == kFloat16 || dtype == kBFloat16 ? 1e-2 : 2e-5; }

void check_near(const std::string& what, const Tensor& got, const Tensor& expected, double tolerance) {
  INFO(what);
  REQUIRE(got.defined());
  const Tensor numbers = got.cpu().to(kFloat64);
  INFO("largest difference ", (numbers - expected).abs().max().item<double>());
  CHECK(allclose(numbers, expected, tolerance, tolerance));
}

Tensor exact(const Tensor& t) { return t.detach().cpu().to(kFloat64); }

// Which elements relu let through is taken from the output itself: near 0 that depends on the last digit.
void check(const Problem& p) {
  const Tensor x = p.x.detach().requires_grad_(), w = p.w.detach().requires_grad_(), b = p.b.detach().requires_grad_();
  const Tensor residual = p.residual.defined() ? p.residual.detach().requires_grad_() : Tensor();
  const auto channel = [&](double value) { return full(w.sizes(), value, w.options().requires_grad(false)); };
  const Tensor mean = channel(0.5), var = channel(2);
  const OptionalTensor other = residual.defined() ? OptionalTensor(residual) : std::nullopt;
  const Tensor y = p.relu ? batch_norm_relu(x, other, w, b, mean, var, true, kMomentum, kEps)
                          : batch_norm(x, w, b, mean, var, true, kMomentum, kEps);
  y.backward(p.dy);
  CHECK(y.strides() == x.strides());
  CHECK(x.grad().strides() == x.strides());

  const Tensor x64 = exact(x), w64 = exact(w), b64 = exact(b);
  const Tensor mean64 = full(w.sizes(), 0.5, kFloat64), var64 = full(w.sizes(), 2.0, kFloat64);
  const auto [normalised, save_mean, save_invstd] =
      native_batch_norm(x64, w64, b64, mean64, var64, true, kMomentum, kEps);
  const Tensor sum = residual.defined() ? normalised + exact(residual) : normalised;
  const double tolerance = batch_norm_tolerance(x.scalar_type()), of_parameters = batch_norm_tolerance(w.scalar_type());
  check_near("output", y, p.relu ? relu(sum) : sum, tolerance);
  check_near("running_mean", mean, mean64, of_parameters);
  check_near("running_var", var, var64, of_parameters);

  const Tensor gated = p.relu ? exact(p.dy).masked_fill(exact(y) <= 0, 0) : exact(p.dy);
  const auto [dx, dw, db] =
      ops::native_batch_norm_backward(gated, x64, w64, {}, {}, save_mean, save_invstd, true, kEps, {true, true, true});
  check_near("gradient by the input", x.grad(), dx, tolerance);
  // Sums of as many numbers as a channel has.
  const double count = static_cast<double>(x.numel() / w.numel());
  check_near("gradient by the weight", w.grad() / std::sqrt(count), dw / std::sqrt(count), 4 * of_parameters);
  check_near("gradient by the bias", b.grad() / std::sqrt(count), db / std::sqrt(count), 4 * of_parameters);
  if (residual.defined()) check_near("gradient by the residual", residual.grad(), gated, 0);
}

Tensor last(const Tensor& t) { return t.contiguous(MemoryFormat::ChannelsLast); }

Problem problem(const DimVector& sizes, ScalarType dtype, ScalarType parameters, bool with_residual, bool relu) {
  const int64_t channels = sizes[1];
  Problem p;
  p.x = last(numbers(sizes, dtype, -1, 3)).to(kGpu);
  if (with_residual) p.residual = last(numbers(sizes, dtype, -2, 2).flip(0)).to(kGpu);
  p.w = numbers({channels}, parameters, 0.5, 1.5).to(kGpu);
  p.b = numbers({channels}, parameters, -1, 1).to(kGpu);
  p.dy = last(numbers(sizes, dtype, -1, 1).flip(3)).to(kGpu);
  p.relu = relu;
  return p;
}

// The same numbers one element further on, so that no vector is aligned.
Tensor off_by_one(const Tensor& t) {
  const Tensor flat = cat({zeros({1}, t.options()), t.permute({0, 2, 3, 1}).reshape(-1)});
  return flat.as_strided(t.sizes(), t.strides(), 1);
}

}  // namespace

TEST_CASE("batch norm of channels_last on a GPU" * doctest::skip(!cuda::is_available())) {
  const DimVector shapes[] = {
      {2, 8, 3, 5},       // one vector to a row
      {3, 64, 7, 9},      // a row is a part of a warp's width
      {3, 96, 5, 5},      // no power of two
      {2, 264, 4, 6},     // a second tile of columns, nearly empty
      {2, 2048, 7, 7},    // many tiles
      {3, 6, 5, 7},       // rows that are no whole number of vectors: cuDNN
      {9, 64, 1, 1},      // few rows
      {16, 16, 130, 65},  // several rows to a thread
      {7, 128, 61, 33},
  };
  for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    for (const DimVector& sizes : shapes) {
      INFO(str(name(dtype), " ", IntArrayRef(sizes)));
      const ScalarType parameters = dtype == kFloat64 ? kFloat64 : kFloat32;
      check(problem(sizes, dtype, parameters, false, false));
      check(problem(sizes, dtype, parameters, false, true));
      check(problem(sizes, dtype, parameters, true, true));
    }
  }
}

TEST_CASE("batch norm with statistics in 16 bits on a GPU" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    const std::vector<Tensor> in = {last(numbers({3, 64, 9, 5}, dtype, -1, 3)), numbers({64}, dtype, 0.5, 1.5),
                                    numbers({64}, dtype, -1, 1)};
    check_on_both(
        in, [](const std::vector<Tensor>& t) { return batch_norm(t[0], t[1], t[2], {}, {}, true, 0.1, kEps); }, 2);
  }
}

TEST_CASE("batch norm of rows that are not aligned on a GPU" * doctest::skip(!cuda::is_available())) {
  for (const bool with_residual : {false, true}) {
    Problem p = problem({2, 64, 6, 5}, kBFloat16, kFloat32, with_residual, true);
    p.x = off_by_one(p.x);
    check(p);
  }
}

TEST_CASE("batch norm keeps its digits far from zero on a GPU" * doctest::skip(!cuda::is_available())) {
  const Tensor x = last(numbers({4, 16, 31, 33}, kFloat32, 999, 1001)).to(kGpu);
  const auto [y, mean, invstd] = native_batch_norm(x, {}, {}, {}, {}, true, 0.1, 0);
  const Tensor x64 = exact(x);
  const auto [y64, mean64, invstd64] = native_batch_norm(x64, {}, {}, {}, {}, true, 0.1, 0);
  check_near("mean", mean, mean64, 2e-7);
  check_near("invstd", invstd, invstd64, 1e-5);
  const Tensor constant = last(full({2, 16, 3, 3}, 0.1, kFloat32)).to(kGpu);
  check_near("constant", batch_norm(constant, {}, {}, {}, {}, true, 0.1, 1e-5), zeros({2, 16, 3, 3}, kFloat64), 0);
}

TEST_CASE("evaluated batch norm of channels_last on a GPU" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : {kFloat32, kFloat16, kBFloat16}) {
    for (const int64_t channels : {6, 64, 264}) {
      INFO(str(name(dtype), " ", channels));
      const std::vector<Tensor> in = {last(numbers({3, channels, 9, 5}, dtype, -1, 2)),
                                      numbers({channels}, kFloat32, 0.5, 1.5), numbers({channels}, kFloat32, -1, 1)};
      const auto evaluate = [&](const std::vector<Tensor>& t) {
        const Tensor mean = full({channels}, 0.3, t[1].options().requires_grad(false));
        return batch_norm(t[0], t[1], t[2], mean, mean + 1, false, 0.1, 1e-5);
      };
      check_on_both(in, evaluate, 100);
    }
  }
}

TEST_CASE("batch norm of rows repeats bit for bit on a GPU" * doctest::skip(!cuda::is_available())) {
  const Problem p = problem({8, 64, 33, 31}, kBFloat16, kFloat32, true, true);
  Tensor first[2];
  for (int run = 0; run < 3; ++run) {
    const Tensor x = p.x.detach().requires_grad_(), w = p.w.detach().requires_grad_();
    batch_norm_relu(x, p.residual, w, p.b, {}, {}, true, 0.1, kEps).backward(p.dy);
    if (run == 0) first[0] = x.grad(), first[1] = w.grad();
    CHECK(equal(x.grad(), first[0]));
    CHECK(equal(w.grad(), first[1]));
  }
}
