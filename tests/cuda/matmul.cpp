// Products of matrices on the GPU against the CPU's, in float64 where that is exact enough.
#include <cmath>

#include "core/ops/linalg/matmul.h"

#include <doctest/doctest.h>

#include "backends/cuda/blas/gemm.h"
#include "backends/cuda/devices.h"
#include "core/device/context.h"
#include "rushlight.h"
#include "tests/cuda/same_as_cpu.h"

namespace {

using namespace rush;
using namespace rush::testing;

// Reproducible numbers in (-1, 1), or small integers.
Tensor sample(IntArrayRef sizes, ScalarType dtype, int seed) {
  const Tensor t = empty(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto mixed = static_cast<double>((i * 7919 + seed * 104729) % 2003);
    t.data_ptr<double>()[i] = is_integral(dtype, true) ? static_cast<double>((i * 7 + seed) % 5) : mixed / 1001.5 - 1;
  }
  if (!is_complex(dtype)) return t.to(dtype);
  return ops::complex(t, t.flip(IntArrayRef(0)).mul(0.5)).to(dtype);
}

// What rounding may change in sums of `depth` products of numbers below one.
double product_tolerance(ScalarType dtype, int64_t depth) {
  const auto terms = static_cast<double>(depth + 4);
  switch (dtype) {
    case kFloat16: return 2e-3 * std::sqrt(terms);
    case kBFloat16: return 1.6e-2 * std::sqrt(terms);
    case kFloat32:
    case kComplex64: return 5e-7 * terms;
    default: return 1e-14 * terms;
  }
}

ScalarType wide(ScalarType dtype) {
  return is_complex(dtype) ? kComplex128 : is_integral(dtype, true) ? dtype : kFloat64;
}

void check_product(const Tensor& on_gpu, const Tensor& expected, int64_t depth) {
  const ScalarType dtype = on_gpu.scalar_type();
  REQUIRE(on_gpu.is_cuda());
  REQUIRE(on_gpu.sizes() == expected.sizes());
  if (on_gpu.numel() == 0) return;
  const Tensor got = on_gpu.cpu().to(wide(dtype)), want = expected.to(wide(dtype));
  if (is_integral(dtype, true)) {
    CHECK(got.equal(want));
  } else {
    CHECK(got.allclose(want, product_tolerance(dtype, 1), product_tolerance(dtype, depth)));
  }
}

// The operands wide enough that the CPU's answer can be taken for the truth.
Tensor widened(const Tensor& t) { return t.to(wide(t.scalar_type())); }

struct ProductShape {
  int64_t rows, depth, columns;
};
const ProductShape kProductShapes[] = {{1, 1, 1},      {3, 5, 7},    {16, 16, 16}, {1, 33, 9}, {9, 33, 1},
                                       {1, 1000, 1},   {65, 1, 31},  {0, 4, 5},    {4, 0, 5},  {4, 5, 0},
                                       {129, 127, 65}, {2, 4096, 3}, {64, 64, 64}, {1, 7, 128}};

// The ways in which a matrix may lie in memory.
enum Form { Plain, Transposed, Padded, Strided, Offset, kForms };

// A tensor like `t` on the GPU whose matrices (the last two dimensions) lie in that form.
Tensor on_gpu_in_form(const Tensor& t, int form) {
  const int64_t rows = t.size(-2), columns = t.size(-1);
  std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().end());
  const auto room = [&](int64_t r, int64_t c) {
    sizes[sizes.size() - 2] = r;
    sizes[sizes.size() - 1] = c;
    return zeros(sizes, TensorOptions(t.scalar_type()).device(kCUDA));
  };
  Tensor view;
  switch (form) {
    case Transposed: view = room(columns, rows).transpose(-1, -2); break;
    case Padded: view = room(rows, columns + 3).narrow(-1, 2, columns); break;
    case Strided: view = room(rows * 2, columns * 3).slice(-2, 0, rows * 2, 2).slice(-1, 0, columns * 3, 3); break;
    case Offset: view = room(rows + 1, columns).narrow(-2, 1, rows); break;
    default: return t.cuda();
  }
  view.copy_(t);
  return view;
}

}  // namespace

