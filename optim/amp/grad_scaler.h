// GradScaler: keeps the gradients of float16 training within float16's range.
#pragma once
#include <unordered_map>
#include <vector>

#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::amp {

/// The numbers that a scaler is made of; it checks them.
struct GradScalerOptions {
  RUSH_ARG(double, init_scale) = 65536;       // above 0
  RUSH_ARG(double, growth_factor) = 2;        // above 1
  RUSH_ARG(double, backoff_factor) = 0.5;     // between 0 and 1
  RUSH_ARG(int64_t, growth_interval) = 2000;  // steps without an overflow until the scale grows; at least 1
  // Off: step() is the optimiser's, and everything else does nothing.
  RUSH_ARG(bool, enabled) = true;

 public:
  /// Throws ValueError on a number outside its range.
  void check() const;
};

// Note [Gradient scaling]
// Gradients below 6e-8 are zero in float16. So the loss is multiplied by a scale before the backward pass, and the
// gradients of the float32 weights are divided by it afterwards. Where the scale was too large, some gradient is
// infinite: that step is skipped and the scale halved; after many steps that went well it is doubled. All this is
// computed on the gradients' device; the host waits for it once for each optimiser, in step(), which has to know,
// unless the optimiser is capturable: its kernels ask for themselves, and the step can be captured in a CUDA graph. As
// torch.amp.GradScaler; Note [Autocast] shows a training loop. bfloat16 has float32's range and needs no scale.
class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});

  /// `outputs` times the scale.
  Tensor scale(const Tensor& outputs);
  std::vector<Tensor> scale(TensorList outputs);
  /// Divides the gradients of the optimiser's parameters by the scale and notes whether all are finite. step() does it
  /// unless it was done: call it to clip gradients, for example. Throws Error when nothing was scaled yet, or when it
  /// is called again before update(); ValueError for a parameter in float16: weights stay in float32.
  void unscale_(optim::Optimizer& optimizer);
  /// The optimiser's step, unless a gradient is not finite; returns what it returns. Throws as unscale_ does, when it
  /// is called twice before update(), when no parameter has a gradient, and for a closure.
  Tensor step(optim::Optimizer& optimizer, const optim::Optimizer::LossClosure& closure = nullptr);
  /// Whether the last step() with the optimiser, or the last replay of one, left its parameters as they were. Waits for
  /// the device where the optimiser is capturable.
  bool step_was_skipped(const optim::Optimizer& optimizer) const;
  /// Adjusts the scale; after the steps of all optimisers. Throws Error when there was none.
  void update();
  /// Sets the scale instead.
  void update(double new_scale);

  /// Waits for the device.
  double get_scale() const;

  /// The options, which take effect at the next update(). Setters throw ValueError as GradScaler does.
  double get_growth_factor() const { return options_.growth_factor(); }
  void set_growth_factor(double factor);
  double get_backoff_factor() const { return options_.backoff_factor(); }
  void set_backoff_factor(double factor);
  int64_t get_growth_interval() const { return options_.growth_interval(); }
  void set_growth_interval(int64_t interval);
  bool is_enabled() const { return options_.enabled(); }

  /// The scale, the three options above and how many steps have gone well in a row, under PyTorch's names; empty if the
  /// scaler is disabled. Take it after update().
  optim::StateDict state_dict() const;
  /// Throws ValueError, and changes nothing, on another one. Does nothing if the scaler is disabled.
  void load_state_dict(const optim::StateDict& dict);

 private:
  enum class Stage : uint8_t { Ready, Unscaled, Stepped };
  struct OptimizerState {
    Stage stage = Stage::Ready;
    std::vector<Tensor> found_inf;  // one for each device that gradients are on
  };
  int64_t growth_tracker() const;
  void check_started(const char* function) const;
  // The optimiser's step, which the device skips if `found_inf` says so.
  static Tensor step_on_device(optim::Optimizer& optimizer, const Tensor& found_inf);

  GradScalerOptions options_;
  int64_t initial_tracker_ = 0;
  Tensor scale_, growth_tracker_;                                       // made on the device of the first outputs
  std::unordered_map<const optim::Optimizer*, OptimizerState> states_;  // since the last update
  struct LastStep {
    bool skipped = false;
    Tensor found_inf;  // where the device has decided
  };
  std::unordered_map<const optim::Optimizer*, LastStep> last_steps_;
};

}  // namespace rush::amp
