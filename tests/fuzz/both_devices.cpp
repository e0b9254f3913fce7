#include "tests/fuzz/both_devices.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <typeinfo>
#include <vector>

#include "backends/cuda/devices.h"
#include "core/device/context.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/ternary.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "core/str.h"
#include "core/tensor_impl.h"
#include "tests/fuzz/random_arguments.h"
#include "tests/fuzz/sparse_parts.h"

namespace fuzz {

using namespace rush;

namespace {

constexpr int64_t kMostCompared = 1 << 20;  // elements of a result

// The same bytes, laid out alike, in the memory of `device`.
Tensor on_device(const Tensor& t, Device device) {
  if (!t.defined()) return t;
  const StorageImpl& storage = *t.storage();
  Tensor moved;
  if (storage.nbytes() == 0) {
    moved = rush::detail::empty_strided(t.sizes(), t.strides(), t.scalar_type(), device);
  } else {
    const Tensor bytes = from_blob(storage.data(), {static_cast<int64_t>(storage.nbytes())}, TensorOptions(kUInt8));
    moved = rush::detail::make_alias(rush::detail::make_view_as(ops::to_device(bytes, device, kUInt8, false, true, {}),
                                                                t.scalar_type(), t.sizes(), t.strides(),
                                                                t.storage_offset()));
  }
  return t.requires_grad() ? moved.requires_grad_() : moved;
}

Value on_device(const Value& value, Device device) {
  if (value.is<Tensor>()) return on_device(value.as<Tensor>(), device);
  if (value.is<std::vector<Tensor>>()) {
    std::vector<Tensor> list = value.as<std::vector<Tensor>>();
    for (Tensor& each : list) each = on_device(each, device);
    return list;
  }
  if (value.is<std::vector<std::optional<Tensor>>>()) {
    std::vector<std::optional<Tensor>> list = value.as<std::vector<std::optional<Tensor>>>();
    for (auto& each : list) each = each ? std::optional(on_device(*each, device)) : std::nullopt;
    return list;
  }
  if (value.is<Device>() && value.as<Device>().is_cpu()) return device;
  if (value.is<Generator>()) return Value();  // the device's own default one
  return value;
}

void for_each_tensor(const Stack& stack, const std::function<void(const Tensor&)>& body) {
  for (const Value& value : stack) {
    if (value.is<Tensor>() && value.as<Tensor>().defined()) body(value.as<Tensor>());
    if (value.is<std::vector<Tensor>>()) {
      for (const Tensor& each : value.as<std::vector<Tensor>>()) {
        if (each.defined()) body(each);
      }
    }
    if (value.is<std::vector<std::optional<Tensor>>>()) {
      for (const auto& each : value.as<std::vector<std::optional<Tensor>>>()) {
        if (given(each)) body(*each);
      }
    }
  }
}

struct Outcome {
  Stack results;
  std::vector<Tensor> gradients;
  std::string error;
  const std::type_info* error_type = nullptr;
};

// What kernels found before a call threw for another reason would be told to the next one.
void forget_what_kernels_found() {
  try {
    cuda::synchronize();
  } catch (const IndexError&) {
  } catch (const ValueError&) {
  }
}

Outcome call(const OpBase& op, const Stack& arguments, bool on_gpu) {
  Outcome outcome;
  std::vector<Tensor> leaves;
  for_each_tensor(arguments, [&](const Tensor& t) {
    if (t.requires_grad()) leaves.push_back(t);
  });
  manual_seed(1);
  try {
    outcome.results = arguments;
    op.call_boxed(outcome.results);
    bool done = leaves.empty();
    for_each_tensor(outcome.results, [&](const Tensor& t) {
      if (done || !t.requires_grad() || !is_differentiable(t.scalar_type()) || t.numel() > kMostCompared) return;
      done = true;
      t.backward(ones(t.sizes(), t.options().layout(kStrided)));
    });
    if (on_gpu) cuda::synchronize();  // what kernels have to say
    for (const Tensor& leaf : leaves) outcome.gradients.push_back(leaf.is_leaf() ? leaf.grad() : Tensor());
  } catch (const Error& error) {
    outcome.error = error.what();
    outcome.error_type = &typeid(error);
    if (on_gpu) forget_what_kernels_found();
  }
  return outcome;
}

// Numbers that rounding makes little of: not huge, not NaN.
bool is_tame(double x) { return std::abs(x) <= 1000; }
bool is_tame(const Stack& arguments) {
  bool tame = true;
  for_each_tensor(arguments, [&](const Tensor& t) {
    if (!is_differentiable(t.scalar_type()) || t.numel() == 0) return;
    const Tensor magnitude = abs(t.detach()).to(kFloat64);
    tame = tame && is_tame(magnitude.max().item<double>());
  });
  for (const Value& value : arguments) {
    if (value.is<double>()) tame = tame && is_tame(value.as<double>());
    if (value.is<complex<double>>()) {
      tame = tame && is_tame(value.as<complex<double>>().real()) && is_tame(value.as<complex<double>>().imag());
    }
    if (value.is<std::vector<double>>()) {
      for (const double each : value.as<std::vector<double>>()) tame = tame && is_tame(each);
    }
  }
  return tame;
}

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
}

// Results whose values are not defined by the arguments.
bool has_free_values(std::string_view name) {
  return starts_with_any(name, {
                                   "aten::empty", "aten::new_empty", "aten::resize_",  // whatever the memory held
                                   "aten::put", "aten::index_put", "aten::index_copy", "aten::scatter.",
                                   "aten::scatter_.", "aten::max_unpool",        // several values may go to one place
                                   "aten::adaptive_max_pool", "aten::max_pool",  // indices that no pooling gives
                                   "aten::bucketize", "aten::searchsorted",      // in rows that are not sorted
                                   "rush::native_batch_norm_relu_backward",      // an output that no batch norm gives
                               });
}

double tolerance(ScalarType dtype) {
  switch (dtype) {
    case kFloat16: return 1e-2;
    case kBFloat16: return 5e-2;
    case kFloat32:
    case kComplex64: return 1e-4;
    case kFloat64:
    case kComplex128: return 1e-9;
    default: return 0;
  }
}

std::string differing(const Tensor& want, const Tensor& got) { return str("differs:\n", describe(Stack{want, got})); }

// `least`: the tolerance of the coarsest argument, in which parts of a wider result may have been computed.
std::string difference(const Tensor& expected, const Tensor& actual, bool values, double least) {
  if (expected.defined() != actual.defined()) return expected.defined() ? "is undefined" : "is defined";
  if (!expected.defined()) return "";
  const auto shape = [](const Tensor& t) { return str(t.scalar_type(), ' ', t.sizes()); };
  if (shape(expected) != shape(actual)) return str("is ", shape(actual), ", expected ", shape(expected));
  if (expected.layout() != actual.layout()) return str("has layout ", actual.layout());
  if (expected.layout() != kStrided) {
    const std::vector<Tensor> want = parts_of(expected), got = parts_of(actual);
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string what = difference(want[i], got[i], values, least);
      if (!what.empty()) return str("part ", i, ' ', what);
    }
    return "";
  }
  if (expected.is_meta() || expected.numel() == 0 || expected.numel() > kMostCompared || !values) return "";
  const Tensor want = expected.detach().contiguous(), got = actual.detach().cpu().contiguous();
  const double own = tolerance(want.scalar_type()), bound = std::max(own, least);
  if (own == 0) return equal(want, got) ? "" : differing(want, got);
  // Against the largest finite number: sums of numbers with both signs round by that.
  const Tensor size = abs(want).to(kFloat64);
  const double largest = where(isfinite(size), size, zeros_like(size)).max().item<double>();
  return allclose(got, want, bound, bound * (1 + largest), true) ? "" : differing(want, got);
}