TEST_CASE("cuda: mm in every dtype, shape and layout" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : kFloats) {
    for (const ProductShape& s : kProductShapes) {
      const Tensor a = sample({s.rows, s.depth}, dtype, 1), b = sample({s.depth, s.columns}, dtype, 2);
      const Tensor expected = widened(a).mm(widened(b));
      for (int form = 0; form < kForms * kForms; ++form) {
        CAPTURE(str(dtype));
        CAPTURE(s.rows);
        CAPTURE(s.depth);
        CAPTURE(s.columns);
        CAPTURE(form);
        check_product(on_gpu_in_form(a, form / kForms).mm(on_gpu_in_form(b, form % kForms)), expected, s.depth);
      }
    }
  }
}

TEST_CASE("cuda: large products whose sizes are no multiples of 16 bytes" * doctest::skip(!cuda::is_available())) {
  const bool had_tf32 = globalContext().allowTF32CuBLAS();
  for (const ScalarType dtype : {kBFloat16, kFloat16, kFloat32}) {
    globalContext().setAllowTF32CuBLAS(dtype == kFloat32);
    for (const ProductShape& s : {ProductShape{600, 640, 1001}, ProductShape{640, 777, 512},
                                  ProductShape{1001, 640, 600}, ProductShape{577, 641, 513}}) {
      CAPTURE(str(dtype));
      CAPTURE(s.columns);
      const Tensor a = sample({s.rows, s.depth}, dtype, 1), b = sample({s.depth, s.columns}, dtype, 2);
      const Tensor bias = sample({s.columns}, dtype, 3), c = sample({s.rows, s.columns}, dtype, 4);
      const Tensor product = widened(a).mm(widened(b));
      const auto is_close = [&](const Tensor& got, const Tensor& want) {
        const double most =
            dtype == kFloat32 ? 1e-2 * std::sqrt(static_cast<double>(s.depth)) : product_tolerance(dtype, s.depth);
        return got.cpu().to(kFloat64).allclose(want, 1e-2, most);
      };
      for (int form = 0; form < kForms * kForms; form += 7) {
        CAPTURE(form);
        const Tensor x = on_gpu_in_form(a, form / kForms), y = on_gpu_in_form(b, form % kForms);
        CHECK(is_close(x.mm(y), product));
        CHECK(is_close(bias.cuda().addmm(x, y), product + widened(bias)));
        for (const int of_result : {Plain, Transposed, Strided}) {
          Tensor sum = on_gpu_in_form(c, of_result);
          sum.addmm_(x, y, 2, 0.5);
          CHECK(is_close(sum, product * 0.5 + widened(c) * 2));
        }
      }
    }
  }
  globalContext().setAllowTF32CuBLAS(had_tf32);
}

TEST_CASE("cuda: products of integers" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : kIntegers) {
    for (const ProductShape& s : kProductShapes) {
      CAPTURE(str(dtype));
      const Tensor a = sample({2, s.rows, s.depth}, dtype, 1), b = sample({2, s.depth, s.columns}, dtype, 2);
      const Tensor c = sample({2, s.rows, s.columns}, dtype, 3);
      check_product(on_gpu_in_form(a, Strided).bmm(on_gpu_in_form(b, Transposed)), a.bmm(b), s.depth);
      check_product(c.cuda().baddbmm(a.cuda(), b.cuda(), 3, 2), c.baddbmm(a, b, 3, 2), s.depth);
    }
  }
}

