// What the exercises of lab 14 train: three parameters, whose gradients are chosen.
#pragma once
#include <cmath>
#include <limits>

#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/reduce/reduce.h"
#include "optim/amp/grad_scaler.h"
#include "optim/sgd.h"
#include "tests/labs/exercise.h"

namespace rush::labs {

using amp::GradScaler;
using amp::GradScalerOptions;
using Numbers = std::vector<double>;

inline constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kRate = 0.5;

inline bool same_number(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-6 * std::abs(b);
}
inline bool same_numbers(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_number);
}

// Gradients as they are without a scale: of `first` and `second` in float32, and of `third` in float64. Gradients of
// different dtypes are in different lists.
struct Gradients {
  double first, second, third;
  Numbers all() const { return {first, second, third}; }
};
inline constexpr const char* kNames[] = {"first", "second", "third"};

inline std::string show_gradients(const Gradients& g) { return str("(", g.first, ", ", g.second, ", ", g.third, ")"); }

// Three parameters of one element each, which begin with 1, 2 and 3, and their optimiser.
struct Model {
  std::vector<Tensor> params;
  optim::SGD optimizer;

  Model() : Model({parameter(1, kFloat32), parameter(2, kFloat32), parameter(3, kFloat64)}) {}
  explicit Model(std::vector<Tensor> made) : params(std::move(made)), optimizer(params, optim::SGDOptions(kRate)) {}

  static Tensor parameter(double value, ScalarType dtype) {
    return full({1}, value, TensorOptions(dtype)).requires_grad_();
  }
  // A forward and a backward pass that end in these gradients, times the scale.
  void backward(GradScaler& scaler, const Gradients& gradients) {
    optimizer.zero_grad();
    for (size_t i = 0; i < params.size(); ++i) scaler.scale((params[i] * gradients.all()[i]).sum()).backward();
  }
  Numbers grads() const {
    Numbers values;
    for (const Tensor& param : params) values.push_back(param.grad().item<double>());
    return values;
  }
  Numbers values() const {
    Numbers values;
    for (const Tensor& param : params) values.push_back(param.item<double>());
    return values;
  }
};

// Of grad_scaler_updates.cpp.
Exercise update_exercise();
Exercise save_exercise();
Exercise load_exercise();

}  // namespace rush::labs
