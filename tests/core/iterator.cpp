#include "core/iterator/tensor_iterator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

using namespace rush;
using rush::testing::counting;

namespace {

double at(const Tensor& t, std::vector<int64_t> index) {
  Tensor part = t;
  for (int64_t i : index) part = part[i];
  return part.item<double>();
}

}  // namespace

TEST_CASE("dtypes promote by PyTorch's table") {
  // Rows and columns in the order of ScalarType; letters name the result, computed by torch.promote_types, which throws
  // where there is a dash.
  const std::string letters = "BCSIJHFDcdbT58uvw";
  const std::vector<std::string> table = {
      "BSSIJHFDcdBT-----", "SCSIJHFDcdCT-----", "SSSIJHFDcdST-----", "IIIIJHFDcdIT-----", "JJJJJHFDcdJT-----",
      "HHHHHHFDcdHF--HHH", "FFFFFFFDcdFF--FFF", "DDDDDDDDddDD--DDD", "cccccccdcdcc-----", "dddddddddddd-----",
      "BCSIJHFDcdbT-----", "TTTTTFFDcdTT--TTT", "------------5----", "-------------8---", "-----HFD---T--u--",
      "-----HFD---T---v-", "-----HFD---T----w"};
  REQUIRE(table.size() == kNumScalarTypes);
  for (int a = 0; a < kNumScalarTypes; ++a) {
    for (int b = 0; b < kNumScalarTypes; ++b) {
      const auto first = static_cast<ScalarType>(a), second = static_cast<ScalarType>(b);
      if (table[a][b] == '-') {
        CHECK_THROWS_AS(promote_types(first, second), TypeError);
      } else {
        CHECK(promote_types(first, second) == static_cast<ScalarType>(letters.find(table[a][b])));
      }
    }
  }
}

TEST_CASE("0-dimensional tensors and numbers count only when their category is higher") {
  const Tensor f32 = ones({2}), f64_0 = scalar_tensor(1, kFloat64), i8 = ones({2}, kInt8), i32 = ones({2}, kInt32);
  CHECK(result_type(f32, f64_0) == kFloat32);
  CHECK(result_type(i32, f64_0) == kFloat64);
  CHECK(result_type(f32, scalar_tensor(1, kComplex128)) == kComplex64);
  CHECK(result_type(ones({2}, kFloat64), scalar_tensor(1, kComplex64)) == kComplex128);
  CHECK(result_type(i32, scalar_tensor(1, kComplex128)) == kComplex128);
  CHECK(result_type(i8, scalar_tensor(1000, kInt64)) == kInt8);
  CHECK((i32 * 2.5).scalar_type() == kFloat32);
  CHECK((i8 * 1000).scalar_type() == kInt8);
  CHECK((ones({2}, kBool) * 3).scalar_type() == kInt64);
  CHECK((ones({2}, kFloat64) * complex<double>(0, 1)).scalar_type() == kComplex128);
  CHECK((ones({2}, kBFloat16) * 2.0).scalar_type() == kBFloat16);
  CHECK((scalar_tensor(1, kInt32) * 3).scalar_type() == kInt32);
}

TEST_CASE("operands broadcast; a naive loop agrees, for any strides") {
  const Tensor a = counting({3, 1, 4}), b = counting({5, 1}).add(0.5);
  const Tensor sum = a + b;
  REQUIRE(sum.sizes() == IntArrayRef({3, 5, 4}));
  const Tensor permuted = counting({4, 5, 3}).transpose(0, 2);
  const Tensor product = permuted * a;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      for (int64_t k = 0; k < 4; ++k) {
        REQUIRE(at(sum, {i, j, k}) == at(a, {i, 0, k}) + at(b, {j, 0}));
        REQUIRE(at(product, {i, j, k}) == at(permuted, {i, j, k}) * at(a, {i, 0, k}));
      }
    }
  }
  CHECK_THROWS_WITH_AS(
      ones({2, 3}) + ones({4}),
      "add: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1 to "
      "broadcast (2, 3) with (4)",
      ValueError);
  CHECK_THROWS_WITH_AS(
      ones({2}) + ones({5, 4, 3}),
      "add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 2 to "
      "broadcast (2) with (5, 4, 3)",
      ValueError);
}

TEST_CASE("a new output lies in memory in its inputs' order") {
  const Tensor t = counting({2, 3, 4}).transpose(0, 2);
  CHECK((t + t).strides() == t.strides());
  const Tensor image = empty({2, 3, 4, 5}, TensorOptions().memory_format(MemoryFormat::ChannelsLast));
  CHECK(image.exp().is_contiguous(MemoryFormat::ChannelsLast));
  CHECK((image + ones({3, 1, 1})).is_contiguous(MemoryFormat::ChannelsLast));
}