TEST_CASE("cuda: bmm, baddbmm and addmm with factors" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : kFloats) {
    for (const ProductShape& s : kProductShapes) {
      for (const int64_t batch : {0, 1, 3}) {
        CAPTURE(str(dtype));
        CAPTURE(batch);
        const Tensor a = sample({batch, s.rows, s.depth}, dtype, 1), b = sample({batch, s.depth, s.columns}, dtype, 2);
        const Tensor c = sample({batch, s.rows, s.columns}, dtype, 3);
        for (int form = 0; form < kForms; ++form) {
          check_product(on_gpu_in_form(a, form).bmm(on_gpu_in_form(b, kForms - 1 - form)), widened(a).bmm(widened(b)),
                        s.depth);
        }
        check_product(c.cuda().baddbmm(a.cuda(), b.cuda(), 0.5, 2), widened(c).baddbmm(widened(a), widened(b), 0.5, 2),
                      2 * s.depth);
        if (batch == 0) continue;
        check_product(c[0].cuda().addmm(a[0].cuda(), b[0].cuda(), -1, 0.25),
                      widened(c[0]).addmm(widened(a[0]), widened(b[0]), -1, 0.25), s.depth);
      }
    }
  }
}

TEST_CASE("cuda: float32 products of 16-bit factors" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    for (const ProductShape& s : kProductShapes) {
      for (const int64_t batch : {1, 3}) {
        CAPTURE(str(dtype));
        CAPTURE(batch);
        const Tensor a = sample({batch, s.rows, s.depth}, dtype, 1), b = sample({batch, s.depth, s.columns}, dtype, 2);
        const Tensor c = empty({batch, s.rows, s.columns}, TensorOptions(kFloat32).device(kCUDA));
        cuda::gemm(c, on_gpu_in_form(a, Transposed), b.cuda(), 0, 2);
        check_product(c, widened(a).bmm(widened(b)).mul(2), 2 * s.depth);
      }
    }
  }
}

TEST_CASE("cuda: a beta of zero does not read what it scales" * doctest::skip(!cuda::is_available())) {
  const Tensor nan = full({2, 3}, std::numeric_limits<double>::quiet_NaN(), TensorOptions(kFloat32).device(kCUDA));
  const Tensor a = ones({2, 4}, TensorOptions(kFloat32).device(kCUDA)), b = ones({4, 3}, a.options());
  CHECK(nan.addmm(a, b, 0, 1).cpu().equal(full({2, 3}, 4, kFloat32)));
  CHECK(nan.addmm(a.narrow(1, 0, 0), b.narrow(0, 0, 0), 0, 1).cpu().equal(zeros({2, 3}, kFloat32)));
  CHECK(a.new_full({2, 3}, 2).addmm(a.narrow(1, 0, 0), b.narrow(0, 0, 0), 3, 1).cpu().equal(full({2, 3}, 6, kFloat32)));
}

TEST_CASE("cuda: vectors: mv, dot, vdot, addmv" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : kFloats) {
    CAPTURE(str(dtype));
    const Tensor m = sample({37, 53}, dtype, 1), v = sample({53}, dtype, 2), w = sample({53}, dtype, 3);
    const Tensor c = sample({37}, dtype, 4);
    const Tensor strided = on_gpu_in_form(sample({53, 4}, dtype, 2), Plain).select(1, 1);
    for (int form = 0; form < kForms; ++form) {
      check_product(on_gpu_in_form(m, form).mv(v.cuda()), widened(m).mv(widened(v)), 53);
      check_product(on_gpu_in_form(m, form).mv(strided), widened(m).mv(widened(strided.cpu())), 53);
      check_product(c.cuda().addmv(on_gpu_in_form(m, form), v.cuda(), 2, 0.5),
                    widened(c).addmv(widened(m), widened(v), 2, 0.5), 53);
    }
    check_product(v.cuda().dot(w.cuda()), widened(v).dot(widened(w)), 53);
    check_product(strided.dot(w.cuda()), widened(strided.cpu()).dot(widened(w)), 53);
    check_product(v.cuda().vdot(w.cuda()), widened(v).vdot(widened(w)), 53);
    check_product(v.cuda().narrow(0, 0, 0).dot(w.cuda().narrow(0, 0, 0)), sample({1}, dtype, 0).select(0, 0).mul(0), 1);
    check_product(v[0].cuda().expand({53}).dot(w.cuda()), widened(v[0]).expand({53}).dot(widened(w)), 53);
  }
}

