// Adafactor: second moments of matrices kept as a row and a column.
#pragma once
#include <optional>
#include <tuple>

#include "optim/step_optimizer.h"

namespace rush::optim {

/// The rule, as public operators compute it: see Note [Composed steps].
struct AdafactorStep {
  RUSH_STEP("Adafactor", "adafactor")
  static constexpr size_t kNumbers = 6, kFlags = 1, kStates = 3;
  double lr, beta2_decay;
  double eps1;  // NaN: the dtype's own
  double eps2, d, weight_decay;
  bool maximize;

  /// Of (..., R, C): the mean squares of rows (..., R, 1), those of columns (..., 1, C). Of vectors those of all
  /// elements.
  static Tensor like(size_t state, const Tensor& param);

  /// At step t, with w = t^beta2_decay and rho = min(lr, 1 / sqrt(t)):
  ///   p <- p (1 - lr weight_decay)
  ///   r <- r + w (mean of g^2 over columns - r), c <- c + w (mean of g^2 over rows - c), v = r c / max(mean(r), eps1)
  ///   v <- v + w (g^2 - v)                          for vectors
  ///   u = g / sqrt(max(v, eps1^2))
  ///   p <- p - max(eps2, rms(p)) rho u / max(1, rms(u) / d)
  void compose(Tensor p, const Tensor& grad, const Tensor& row, const Tensor& column, const Tensor& square,
               int64_t t) const;
};

/// The options' names are those of AdafactorStep's formula: rho is at most lr.
struct AdafactorOptions : public DescribedOptions<AdafactorOptions> {
  static constexpr const char* kName = "Adafactor";
  using eps_t = std::tuple<std::optional<double>, double>;
  AdafactorOptions(double lr = 1e-2) : lr_(lr) {}
  RUSH_ARG(double, lr);
  // How fast the mean squares lose their memory: their weight at step t is t^beta2_decay.
  RUSH_ARG(double, beta2_decay) = -0.8;
  // The least of a mean square's root, by default the dtype's epsilon, and of a parameter's root mean square.
  RUSH_ARG(eps_t, eps) = {std::nullopt, 1e-3};
  // The largest root mean square of an update.
  RUSH_ARG(double, d) = 1;
  RUSH_ARG(double, weight_decay) = 0;
  // Ascend instead.
  RUSH_ARG(bool, maximize) = false;

 public:
  void check() const override {
    DescribedOptions::check();
    RUSH_CHECK_VALUE(beta2_decay() <= 0, "Adafactor: beta2_decay must be at most 0, got ", beta2_decay());
    RUSH_CHECK_VALUE(d() >= 1, "Adafactor: d must be at least 1, got ", d());
  }
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("beta2_decay", o.beta2_decay(), Range::Any);
    visit("eps1", std::get<0>(o.eps()));
    visit("eps2", std::get<1>(o.eps()));
    visit("d", o.d());
    visit("weight_decay", o.weight_decay());
    visit("maximize", o.maximize());
  }
};

/// r and c of the formula for tensors of two dimensions or more, v for vectors.
struct AdafactorParamState : public DescribedParamState<AdafactorParamState> {
  RUSH_ARG(Tensor, row_var);
  RUSH_ARG(Tensor, col_var);
  // For vectors only.
  RUSH_ARG(Tensor, variance);

 public:
  StateTensors tensors() override {
    return {{{"row_var", &row_var()}, {"col_var", &col_var()}, {"variance", &variance()}}};
  }
};

/// torch.optim.Adafactor. Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018).
using Adafactor = DescribedOptimizer<AdafactorOptions, AdafactorParamState, AdafactorStep>;

}  // namespace rush::optim
