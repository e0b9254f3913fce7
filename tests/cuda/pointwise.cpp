// Element-wise kernels of the CUDA backend against the CPU's.
#include "tests/cuda/same_as_cpu.h"

using namespace rush;
using namespace rush::testing;

namespace {

const Dtypes kNumbers = {kFloat32, kFloat16, kBFloat16, kUInt8, kInt16, kInt64, kComplex64, kComplex128};

// An odd tail, less than a vector, several blocks, nothing, one number.
const std::vector<DimVector> kPointwiseShapes = {{7, 13}, {3}, {70, 331}, {0, 5}, {}};

// Calls body(inputs' layout, dtype, shape) for all of them; layouts other than row-major for one shape only.
template <class Body>
void for_each_case(const Dtypes& dtypes, const Body& body) {
  for (ScalarType dtype : dtypes) {
    for (const DimVector& shape : kPointwiseShapes) {
      for (const TensorLayout& layout : kLayouts) {
        if (&layout != &kLayouts[0] && !(shape == DimVector{7, 13} || shape == DimVector{70, 331})) continue;
        INFO(str(name(dtype), " ", layout.name, " ", shape.size()));
        body(layout, dtype, IntArrayRef(shape));
      }
    }
  }
}

struct UnaryCase {
  const char* name;
  TensorToTensor fn;
  double low, high;
  const Dtypes& dtypes;
  double tolerance = 4;
};

#define FN(name) #name, [](const Tensor& x) { return name(x); }
const UnaryCase kUnary[] = {
    {FN(neg), -3, 3, kNumbers},
    {FN(abs), -3, 3, kNumbers},
    {FN(sign), -3, 3, kOrdered},
    {FN(sgn), -3, 3, kFloats},
    {FN(ceil), -3, 3, kReals},
    {FN(round), -3, 3, kReals},
    {FN(frac), -3, 3, kReals},
    {FN(isnan), -3, 3, kFloats},
    {FN(isfinite), -3, 3, kFloats},
    {FN(signbit), -3, 3, kOrdered},
    {FN(logical_not), -3, 3, kEverything},
    {FN(bitwise_not), 0, 100, kIntegers},
    {FN(sqrt), 0.1, 3, kFloats},
    {FN(rsqrt), 0.1, 3, kFloats},
    {FN(reciprocal), 0.1, 3, kFloats},
    {FN(exp), -3, 3, kFloats},
    {FN(exp2), -3, 3, kFloats},
    {FN(expm1), -1, 1, kFloats},
    {FN(log), 0.1, 3, kFloats},
    {FN(log1p), 0.1, 3, kFloats},
    {FN(log2), 0.1, 3, kFloats},
    {FN(log10), 0.1, 3, kFloats},
    {FN(sin), -3, 3, kFloats},
    {FN(cos), -3, 3, kFloats},
    {FN(tan), -1, 1, kFloats},
    {FN(asin), -0.9, 0.9, kFloats},
    {FN(acos), -0.9, 0.9, kFloats},
    {FN(atan), -0.9, 0.9, kFloats},
    {FN(sinh), -2, 2, kFloats},
    {FN(cosh), -2, 2, kFloats},
    {FN(tanh), -2, 2, kFloats},
    {FN(asinh), -2, 2, kFloats},
    {FN(acosh), 1.1, 3, kFloats},
    {FN(atanh), -0.8, 0.8, kFloats},
    {FN(sinc), -2, 2, kFloats},
    {FN(sigmoid), -4, 4, kFloats},
    {FN(erf), -2, 2, kReals},
    {FN(erfc), -2, 2, kReals},
    {FN(erfinv), -0.9, 0.9, kReals},
    {FN(lgamma), 0.2, 5, kReals, 10},
    {FN(digamma), 0.2, 5, kReals, 10},
    {FN(relu), -3, 3, kOrdered},
    {FN(gelu), -3, 3, kReals},
    {FN(silu), -3, 3, kReals},
    {FN(mish), -3, 3, kReals},
    {FN(softplus), -3, 3, kReals},
    {FN(log_sigmoid), -3, 3, kReals},
    {FN(hardswish), -4, 4, kReals},
    {FN(hardsigmoid), -4, 4, kReals},
    {FN(elu), -3, 3, kReals},
    {"gelu tanh", [](const Tensor& x) { return gelu(x, "tanh"); }, -3, 3, kReals},
    {"pow 3", [](const Tensor& x) { return pow(x, 3); }, -2, 2, kNumbers},
    {"pow 1.7", [](const Tensor& x) { return pow(x, 1.7); }, 0.1, 2, kReals},
    {"x + 2", [](const Tensor& x) { return x + 2; }, -3, 3, kEverything},
    {"1.5 - x", [](const Tensor& x) { return 1.5 - x; }, -3, 3, kOrdered},
    {"x > 0.5", [](const Tensor& x) { return x > 0.5; }, -3, 3, kOrdered},
    {"clamp", [](const Tensor& x) { return clamp(x, 0, 1); }, -3, 3, kOrdered},
    {"x // 3", [](const Tensor& x) { return div(x, 3, "floor"); }, -9, 9, kOrdered},
};

struct BinaryCase {
  const char* name;
  Tensor (*fn)(const Tensor&, const Tensor&);
  double low, high;
  const Dtypes& dtypes;
  double tolerance = 4;
};
#define FN2(name) #name, [](const Tensor& x, const Tensor& y) { return name(x, y); }
const BinaryCase kBinary[] = {
    {FN2(add), -9, 9, kEverything},
    {FN2(sub), -9, 9, kNumbers},
    {FN2(mul), -9, 9, kEverything},
    {FN2(div), 1, 9, kNumbers},
    {FN2(floor_divide), 1, 90, kOrdered},
    {FN2(remainder), 1, 90, kOrdered},
    {FN2(fmod), 1, 90, kOrdered},
    {FN2(eq), -2, 2, kEverything},
    {FN2(lt), -2, 2, kOrdered},
    {FN2(ge), -2, 2, kOrdered},
    {FN2(maximum), -2, 2, kOrdered},
    {FN2(fmin), -2, 2, kOrdered},
    {FN2(logical_xor), -2, 2, kEverything},
    {FN2(bitwise_and), 0, 100, kIntegers},
    {FN2(bitwise_left_shift), 0, 5, kIntegers},
    {FN2(pow), 0.1, 3, kNumbers, 10},
    {FN2(atan2), -2, 2, kReals},
    {FN2(hypot), -2, 2, kReals},
    {FN2(copysign), -2, 2, kReals},
    {FN2(gcd), 1, 90, kIntegers},
    {FN2(lcm), 1, 9, kIntegers},
    {FN2(logaddexp), -2, 2, kReals},
    {FN2(xlogy), 0.1, 2, kReals},
    {FN2(mse_loss), -2, 2, kReals, 20},
    {FN2(smooth_l1_loss), -2, 2, kReals, 20},
    {"add 3 y", [](const Tensor& x, const Tensor& y) { return add(x, y, 3); }, -9, 9, kNumbers},
    {"where", [](const Tensor& x, const Tensor& y) { return where(x == y, x, y); }, -2, 2, kEverything},
    {"addcmul", [](const Tensor& x, const Tensor& y) { return addcmul(x, y, x, 2); }, -2, 2, kNumbers},
    {"lerp", [](const Tensor& x, const Tensor& y) { return lerp(x, y, 0.3); }, -2, 2, kFloats},
    {"masked_fill", [](const Tensor& x, const Tensor& y) { return masked_fill(x, y == x, 1); }, -2, 2, kEverything},
};

#undef FN
#undef FN2

}  // namespace

