// The CTC loss: a thread block for each sample and a thread for each state, which loops over the steps.
#include "core/ops/nn/ctc_loss.h"

#include <algorithm>

#include "backends/cuda/device_assert.h"
#include "backends/cuda/launch_kernel.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/register.h"
#include "backends/functors/ctc.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

using functors::ctc_log_sum;
using functors::ctc_never;
using functors::CtcSequence;
using kernels::CtcBatch;

constexpr int kThreads = 128;

template <class T>
struct Samples {
  const T* log_probs;  // (steps, samples, classes)
  const int64_t* labels;
  const int64_t* numbers;  // (3, samples): input lengths, target lengths, where targets begin
  int64_t steps, samples, classes, blank, width;

  __device__ CtcSequence<T> at(int64_t n) const {
    return {log_probs + n * classes,
            labels + numbers[2 * samples + n],
            numbers[n],
            2 * numbers[samples + n] + 1,
            samples * classes,
            blank};
  }
};

// Whether all labels that the threads of the block read are valid.
template <class T>
__device__ bool has_valid_labels(const CtcSequence<T>& q, int64_t classes, const DeviceCheck& check) {
  bool valid = true;
  for (int64_t i = threadIdx.x; i < q.states / 2; i += blockDim.x) {
    const int64_t label = q.labels[i];
    valid = RUSH_DEVICE_CHECK(label >= 0 && label < classes, check, label, classes) && valid;
  }
  return __syncthreads_and(valid);
}

template <class T>
__global__ void ctc_loss_kernel(T* losses, T* log_alpha, Samples<T> samples, DeviceCheck check) {
  for (int64_t n = blockIdx.x; n < samples.samples; n += gridDim.x) {
    const CtcSequence<T> q = samples.at(n);
    const bool valid = has_valid_labels(q, samples.classes, check);
    T* alpha = log_alpha + n * samples.steps * samples.width;
    for (int64_t t = 0; t < samples.steps; ++t, alpha += samples.width) {
      for (int64_t s = threadIdx.x; s < samples.width; s += blockDim.x) {
        const bool exists = valid && t < q.steps && s < q.states;
        alpha[s] = exists ? q.alpha(t, s, alpha - samples.width) : ctc_never<T>();
      }
      __syncthreads();
    }
    const T* last = log_alpha + (n * samples.steps + q.steps - 1) * samples.width;
    if (threadIdx.x == 0) losses[n] = valid ? q.loss(last) : T(0);
  }
}

// The first state of a symbol adds the sums of all states with that symbol.
template <class T>
__device__ bool is_first_of_symbol(const CtcSequence<T>& q, int64_t s) {
  const int64_t symbol = q.symbol(s);
  if (s > 0 && symbol == q.blank) return false;
  for (int64_t i = 1; i < s; i += 2) {
    if (q.symbol(i) == symbol) return false;
  }
  return true;
}

// As on the CPU: exp(log p(t, c)) - exp(log(sum over states s with symbol c of alpha beta) + loss - log p(t, c)), times
// the gradient of the loss.
template <class T>
__global__ void ctc_loss_backward_kernel(T* grad_input, const T* grads, const T* losses, const T* log_alpha, T* betas,
                                         bool* firsts, Samples<T> samples, bool zero_infinity, DeviceCheck check) {
  const int64_t width = samples.width, classes = samples.classes;
  for (int64_t n = blockIdx.x; n < samples.samples; n += gridDim.x) {
    const CtcSequence<T> q = samples.at(n);
    const bool counts = has_valid_labels(q, classes, check) && !(zero_infinity && losses[n] == -ctc_never<T>());
    const T loss = losses[n], grad = grads[n];
    T *beta = betas + n * 2 * width, *later = beta + width;
    bool* first = firsts + n * width;
    for (int64_t s = threadIdx.x; counts && s < q.states; s += blockDim.x) first[s] = is_first_of_symbol(q, s);
    for (int64_t t = samples.steps - 1; t >= 0; --t) {
      T* row = grad_input + t * q.stride + n * classes;
      const bool inside = counts && t < q.steps;
      for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) row[c] = inside ? ctc_never<T>() : T(0);
      if (!inside) continue;  // the whole block
      for (int64_t s = threadIdx.x; s < q.states; s += blockDim.x) beta[s] = q.beta(t, s, later);
      __syncthreads();
      const T* alpha = log_alpha + (n * samples.steps + t) * width;
      for (int64_t s = threadIdx.x; s < q.states; s += blockDim.x) {
        if (!first[s]) continue;
        const int64_t symbol = q.symbol(s);
        T sum = ctc_never<T>();
        for (int64_t i = s; i < q.states; ++i) {
          if (q.symbol(i) == symbol) sum = ctc_log_sum(sum, alpha[i] + beta[i]);
        }
        row[symbol] = sum;
      }
      __syncthreads();
      for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
        const T log_prob = q.log_probs[t * q.stride + c];
        row[c] = (std::exp(log_prob) - std::exp(row[c] + loss - log_prob)) * grad;
      }
      T* const swapped = beta;
      beta = later;
      later = swapped;
    }
    __syncthreads();
  }
}

