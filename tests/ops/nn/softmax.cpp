#include <cmath>

#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

// exp(x) / sum exp(x) along `dim`, element by element in double.
Doubles naive_softmax(const Tensor& self, int64_t dim, bool log) {
  const Tensor lines = self.to(kFloat64).transpose(dim, -1).contiguous();
  const int64_t n = lines.size(-1);
  Tensor result = lines.clone();
  for (int64_t start = 0; start < lines.numel(); start += n) {
    const double* x = lines.data_ptr<double>() + start;
    double largest = -kInf, total = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, x[i]);
    for (int64_t i = 0; i < n; ++i) total += std::exp(x[i] - largest);
    for (int64_t i = 0; i < n; ++i) {
      const double shifted = x[i] - largest;
      result.data_ptr<double>()[start + i] = log ? shifted - std::log(total) : std::exp(shifted) / total;
    }
  }
  return values(result.transpose(dim, -1));
}

}  // namespace

TEST_CASE("softmax and log_softmax along any dimension of any layout") {
  const struct {
    ScalarType dtype;
    double tolerance;
  } precisions[] = {{kFloat64, 1e-13}, {kFloat32, 1e-6}, {kFloat16, 2e-3}, {kBFloat16, 2e-2}};
  for (const auto& [dtype, tolerance] : precisions) {
    for (const Arrangement& layout : arrangements(dtype)) {
      if (layout.tensor.dim() == 0 || layout.tensor.numel() == 0) continue;
      for (int64_t d = 0; d < layout.tensor.dim(); ++d) {
        CAPTURE(layout.name);
        CAPTURE(d);
        const Tensor x = layout.tensor * 5;
        CHECK(close(values(x.softmax(d)), naive_softmax(x, d, false), tolerance));
        CHECK(close(values(x.log_softmax(d)), naive_softmax(x, d, true), tolerance));
      }
    }
  }
}

// A GPU has one thread to 1024 for a row, by its length; rows of odd lengths are read element by element, and those
// that no block holds twice, of which few are cut into chunks and many are not.
TEST_CASE("softmax and its gradient for rows of any length") {
  for (const int64_t n : {1, 2, 3, 4, 5, 8, 12, 31, 33, 64, 129, 1000, 8203, 16390, 40003}) {
    const int64_t rows = n < 1000 ? 300 : n == 8203 ? 80 : 3;
    for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16}) {
      CAPTURE(n);
      CAPTURE(dtype);
      const Tensor x = ((arange(rows * n, kFloat64) * 0.7).sin() * 4).view({rows, n}).to(dtype).requires_grad_();
      const Tensor g = (arange(rows * n, kFloat64) * 1.3).cos().view({rows, n}).to(dtype);
      const double tolerance = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 2e-6 : 3e-2;
      for (const bool log : {false, true}) {
        const Tensor y = log ? x.log_softmax(1) : x.softmax(1);
        CHECK(close(values(y.detach()), naive_softmax(x.detach(), 1, log), tolerance));
        const Tensor o = y.detach().to(kFloat64), up = g.to(kFloat64);
        const Tensor expected = log ? up - o.exp() * up.sum(1, true) : (up - (up * o).sum(1, true)) * o;
        const Tensor gradient = autograd::grad({y}, {x}, {g})[0].to(kFloat64);
        CHECK(close(values(gradient), values(expected), 100 * tolerance));
      }
    }
  }
}

TEST_CASE("softmax of large, infinite and missing numbers") {
  CHECK(close(values(tensor({1000., 1000.}).softmax(0)), {0.5, 0.5}, 1e-7));
  CHECK(close(values(tensor({-1000., 0.}).softmax(0)), {0, 1}, 1e-7));
  CHECK(close(values(tensor({-kInf, 0.}).log_softmax(0)), {-kInf, 0}, 1e-7));
  CHECK(close(values(tensor({-kInf, -kInf}).softmax(0)), {kNan, kNan}, 0));
  CHECK(close(values(tensor({kNan, 0.}).softmax(0)), {kNan, kNan}, 0));
  CHECK(values(scalar_tensor(3.).softmax(0)) == Doubles{1});
  const Tensor many = tensor({-kInf, 0., kNan, 1., -kInf, -kInf, kInf, 2., 1000., 999.}).view({5, 2});
  for (int64_t row = 0; row < 5; ++row) {  // short rows are taken together
    CHECK(close(values(many.softmax(1)[row]), values(many[row].softmax(0)), 0));
    CHECK(close(values(many.log_softmax(1)[row]), values(many[row].log_softmax(0)), 0));
    CHECK(close(values(many.logsumexp(1)[row]), values(many[row].logsumexp(0)), 0));
  }
  const Tensor wide = zeros({3, 40003});  // a GPU takes such rows in chunks
  wide[0].slice(0, 0, 20000).fill_(-kInf);
  wide[1].slice(0, 40000, 40001).fill_(kNan);
  wide[2].slice(0, 10, 11).fill_(kInf);
  CHECK(values(wide.softmax(1).sum(1).isnan()) == Doubles{0, 1, 1});
  CHECK(wide.softmax(1)[0].count_nonzero().item<int64_t>() == 20003);
  CHECK(wide.softmax(1).isnan().sum().item<int64_t>() == 2 * 40003);
  CHECK(zeros({2, 0, 3}).softmax(1).sizes() == IntArrayRef({2, 0, 3}));
  CHECK(softmin(tensor({1., 1.}), 0)[0].item<double>() == 0.5);
}

TEST_CASE("softmax checks its input") {
  CHECK_THROWS_AS(tensor({1, 2}).softmax(0), NotImplementedError);
  CHECK(tensor({1, 2}).softmax(0, kFloat64).scalar_type() == kFloat64);
  CHECK_THROWS_AS(zeros({2}).softmax(1), IndexError);
  const Tensor x = zeros({2}, kFloat32);
  CHECK(ops::_softmax_backward_data(x, x, 0, kFloat16).scalar_type() == kFloat16);
  CHECK_THROWS_AS(ops::_softmax_backward_data(x, x, 0, kFloat64), TypeError);
}

TEST_CASE("derivatives of softmax") {
  for (int64_t dim : {0, 1, 2}) {
    check_gradients([=](const Tensors& x) { return Tensors{x[0].softmax(dim)}; }, {leaf({2, 3, 4})});
    check_gradients([=](const Tensors& x) { return Tensors{x[0].log_softmax(dim)}; }, {leaf({2, 3, 4})});
  }
  check_gradients([](const Tensors& x) { return Tensors{x[0].log_softmax(0)}; }, {leaf({})});
  check_gradients([](const Tensors& x) { return Tensors{x[0].softmax(-1)}; },
                  {leaf({4, 3}).detach().t().requires_grad_()});
}
