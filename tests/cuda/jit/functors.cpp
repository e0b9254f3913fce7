// The functors as NVRTC compiles them give the very bits of the library's operators, which nvcc compiled.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends/cuda/jit/compiled.h"
#include "backends/cuda/jit/kernel.h"
#include "backends/cuda/own_kernels/signature.h"
#include "core/threads/parallel.h"
#include "rushlight.h"
#include "tests/cuda/gpu.h"

using namespace rush;
using rush::testing::no_gpu;
namespace jit = rush::cuda::jit;

namespace {

const std::vector<ScalarType> kFloats = {kFloat32, kFloat64, kFloat16, kBFloat16};
const std::vector<ScalarType> kIntegers = {kInt32, kInt64, kUInt8};
const std::vector<ScalarType> kComplex = {kComplexFloat, kComplexDouble};

using UnaryFn = Tensor (*)(const Tensor&);
using BinaryFn = Tensor (*)(const Tensor&, const Tensor&);

struct Case {
  const char* functor;
  UnaryFn unary;
  BinaryFn binary;
  std::vector<ScalarType> dtypes;
};

constexpr const char* kText = R"(
#include "backends/functors/activation.h"
#include "backends/functors/binary.h"
#include "backends/functors/compare.h"
#include "backends/functors/special.h"
using namespace rush;
template <class F, class T>
__global__ void unary(T* out, const T* x, const T*, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(F()(static_cast<opmath_t<T>>(x[i])));
}
template <class F, class T>
__global__ void binary(T* out, const T* x, const T* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(F()(static_cast<opmath_t<T>>(x[i]), static_cast<opmath_t<T>>(y[i])));
})";

#define RUSH_UNARY(functor, fn, dtypes)                              \
  {                                                                  \
#functor, [](const Tensor& x) { return fn(x); }, nullptr, dtypes \
  }
#define RUSH_BINARY(functor, fn, dtypes)                                                 \
  {                                                                                      \
#functor, nullptr, [](const Tensor& x, const Tensor& y) { return fn(x, y); }, dtypes \
  }

std::vector<Case> cases() {
  return {
      RUSH_UNARY(Exp, exp, kFloats),
      RUSH_UNARY(Log, log, kFloats),
      RUSH_UNARY(Log1p, log1p, kFloats),
      RUSH_UNARY(Expm1, expm1, kFloats),
      RUSH_UNARY(Sin, sin, kFloats),
      RUSH_UNARY(Tan, tan, kFloats),
      RUSH_UNARY(Asinh, asinh, kFloats),
      RUSH_UNARY(Tanh, tanh, kFloats),
      RUSH_UNARY(Sigmoid, sigmoid, kFloats),
      RUSH_UNARY(Rsqrt, rsqrt, kFloats),
      RUSH_UNARY(Reciprocal, reciprocal, kFloats),
      RUSH_UNARY(Erf, erf, kFloats),
      RUSH_UNARY(Erfinv, erfinv, kFloats),
      RUSH_UNARY(Lgamma, lgamma, kFloats),
      RUSH_UNARY(Digamma, digamma, kFloats),
      RUSH_UNARY(Round, round, kFloats),
      RUSH_UNARY(Silu, silu, kFloats),
      RUSH_UNARY(Mish, mish, kFloats),
      RUSH_UNARY(Gelu, gelu, kFloats),
      RUSH_UNARY(Abs, abs, kFloats),
      RUSH_UNARY(Abs, abs, kIntegers),
      RUSH_UNARY(Neg, neg, kIntegers),
      RUSH_UNARY(Exp, exp, kComplex),
      RUSH_UNARY(Tanh, tanh, kComplex),
      RUSH_UNARY(Sqrt, sqrt, kComplex),
      RUSH_UNARY(Log, log, kComplex),
      RUSH_UNARY(Sin, sin, kComplex),
      RUSH_UNARY(Asinh, asinh, kComplex),
      RUSH_UNARY(Acos, acos, kComplex),
      RUSH_UNARY(Atanh, atanh, kComplex),
      RUSH_BINARY(Mul, mul, kFloats),
      RUSH_BINARY(Mul, mul, kIntegers),
      RUSH_BINARY(Div, div, kFloats),
      RUSH_BINARY(Pow, pow, kFloats),
      RUSH_BINARY(Atan2, atan2, kFloats),
      RUSH_BINARY(Hypot, hypot, kFloats),
      RUSH_BINARY(LogAddExp, logaddexp, kFloats),
      RUSH_BINARY(Xlogy, xlogy, kFloats),
      RUSH_BINARY(Maximum, maximum, kFloats),
      RUSH_BINARY(Gcd, gcd, kIntegers),
      RUSH_BINARY(Mul, mul, kComplex),
      RUSH_BINARY(Div, div, kComplex),
      RUSH_BINARY(Pow, pow, kComplex),
  };
}
#undef RUSH_UNARY
#undef RUSH_BINARY

