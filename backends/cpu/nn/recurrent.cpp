// The element-wise part of a recurrent layer's steps. Formulas: core/ops/nn/recurrent.h.
#include <vector>

#include "backends/cpu/loops.h"
#include "backends/cpu/pointwise/vec_math.h"
#include "backends/cpu/register.h"
#include "backends/functors/activation.h"
#include "backends/functors/unary.h"
#include "core/ops/nn/recurrent_layer.h"

namespace rush::cpu {

namespace {

constexpr int64_t kGrain = 4096;  // elements of h, with a few exponentials each

// A row in the type of the arithmetic: where it lies, or for 16-bit numbers a copy, from which they are rounded in the
// end unless T is const. Null where there is no tensor.
template <class T>
class Row {
  using Number = std::remove_const_t<T>;
  using Math = std::conditional_t<std::is_const_v<T>, const opmath_t<Number>, opmath_t<Number>>;
  static constexpr bool kIsCopied = !std::is_same_v<T, Math>;

 public:
  Row(const Tensor& t, int64_t row) {
    if (!t.defined()) return;
    at_ = t.data_ptr<Number>() + row * t.stride(0);
    if constexpr (kIsCopied) copy_.assign(at_, at_ + t.size(1));
  }
  Row(const Row&) = delete;
  ~Row() {
    if constexpr (kIsCopied && !std::is_const_v<T>) {
      for (size_t j = 0; j < copy_.size(); ++j) at_[j] = static_cast<T>(copy_[j]);
    }
  }
  operator Math*() {
    if constexpr (kIsCopied) {
      return at_ ? copy_.data() : nullptr;
    } else {
      return at_;
    }
  }

 private:
  T* at_ = nullptr;
  std::vector<opmath_t<Number>> copy_;
};

// out[i] = F()(in[i]).
template <class F, class T>
void map(const T* in, T* out, int64_t n) {
  vec_loop(F(), out, &in, n, std::index_sequence<0>());
}
template <class T>
T sigmoid_gradient(T grad, T y) {
  return functors::SigmoidBackward()(grad, y);
}
template <class T>
T tanh_gradient(T grad, T y) {
  return functors::TanhBackward()(grad, y);
}

// One row each: n columns of h, and n of each gate.
template <class T>
void lstm_row(T* gates, T* c, T* kept, T* after, int64_t n) {
  T *i = gates, *f = i + n, *g = f + n, *o = g + n;
  map<functors::Sigmoid>(i, i, 2 * n);
  map<functors::Tanh>(g, g, n);
  map<functors::Sigmoid>(o, o, n);
  if (kept) std::copy_n(c, n, kept);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) c[j] = f[j] * c[j] + i[j] * g[j];
  map<functors::Tanh>(c, after, n);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) after[j] = o[j] * after[j];
}

template <class T>
void lstm_row_backward(T* grad_gates, const T* grad_after, T* grad_c, const T* gates, const T* kept, int64_t n) {
  const T *i = gates, *f = i + n, *g = f + n, *o = g + n;
  T *di = grad_gates, *df = di + n, *dg = df + n, *out = dg + n;
  // tanh(c) lies where the gradient of o will.
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) out[j] = f[j] * kept[j] + i[j] * g[j];
  map<functors::Tanh>(out, out, n);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const T dh = grad_after[j], tanh_c = out[j];
    const T dc = grad_c[j] + tanh_gradient(dh * o[j], tanh_c);
    out[j] = sigmoid_gradient(dh * tanh_c, o[j]);
    di[j] = sigmoid_gradient(dc * g[j], i[j]);
    df[j] = sigmoid_gradient(dc * kept[j], f[j]);
    dg[j] = tanh_gradient(dc * i[j], g[j]);
    grad_c[j] = dc * f[j];
  }
}

