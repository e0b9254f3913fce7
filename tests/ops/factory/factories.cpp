#include "core/ops/factory/factories.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/dispatch/call.h"
#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("factories: sizes, dtypes, values, by function and by name") {
  CHECK(values(zeros({2, 2})) == Doubles{0, 0, 0, 0});
  CHECK(zeros({2}).scalar_type() == kFloat32);
  CHECK(values(ones({2}, kInt64)) == Doubles{1, 1});
  CHECK(full({2}, 3).scalar_type() == kInt64);
  CHECK(full({2}, true).scalar_type() == kBool);
  CHECK(full({2}, 1.5).scalar_type() == kFloat32);
  CHECK(full({2}, complex<double>(1, 2)).scalar_type() == kComplex64);
  CHECK(scalar_tensor(3).scalar_type() == kFloat32);
  CHECK(scalar_tensor(3, kInt64).dim() == 0);
  CHECK(ones({2}, requires_grad()).requires_grad());
  CHECK(empty({3, 0, 2}).numel() == 0);
  CHECK(empty({2, 3, 4, 5}, TensorOptions().memory_format(MemoryFormat::ChannelsLast)).stride(1) == 1);
  CHECK(empty_strided({2, 3}, {1, 2}).strides() == IntArrayRef({1, 2}));
  CHECK(zeros({2, 3}, kMeta).is_meta());
  const Stack result = call_operator("aten::zeros", {std::vector<int64_t>{2, 3}}, {{"dtype", kInt32}});
  CHECK(result[0].as<Tensor>().sizes() == IntArrayRef({2, 3}));
  CHECK(result[0].as<Tensor>().scalar_type() == kInt32);
}

TEST_CASE("beside a zero any size will do") {
  constexpr int64_t kHuge = int64_t{1} << 62;
  CHECK(empty({0, kHuge, 3}).sizes() == IntArrayRef({0, kHuge, 3}));
  CHECK(empty({0, kHuge, 3}).numel() == 0);
}

TEST_CASE("factories like a tensor: layout, dtype and device are taken over") {
  const Tensor columns = counting({3, 2}, kFloat32).t();
  for (const Tensor& like : {empty_like(columns), zeros_like(columns), ones_like(columns), full_like(columns, 2)}) {
    CHECK(like.strides() == columns.strides());
    CHECK(like.scalar_type() == kFloat32);
  }
  CHECK(empty_like(columns, TensorOptions().memory_format(MemoryFormat::Contiguous)).is_contiguous());
  CHECK(ones_like(columns, kInt64).scalar_type() == kInt64);
  CHECK(values(full_like(columns.slice(0, 0, 1), 7)) == Doubles{7, 7, 7});
  CHECK(zeros_like(columns.expand({4, 2, 3})).strides() == IntArrayRef({6, 1, 2}));
  CHECK(columns.new_empty({4}).scalar_type() == kFloat32);
  CHECK(values(columns.new_zeros({2}, kInt64)) == Doubles{0, 0});
  CHECK(values(columns.new_ones({2})) == Doubles{1, 1});
  CHECK(values(columns.new_full({2}, 3)) == Doubles{3, 3});
  CHECK(columns.new_empty_strided({2, 2}, {1, 2}).strides() == IntArrayRef({1, 2}));
  CHECK(empty({2}, kMeta).new_zeros({3}).is_meta());
}