jit::Source source_of(const Case& each, ScalarType dtype) {
  const std::string kernel =
      std::string(each.unary ? "unary" : "binary") + "<functors::" + each.functor + ", " + cuda::cpp_name(dtype) + ">";
  return {"functors", kText, {kernel}};
}

// Numbers of all sizes, both signs, and what has no number.
Tensor numbers(ScalarType dtype, int64_t n) {
  if (is_integral(dtype, false)) return randint(0, 100, {n}, TensorOptions(kInt64)).to(dtype).to(Device(kCUDA));
  Tensor x = (randn({n}, TensorOptions(kFloat64)) * 3).exp() * randn({n}, TensorOptions(kFloat64)).sign();
  if (is_complex(dtype)) return make_complex(x, x.flip({0})).to(dtype).to(Device(kCUDA));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, kInfinity, -kInfinity, kInfinity - kInfinity, 1e-310, 1e-40, 65504,
                            -1,  1,    0.5,       1e30};
  for (size_t i = 0; i < std::size(special); ++i) x[static_cast<int64_t>(i * 7)].fill_(special[i]);
  return x.to(dtype).to(Device(kCUDA));
}

// Their bits: any NaN equals any other here, and -0 is not 0.
bool same_bits(const Tensor& a, const Tensor& b) {
  if (is_differentiable(a.scalar_type()) && !a.isnan().equal(b.isnan())) return false;
  const auto without_nan = [](const Tensor& t) { return where(t.isnan(), zeros_like(t), t).cpu(); };
  const Tensor x = without_nan(a), y = without_nan(b);
  return x.scalar_type() == y.scalar_type() && x.nbytes() == y.nbytes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

}  // namespace

TEST_CASE("functors give the same bits from NVRTC as from nvcc" * doctest::skip(no_gpu())) {
  const auto properties = cuda::get_device_properties();
  std::vector<jit::Source> sources;
  for (const Case& each : cases()) {
    for (const ScalarType dtype : each.dtypes) sources.push_back(source_of(each, dtype));
  }
  parallel_for(0, static_cast<int64_t>(sources.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) jit::compiled(sources[i], properties.major * 10 + properties.minor);
  });

  manual_seed(3);
  constexpr int64_t kNumbers = 5000;
  for (const Case& each : cases()) {
    for (const ScalarType dtype : each.dtypes) {
      INFO(source_of(each, dtype).kernels[0]);
      const Tensor x = numbers(dtype, kNumbers), y = numbers(dtype, kNumbers).roll(1), out = empty_like(x);
      void* pointers[] = {out.data_ptr(), x.data_ptr(), y.data_ptr()};
      int64_t n = kNumbers;
      void* parameters[] = {&pointers[0], &pointers[1], &pointers[2], &n};
      jit::Kernel(source_of(each, dtype)).launch("functors", {{(kNumbers + 127) / 128}, {128}}, parameters);
      CHECK(same_bits(out, each.unary ? each.unary(x) : each.binary(x, y)));
    }
  }
}