TEST_CASE("unary kernels give what the CPU's give" * doctest::skip(!cuda::is_available())) {
  for (const UnaryCase& c : kUnary) {
    INFO(str(c.name));
    for_each_case(c.dtypes, [&](const TensorLayout& layout, ScalarType dtype, IntArrayRef shape) {
      const Tensor x = numbers(shape, dtype, c.low, c.high);
      check_same(c.fn(layout.arrange(x.cuda())), c.fn(layout.arrange(x)), c.tolerance);
    });
  }
}

TEST_CASE("binary kernels give what the CPU's give" * doctest::skip(!cuda::is_available())) {
  for (const BinaryCase& c : kBinary) {
    INFO(str(c.name));
    for_each_case(c.dtypes, [&](const TensorLayout& layout, ScalarType dtype, IntArrayRef shape) {
      const Tensor x = numbers(shape, dtype, c.low, c.high);
      const Tensor y = x.dim() == 2 ? flip(x, {0}) : x;
      check_same(c.fn(layout.arrange(x.cuda()), y.cuda()), c.fn(layout.arrange(x), y), c.tolerance);
    });
  }
}

TEST_CASE("operands are broadcast, and numbers on the CPU go along" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat32, kBFloat16, kFloat64, kInt32, kComplex64}) {
    const Tensor x = numbers({5, 1, 33}, dtype, 1, 9), row = numbers({33}, dtype, 1, 9);
    const Tensor column = numbers({17, 1}, dtype, 1, 9), one = numbers({}, dtype, 2, 3);
    const Tensor gx = x.cuda();
    check_same(gx + row.cuda(), x + row, 4);
    check_same(gx * column.cuda(), x * column, 4);
    check_same(gx - one.cuda(), x - one, 4);
    check_same(gx - one, x - one, 4);
    check_same(one - gx, one - x, 4);
    check_same(one - row.cuda(), one - row, 4);
    check_same(where(one.to(kBool), one, gx), where(one.to(kBool), one, x), 4);
    check_same(addcmul(one, one, gx), addcmul(one, one, x), 4);
    check_same(gx.expand({5, 4, 33}) * column.slice(0, 0, 4).cuda(), x.expand({5, 4, 33}) * column.slice(0, 0, 4), 4);
  }
  CHECK_THROWS_AS(zeros({1}) + zeros({1}, TensorOptions(kFloat32).device(kCUDA)), ValueError);
  Tensor number = zeros({});
  CHECK_THROWS_AS(number.add_(zeros({}, TensorOptions(kFloat32).device(kCUDA))), ValueError);
}

