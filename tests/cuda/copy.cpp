// Copies and fills on a GPU against the CPU's.
#include "tests/cuda/same_as_cpu.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("every dtype is converted to every other on the GPU" * doctest::skip(!cuda::is_available())) {
  for (ScalarType from : kEverything) {
    const Tensor x = numbers({37, 5}, from, -3, 3);
    for (ScalarType to : kEverything) {
      if (!is_integral(from, true) && to == kUInt8) continue;  // what a negative fraction becomes is not defined
      INFO(str(name(from), " to ", name(to)));
      check_same(x.cuda().to(to), x.to(to), 0);
      check_same(x.cuda().t().to(to), x.t().to(to), 0);
    }
  }
}

TEST_CASE("permuted copies of every element size" * doctest::skip(!cuda::is_available())) {
  const std::vector<DimVector> shapes = {{33, 65}, {1, 7}, {130, 4}, {64, 64}, {300, 257}};
  for (ScalarType dtype : {kInt8, kBFloat16, kFloat32, kFloat64, kComplex128}) {
    for (const DimVector& shape : shapes) {
      INFO(str(name(dtype), " ", shape[0], " x ", shape[1]));
      const Tensor x = numbers(shape, dtype, -9, 9);
      check_same(x.cuda().t().contiguous(), x.t().contiguous(), 0);
      const Tensor inner = x.slice(1, 1), on_gpu = x.cuda().slice(1, 1);
      check_same(on_gpu.t().contiguous(), inner.t().contiguous(), 0);
      check_same(on_gpu.contiguous(), inner.contiguous(), 0);
    }
    const Tensor x = numbers({3, 5, 18, 34}, dtype, -9, 9), on_gpu = x.cuda();
    const std::vector<DimVector> orders = {{0, 2, 1, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}};
    for (const DimVector& order : orders) {
      check_same(on_gpu.permute(order).contiguous(), x.permute(order).contiguous(), 0);
    }
  }
}

// Where there are blocks enough for the larger tiles: whole ones, edges, many planes, odd addresses.
TEST_CASE("permuted copies of large tensors" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : {kInt8, kBFloat16, kFloat32}) {
    for (const DimVector& shape : std::vector<DimVector>{{2304, 2176}, {2200, 2051}, {4480, 4352}, {4301, 4402}}) {
      INFO(str(name(dtype), " ", shape[0], " x ", shape[1]));
      const Tensor x = numbers(shape, dtype, -99, 99), on_gpu = x.cuda();
      check_same(on_gpu.t().contiguous(), x.t().contiguous(), 0);
      check_same(on_gpu.slice(1, 1).t().contiguous(), x.slice(1, 1).t().contiguous(), 0);
    }
    const Tensor x = numbers({6, 70, 300, 130}, dtype, -99, 99), on_gpu = x.cuda();
    for (const DimVector& order : std::vector<DimVector>{{0, 1, 3, 2}, {1, 0, 3, 2}, {3, 1, 2, 0}, {0, 2, 3, 1}}) {
      check_same(on_gpu.permute(order).contiguous(), x.permute(order).contiguous(), 0);
    }
  }
}

TEST_CASE("fills, copies into views and of numbers" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : kEverything) {
    INFO(str(name(dtype)));
    for (double value : {0.0, 1.0, 3.0}) {
      Tensor x = numbers({9, 21}, dtype, -9, 9), on_gpu = x.cuda();
      x.slice(1, 1, 20, 3).fill_(value);
      on_gpu.slice(1, 1, 20, 3).fill_(value);
      check_same(on_gpu, x, 0);
      x.flatten().slice(0, 1, 100).fill_(value);
      on_gpu.flatten().slice(0, 1, 100).fill_(value);
      check_same(on_gpu, x, 0);
      x.fill_(value);
      on_gpu.fill_(value);
      check_same(on_gpu, x, 0);
    }
    Tensor x = zeros({9, 21}, dtype), on_gpu = x.cuda();
    const Tensor row = numbers({21}, dtype, -9, 9);
    x.slice(0, 2, 7).copy_(row);
    on_gpu.slice(0, 2, 7).copy_(row.cuda());
    check_same(on_gpu, x, 0);
  }
  CHECK_THROWS_AS(zeros({2}, kCUDA).fill_(complex<double>(1, 2)), TypeError);
}
