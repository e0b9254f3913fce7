// Reductions of the CUDA backend against the CPU's.
#include <cmath>

#include "tests/compute_sanitizer.h"
#include "tests/cuda/same_gradient.h"

using namespace rush;
using namespace rush::testing;

namespace {

struct ReductionCase {
  const char* name;
  Tensor (*fn)(const Tensor&, IntArrayRef dims);
  std::vector<ScalarType> dtypes;
  double low, high, tolerance;
};

const ReductionCase kReductions[] = {
    {"sum", [](const Tensor& x, IntArrayRef d) { return x.sum(d); }, kEverything, -1, 1, 50},
    {"mean", [](const Tensor& x, IntArrayRef d) { return x.mean(d); }, kReals, -1, 1, 10},
    {"nansum", [](const Tensor& x, IntArrayRef d) { return nansum(x, d); }, kReals, -1, 1, 50},
    {"amax", [](const Tensor& x, IntArrayRef d) { return amax(x, d); }, kReals, -3, 3, 0},
    {"amin", [](const Tensor& x, IntArrayRef d) { return amin(x, d); }, {kInt8, kInt64, kBool}, -3, 3, 0},
    {"count_nonzero", [](const Tensor& x, IntArrayRef d) { return count_nonzero(x, d); }, kEverything, -2, 2, 0},
    {"var", [](const Tensor& x, IntArrayRef d) { return var(x, d); }, kReals, -1, 3, 20},
    {"norm 2", [](const Tensor& x, IntArrayRef d) { return linalg_vector_norm(x, 2, d); }, kReals, -1, 1, 20},
    {"norm 3",
     [](const Tensor& x, IntArrayRef d) { return linalg_vector_norm(x, 3, d); },
     {kFloat32, kComplex64},
     -1,
     1,
     50},
    {"logsumexp", [](const Tensor& x, IntArrayRef d) { return logsumexp(x, d); }, kReals, -3, 3, 20},
};

}  // namespace

TEST_CASE("reductions over any dimensions, layouts and dtypes are the CPU's" * doctest::skip(!cuda::is_available())) {
  // Rows that fill vectors and that do not, few long and many short ones.
  const std::vector<DimVector> shapes = {{5, 3, 64}, {2, 1031}, {1, 70001}, {300, 7, 2}, {4099, 3}, {517, 4}, {301, 8}};
  for (const ReductionCase& reduction : kReductions) {
    for (ScalarType dtype : reduction.dtypes) {
      for (const DimVector& shape : shapes) {
        const Tensor base = numbers(shape, dtype, reduction.low, reduction.high);
        for (const TensorLayout& layout : kLayouts) {
          // Kernels are made for dtypes, not for layouts.
          if (under_compute_sanitizer() && dtype != reduction.dtypes[0] && &layout != &kLayouts[0]) continue;
          const Tensor x = layout.arrange(base), on_gpu = layout.arrange(base.to(kGpu));
          for (int64_t subset = 1; subset < (int64_t{1} << x.dim()); ++subset) {
            DimVector dims;
            for (int64_t d = 0; d < x.dim(); ++d) {
              if (subset >> d & 1) dims.push_back(d);
            }
            INFO(str(reduction.name, " ", name(dtype), " ", layout.name, " ", x.size(-1), " dims ", subset));
            // Sums of n numbers grow, and so do the numbers' rounding errors.
            check_same(reduction.fn(on_gpu, dims), reduction.fn(x, dims), reduction.tolerance);
          }
        }
      }
    }
  }
}

TEST_CASE("reductions of nothing, of one number and with NaN are the CPU's" * doctest::skip(!cuda::is_available())) {
  for (const Tensor& x : {empty({0, 3}), empty({3, 0}), tensor(2.5), tensor({1.0, std::nan(""), -2.0})}) {
    const Tensor y = x.to(kGpu);
    check_same(y.sum(), x.sum(), 1);
    check_same(y.prod(), x.prod(), 1);
    check_same(y.mean(), x.mean(), 1);
    check_same(y.any(), x.any(), 0);
    check_same(y.all(), x.all(), 0);
    if (x.numel() == 0) continue;
    check_same(y.max(), x.max(), 0);
    check_same(argmax(y), argmax(x), 0);
    check_same(argmin(y), argmin(x), 0);
  }
}

TEST_CASE("argmax finds the first of equal elements" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat32, kBFloat16, kInt32, kBool}) {
    const Tensor x = numbers({37, 513, 5}, kFloat32, 0, 4).floor().to(dtype), y = x.to(kGpu);
    for (int64_t d = 0; d < 3; ++d) {
      check_same(argmax(y, d), argmax(x, d), 0);
      check_same(std::get<1>(min(y, d)), std::get<1>(min(x, d)), 0);
      check_same(std::get<0>(min(y, d)), std::get<0>(min(x, d)), 0);
    }
  }
}

TEST_CASE("topk takes the first of equal elements of long lines" * doctest::skip(!cuda::is_available())) {
  for (const DimVector& shape : {DimVector{3, 9001}, DimVector{2, 30011}, DimVector{1, 1100003}}) {
    for (const ScalarType dtype : {kFloat32, kBFloat16, kUInt8, kInt64, kBool}) {
      const Tensor few = numbers(shape, kFloat32, 0, 40).floor();
      const Tensor x = (dtype == kFloat32 ? few.masked_fill(few == 7, std::nan("")) : few).to(dtype).to(kGpu);
      for (const bool largest : {true, false}) {
        const auto [top, index] = x.topk(100, 1, largest);
        CHECK(equal(index, std::get<1>(ops::sort_stable(x, true, 1, largest)).narrow(1, 0, 100)));
        const Tensor wanted = x.gather(1, index);
        CHECK(top.eq(wanted).logical_or(wanted.ne(wanted)).all().item<bool>());
      }
    }
  }
}

TEST_CASE("scans are the CPU's" * doctest::skip(!cuda::is_available())) {
  for (const DimVector& shape :
       {DimVector{3, 5000}, DimVector{200000}, DimVector{4300, 1030}, DimVector{4, 33, 6}, DimVector{0, 3}}) {
    const Tensor x = numbers(shape, kFloat32, -1, 1), y = x.to(kGpu);
    for (int64_t d = 0; d < x.dim(); ++d) {
      check_same(cumsum(y, d), cumsum(x, d), 50);
      check_same(cumprod(y * 0.1 + 1, d), cumprod(x * 0.1 + 1, d), 2000);
      check_same(logcumsumexp(y, d), logcumsumexp(x, d), 50);
      check_same(std::get<1>(cummax(y, d)), std::get<1>(cummax(x, d)), 0);
      check_same(std::get<0>(cummin(y, d)), std::get<0>(cummin(x, d)), 0);
      check_same(cumsum(y > 0, d), cumsum(x > 0, d), 0);
      // Of equal elements the last counts.
      check_same(std::get<1>(cummin((y * 3).floor(), d)), std::get<1>(cummin((x * 3).floor(), d)), 0);
    }
  }
}

TEST_CASE("a reduction gives the same bits every time" * doctest::skip(!cuda::is_available())) {
  const Tensor x = numbers({1 << 20}, kFloat32, -1, 1).to(kGpu);
  const Tensor first = x.sum().cpu();
  for (int i = 0; i < 5; ++i) CHECK(equal(x.sum().cpu(), first));
}