template <class T>
void gru_row(T* gates, const T* from_hidden, const T* before, T* kept, T* after, int64_t n) {
  T *r = gates, *z = r + n, *x = z + n;
  const T* h = from_hidden + 2 * n;
#pragma GCC ivdep
  for (int64_t j = 0; j < 2 * n; ++j) gates[j] += from_hidden[j];
  map<functors::Sigmoid>(r, r, 2 * n);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) x[j] += r[j] * h[j];
  map<functors::Tanh>(x, x, n);
  if (kept) std::copy_n(h, n, kept);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) after[j] = x[j] + z[j] * (before[j] - x[j]);
}

template <class T>
void gru_row_backward(T* grad_gates, T* grad_from_hidden, T* grad_after, const T* gates, const T* kept, const T* before,
                      int64_t n) {
  const T *r = gates, *z = r + n, *x = z + n;
  T *dr = grad_gates, *dz = dr + n, *dx = dz + n;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const T dh = grad_after[j];
    const T by_n = tanh_gradient(dh * (T(1) - z[j]), x[j]);
    dr[j] = sigmoid_gradient(by_n * kept[j], r[j]);
    dz[j] = sigmoid_gradient(dh * (before[j] - x[j]), z[j]);
    dx[j] = by_n;
    grad_from_hidden[2 * n + j] = by_n * r[j];
    grad_after[j] = dh * z[j];
  }
  std::copy_n(grad_gates, 2 * n, grad_from_hidden);
}

template <class T>
void rnn_row(bool relu, T* gates, T* after, int64_t n) {
  if (relu) {
    for (int64_t j = 0; j < n; ++j) gates[j] = functors::Relu()(gates[j]);
  } else {
    map<functors::Tanh>(gates, gates, n);
  }
  std::copy_n(gates, n, after);
}

template <class T>
void rnn_row_backward(bool relu, T* grad_gates, const T* grad_after, const T* gates, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    grad_gates[j] = relu ? (gates[j] <= T(0) ? T(0) : grad_after[j]) : tanh_gradient(grad_after[j], gates[j]);
  }
}

template <class Fn>
void for_rows(const Tensor& h, const Fn& fn) {
  const int64_t n = h.size(1);
  parallel_for(0, h.size(0), std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) fn(begin, n);
  });
}

struct StepLoop {
  template <class T>
  static void run(RecurrentMode mode, const Tensor& gates, const Tensor& from_hidden, const Tensor& before,
                  const Tensor& c, const Tensor& kept, const Tensor& after) {
    for_rows(after, [&](int64_t row, int64_t n) {
      Row<T> g(gates, row), cell(c, row), k(kept, row), out(after, row);
      Row<const T> x(from_hidden, row), h(before, row);
      if (mode == RecurrentMode::Lstm) return lstm_row<opmath_t<T>>(g, cell, k, out, n);
      if (mode == RecurrentMode::Gru) return gru_row<opmath_t<T>>(g, x, h, k, out, n);
      rnn_row<opmath_t<T>>(mode == RecurrentMode::Relu, g, out, n);
    });
  }
};

struct StepBackwardLoop {
  template <class T>
  static void run(RecurrentMode mode, const Tensor& grad_gates, const Tensor& grad_from_hidden,
                  const Tensor& grad_after, const Tensor& grad_c, const Tensor& gates, const Tensor& kept,
                  const Tensor& before) {
    for_rows(grad_after, [&](int64_t row, int64_t n) {
      Row<T> dg(grad_gates, row), dx(grad_from_hidden, row), dh(grad_after, row), dc(grad_c, row);
      Row<const T> g(gates, row), k(kept, row), h(before, row);
      if (mode == RecurrentMode::Lstm) return lstm_row_backward<opmath_t<T>>(dg, dh, dc, g, k, n);
      if (mode == RecurrentMode::Gru) return gru_row_backward<opmath_t<T>>(dg, dx, dh, g, k, h, n);
      rnn_row_backward<opmath_t<T>>(mode == RecurrentMode::Relu, dg, dh, g, n);
    });
  }
};

}  // namespace

void register_recurrent() {
  set_by_dtype<kernels::recurrent_step, StepLoop, RealFloatTypes, 1>(kCPU);
  set_by_dtype<kernels::recurrent_step_backward, StepBackwardLoop, RealFloatTypes, 1>(kCPU);
}

}  // namespace rush::cpu
