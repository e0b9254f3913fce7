#include "optim/schedules/factor_schedules.h"

#include <algorithm>
#include <cmath>

namespace rush::optim {

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  start();
}

void StepLR::check() const {
  RUSH_CHECK_VALUE(step_size_ > 0, "StepLR: the step size must be positive, got ", step_size_);
}

void StepLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields("step_size", step_size_);
  fields("gamma", gamma_);
}

std::vector<double> StepLR::get_lrs() {
  const int64_t steps = detail::step_lr_is_late ? last_epoch_ - 1 : last_epoch_;
  return steps <= 0 || steps % step_size_ != 0 ? current_lrs() : scaled(gamma_);
}

std::vector<double> StepLR::get_closed_form_lrs() {
  return scaled_base(std::pow(gamma_, static_cast<double>(last_epoch_ / step_size_)));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  start();
}

void MultiStepLR::check() const {
  RUSH_CHECK_VALUE(std::is_sorted(milestones_.begin(), milestones_.end()),
                   "MultiStepLR: the milestones must not decrease, got ", milestones_);
}

void MultiStepLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields("milestones", milestones_);
  fields("gamma", gamma_);
}

std::vector<double> MultiStepLR::get_lrs() {
  const auto [first, last] = std::equal_range(milestones_.begin(), milestones_.end(), last_epoch_);
  return first == last ? current_lrs() : scaled(std::pow(gamma_, static_cast<double>(last - first)));
}

std::vector<double> MultiStepLR::get_closed_form_lrs() {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin();
  return scaled_base(std::pow(gamma_, static_cast<double>(passed)));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) { start(); }

void ExponentialLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields("gamma", gamma_);
}

std::vector<double> ExponentialLR::get_lrs() { return is_initial_ ? current_lrs() : scaled(gamma_); }

std::vector<double> ExponentialLR::get_closed_form_lrs() {
  return scaled_base(std::pow(gamma_, static_cast<double>(last_epoch_)));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  start();
}

void ConstantLR::check() const {
  RUSH_CHECK_VALUE(factor_ > 0 && factor_ <= 1, "ConstantLR: the factor must be in (0, 1], got ", factor_);
}

void ConstantLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields("factor", factor_);
  fields("total_iters", total_iters_);
}

std::vector<double> ConstantLR::get_lrs() {
  if (last_epoch_ == 0) return scaled(factor_);
  return last_epoch_ == total_iters_ ? scaled(1 / factor_) : current_lrs();
}

std::vector<double> ConstantLR::get_closed_form_lrs() { return scaled_base(last_epoch_ >= total_iters_ ? 1 : factor_); }

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  start();
}

void LinearLR::check() const {
  RUSH_CHECK_VALUE(start_factor_ > 0 && start_factor_ <= 1, "LinearLR: the start factor must be in (0, 1], got ",
                   start_factor_);
  RUSH_CHECK_VALUE(end_factor_ >= 0 && end_factor_ <= 1, "LinearLR: the end factor must be in [0, 1], got ",
                   end_factor_);
  RUSH_CHECK_VALUE(total_iters_ > 0, "LinearLR: the number of iterations must be positive, got ", total_iters_);
}

void LinearLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields("start_factor", start_factor_);
  fields("end_factor", end_factor_);
  fields("total_iters", total_iters_);
}

std::vector<double> LinearLR::get_lrs() {
  if (last_epoch_ == 0) return scaled(start_factor_);
  if (is_initial_ || last_epoch_ > total_iters_) return current_lrs();
  const double rise = end_factor_ - start_factor_;
  return scaled(
      1 + rise / (static_cast<double>(total_iters_) * start_factor_ + static_cast<double>(last_epoch_ - 1) * rise));
}

std::vector<double> LinearLR::get_closed_form_lrs() {
  const auto steps = static_cast<double>(std::min(total_iters_, last_epoch_));
  return scaled_base(start_factor_ + (end_factor_ - start_factor_) * steps / static_cast<double>(total_iters_));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  start();
}

void PolynomialLR::check() const {
  RUSH_CHECK_VALUE(total_iters_ > 0, "PolynomialLR: the number of iterations must be positive, got ", total_iters_);
}

void PolynomialLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields("total_iters", total_iters_);
  fields("power", power_);
}

std::vector<double> PolynomialLR::get_lrs() {
  if (is_initial_ || last_epoch_ > total_iters_) return current_lrs();
  const auto total = static_cast<double>(total_iters_), epoch = static_cast<double>(last_epoch_);
  return scaled(std::pow((1 - epoch / total) / (1 - (epoch - 1) / total), power_));
}

std::vector<double> PolynomialLR::get_closed_form_lrs() {
  const auto epoch = static_cast<double>(std::min(total_iters_, last_epoch_));
  return scaled_base(std::pow(1 - epoch / static_cast<double>(total_iters_), power_));
}

LambdaLR::LambdaLR(Optimizer& optimizer, Lambda lr_lambda)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.param_groups().size(), std::move(lr_lambda))) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas)
    : LRScheduler(optimizer), lambdas_(std::move(lr_lambdas)) {
  start();
}

void LambdaLR::check() const {
  RUSH_CHECK_VALUE(lambdas_.size() == base_lrs_.size(), "LambdaLR: expected ", base_lrs_.size(),
                   " functions, one for each parameter group, got ", lambdas_.size());
}

std::vector<double> LambdaLR::get_lrs() {
  std::vector<double> lrs = base_lrs();
  for (size_t i = 0; i < lrs.size(); ++i) lrs[i] *= lambdas_[i](last_epoch_);
  return lrs;
}

}  // namespace rush::optim
