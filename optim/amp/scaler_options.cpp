// What surrounds a scaler's steps: its options, and the scale that a user reads and sets.
#include <cmath>

#include "core/ops/factory/factories.h"
#include "optim/amp/grad_scaler.h"

namespace rush::amp {

void GradScalerOptions::check() const {
  RUSH_CHECK_VALUE(init_scale() > 0 && std::isfinite(static_cast<float>(init_scale())),
                   "GradScaler: the scale must be above 0 and finite in float32, got ", init_scale());
  RUSH_CHECK_VALUE(growth_factor() > 1, "GradScaler: growth_factor must be above 1, got ", growth_factor());
  RUSH_CHECK_VALUE(backoff_factor() > 0 && backoff_factor() < 1,
                   "GradScaler: backoff_factor must be between 0 and 1, got ", backoff_factor());
  RUSH_CHECK_VALUE(growth_interval() >= 1, "GradScaler: growth_interval must be at least 1, got ", growth_interval());
}

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) {
  if (options.enabled()) options.check();
}

void GradScaler::check_started(const char* function) const {
  RUSH_CHECK(scale_.defined(), "GradScaler: ", function, "() was called before any scale(loss)");
}

std::vector<Tensor> GradScaler::scale(TensorList outputs) {
  std::vector<Tensor> scaled;
  for (const Tensor& output : outputs) scaled.push_back(scale(output));
  return scaled;
}

void GradScaler::update(double new_scale) {
  if (!is_enabled()) return;
  check_started("update");
  GradScalerOptions(options_).init_scale(new_scale).check();
  scale_.fill_(new_scale);
  states_.clear();
}

double GradScaler::get_scale() const {
  if (!is_enabled()) return 1;
  return scale_.defined() ? scale_.item<double>() : options_.init_scale();
}

int64_t GradScaler::growth_tracker() const {
  return growth_tracker_.defined() ? growth_tracker_.item<int64_t>() : initial_tracker_;
}

void GradScaler::set_growth_factor(double factor) {
  GradScalerOptions(options_).growth_factor(factor).check();
  options_.growth_factor(factor);
}

void GradScaler::set_backoff_factor(double factor) {
  GradScalerOptions(options_).backoff_factor(factor).check();
  options_.backoff_factor(factor);
}

void GradScaler::set_growth_interval(int64_t interval) {
  GradScalerOptions(options_).growth_interval(interval).check();
  options_.growth_interval(interval);
}

}  // namespace rush::amp
