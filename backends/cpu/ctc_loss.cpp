#include "core/ops/ctc_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// Note [Forward and backward variables]
// Between its labels, before and after them a sequence may have blanks: state s of 2 S + 1 stands for a blank when it
// is even and for label (s - 1) / 2 when it is odd. alpha(t, s) is the probability of all ways to be in state s at step
// t, beta(t, s) that of all ways on from there, step t counted in both. A way goes on in its state, to the next, or
// past a blank to a label that is not the one before (Graves et al., section 4.1). All stays in logarithms.

using kernels::CtcBatch;

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

template <class T>
T log_sum(T a, T b, T c = kNever<T>) {
  const T largest = std::max({a, b, c});
  if (largest == kNever<T>) return largest;
  return std::log(std::exp(a - largest) + std::exp(b - largest) + std::exp(c - largest)) + largest;
}

// One sample's states and log-probabilities.
template <class T>
struct Sequence {
  const T* log_probs;  // of step 0; the next step is `stride` further
  const int64_t* labels;
  int64_t steps, states, stride, blank;

  Sequence(const Tensor& all, const Tensor& targets, const CtcBatch& batch, int64_t n)
      : log_probs(all.data_ptr<T>() + n * all.size(2)),
        labels(targets.data_ptr<int64_t>() + batch.target_begin[static_cast<size_t>(n)]),
        steps(batch.input_lengths[static_cast<size_t>(n)]),
        states(2 * batch.target_lengths[static_cast<size_t>(n)] + 1),
        stride(all.size(1) * all.size(2)),
        blank(batch.blank) {}

  int64_t symbol(int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  T log_prob(int64_t t, int64_t s) const { return log_probs[t * stride + symbol(s)]; }
  // Whether a way may go from state s to s + 2.
  bool skips(int64_t s) const { return symbol(s) != symbol(s + 2); }
};

void check_labels(const Tensor& targets, const CtcBatch& batch, int64_t classes) {
  const int64_t* labels = targets.data_ptr<int64_t>();
  for (size_t n = 0; n < batch.target_begin.size(); ++n) {
    for (int64_t i = 0; i < batch.target_lengths[n]; ++i) {
      const int64_t label = labels[batch.target_begin[n] + i];
      RUSH_CHECK_INDEX(label >= 0 && label < classes, "ctc_loss: target ", label, " is none of ", classes, " classes");
    }
  }
}

// Fills alpha, of `width` states a step, and returns the loss.
template <class T>
T forward_variables(const Sequence<T>& q, T* alpha, int64_t width) {
  if (q.steps == 0) return q.states == 1 ? T(0) : -kNever<T>;
  for (int64_t s = 0; s < std::min<int64_t>(q.states, 2); ++s) alpha[s] = q.log_prob(0, s);
  for (int64_t t = 1; t < q.steps; ++t) {
    const T* before = alpha + (t - 1) * width;
    T* now = alpha + t * width;
    for (int64_t s = 0; s < q.states; ++s) {
      const T next = s > 0 ? before[s - 1] : kNever<T>;
      const T skip = s > 1 && q.skips(s - 2) ? before[s - 2] : kNever<T>;
      now[s] = log_sum(before[s], next, skip) + q.log_prob(t, s);
    }
  }
  const T* last = alpha + (q.steps - 1) * width + q.states - 1;
  return -log_sum(last[0], q.states > 1 ? last[-1] : kNever<T>);
}

struct CtcLoop {
  template <class T>
  static void run(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
                  const CtcBatch& batch) {
    check_labels(targets, batch, log_probs.size(2));
    const int64_t width = log_alpha.size(2), plane = log_alpha.size(1) * width;
    T* out = losses.data_ptr<T>();
    T* alpha = log_alpha.data_ptr<T>();
    std::fill_n(alpha, log_alpha.numel(), kNever<T>);
    parallel_for(0, losses.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        out[n] = forward_variables(Sequence<T>(log_probs, targets, batch, n), alpha + n * plane, width);
      }
    });
  }
};

// exp(log p(t, c)) - exp(log(sum over states s with symbol c of alpha beta) + loss - log p(t, c)), times `grad`. The
// first term is what log_softmax's derivative would add: see ctc_loss.
template <class T>
void sequence_gradient(const Sequence<T>& q, T* grad_input, int64_t classes, const T* alpha, int64_t width, T loss,
                       T grad) {
  std::vector<T> beta(static_cast<size_t>(q.states), kNever<T>), later(beta);
  for (int64_t t = q.steps - 1; t >= 0; --t) {
    std::swap(beta, later);
    T* row = grad_input + t * q.stride;
    std::fill_n(row, classes, kNever<T>);
    for (int64_t s = 0; s < q.states; ++s) {
      if (t == q.steps - 1) {
        beta[s] = s >= q.states - 2 ? T(0) : kNever<T>;
      } else {
        const T next = s + 1 < q.states ? later[s + 1] : kNever<T>;
        const T skip = s + 2 < q.states && q.skips(s) ? later[s + 2] : kNever<T>;
        beta[s] = log_sum(later[s], next, skip);
      }
      beta[s] += q.log_prob(t, s);
      T& sum = row[q.symbol(s)];
      sum = log_sum(sum, alpha[t * width + s] + beta[s]);
    }
    for (int64_t c = 0; c < classes; ++c) {
      const T log_prob = q.log_probs[t * q.stride + c];
      row[c] = (std::exp(log_prob) - std::exp(row[c] + loss - log_prob)) * grad;
    }
  }
}

struct CtcBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                  const Tensor& losses, const Tensor& log_alpha, const CtcBatch& batch, bool zero_infinity) {
    const int64_t classes = log_probs.size(2), width = log_alpha.size(2), plane = log_alpha.size(1) * width;
    check_labels(targets, batch, classes);
    T* out = grad_input.data_ptr<T>();
    // Steps past a sample's length stay zero.
    std::fill_n(out, grad_input.numel(), T(0));
    const T* loss = losses.data_ptr<T>();
    parallel_for(0, losses.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        if (zero_infinity && loss[n] == -kNever<T>) continue;
        sequence_gradient(Sequence<T>(log_probs, targets, batch, n), out + n * classes, classes,
                          log_alpha.data_ptr<T>() + n * plane, width, loss[n], grad.data_ptr<T>()[n]);
      }
    });
  }
};

using CtcTypes = TypeList<float, double>;

void ctc_loss(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
              const CtcBatch& batch) {
  pick<CtcLoop>(CtcTypes(), log_probs.scalar_type(), "ctc_loss")(losses, log_alpha, log_probs, targets, batch);
}

void ctc_loss_backward(const Tensor& grad_input, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                       const Tensor& losses, const Tensor& log_alpha, const CtcBatch& batch, bool zero_infinity) {
  pick<CtcBackwardLoop>(CtcTypes(), log_probs.scalar_type(), "ctc_loss_backward")(
      grad_input, grad, log_probs, targets, losses, log_alpha, batch, zero_infinity);
}

}  // namespace

void register_ctc_loss() {
  kernels::ctc_loss.set(kCPU, ctc_loss);
  kernels::ctc_loss_backward.set(kCPU, ctc_loss_backward);
}

}  // namespace rush::cpu
