// Random numbers on a GPU: those of the CPU for the same seed. See Note [One random stream].
#include <cmath>

#include "tests/cuda/same_as_cpu.h"

using namespace rush;
using namespace rush::testing;

namespace {

// fn of a new tensor on either device, with the generators seeded alike.
template <class Fn>
void check_drawn(IntArrayRef shape, ScalarType dtype, double tolerance, const Fn& fn) {
  manual_seed(42);
  Tensor on_cpu = zeros(shape, dtype);
  fn(on_cpu);
  manual_seed(42);
  Tensor on_gpu = zeros(shape, TensorOptions(dtype).device(Device(kCUDA)));
  fn(on_gpu);
  check_same(on_gpu, on_cpu, tolerance);
}

const std::vector<DimVector> kDrawnShapes = {{1}, {7}, {33, 65}, {0}};

}  // namespace

TEST_CASE("uniform numbers and integers are the CPU's bit for bit" * doctest::skip(!cuda::is_available())) {
  for (const DimVector& shape : kDrawnShapes) {
    for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
      INFO(str(name(dtype)));
      check_drawn(shape, dtype, 0, [](Tensor& t) { t.uniform_(); });
      check_drawn(shape, dtype, 0, [](Tensor& t) { t.uniform_(-3, 5.5); });
      check_drawn(shape, dtype, 0, [](Tensor& t) { t.bernoulli_(0.3); });
    }
    for (ScalarType dtype : {kUInt8, kInt32, kInt64, kFloat32, kBool}) {
      INFO(str(name(dtype)));
      check_drawn(shape, dtype, 0, [](Tensor& t) { t.random_(); });
    }
    check_drawn(shape, kInt64, 0, [](Tensor& t) { t.random_(-5, 100); });
    check_drawn(shape, kInt64, 0, [](Tensor& t) { t.random_(-5, int64_t{1} << 40); });
  }
}

TEST_CASE("other distributions are the CPU's to rounding" * doctest::skip(!cuda::is_available())) {
  for (const DimVector& shape : kDrawnShapes) {
    for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
      INFO(str(name(dtype)));
      check_drawn(shape, dtype, 4, [](Tensor& t) { t.normal_(1, 2); });
      check_drawn(shape, dtype, 10, [](Tensor& t) { t.log_normal_(0, 0.5); });
      check_drawn(shape, dtype, 10, [](Tensor& t) { t.exponential_(1.5); });
    }
    check_drawn(shape, kFloat64, 1e4, [](Tensor& t) { t.cauchy_(0, 1); });
    check_drawn(shape, kFloat64, 0, [](Tensor& t) { t.geometric_(0.2); });
  }
}

// Of many numbers none is far from the CPU's, and their moments are those of the distribution.
TEST_CASE("a million normal numbers" * doctest::skip(!cuda::is_available())) {
  for (const int64_t n : {int64_t{1} << 20, (int64_t{1} << 20) + 3}) {
    manual_seed(11);
    const Tensor on_cpu = randn({n});
    manual_seed(11);
    const Tensor on_gpu = randn({n}, TensorOptions(kCUDA));
    CHECK((on_gpu.cpu() - on_cpu).abs().max().item<double>() < 2e-6);
    CHECK(std::abs(on_gpu.mean().item<double>()) < 5e-3);
    CHECK(on_gpu.square().mean().item<double>() == doctest::Approx(1).epsilon(5e-3));
    CHECK(on_gpu.pow(4).mean().item<double>() == doctest::Approx(3).epsilon(2e-2));
  }
}

// Within a unit in the last place, or 4e-6: Note [Normal numbers on the GPU].
TEST_CASE("a million normal numbers of 16 bits" * doctest::skip(!cuda::is_available())) {
  constexpr int64_t n = (int64_t{1} << 20) + 3;
  for (const auto& [dtype, unit] : {std::pair(kFloat16, 0x1p-10), std::pair(kBFloat16, 0x1p-7)}) {
    INFO(str(dtype));
    manual_seed(11);
    const Tensor on_cpu = randn({n}, dtype).to(kFloat64);
    manual_seed(11);
    const Tensor on_gpu = randn({n}, TensorOptions(dtype).device(kCUDA)).cpu().to(kFloat64);
    const Tensor allowed = on_cpu.abs() * unit + 4e-6;
    CHECK(((on_gpu - on_cpu).abs() > allowed).sum().item<int64_t>() == 0);
    CHECK((on_gpu != on_cpu).to(kFloat64).mean().item<double>() < 0.01);
    CHECK(on_gpu.square().mean().item<double>() == doctest::Approx(1).epsilon(5e-3));
  }
}

TEST_CASE("orders, samples and dropout" * doctest::skip(!cuda::is_available())) {
  const auto twice = [](const auto& fn) {
    manual_seed(5);
    const Tensor on_cpu = fn(Device(kCPU));
    manual_seed(5);
    check_same(fn(Device(kCUDA)), on_cpu, 4);
  };
  for (int64_t n : {0, 1, 2, 1001}) {
    twice([n](Device device) { return randperm(n, TensorOptions(kInt64).device(device)); });
  }
  const Tensor weights = numbers({3, 501}, kFloat32, 0, 1);
  twice([&](Device device) { return multinomial(weights.to(device), 40, true); });
  twice([&](Device device) { return multinomial(weights.to(device), 40, false); });
  for (ScalarType dtype : {kFloat32, kBFloat16, kFloat64}) {
    const Tensor x = numbers({33, 67}, dtype, -1, 1);
    twice([&](Device device) { return dropout(x.to(device), 0.3, true); });
  }
  CHECK_THROWS_WITH_AS(multinomial(zeros({4}).cuda(), 1).cpu(),
                       doctest::Contains("multinomial: invalid multinomial distribution"), ValueError);
  CHECK_THROWS_WITH_AS(multinomial(tensor({1.0, NAN}).cuda(), 1).cpu(),
                       doctest::Contains("multinomial: probability tensor contains"), ValueError);
  CHECK_THROWS_WITH_AS(bernoulli(full({4}, 1.5).cuda()).cpu(), doctest::Contains("probabilities in [0, 1]"),
                       ValueError);
}