std::string difference(const Value& expected, const Value& actual, bool values, double least) {
  if (std::string_view(expected.kind()) != actual.kind()) return str("is ", actual.kind(), ", not ", expected.kind());
  if (expected.is<Tensor>()) return difference(expected.as<Tensor>(), actual.as<Tensor>(), values, least);
  if (expected.is<std::vector<Tensor>>()) {
    const auto &want = expected.as<std::vector<Tensor>>(), &got = actual.as<std::vector<Tensor>>();
    if (want.size() != got.size()) return str("are ", got.size(), " tensors, expected ", want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string what = difference(want[i], got[i], values, least);
      if (!what.empty()) return what;
    }
  }
  if (expected.is<bool>() && values && expected.as<bool>() != actual.as<bool>()) return "is another bool";
  if (expected.is<int64_t>() && values && expected.as<int64_t>() != actual.as<int64_t>()) return "is another int";
  return "";
}

}  // namespace

std::string difference(const OpBase& op, const Stack& arguments, Device device) {
  bool comparable = true;
  for_each_tensor(arguments, [&](const Tensor& t) { comparable = comparable && t.device().is_cpu(); });
  for (const Value& value : arguments) {
    if (value.is<Device>()) comparable = comparable && value.as<Device>().is_cpu();
  }
  // Only the CPU has pinned memory, and pageable memory beside it.
  if (!comparable || std::string_view(op.schema()).find("pin_memory") != std::string_view::npos) return "";
  // Signs are free, rounding decides which matrix is singular, and drivers can be chosen on CUDA only.
  if (starts_with_any(op.name(), {"aten::linalg_", "aten::_linalg_"})) return "";
  // There is no cuDNN on the CPU.
  if (starts_with_any(op.name(), {"aten::cudnn_", "aten::_cudnn_"})) return "";
  // The fused operators of attention belong to one device each, and so does the choice among them; cuDNN's drops other
  // weights than the rest.
  if (starts_with_any(op.name(), {"aten::_scaled_dot_product_", "aten::_fused_sdp_choice"})) return "";
  globalContext().setSDPUseCuDNN(false);

  const bool values = is_tame(arguments) && !has_free_values(op.name());
  // These take logarithms of integer targets, in the default dtype.
  const bool computes_integers = starts_with_any(op.name(), {"aten::kl_div", "aten::binary_cross_entropy"});
  double least = 0;
  for_each_tensor(arguments, [&](const Tensor& t) {
    const ScalarType dtype = t.scalar_type();
    if (is_differentiable(dtype)) least = std::max(least, tolerance(dtype));
    if (!is_differentiable(dtype) && computes_integers) least = std::max(least, tolerance(get_default_dtype()));
  });
  Stack twin;
  for (const Value& value : arguments) twin.push_back(on_device(value, device));
  const Outcome cpu = call(op, arguments, false);
  if (cpu.error_type == &typeid(OutOfMemoryError)) return "";
  const Outcome gpu = call(op, twin, true);
  if (gpu.error_type == &typeid(OutOfMemoryError)) return "";
  // Only the GPU transforms float16, so the CPU speaks of that before anything else.
  if (op.name().starts_with("aten::fft_") && cpu.error.find("not supported for float16") != std::string::npos)
    return "";
  // A kernel says late which index is out of range: on the GPU a later check may speak first.
  if (cpu.error_type == &typeid(IndexError) && gpu.error_type) return "";
  // What a kernel finds is an IndexError, and offsets of bags are bounds.
  if (op.name() == "aten::embedding_bag" && cpu.error_type && gpu.error_type == &typeid(IndexError)) return "";
  if (cpu.error_type != gpu.error_type) {
    return str("cpu: ", cpu.error_type ? cpu.error : "returns", "; ", device, ": ",
               gpu.error_type ? gpu.error : "returns");
  }
  if (cpu.error_type) return "";
  if (cpu.results.size() != gpu.results.size()) return "another number of results";
  for (size_t i = 0; i < cpu.results.size(); ++i) {
    const std::string what = difference(cpu.results[i], gpu.results[i], values, least);
    if (!what.empty()) return str("result ", i, ' ', what);
  }
  for (size_t i = 0; i < cpu.gradients.size(); ++i) {
    const std::string what = difference(cpu.gradients[i], gpu.gradients[i], values, least);
    if (!what.empty()) return str("gradient ", i, ' ', what);
  }
  return "";
}

}  // namespace fuzz
