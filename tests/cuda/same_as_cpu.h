// Whether an operator gives the same on a GPU as on the CPU, over layouts of its operands.
#pragma once
#include <doctest/doctest.h>

#include <vector>

#include "rushlight.h"

namespace rush::testing {

// Dtypes that kernels are tested with.
using Dtypes = std::vector<ScalarType>;
inline const Dtypes kReals = {kFloat32, kFloat64, kFloat16, kBFloat16};
inline const Dtypes kFloats = {kFloat32, kFloat64, kFloat16, kBFloat16, kComplex64, kComplex128};
inline const Dtypes kIntegers = {kUInt8, kInt8, kInt16, kInt32, kInt64};
inline const Dtypes kOrdered = {kFloat32, kFloat64, kFloat16, kBFloat16, kUInt8, kInt8, kInt16, kInt32, kInt64};
inline const Dtypes kEverything = {kFloat32, kFloat64, kFloat16, kBFloat16,  kUInt8,      kInt8,
                                   kInt16,   kInt32,   kInt64,   kComplex64, kComplex128, kBool};

using TensorToTensor = Tensor (*)(const Tensor&);

// Ways for a tensor to lie in memory, made of a row-major one the same way on both devices.
struct TensorLayout {
  const char* name;
  TensorToTensor arrange;
};
inline const TensorLayout kLayouts[] = {
    {"row-major", [](const Tensor& t) { return t; }},
    {"transposed", [](const Tensor& t) { return t.transpose(0, -1).contiguous().transpose(0, -1); }},
    {"every other element",
     [](const Tensor& t) {
       return stack({t, t}, -1).flatten().slice(0, 0, 2 * t.numel(), 2).view(t.sizes());
     }},
    {"off by one element",
     [](const Tensor& t) {
       return cat({zeros({1}, t.options()), t.flatten()}).slice(0, 1, 1 + t.numel()).view(t.sizes());
     }},
};

// Same dtype, shape and strides, and values within rounding: `tolerance` counts steps of 1e-6 (1e-2 for 16-bit numbers,
// 1e-12 for double precision), relative and absolute.
inline void check_same(const Tensor& on_gpu, const Tensor& on_cpu, double tolerance) {
  REQUIRE(on_gpu.is_cuda());
  REQUIRE(on_gpu.scalar_type() == on_cpu.scalar_type());
  REQUIRE(on_gpu.sizes() == on_cpu.sizes());
  CHECK((on_cpu.numel() == 0 || on_gpu.strides() == on_cpu.strides()));
  const ScalarType dtype = on_cpu.scalar_type();
  const Tensor got = on_gpu.cpu();
  if (tolerance == 0 || !is_differentiable(dtype)) {
    CHECK(allclose(got, on_cpu, 0, 0, true));
    return;
  }
  const bool narrow = dtype == kFloat16 || dtype == kBFloat16;
  const double step = narrow ? 1e-2 : dtype == kFloat64 || dtype == kComplex128 ? 1e-12 : 1e-6;
  CHECK(allclose(got, on_cpu, tolerance * step, tolerance * step, true));
}

// The same values within a relative and absolute tolerance, compared in the dtype of what the CPU gives.
inline void check_within(const Tensor& on_gpu, const Tensor& on_cpu, double tolerance) {
  REQUIRE(on_gpu.is_cuda());
  REQUIRE(on_gpu.sizes() == on_cpu.sizes());
  CHECK(on_gpu.cpu().to(on_cpu.scalar_type()).allclose(on_cpu, tolerance, tolerance));
}

// Numbers in [low, high) as `dtype`, the same in every run.
inline Tensor numbers(IntArrayRef sizes, ScalarType dtype, double low, double high) {
  const Generator generator = make_generator<CPUGeneratorImpl>(7);
  Tensor t = empty(sizes, kFloat64);
  t.uniform_(low, high, generator);
  if (is_complex(dtype)) {
    Tensor imaginary = empty(sizes, kFloat64);
    imaginary.uniform_(low, high, generator);
    return ops::complex(t, imaginary).to(dtype);
  }
  return dtype == kBool ? t > (low + high) / 2 : t.to(dtype);
}

}  // namespace rush::testing
