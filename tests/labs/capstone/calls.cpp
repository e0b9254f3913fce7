#include "tests/labs/capstone/calls.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "core/dispatch/call.h"
#include "core/ops/factory/factories.h"
#include "core/ops/random/random_factories.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/join.h"
#include "core/ops/view/view.h"

namespace capstone {

using namespace rush;

Tensors random_inputs(IntArrayRef sizes, ScalarType dtype) {
  Tensors inputs;
  for (const DimVector& each : subject().shapes(sizes)) inputs.push_back(randn(each).to(dtype));
  return inputs;
}

Tensor laid_out(const Tensor& t, Layout layout) {
  if (t.dim() == 0 || layout == Layout::Contiguous) return t;
  switch (layout) {
    case Layout::Transposed: return t.transpose(0, -1).contiguous().transpose(0, -1);
    case Layout::Expanded: return t.narrow(0, 0, 1).expand(t.sizes());
    default: return stack({t, full_like(t, 77)}, -1).select(-1, 0);
  }
}

Tensor call(TensorList inputs, std::optional<double> number) {
  static const bool registered = (register_operator(registry()), true);
  static_cast<void>(registered);
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  if (number) arguments.emplace_back(*number);
  return call_operator(subject().name, std::move(arguments))[0].as<Tensor>();
}

Tensor reference(TensorList inputs, double number) {
  Tensors wide;
  for (const Tensor& input : inputs) wide.push_back(input.to(kFloat64));
  return subject().reference(wide, number);
}

std::string describe(TensorList inputs, double number) {
  std::string text = "a call with ";
  for (const Tensor& input : inputs) text += str(input.sizes(), ", ");
  return text + str(inputs[0].scalar_type(), ", and ", number);
}

static double tolerance_of(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return 1e-10;
    case kFloat32: return 2e-5;
    default: return 2e-2;
  }
}

void compare(const Tensor& got, const Tensor& expected, const std::string& what) {
  RUSH_CHECK(got.sizes() == expected.sizes(), what, " gives the sizes ", got.sizes(), ", and the reference ",
             expected.sizes());
  const double tolerance = tolerance_of(got.scalar_type());
  const Tensor flat = got.detach().to(kFloat64).contiguous(), flat_expected = expected.detach().contiguous();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double value = flat.data_ptr<double>()[i], right = flat_expected.data_ptr<double>()[i];
    const bool same = value == right || (std::isnan(value) && std::isnan(right)) ||
                      std::abs(value - right) <= tolerance * std::max(1.0, std::abs(right));
    RUSH_CHECK(same, what, ": first wrong element: element ", i, " is ", value, ", and the reference gives ", right);
  }
}

}  // namespace capstone
