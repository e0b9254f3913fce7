#include "core/tensor.h"

#include <doctest/doctest.h>

#include <vector>

#include "rushlight.h"

using namespace rush;

TEST_CASE("copies of a handle share the tensor; views share the storage and its version") {
  const Tensor a = zeros({2, 3});
  const Tensor same = a, row = a[1];
  CHECK(same.is_same(a));
  CHECK(row.is_alias_of(a));
  CHECK(row.storage_offset() == 3);
  row.fill_(5);
  CHECK(a.sum().item<float>() == 15);
  CHECK(a._version() == row._version());
  CHECK(row.is_view());
  CHECK(row._base().is_same(a));
  CHECK(row[0]._base().is_same(a));
}

TEST_CASE("sizes, strides and memory formats") {
  const Tensor image = empty({2, 3, 4, 5}, TensorOptions().memory_format(MemoryFormat::ChannelsLast));
  CHECK(image.strides() == IntArrayRef({60, 1, 15, 3}));
  CHECK(image.is_contiguous(MemoryFormat::ChannelsLast));
  CHECK_FALSE(image.is_contiguous());
  CHECK(image.suggest_memory_format() == MemoryFormat::ChannelsLast);
  CHECK(image.contiguous().strides() == IntArrayRef({60, 20, 5, 1}));
  CHECK(image.contiguous().contiguous(MemoryFormat::ChannelsLast).strides() == image.strides());
  CHECK(image.size(-1) == 5);
  CHECK_THROWS_AS(image.size(4), IndexError);
  CHECK_THROWS_AS(scalar_tensor(1).size(0), IndexError);
  CHECK_THROWS_AS(empty({2, 3}, TensorOptions().memory_format(MemoryFormat::ChannelsLast)), ValueError);
  CHECK_THROWS_AS(empty({-1}), ValueError);
  CHECK_THROWS_AS(empty({int64_t{1} << 40, int64_t{1} << 40}), ValueError);
}

TEST_CASE("views that a shape does not allow, and reshape, which then copies") {
  const Tensor t = zeros({2, 3}).transpose(0, 1);
  CHECK_THROWS_AS(t.view({6}), ValueError);
  CHECK_FALSE(t.reshape({6}).is_alias_of(t));
  CHECK(zeros({2, 3}).reshape({3, -1}).sizes() == IntArrayRef({3, 2}));
  CHECK_THROWS_AS(zeros({2, 3}).view({4, -1}), ValueError);
  CHECK_THROWS_AS(zeros({2, 3}).view({-1, -1}), ValueError);
  CHECK_THROWS_AS(zeros({2, 3})[2], IndexError);
  CHECK_THROWS_AS(zeros({2, 3}).transpose(0, 2), IndexError);
  CHECK_THROWS_AS(zeros({2, 3}).expand({4, 3}), ValueError);
  CHECK_THROWS_AS(zeros({4}).as_strided({3}, {2}, 0), ValueError);
  CHECK_THROWS_AS(zeros({4}).as_strided({2}, {-1}, 1), ValueError);
}

TEST_CASE("item and data_ptr are checked") {
  CHECK(tensor(2.5).item<double>() == 2.5);
  CHECK(tensor(7).scalar_type() == kInt64);
  CHECK_THROWS_AS(zeros({2}).item(), ValueError);
  CHECK_THROWS_AS(zeros({2}).data_ptr<double>(), TypeError);
  CHECK_THROWS_AS(Tensor().data_ptr(), Error);
  CHECK_THROWS_AS(tensor(complex<double>(1, 2)).item<double>(), ValueError);
}

TEST_CASE("an undefined tensor answers as an empty one, except for what it has not") {
  const Tensor none;
  CHECK(none.numel() == 0);
  CHECK(none.dim() == 1);
  CHECK(none.size(0) == 0);
  CHECK(none.sizes() == IntArrayRef({0}));
  CHECK(none.is_contiguous());
  CHECK_FALSE((none.is_cpu() || none.is_cuda() || none.is_sparse() || none.is_floating_point() || none.is_complex()));
  CHECK_THROWS_AS(none.dtype(), Error);
  CHECK_THROWS_AS(none.device(), Error);
  CHECK_THROWS_AS(none.strides(), Error);
  CHECK_THROWS_AS(none.grad(), Error);
}

