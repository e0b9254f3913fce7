// The names of libtorch. Note [Programs written for libtorch]
// A program that includes <torch/torch.h> builds unchanged with rushlight::torch_compat: these headers have libtorch's
// paths, and its namespaces `torch`, `at` and `c10` show everything that `rush` holds. They are using-directives, not
// aliases, so that a program may put names of its own there. One that reopens a namespace inside, such as torch::nn,
// hides ours: that is where "unchanged" ends, together with TorchScript and device code. What such a program prints and
// draws is libtorch's: tensors, modules and random numbers on the CPU.
#pragma once
#include <rushlight.h>

#include <cassert>
#include <iostream>
#include <sstream>

#include "ATen/core/Formatting.h"
#include "ATen/core/ivalue.h"
#include "ATen/tensor_methods.h"
#include "c10/util/Exception.h"
#include "c10/util/Optional.h"
#include "c10/util/irange.h"
#include "core/device/mt19937.h"
#include "nn/module_text.h"
#include "nn/state/archive.h"

namespace rush::detail {
// See Note [The names of modules in print].
inline const bool modules_print_as_torch = (nn::detail::set_printed_namespace("torch"), true);
// Programs that include these headers draw libtorch's numbers on the CPU: Note [libtorch's random numbers].
inline const bool draws_libtorch_numbers = (set_default_generator(make_generator<Mt19937GeneratorImpl>()), true);
}  // namespace rush::detail

namespace at {
using namespace rush;
using c10::IValue;
using c10::str;
using CPUGeneratorImpl = Mt19937GeneratorImpl;
namespace detail {
inline Generator createCPUGenerator(uint64_t seed = kDefaultSeed) { return make_generator<Mt19937GeneratorImpl>(seed); }
inline const Generator& getDefaultCPUGenerator() { return default_generator(kCPU); }
}  // namespace detail
}  // namespace at

namespace c10 {
using namespace rush;
using std::string_view;
using DeviceIndex = int8_t;
/// libtorch has element types under two names, where we have ScalarType for both.
inline ScalarType scalarTypeToTypeMeta(ScalarType type) { return type; }
inline ScalarType typeMetaToScalarType(ScalarType type) { return type; }
/// "Float", "Long". In namespace rush, doctest and others would take it for their own.
constexpr const char* toString(ScalarType type) { return rush::detail::enumerator_name(type); }
}  // namespace c10

namespace torch {
using namespace rush;
using c10::DeviceIndex;
using c10::IValue;
using c10::str;
using c10::toString;
using std::nullopt;
using std::optional;

inline constexpr ScalarType kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32, kI64 = kInt64;
inline constexpr ScalarType kU16 = kUInt16, kU32 = kUInt32, kU64 = kUInt64;
inline constexpr ScalarType kF16 = kFloat16, kF32 = kFloat32, kF64 = kFloat64;
}  // namespace torch

#define TORCH_MODULE(Name) RUSH_MODULE(Name)
#define TORCH_MODULE_IMPL(Name, ImplType)                   \
  class Name : public ::rush::nn::ModuleHolder<ImplType> {  \
   public:                                                  \
    using ::rush::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;                 \
  }
#define FORWARD_HAS_DEFAULT_ARGS(...) RUSH_FORWARD_HAS_DEFAULT_ARGS(__VA_ARGS__)
#define TORCH_ARG(Type, name) RUSH_ARG(Type, name)