TEST_CASE("dimensions that are one run of memory become one loop") {
  const Tensor a = counting({4, 5, 6});
  CHECK(TensorIterator::pointwise("test", Tensor(), {&a}, Promotion::Common).dim() == 1);
  const Tensor t = a.transpose(0, 1);
  CHECK(TensorIterator::pointwise("test", Tensor(), {&t}, Promotion::Common).dim() == 1);
  const Tensor slice = a.as_strided({4, 5, 3}, {30, 6, 1}, 0);
  CHECK(TensorIterator::pointwise("test", Tensor(), {&slice}, Promotion::Common).dim() == 2);
}

TEST_CASE("large strided loops are split over threads without losing elements") {
  const Tensor a = counting({301, 407}), b = counting({407, 301}).transpose(0, 1);
  const Tensor sum = a + b;
  for (int64_t i = 0; i < 301; i += 7) {
    for (int64_t j = 0; j < 407; j += 11) {
      REQUIRE(at(sum, {i, j}) == static_cast<double>(i * 407 + j + j * 301 + i));
    }
  }
}

TEST_CASE("short rows equal a naive loop, of any length, near each other or far, on any number of threads") {
  for (const int64_t width : {2, 3, 7, 8}) {
    for (const int64_t pitch : {width, int64_t{100}}) {
      for (const int64_t height : {1, 2, 5, 700}) {
        const Tensor rows = counting({31, height, pitch}).narrow(2, 0, width);
        const Tensor row = counting({width}), column = counting({height, 1});
        for (const int threads : {1, 3}) {
          const int before = get_num_threads();
          set_num_threads(threads);
          const Tensor sum = rows + row, product = rows * column, copy = rows.contiguous();
          set_num_threads(before);
          bool equal = true;
          for (int64_t i = 0; i < rows.numel(); ++i) {
            const int64_t c = i % width, r = i / width % height;
            const double x = static_cast<double>(i / width * pitch + c);
            equal = equal && sum.contiguous().data_ptr<double>()[i] == x + static_cast<double>(c) &&
                    product.contiguous().data_ptr<double>()[i] == x * static_cast<double>(r) &&
                    copy.data_ptr<double>()[i] == x;
          }
          CHECK(equal);
        }
      }
    }
  }
}

TEST_CASE("results are cast to the target of an in-place operator, within its category") {
  const Tensor a = ones({3}, kFloat32);
  a.add_(ones({3}, kFloat64));
  CHECK(a.scalar_type() == kFloat32);
  CHECK(a[2].item<float>() == 2);
  const Tensor strided = zeros({3, 2}).transpose(0, 1);
  strided.add_(counting({2, 3}));
  CHECK(strided[1][0].item<float>() == 3);
  CHECK_THROWS_AS(ones({2}, kInt32).add_(0.5), TypeError);
  CHECK_THROWS_AS(ones({2}, kBool).add_(1), TypeError);
  CHECK_THROWS_AS(Tensor() + a, Error);
}

TEST_CASE("empty and 0-dimensional operands") {
  CHECK((ones({0, 3}) + ones({1, 3})).sizes() == IntArrayRef({0, 3}));
  CHECK((scalar_tensor(2) * scalar_tensor(3)).item<float>() == 6);
  CHECK((scalar_tensor(2) * scalar_tensor(3)).dim() == 0);
}

TEST_CASE("parallel_for covers its range once and carries exceptions to the caller") {
  std::vector<int> hits(100000);
  parallel_for(0, 100000, 1000, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++hits[i];
  });
  CHECK(std::count(hits.begin(), hits.end(), 1) == 100000);
  CHECK_THROWS_AS(parallel_for(0, 1000, 1, [](int64_t, int64_t) { throw ValueError("stop"); }), ValueError);
  parallel_for(0, 0, 1, [](int64_t, int64_t) { FAIL("called for an empty range"); });
  const int threads = get_num_threads();
  set_num_threads(3);
  CHECK(get_num_threads() == 3);
  const NoGradGuard no_grad;
  parallel_for(0, 3, 1, [](int64_t, int64_t) { RUSH_CHECK(!GradMode::is_enabled(), "grad mode is not the caller's"); });
  set_num_threads(threads);
  CHECK_THROWS_AS(set_num_threads(0), ValueError);
}
