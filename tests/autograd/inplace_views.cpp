#include <doctest/doctest.h>

#include "autograd/debug/gradcheck.h"
#include "rushlight.h"

using namespace rush;

namespace {

Tensor input() { return arange(6, kFloat64).view({2, 3}).sin(); }

}  // namespace

TEST_CASE("a tensor that is transposed in place keeps its history") {
  const auto check = [](const auto& change) {
    CHECK(autograd::gradcheck(
        [&](const std::vector<Tensor>& in) {
          Tensor y = in[0] * in[0];
          change(y);
          return std::vector<Tensor>{y.exp()};
        },
        {input().requires_grad_()}));
  };
  check([](Tensor& y) { y.transpose_(0, 1); });
  check([](Tensor& y) { y.t_().unsqueeze_(0); });
  check([](Tensor& y) { y.unsqueeze_(1).squeeze_().swapdims_(0, 1); });
  check([](Tensor& y) {
    Tensor view = y.slice(1, 1, 3);
    view.t_();
    view.mul_(3);
  });
}

TEST_CASE("changes of the geometry count as writes") {
  Tensor x = input();
  const Tensor handle = x;
  x.transpose_(0, 1);
  CHECK(handle.sizes() == IntArrayRef({3, 2}));
  CHECK(handle._version() == 1);
  Tensor leaf = input().requires_grad_();
  CHECK_THROWS_AS(leaf.t_(), Error);
  CHECK(leaf.sizes() == IntArrayRef({2, 3}));
  Tensor y = leaf * 2;
  const Tensor z = y * y;
  y.t_();
  CHECK_THROWS_AS(z.sum().backward(), Error);
  CHECK_THROWS_AS(input().transpose_(0, 2), IndexError);
}