// The batch's numbers on the device.
Tensor numbers_of(const CtcBatch& batch, Device device) {
  const auto samples = static_cast<int64_t>(batch.target_begin.size());
  const Tensor table = rush::detail::empty_contiguous({3, samples}, kInt64, kCPU);
  int64_t* to = table.data_ptr<int64_t>();
  to = std::copy(batch.input_lengths.begin(), batch.input_lengths.end(), to);
  to = std::copy(batch.target_lengths.begin(), batch.target_lengths.end(), to);
  std::copy(batch.target_begin.begin(), batch.target_begin.end(), to);
  return table.to(device);
}

// What a launch needs besides its outputs, kept alive until it is queued.
template <class T>
struct Launch {
  Tensor numbers, labels;
  Samples<T> samples;
  unsigned blocks;

  Launch(const Tensor& log_probs, const Tensor& targets, const CtcBatch& batch, int64_t width)
      : numbers(numbers_of(batch, log_probs.device())),
        labels(targets.to(log_probs.device())),
        samples{log_probs.data_ptr<T>(),
                labels.data_ptr<int64_t>(),
                numbers.data_ptr<int64_t>(),
                log_probs.size(0),
                log_probs.size(1),
                log_probs.size(2),
                batch.blank,
                width},
        blocks(static_cast<unsigned>(std::min<int64_t>(log_probs.size(1), 1 << 20))) {}
};

template <class T>
void loss_as(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
             const CtcBatch& batch) {
  const Launch<T> launch(log_probs, targets, batch, log_alpha.size(2));
  launch_kernel("ctc_loss", ctc_loss_kernel<T>, {launch.blocks, kThreads}, losses.data_ptr<T>(),
                log_alpha.data_ptr<T>(), launch.samples, device_check("ctc_loss"));
}

void ctc_loss(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
              const CtcBatch& batch) {
  if (losses.numel() == 0) return;
  if (log_probs.scalar_type() == kFloat64) return loss_as<double>(losses, log_alpha, log_probs, targets, batch);
  RUSH_CHECK_NOT_IMPLEMENTED(log_probs.scalar_type() == kFloat32, "ctc_loss: not implemented for ",
                             log_probs.scalar_type());
  loss_as<float>(losses, log_alpha, log_probs, targets, batch);
}

template <class T>
void gradient_as(const Tensor& grad_input, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                 const Tensor& losses, const Tensor& log_alpha, const CtcBatch& batch, bool zero_infinity) {
  const int64_t width = log_alpha.size(2), states = losses.numel() * width;
  const Launch<T> launch(log_probs, targets, batch, width);
  const Scratch betas(static_cast<size_t>(2 * states) * sizeof(T)), firsts(static_cast<size_t>(states));
  launch_kernel("ctc_loss_backward", ctc_loss_backward_kernel<T>, {launch.blocks, kThreads}, grad_input.data_ptr<T>(),
                grad.data_ptr<T>(), losses.data_ptr<T>(), log_alpha.data_ptr<T>(), betas.as<T>(), firsts.as<bool>(),
                launch.samples, zero_infinity, device_check("ctc_loss_backward"));
}

void ctc_loss_backward(const Tensor& grad_input, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                       const Tensor& losses, const Tensor& log_alpha, const CtcBatch& batch, bool zero_infinity) {
  if (grad_input.numel() == 0) return;
  const auto run = log_probs.scalar_type() == kFloat64 ? gradient_as<double> : gradient_as<float>;
  run(grad_input, grad, log_probs, targets, losses, log_alpha, batch, zero_infinity);
}

}  // namespace

void register_ctc_loss() {
  kernels::ctc_loss.set(kCUDA, ctc_loss);
  kernels::ctc_loss_backward.set(kCUDA, ctc_loss_backward);
}

}  // namespace rush::cuda