TEST_CASE("a Scalar is converted to an integer type that holds it") {
  CHECK(Scalar(-128).to<int8_t>() == -128);
  CHECK(Scalar(127.0).to<int8_t>() == 127);
  CHECK(Scalar(-0.9).to<int64_t>() == 0);
  CHECK(Scalar(-1).to<uint8_t>() == 255);
  CHECK(Scalar(INT64_MIN).to<int64_t>() == INT64_MIN);
  CHECK(Scalar(-0x1p63).to<int64_t>() == INT64_MIN);
  CHECK(Scalar(1e300).to<float>() == std::numeric_limits<float>::infinity());
  CHECK_THROWS_WITH_AS(Scalar(128).to<int8_t>(), "Scalar: 128 cannot be converted to int8 without overflow",
                       ValueError);
  CHECK_THROWS_AS(Scalar(-129).to<int8_t>(), ValueError);
  CHECK_THROWS_AS(Scalar(-256).to<uint8_t>(), ValueError);
  CHECK_THROWS_AS(Scalar(-0.5).to<uint8_t>(), ValueError);
  CHECK_THROWS_AS(Scalar(0x1p63).to<int64_t>(), ValueError);
  CHECK_THROWS_AS(Scalar(std::nan("")).to<int32_t>(), ValueError);
  CHECK_THROWS_AS(Scalar(complex<double>(300, 0)).to<uint8_t>(), ValueError);
}

TEST_CASE("memory of the caller is used in place and given back") {
  static int freed;
  freed = 0;
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  {
    const Tensor t = from_blob(values.data(), {2, 3}, [](void*) { ++freed; });
    const Tensor view = t[1];
    t.add_(1);
    CHECK(view[0].item<float>() == 5);
    const Tensor columns = from_blob(values.data(), {3, 2}, {1, 3});
    CHECK(columns[2][0].item<float>() == 4);
  }
  CHECK(values[5] == 7);
  CHECK(freed == 1);
}

TEST_CASE("conversions between dtypes") {
  const Tensor t = tensor({-1.5, 0.0, 2.7}, kFloat64);
  CHECK(t.to(kInt32)[0].item<int>() == -1);
  CHECK(t.to(kBool)[1].item<bool>() == false);
  CHECK(t.to(kBool)[2].item<bool>() == true);
  CHECK(t.to(kComplex64)[2].item().to<complex<double>>().real() == doctest::Approx(2.7));
  CHECK(t.to(kHalf)[2].item<float>() == doctest::Approx(2.7).epsilon(1e-3));
  CHECK(t.to(kFloat64).is_same(t));
  CHECK_FALSE(t.to(kFloat64, false, true).is_same(t));
  CHECK_THROWS_AS(zeros({2}).copy_(zeros({3})), ValueError);
}

TEST_CASE("set_ of a leaf that requires a gradient needs a scope without recording") {
  const Tensor leaf = zeros({2}).requires_grad_();
  CHECK_THROWS_AS(leaf.set_(ones({3})), Error);
  {
    const NoGradGuard no_grad;
    leaf.set_(ones({3}));
  }
  CHECK(leaf.requires_grad());
  (leaf * 2).sum().backward();
  CHECK(leaf.grad().equal(full({3}, 2.0)));
}

TEST_CASE("devices are parsed") {
  CHECK(Device("cuda:1") == Device(kCUDA, 1));
  CHECK(Device("cpu").is_cpu());
  const std::string name = "meta";
  const Device named = name;
  CHECK(named.is_meta());
  CHECK(zeros({2}).to(name).is_meta());
  CHECK(TensorOptions(name).device() == name);
  CHECK(Device(kCUDA, 2).str() == "cuda:2");
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:1x", "cuda:1000"}) {
    CHECK_THROWS_AS(Device{bad}, ValueError);
  }
}