TEST_CASE("tensor(...): numbers, lists in braces, arrays") {
  CHECK(tensor(5).scalar_type() == kInt64);
  CHECK(tensor(5).dim() == 0);
  CHECK(tensor(2.5).scalar_type() == kFloat32);
  CHECK(tensor(true).scalar_type() == kBool);
  CHECK(tensor({1}).sizes() == IntArrayRef({1}));
  CHECK(tensor({{1}}).sizes() == IntArrayRef({1, 1}));
  CHECK(tensor({1, 2, 3}).scalar_type() == kInt64);
  CHECK(values(tensor({{1, 2}, {3, 4}})) == Doubles{1, 2, 3, 4});
  CHECK(tensor({{{1.0, 2.0}, {3.0, 4.0}}}).sizes() == IntArrayRef({1, 2, 2}));
  CHECK(tensor({1, 2.5}).scalar_type() == kFloat32);
  CHECK(tensor({true, false}).scalar_type() == kBool);
  CHECK(tensor({1.5f, 2.0f}, kFloat64).scalar_type() == kFloat64);
  CHECK(tensor({complex<float>(1, 2)}).scalar_type() == kComplex64);
  CHECK(tensor(complex<double>(1, 2)).scalar_type() == kComplex128);
  CHECK(tensor(uint8_t{7}).scalar_type() == kUInt8);
  CHECK(tensor({int8_t{1}, int8_t{2}}).scalar_type() == kInt8);
  CHECK(tensor(int16_t{7}).scalar_type() == kInt16);
  CHECK(tensor('a').scalar_type() == kInt64);
  CHECK(tensor(Half(1.5f)).scalar_type() == kFloat16);
  CHECK(tensor({BFloat16(1), BFloat16(2)}).scalar_type() == kBFloat16);
  CHECK(tensor(std::vector<Half>{Half(1)}).scalar_type() == kFloat16);
  CHECK(tensor({}).sizes() == IntArrayRef({0}));
  CHECK(tensor({}).scalar_type() == kFloat32);
  CHECK(tensor({{}, {}}).sizes() == IntArrayRef({2, 0}));
  CHECK(values(tensor(std::vector<double>{0.5, 1.5})) == Doubles{0.5, 1.5});
  CHECK(tensor(std::vector<double>{0.5}).scalar_type() == kFloat32);
  CHECK(tensor(std::vector<int>{1}).scalar_type() == kInt64);
  CHECK(tensor(std::vector<uint8_t>{1}).scalar_type() == kUInt8);
  CHECK(values(tensor(std::vector<bool>{true, false})) == Doubles{1, 0});
  CHECK(values(tensor({std::vector<double>{1, 2}, std::vector<double>{3, 4}})) == Doubles{1, 2, 3, 4});
  CHECK(tensor({INT64_MAX}).item<int64_t>() == INT64_MAX);
  CHECK(tensor({1, 2}, requires_grad().dtype(kFloat64)).requires_grad());
  CHECK_THROWS_AS(tensor({{1, 2}, {3}}), ValueError);
  CHECK_THROWS_AS(tensor({{1, 2}, 3}), ValueError);
  CHECK_THROWS_AS(tensor({1, 2}, requires_grad()), Error);
}

TEST_CASE("from_blob sees the caller's memory and says when it is done") {
  static int deleted = 0;
  deleted = 0;
  double numbers[] = {0, 1, 2, 3, 4, 5};
  {
    const Tensor x = from_blob(
        numbers, {2, 3}, [](void*) { ++deleted; }, kFloat64);
    x[0][1].fill_(9);
    CHECK(numbers[1] == 9);
    const Tensor y = x.t();
  }
  CHECK(deleted == 1);
  CHECK(values(from_blob(numbers, {2, 2}, {1, 2}, kFloat64)) == Doubles{0, 2, 9, 3});
  CHECK_THROWS_AS(from_blob(numbers, {-1}, kFloat64), ValueError);
  CHECK_THROWS_WITH_AS(from_blob(numbers, {2, 2}, {-2, 1}, kFloat64), doctest::Contains("before the memory"),
                       ValueError);
  const auto owner = std::make_shared<int>(0);  // of a deleter that never runs, and does not stay
  CHECK_THROWS_AS(from_blob(numbers, {-1}, [owner](void*) { ++*owner; }), ValueError);
  CHECK(owner.use_count() == 1);
  CHECK(*owner == 0);
}

TEST_CASE("fill") {
  const Tensor x = counting({2, 2});
  CHECK(values(fill(x, 5)) == Doubles{5, 5, 5, 5});
  CHECK(values(fill(x, tensor(2.5))) == Doubles{2.5, 2.5, 2.5, 2.5});
  CHECK(values(x) == Doubles{0, 1, 2, 3});
  x.t()[0].fill_(tensor(7));
  CHECK(values(x) == Doubles{7, 1, 7, 3});
  CHECK_THROWS_AS(x.fill_(tensor({1})), ValueError);
  const Tensor row = zeros({2, 1}), wide = row.expand({3, 2, 4});
  const auto version = row._version();
  CHECK(values(wide.fill_(2)[2].select(1, 3)) == Doubles{2, 2});
  CHECK(row._version() == version + 1);
  CHECK(values(wide.fill_(tensor(3.)).select(0, 1).select(1, 0)) == Doubles{3, 3});
  CHECK(values(wide[0].select(0, 1).zero_()) == Doubles{0, 0, 0, 0});
  CHECK(values(row.squeeze()) == Doubles{3, 0});
  CHECK_THROWS_AS(x.fill_(complex<double>(0, 1)), TypeError);
  CHECK(values(x) == Doubles{7, 1, 7, 3});
  check_gradients([](const Tensors& t) { return Tensors{fill(t[0], t[1]) * t[0]}; }, {leaf({2, 2}), leaf({})});
  check_gradients([](const Tensors& t) { return Tensors{fill(t[0], 2) * t[0]}; }, {leaf({2, 2})});
}

