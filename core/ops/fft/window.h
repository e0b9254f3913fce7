// Window functions: weights that fade out both ends of a frame of a signal, to reduce spectral leakage.
// https://pytorch.org/docs/stable/torch.html#spectral-ops
#pragma once
#include "core/ops/factory/factories.h"

namespace rush {

using WindowOp = Op<Tensor(int64_t, RUSH_FACTORY_ARGS)>;
using PeriodicWindowOp = Op<Tensor(int64_t, bool, RUSH_FACTORY_ARGS)>;

namespace ops {
#define RUSH_WINDOW_OPS(name)                                                                                 \
  inline constinit WindowOp name{"aten::" #name "(int window_length, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"}; \
  inline constinit PeriodicWindowOp name##_periodic{                                                          \
      "aten::" #name ".periodic(int window_length, bool periodic, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
RUSH_WINDOW_OPS(hann_window)
RUSH_WINDOW_OPS(hamming_window)
RUSH_WINDOW_OPS(blackman_window)
RUSH_WINDOW_OPS(bartlett_window)
RUSH_WINDOW_OPS(kaiser_window)
#undef RUSH_WINDOW_OPS
inline constinit Op<Tensor(int64_t, bool, double, RUSH_FACTORY_ARGS)> hamming_window_periodic_alpha{
    "aten::hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, " RUSH_FACTORY_SCHEMA
    ") -> Tensor"};
inline constinit Op<Tensor(int64_t, bool, double, double, RUSH_FACTORY_ARGS)> hamming_window_periodic_alpha_beta{
    "aten::hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, "
    "*, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(int64_t, bool, double, RUSH_FACTORY_ARGS)> kaiser_window_beta{
    "aten::kaiser_window.beta(int window_length, bool periodic, float beta, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
}  // namespace ops

// Windows w_0, ..., w_(L-1) of L = window_length weights, with N = L - 1, or N = L where `periodic`, which is what the
// Fourier transform wants: the window is then the first L weights of the symmetric one of L + 1. One weight is 1. In
// the default dtype, or the options' floating one. They throw ValueError for a negative length, TypeError for a dtype
// that is not floating.

/// 1/2 - 1/2 cos(2 pi k/N)
Tensor hann_window(int64_t window_length, const TensorOptions& options = {});
Tensor hann_window(int64_t window_length, TruthValue auto periodic, const TensorOptions& options = {});
/// alpha - beta cos(2 pi k/N)
Tensor hamming_window(int64_t window_length, const TensorOptions& options = {});
Tensor hamming_window(int64_t window_length, TruthValue auto periodic, const TensorOptions& options = {});
Tensor hamming_window(int64_t window_length, TruthValue auto periodic, double alpha, const TensorOptions& options = {});
Tensor hamming_window(int64_t window_length, TruthValue auto periodic, double alpha, double beta,
                      const TensorOptions& options = {});
/// 0.42 - 0.5 cos(2 pi k/N) + 0.08 cos(4 pi k/N)
Tensor blackman_window(int64_t window_length, const TensorOptions& options = {});
Tensor blackman_window(int64_t window_length, TruthValue auto periodic, const TensorOptions& options = {});
/// 1 - |2 k/N - 1|
Tensor bartlett_window(int64_t window_length, const TensorOptions& options = {});
Tensor bartlett_window(int64_t window_length, TruthValue auto periodic, const TensorOptions& options = {});
/// I0(beta sqrt(1 - (2 k/N - 1)^2)) / I0(beta), I0 being the modified Bessel function of order 0; beta is 12 by
/// default.
Tensor kaiser_window(int64_t window_length, const TensorOptions& options = {});
Tensor kaiser_window(int64_t window_length, TruthValue auto periodic, const TensorOptions& options = {});
Tensor kaiser_window(int64_t window_length, TruthValue auto periodic, double beta, const TensorOptions& options = {});

}  // namespace rush
