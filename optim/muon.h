// Muon: steps along the orthogonal factor of the momentum, for matrices.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "optim/step_optimizer.h"

namespace rush::optim {

/// The rule, as public operators compute it: see Note [Composed steps].
struct MuonStep {
  RUSH_STEP("Muon", "muon")
  static constexpr size_t kNumbers = 8, kFlags = 2, kStates = 1;
  double lr, weight_decay, momentum, a, b, c, eps, ns_steps;
  bool nesterov, match_rms_adamw;

  static Tensor like(size_t, const Tensor& param) { return param; }  // the one state has the parameter's sizes

  /// The Newton-Schulz iteration towards the nearest orthogonal matrix, in bfloat16: with X = G / |G|, k times
  ///   X <- a X + (b A + c A A) X, A = X X^T       where X has not more rows than columns
  Tensor orthogonal(const Tensor& g) const;

  ///   m <- m + (1 - momentum) (g - m)
  ///   u = g + momentum (m - g)                    with Nesterov's momentum; u = m otherwise
  ///   p <- p (1 - lr weight_decay) - lr r orthogonal(u)
  /// with r = sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns)) to match AdamW's root mean square.
  void compose(Tensor p, const Tensor& g, Tensor m, const Tensor&, const Tensor&, int64_t) const;
};

/// The options' names are those of MuonStep's formula.
struct MuonOptions : public DescribedOptions<MuonOptions> {
  static constexpr const char* kName = "Muon";
  MuonOptions(double lr = 1e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(double, weight_decay) = 0.1;
  RUSH_ARG(double, momentum) = 0.95;
  RUSH_ARG(bool, nesterov) = true;
  // The coefficients a, b and c of the Newton-Schulz iteration.
  RUSH_ARG(std::vector<double>, ns_coefficients) = {3.4445, -4.7750, 2.0315};
  RUSH_ARG(double, eps) = 1e-7;
  RUSH_ARG(int64_t, ns_steps) = 5;
  // How the rate depends on the shape: "original", which nothing stands for, or "match_rms_adamw".
  RUSH_ARG(std::optional<std::string>, adjust_lr_fn) = std::nullopt;

 public:
  void check() const override {
    DescribedOptions::check();
    RUSH_CHECK_VALUE(ns_coefficients().size() == 3, "Muon: ns_coefficients must be three, got ",
                     ns_coefficients().size());
    RUSH_CHECK_VALUE(ns_steps() < 100, "Muon: ns_steps must be less than 100, got ", ns_steps());
    const std::string fn = adjust_lr_fn().value_or("original");
    RUSH_CHECK_VALUE(fn == "original" || fn == "match_rms_adamw",
                     "Muon: adjust_lr_fn must be 'original' or 'match_rms_adamw', got '", fn, "'");
  }
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("weight_decay", o.weight_decay());
    visit("momentum", o.momentum());
    visit("nesterov", o.nesterov());
    visit("ns_coefficients", o.ns_coefficients());
    visit("eps", o.eps());
    visit("ns_steps", o.ns_steps());
    bool match = o.adjust_lr_fn() == "match_rms_adamw";
    visit("match_rms_adamw", match);
    if constexpr (requires { o.adjust_lr_fn(std::nullopt); }) {
      if (match != (o.adjust_lr_fn() == "match_rms_adamw")) o.adjust_lr_fn(match ? "match_rms_adamw" : "original");
    }
  }
};

/// m of MuonStep's formula.
struct MuonParamState : public DescribedParamState<MuonParamState> {
  RUSH_ARG(Tensor, momentum_buffer);

 public:
  StateTensors tensors() override { return {{{"momentum_buffer", &momentum_buffer()}}}; }
};

/// torch.optim.Muon. K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024). Throws
/// ValueError for parameters that are no matrices.
using Muon = DescribedOptimizer<MuonOptions, MuonParamState, MuonStep>;

}  // namespace rush::optim