TEST_CASE("the index of a CPU counts for nothing") {
  const Device numbered("cpu:0");
  const Tensor x = zeros({2}, numbered);
  CHECK(x.device() == Device(kCPU));
  CHECK(x.to(numbered).is_same(x));
  CHECK((x + ones({2}).to(numbered)).device() == Device(kCPU));
  CHECK(empty_strided({2}, {2}, numbered).device() == Device(kCPU));
  CHECK(x.to(Device("meta:0")).device() == Device(kMeta));
}

TEST_CASE("factories: what does not fit is a typed error") {
  CHECK_THROWS_AS(tensor(complex<double>(1, 2), kFloat32), TypeError);
  CHECK_THROWS_AS(tensor(std::vector<complex<float>>{{1, 0}, {0, 1}}, kInt64), TypeError);
  CHECK(tensor(complex<double>(3, 0), kFloat32).item<float>() == 3);
  CHECK_THROWS_AS(ones({2}).to(TensorOptions(kFloat64).requires_grad(true)), ValueError);
  CHECK_THROWS_AS(zeros({-1}), ValueError);
  CHECK_THROWS_AS(empty({INT64_MAX, 2}), ValueError);
  CHECK_THROWS_AS(empty({int64_t{1} << 61}, kFloat64), ValueError);
  CHECK_THROWS_AS(empty_strided({2}, {1, 1}), ValueError);
  CHECK_THROWS_AS(empty_strided({2}, {-1}), ValueError);
  CHECK_THROWS_AS(full({2}, complex<double>(0, 1), kFloat32), TypeError);
  CHECK_THROWS_WITH_AS(full({2}, INFINITY, kInt32), "Scalar: inf cannot be converted to int32 without overflow",
                       ValueError);
  CHECK_THROWS_AS(full({2}, 300, kInt8), ValueError);
  CHECK_THROWS_AS(ones({2}, requires_grad().dtype(kInt64)), Error);
}

TEST_CASE("factories make tensors on the thread's default device unless told otherwise") {
  const Device before = get_default_device();
  double number = 1;
  set_default_device(kMeta);
  CHECK(zeros({2}).device() == Device(kMeta));
  CHECK(randn({2}).device() == Device(kMeta));
  CHECK(arange(3).device() == Device(kMeta));
  CHECK(tensor({1, 2}).device() == Device(kMeta));
  CHECK(TensorOptions().device() == Device(kMeta));
  CHECK(zeros({2}, kCPU).device() == Device(kCPU));
  CHECK(from_blob(&number, {1}, kFloat64).device() == Device(kCPU));  // it is where its memory is
  CHECK(zeros_like(zeros({2}, kCPU)).device() == Device(kCPU));
  const Tensor host = ones({2}, kCPU);  // what follows from a tensor stays where that is
  CHECK(equal(masked_fill(host, zeros({2}, TensorOptions(kBool).device(kCPU)), 3), host));
  Device other_thread(kMeta);
  std::thread([&] { other_thread = zeros({1}).device(); }).join();
  CHECK(other_thread == Device(kCPU));
  set_default_device(before);
  CHECK(zeros({1}).device().type == before.type);
  CHECK_THROWS_AS(set_default_device(Device(kCUDA, 99)), Error);
}

TEST_CASE("memory that nothing has written is filled where algorithms have to be deterministic") {
  Context& context = globalContext();
  context.setDeterministicAlgorithms(true);
  for (const ScalarType dtype : {kFloat32, kBFloat16, kFloat8_e5m2, kComplex64}) {
    CAPTURE(dtype);
    CHECK(empty({3}, dtype).to(kComplex128).isnan().all().item<bool>());
  }
  CHECK(empty({1}, kBool).item<bool>());
  CHECK(empty({1}, kInt8).item<int>() == 127);
  CHECK(empty({1}, kUInt16).item<int>() == 65535);
  CHECK(empty({1}, kUInt64).item<uint64_t>() == ~uint64_t{0});
  CHECK(ones({2}, kInt64).new_empty_strided({1}, {3}).item<int64_t>() == std::numeric_limits<int64_t>::max());
  const Tensor grown = zeros({2}, kFloat32).resize_({5});
  CHECK(grown.isnan().sum().item<int>() == 3);
  CHECK(grown.narrow(0, 0, 2).sum().item<float>() == 0);
  CHECK(empty({2, 2}, TensorOptions().layout(kSparse)).numel() == 4);
  context.setDeterministicFillUninitializedMemory(false);
  Tensor kept = zeros({1});
  kept.resize_({1});
  CHECK(kept.item<float>() == 0);
  context.setDeterministicFillUninitializedMemory(true);
  context.setDeterministicAlgorithms(false);
}

}  // namespace
