#include "core/ops/nn/ctc_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/ctc.h"

namespace rush::cpu {

namespace {

// See Note [Forward and backward variables] in backends/functors/ctc.h.
using functors::ctc_log_sum;
using functors::ctc_never;
using functors::CtcSequence;
using kernels::CtcBatch;

template <class T>
CtcSequence<T> sequence_of(const Tensor& all, const Tensor& targets, const CtcBatch& batch, int64_t sample) {
  const auto n = static_cast<size_t>(sample);
  return {all.data_ptr<T>() + sample * all.size(2),
          targets.data_ptr<int64_t>() + batch.target_begin[n],
          batch.input_lengths[n],
          2 * batch.target_lengths[n] + 1,
          all.size(1) * all.size(2),
          batch.blank};
}

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
T forward_variables(const CtcSequence<T>& q, T* alpha, int64_t width) {
  const T* before = nullptr;
  for (int64_t t = 0; t < q.steps; ++t, before = alpha, alpha += width) {
    for (int64_t s = 0; s < q.states; ++s) alpha[s] = q.alpha(t, s, before);
  }
  return q.loss(before);
}

struct CtcLoop {
  template <class T>
  static void run(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
                  const CtcBatch& batch) {
    check_labels(targets, batch, log_probs.size(2));
    const int64_t width = log_alpha.size(2), plane = log_alpha.size(1) * width;
    T* out = losses.data_ptr<T>();
    T* alpha = log_alpha.data_ptr<T>();
    std::fill_n(alpha, log_alpha.numel(), ctc_never<T>());
    parallel_for(0, losses.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        out[n] = forward_variables(sequence_of<T>(log_probs, targets, batch, n), alpha + n * plane, width);
      }
    });
  }
};

// exp(log p(t, c)) - exp(log(sum over states s with symbol c of alpha beta) + loss - log p(t, c)), times `grad`. The
// first term is what log_softmax's derivative would add: see ctc_loss.
template <class T>
void sequence_gradient(const CtcSequence<T>& q, T* grad_input, int64_t classes, const T* alpha, int64_t width, T loss,
                       T grad) {
  std::vector<T> beta(static_cast<size_t>(q.states), ctc_never<T>()), later(beta);
  for (int64_t t = q.steps - 1; t >= 0; --t) {
    std::swap(beta, later);
    T* row = grad_input + t * q.stride;
    std::fill_n(row, classes, ctc_never<T>());
    for (int64_t s = 0; s < q.states; ++s) {
      beta[s] = q.beta(t, s, later.data());
      T& sum = row[q.symbol(s)];
      sum = ctc_log_sum(sum, alpha[t * width + s] + beta[s]);
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
        if (zero_infinity && loss[n] == -ctc_never<T>()) continue;
        sequence_gradient(sequence_of<T>(log_probs, targets, batch, n), out + n * classes, classes,
                          log_alpha.data_ptr<T>() + n * plane, width, loss[n], grad.data_ptr<T>()[n]);
      }
    });
  }
};

using CtcTypes = TypeList<float, double>;

}  // namespace

void register_ctc_loss() {
  set_by_dtype<kernels::ctc_loss, CtcLoop, CtcTypes, 2>(kCPU);
  set_by_dtype<kernels::ctc_loss_backward, CtcBackwardLoop, CtcTypes, 2>(kCPU);
}

}  // namespace rush::cpu