TEST_CASE("cuda: linear and addmm with a bias" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kComplex64}) {
    for (const ProductShape& s : kProductShapes) {
      CAPTURE(str(dtype));
      const Tensor x = sample({s.rows, s.depth}, dtype, 1), w = sample({s.columns, s.depth}, dtype, 2);
      const Tensor bias = sample({s.columns}, dtype, 3);
      const Tensor expected = widened(x).mm(widened(w).t()).add(widened(bias));
      for (int form = 0; form < kForms; ++form) {
        CAPTURE(form);
        check_product(linear(on_gpu_in_form(x, form), on_gpu_in_form(w, kForms - 1 - form), bias.cuda()), expected,
                      s.depth);
      }
      check_product(linear(x.cuda(), w.cuda()), widened(x).mm(widened(w).t()), s.depth);
      check_product(bias.cuda().addmm(x.cuda(), w.cuda().t()), expected, s.depth);
      // A bias that starts at an odd address.
      const Tensor odd = sample({s.columns + 1}, dtype, 3).cuda().narrow(0, 1, s.columns);
      check_product(linear(x.cuda(), w.cuda(), odd), widened(x).mm(widened(w).t()).add(widened(odd.cpu())), s.depth);
    }
  }
}

TEST_CASE("cuda: the precision of float32 products" * doctest::skip(!cuda::is_available())) {
  Context& context = globalContext();
  CHECK_FALSE(context.allowTF32CuBLAS());
  // 1 + 2^-12 needs more than the ten bits of TensorFloat-32.
  const double number = 1 + 1.0 / 4096;
  const Tensor a = full({256, 256}, number, TensorOptions(kFloat32).device(kCUDA));
  const Tensor b = ones({256, 256}, a.options());
  CHECK(a.mm(b).cpu().allclose(full({256, 256}, 256 * number, kFloat32), 1e-6));
  context.setFloat32MatmulPrecision("high");
  CHECK(context.allowTF32CuBLAS());
  const Tensor rounded = a.mm(b).cpu();
  context.setAllowTF32CuBLAS(false);
  CHECK(rounded.allclose(full({256, 256}, 256 * number, kFloat32), 1e-3));
  CHECK(context.float32MatmulPrecision() == Float32MatmulPrecision::Highest);
  CHECK_THROWS_AS(context.setFloat32MatmulPrecision("low"), ValueError);
}

TEST_CASE("cuda: 16-bit products whose partial sums are kept in full" * doctest::skip(!cuda::is_available())) {
  Context& context = globalContext();
  const Tensor a = sample({16, 8192}, kFloat16, 1).cuda(), b = sample({8192, 16}, kFloat16, 2).cuda();
  const Tensor expected = widened(a.cpu()).mm(widened(b.cpu()));
  context.setAllowFP16ReductionCuBLAS(false);
  const Tensor full_sums = a.mm(b), with_bias = linear(a, b.t(), zeros({16}, a.options()));
  context.setAllowFP16ReductionCuBLAS(true);
  check_product(full_sums, expected, 16);
  check_product(with_bias, expected, 16);
}

TEST_CASE("cuda: a product gives the same bits every time" * doctest::skip(!cuda::is_available())) {
  const Tensor a = sample({300, 5000}, kFloat32, 1).cuda(), b = sample({5000, 200}, kFloat32, 2).cuda();
  const Tensor first = a.mm(b).cpu();
  for (int i = 0; i < 5; ++i) CHECK(a.mm(b).cpu().equal(first));
}

TEST_CASE("cuda: a product needs factors on one device" * doctest::skip(!cuda::is_available())) {
  CHECK_THROWS_AS(ones({2, 2}).cuda().mm(ones({2, 2})), ValueError);
}
