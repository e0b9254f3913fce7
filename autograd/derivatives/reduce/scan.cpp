#include "core/ops/reduce/scan.h"

#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/view/rearrange.h"

namespace rush {

namespace {

// The sum of each element and all behind it.
Tensor reverse_cumsum(const Tensor& self, int64_t dim) { return self.flip(dim).cumsum(dim).flip(dim); }

struct CumsumBackward final : Node {
  int64_t dim = 0;
  void save(const Tensor&, int64_t along, std::optional<ScalarType>) { dim = along; }
  Tensors apply(const Tensors& g) override { return {g[0].numel() <= 1 ? g[0] : reverse_cumsum(g[0], dim)}; }
};

// d out_j / d x_k, for j >= k, is the product of all x_0 ... x_j but x_k. Taken without a division, so that zeros are
// right too and the formula can be differentiated again: it is what stands before x_k times
//   tail_k = g_k + x_{k+1} g_{k+1} + x_{k+1} x_{k+2} g_{k+2} + ...,
// of which the first `count` terms are known, and doubled: those of tail_{k + count} follow, times the product of the
// x between, `step`.
struct CumprodBackward final : Node {
  Saved self;
  int64_t dim = 0;
  RUSH_SAVED(self)
  void save(const Tensor& x, int64_t along, std::optional<ScalarType>) {
    self = x;
    dim = wrap_dim(along, x.dim(), "cumprod");
  }
  Tensors apply(const Tensors& g) override {
    if (g[0].dim() == 0 || g[0].numel() == 0) return {g[0]};
    const Tensor x = self.get().to(g[0].scalar_type()).conj();
    const int64_t n = x.size(dim);
    const Tensor before = cat({ones_like(x.narrow(dim, 0, 1)), x.narrow(dim, 0, n - 1).cumprod(dim)}, dim);
    Tensor tail = g[0], step = x.narrow(dim, 1, n - 1);
    for (int64_t count = 1; count < n; count *= 2) {
      const int64_t rest = n - count;
      const Tensor longer = addcmul(tail.narrow(dim, 0, rest), step, tail.narrow(dim, count, rest));
      tail = cat({longer, tail.narrow(dim, rest, count)}, dim);
      if (rest > count) step = step.narrow(dim, 0, rest - count) * step.narrow(dim, count, rest - count);
    }
    return {before * tail};
  }
};

struct CumulativeExtremeBackward final : Node {  // each output's gradient goes to the element that it shows
  Saved indices;
  SavedSizes sizes;
  int64_t dim = 0;
  RUSH_SAVED(indices)
  auto saved_arguments() { return std::tie(sizes, dim); }
  void save_output(const Tensor&, const Tensor& where) { indices = where; }
  Tensors apply(const Tensors& g) override {
    if (sizes.empty()) return {g[0]};
    return {zeros(sizes, g[0].options()).scatter_add(dim, indices.get(), g[0])};
  }
};

// sum over j >= k of g_j e^(x_k - out_j), conjugated if complex, in logarithms: positive and negative gradients apart,
// which complex ones need not be. The logarithm of none is not -inf, which would make differences of infinities, but
// low enough that its exponential is 0 in every dtype.
struct LogcumsumexpBackward final : Node {
  Saved self, result;
  int64_t dim = 0;
  RUSH_SAVED(self, result)
  auto saved_arguments() { return std::tie(self, dim); }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override {
    if (g[0].numel() == 0) return {g[0]};
    const Tensor x = self.get(), out = result.get();
    const auto part = [&](const Tensor& grad, const Tensor& counts) {
      const Tensor log = where(counts, where(counts, grad, 1).log(), -1e4);
      return ((log - out).flip(dim).logcumsumexp(dim).flip(dim) + x).exp();
    };
    if (x.is_complex()) return {part(g[0].conj(), g[0] != 0).conj()};
    return {part(g[0], g[0] > 0) - part(-g[0], g[0] < 0)};
  }
};

}  // namespace

void register_scan_derivatives(Registry& r) {
  derive_all<CumsumBackward, ops::cumsum, ops::cumsum_>(r);
  derive_all<CumprodBackward, ops::cumprod, ops::cumprod_>(r);
  derive_all<CumulativeExtremeBackward, ops::cummax, ops::cummin>(r);
  derive<ops::logcumsumexp, LogcumsumexpBackward>(r);
}

}  // namespace rush
