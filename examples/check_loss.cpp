#include "examples/check_loss.h"

#include <cmath>

#include "rushlight.h"

namespace examples {

namespace {

void check_finite(double value, const std::string& when, const char* name) {
  RUSH_CHECK_VALUE(std::isfinite(value), when, ": the ", name, " is ", std::abs(value),  // a NaN has a sign, too
                   "; the training has diverged, and a lower learning rate may keep it from that");
}

}  // namespace

void check_loss(double loss, const std::string& when) { check_finite(loss, when, "loss"); }

void check_weights(const std::vector<rush::Tensor>& parameters, const std::string& when) {
  const rush::NoGradGuard no_grad;
  const double norm = rush::nn::utils::get_total_norm(parameters).item<double>();
  check_finite(norm, when, "norm of the weights");
}

}  // namespace examples