// Note [Broadcasts of 16-bit numbers], and what does not fit it: odd widths, odd addresses, gaps.
TEST_CASE("16-bit operands repeat along any dimensions" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : {kBFloat16, kFloat16}) {
    for (const int64_t width : {8, 48, 1024, 2056, 33}) {
      CAPTURE(str(dtype));
      CAPTURE(width);
      const Tensor x = numbers({3, 70, width}, dtype, 1, 9), gx = x.cuda();
      const std::vector<Tensor> others = {
          numbers({width}, dtype, 1, 9),       numbers({70, 1}, dtype, 1, 9),
          numbers({3, 1, width}, dtype, 1, 9), numbers({70, width}, dtype, 1, 9),
          numbers({3, 1, 1}, dtype, 1, 9),     numbers({width + 1}, dtype, 1, 9).slice(0, 1),
          numbers({3, 70, 1}, dtype, 1, 9),    numbers({width, 3}, dtype, 1, 9).select(1, 2)};
      for (const Tensor& y : others) {
        const Tensor gy = y.cuda();
        check_same(gx + gy, x + y, 0);
        check_same(gy * gx, y * x, 0);
        check_same(gx / gy, x / y, 1);
        check_same(gx.sub(gy, 0.5), x.sub(y, 0.5), 1);
        check_same(gx.slice(1, 0, 70, 2).add(gy.dim() > 1 && gy.size(-2) == 70 ? gy.slice(-2, 0, 70, 2) : gy),
                   x.slice(1, 0, 70, 2).add(y.dim() > 1 && y.size(-2) == 70 ? y.slice(-2, 0, 70, 2) : y), 0);
        const Tensor target = x.clone(), on_gpu = gx.clone();
        check_same(on_gpu.add_(gy), target.add_(y), 0);
      }
    }
  }
}

TEST_CASE("an integer is not divided by 0 on the GPU" * doctest::skip(!cuda::is_available())) {
  const Tensor x = ones({300}, kInt64).cuda(), divisors = arange(300, kInt64).cuda() - 299;
  const Tensor rest = remainder(x, divisors);  // the last is 0, which the kernel finds
  CHECK_THROWS_WITH_AS(rest.cpu(), "remainder: an integer is divided by 0 (found by a kernel on cuda:0)", ValueError);
  CHECK(rest.cpu()[298].item<int64_t>() == 0);
  CHECK_THROWS_AS(div(x, divisors.flip({0}).unsqueeze(1), "floor").cpu(), ValueError);
  CHECK_THROWS_AS(remainder(x, 0), ValueError);  // a number is looked at before the launch
}

TEST_CASE("loops of many dimensions are taken apart" * doctest::skip(!cuda::is_available())) {
  DimVector shape;
  for (int d = 0; d < 10; ++d) shape.push_back(2);
  Tensor x = numbers(shape, kFloat32, -1, 1), y = x;
  for (int64_t d = 0; d + 1 < 10; d += 2) y = y.transpose(d, 9 - d);
  Tensor gy = x.cuda();
  for (int64_t d = 0; d + 1 < 10; d += 2) gy = gy.transpose(d, 9 - d);
  check_same(x.cuda() + gy, x + y, 0);
  check_same(gy.contiguous(), y.contiguous(), 0);
}
