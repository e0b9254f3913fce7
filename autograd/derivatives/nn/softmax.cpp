#include "core/ops/nn/softmax.h"

#include "autograd/derivatives/reduce/reduced_shape.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

template <auto& backward>
struct SoftmaxOutputBackward : Node {
  Saved result;
  int64_t dim = 0;
  ScalarType dtype = kFloat32;
  RUSH_SAVED(result)
  void save(const Tensor& self, int64_t along, bool) {
    dim = along;
    dtype = self.scalar_type();
  }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override { return {backward(g[0], result.get(), dim, dtype)}; }
};
struct SoftmaxBackward final : SoftmaxOutputBackward<ops::_softmax_backward_data> {};
struct LogSoftmaxBackward final : SoftmaxOutputBackward<ops::_log_softmax_backward_data> {};

// Of a backward pass r, by its gradient g and by the output o.
struct DoubleBackwardNode : Node {
  Saved grad, output;
  int64_t dim = 0;
  RUSH_SAVED(grad, output)
  void save(const Tensor& g, const Tensor& out, int64_t along, ScalarType) {
    if (needs(1)) grad = g;
    output = out;
    dim = along;
  }
};

// r = (g - s) o with s = sum(g o): dr/dg is the same map again, dr/do = h (g - s) - g sum(h o) for a gradient h of r.
struct SoftmaxDoubleBackward final : DoubleBackwardNode {
  Tensors apply(const Tensors& h) override {
    const Tensor o = output.get();
    Tensors result{ops::_softmax_backward_data(h[0].to(o.scalar_type()), o, dim, o.scalar_type()), Tensor()};
    if (needs(1)) {
      const Tensor g = grad.get();
      result[1] = h[0] * (g - (g * o).sum(dim, true)) - g * (h[0] * o).sum(dim, true);
    }
    return result;
  }
};

// r = g - e^o sum(g): dr/dg = h - sum(h e^o), dr/do = -h e^o sum(g).
struct LogSoftmaxDoubleBackward final : DoubleBackwardNode {
  Tensors apply(const Tensors& h) override {
    const Tensor scaled = h[0] * output.get().exp();
    return {h[0] - scaled.sum(dim, true), needs(1) ? -(scaled * grad.get().sum(dim, true)) : Tensor()};
  }
};

struct LogsumexpBackward final : Node {  // g softmax(x)^H, softmax(x) = e^(x - logsumexp(x))
  Saved self, result;
  ReducedShape shape;
  RUSH_SAVED(self, result)
  void save(const Tensor& x, IntArrayRef dim, bool) {
    self = x;
    shape.save(x, dim);
  }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override {
    return {shape.restore(g[0]) * (self.get() - shape.restore(result.get())).exp().conj()};
  }
};

}  // namespace

void register_softmax_derivatives(Registry& r) {
  derive<ops::_softmax, SoftmaxBackward>(r);
  derive<ops::_log_softmax, LogSoftmaxBackward>(r);
  derive<ops::_softmax_backward_data, SoftmaxDoubleBackward>(r);
  derive<ops::_log_softmax_backward_data, LogSoftmaxDoubleBackward>(r);
  derive<ops::logsumexp, LogsumexpBackward>(r);
}

}  // namespace rush
