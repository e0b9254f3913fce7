// The names of libtorch. Note [Programs written for libtorch]
// A program that includes <torch/torch.h> builds unchanged with rushlight::torch_compat: these headers have libtorch's
// paths. The word `torch` means `rush`: a macro, since only so can a program reopen torch::nn and specialise there,
// which an alias refuses, and say `nn` after `using namespace torch`, which a second namespace makes ambiguous. `at`
// and `c10`, words that methods have too, are namespaces with a using-directive; a program may put names of its own
// there. CPUGeneratorImpl is a macro, too: libtorch's generator, not Rushlight's. "Unchanged" ends with TorchScript and
// device code. What such a program prints and draws is libtorch's: tensors, modules and random numbers on the CPU.
#pragma once
#include "c10/macros/Macros.h"

#include <rushlight.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <concepts>
#include <iomanip>
#include <iostream>
#include <limits>
#include <numeric>
#include <sstream>

#include "ATen/Dispatch.h"
#include "ATen/core/DeprecatedTypeProperties.h"
#include "ATen/core/Formatting.h"
#include "ATen/core/LegacyTypeDispatch.h"
#include "ATen/core/ivalue.h"
#include "ATen/operators/batch_norm.h"
#include "ATen/operators/linear_algebra.h"
#include "ATen/operators/out_functions.h"
#include "ATen/operators/random_operators.h"
#include "ATen/operators/sparse_operators.h"
#include "ATen/operators/special_functions.h"
#include "ATen/operators/statistics.h"
#include "c10/core/DispatchKeySet.h"
#include "c10/util/Exception.h"
#include "c10/util/Logging.h"
#include "c10/util/MaybeOwned.h"
#include "c10/util/Optional.h"
#include "c10/util/complex.h"
#include "c10/util/irange.h"
#include "core/device/mt19937.h"
#include "nn/state/archive.h"
#include "torch/data/detail/queue.h"
#include "torch/data/detail/sequencers.h"

#define torch rush
#define CPUGeneratorImpl Mt19937GeneratorImpl

namespace rush::detail {
// What a program does otherwise when it includes these headers: its modules and functions print as libtorch's, StepLR
// steps as there, and it draws libtorch's numbers on the CPU (Note [libtorch's random numbers]). Returns true.
bool go_by_libtorch();
#ifndef RUSH_BUILDS_TORCH_COMPAT  // only a program that includes the headers, not one that is linked with the library
inline const bool goes_by_libtorch = go_by_libtorch();
#endif
}  // namespace rush::detail

namespace at {
using namespace rush;
using c10::IValue;
using c10::str;
using rush::Tensor;  // by name, so that a program may declare `namespace at { class Tensor; }` where g++ compiles it
using TensorBase = Tensor;
using IntList = IntArrayRef;  // its old name
namespace internal {
constexpr int64_t GRAIN_SIZE = 32768;  // elements that are worth a thread's while
}  // namespace internal
namespace detail {
Generator createCPUGenerator(uint64_t seed = kDefaultSeed);
inline const Generator& getDefaultCPUGenerator() { return default_generator(kCPU); }
}  // namespace detail
inline bool hasCUDA() { return cuda::is_available(); }
inline int64_t getNumGPUs() { return cuda::device_count(); }
inline bool hasMPS() { return false; }
inline bool hasXPU() { return false; }
/// The number as a tensor without dimensions, of the widest dtype of its kind.
Tensor scalar_to_tensor(const Scalar& number, Device device = kCPU);
/// The implementation of a generator as that type. Throws ValueError where there is none, or one of another device.
template <class Impl>
Impl* check_generator(const std::optional<Generator>& generator) {
  Impl* impl = generator && generator->defined() ? dynamic_cast<Impl*>(generator->get<GeneratorImpl>()) : nullptr;
  RUSH_CHECK_VALUE(impl, "check_generator: expected a generator of the type asked for");
  return impl;
}
template <class Impl>
Impl* get_generator_or_default(const std::optional<Generator>& generator, const Generator& otherwise) {
  return check_generator<Impl>(generator && generator->defined() ? *generator : otherwise);
}
}  // namespace at

namespace rush {
// Operators do not run beside one another, so that there are no threads for that: a number is accepted and changes
// nothing. The pool of threads starts by itself.
inline void set_num_interop_threads(int num) {
  RUSH_CHECK_VALUE(num > 0, "set_num_interop_threads: expected a positive number of threads, got ", num);
}
inline int get_num_interop_threads() { return 1; }
inline void init_num_threads() {}

namespace autograd {
using rush::AutoGradMode;
using rush::GradMode;
using rush::InferenceMode;
/// Whether one of them does.
inline bool any_variable_requires_grad(const variable_list& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Variable& each) { return each.requires_grad(); });
}
}  // namespace autograd
}  // namespace rush

namespace c10 {
using namespace rush;
using std::string_view;
using DeviceIndex = int8_t;
using SymInt = int64_t;  // sizes are numbers here, never symbols
using SymIntArrayRef = IntArrayRef;
using intrusive_ptr_target = IntrusiveTarget;
template <class T>
ArrayRef<T> makeArrayRef(const T* first, size_t count) {
  return ArrayRef<T>(first, count);
}
template <class Container>
auto makeArrayRef(const Container& container) -> ArrayRef<std::remove_cvref_t<decltype(*container.data())>> {
  return container;
}
inline Allocator* GetCPUAllocator() { return &rush::allocator(kCPU); }
inline Allocator* GetAllocator(DeviceType type) { return &rush::allocator(type); }
inline void SetAllocator(DeviceType type, Allocator* replacement) { rush::set_allocator(type, replacement); }
namespace impl {
template <ScalarType type>
using ScalarTypeToCPPType = CppType<type>;
template <ScalarType type>
using ScalarTypeToCPPTypeT = cpp_type<type>;
}  // namespace impl
constexpr TypeMeta scalarTypeToTypeMeta(ScalarType type) { return TypeMeta(type); }
constexpr ScalarType typeMetaToScalarType(TypeMeta type) { return type.toScalarType(); }
/// Of an element, in bytes.
constexpr size_t elementSize(ScalarType type) { return TypeMeta(type).itemsize(); }
constexpr bool isFloatingType(ScalarType type) { return rush::is_floating_point(type); }
constexpr bool isIntegralType(ScalarType type, bool includeBool) { return rush::is_integral(type, includeBool); }
constexpr bool isComplexType(ScalarType type) { return rush::is_complex(type); }
constexpr bool isSignedType(ScalarType type) { return rush::traits_of(type).is_signed; }
inline ScalarType promoteTypes(ScalarType a, ScalarType b) { return rush::promote_types(a, b); }
inline bool canCast(ScalarType from, ScalarType to) { return rush::can_cast(from, to); }
/// Quantised types, of which there are none, would give the integers beneath.
constexpr ScalarType toUnderlying(ScalarType type) { return type; }
/// The real type beneath a complex one; other types are themselves.
inline ScalarType toRealValueType(ScalarType type) { return rush::to_real(type); }
inline ScalarType toComplexType(ScalarType type) { return rush::to_complex(type); }
template <class T>
struct CppTypeToScalarType : std::integral_constant<ScalarType, scalar_type_of<T>> {};
/// "CUDA", or "cuda".
inline std::string DeviceTypeName(DeviceType type, bool lower_case = false) {
  const std::string name = rush::device_type_name(type);
  return lower_case ? name : rush::upper_case(name);
}
/// "Float", "Long". In namespace rush, doctest and others would take it for their own.
constexpr const char* toString(ScalarType type) { return rush::detail::enumerator_name(type); }
}  // namespace c10
using c10::toString;  // libtorch's is found by its argument

namespace rush {
/// The address, which is what a grad_fn prints in libtorch.
template <class T>
std::ostream& operator<<(std::ostream& out, const intrusive_ptr<T>& pointer) {
  return out << pointer.get();
}
/// 1, or 0 where there is none: in libtorch a storage converts to bool.
inline std::ostream& operator<<(std::ostream& out, const Storage& storage) { return out << static_cast<bool>(storage); }
/// Leaves std::boolalpha on, as libtorch does.
inline std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  return out << std::boolalpha << str(options);
}
/// That of the tensor, or of the first of several; none where there is no tensor. OptionalCUDAGuard takes it.
inline std::optional<Device> device_of(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor.device()) : std::nullopt;
}
inline std::optional<Device> device_of(const std::optional<Tensor>& tensor) {
  return tensor ? device_of(*tensor) : std::nullopt;
}
inline std::optional<Device> device_of(TensorList tensors) {
  return tensors.empty() ? std::nullopt : device_of(tensors[0]);
}
inline constexpr DeviceType kMPS = DeviceType::MPS, kXPU = DeviceType::XPU;
/// The options of that element type.
template <class T>
TensorOptions dtype() {
  return TensorOptions(scalar_type_of<T>);
}
inline TensorOptions layout(Layout value) { return TensorOptions().layout(value); }
inline TensorOptions memory_format(MemoryFormat value) { return TensorOptions().memory_format(value); }
}  // namespace rush

namespace rush::optim {
/// Whether all options are the same.
template <class Options>
requires std::derived_from<Options, DescribedOptions<Options>>
bool operator==(const Options& a, const Options& b) {
  OptionNumbers first, second;
  Options::describe(a, first);
  Options::describe(b, second);
  // What is not given is NaN.
  const auto same = [](double x, double y) { return x == y || (x != x && y != y); };
  return first.num_numbers == second.num_numbers && first.flags == second.flags &&
         std::equal(first.numbers.begin(), first.numbers.end(), second.numbers.begin(), same);
}
}  // namespace rush::optim

namespace rush::indexing {
inline std::ostream& operator<<(std::ostream& out, const Slice& slice) {
  return out << slice.start() << ":" << slice.stop() << ":" << slice.step();
}
/// None, ..., 1, true, 0:2:1, or the tensor.
std::ostream& operator<<(std::ostream& out, const TensorIndex& index);
}  // namespace rush::indexing

/// Of the address, as std::hash of a std::shared_ptr.
template <class T>
struct std::hash<rush::intrusive_ptr<T>> {
  size_t operator()(const rush::intrusive_ptr<T>& pointer) const { return std::hash<T*>()(pointer.get()); }
};

namespace caffe2 {
using rush::TypeMeta;
}  // namespace caffe2

namespace torch {
/// Of classes that c10::intrusive_ptr counts. TorchScript, for which libtorch registers them, there is none of here.
struct CustomClassHolder : IntrusiveTarget {};

using namespace c10;
using std::nullopt;
using std::optional;

inline constexpr ScalarType kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32, kI64 = kInt64;
inline constexpr ScalarType kU16 = kUInt16, kU32 = kUInt32, kU64 = kUInt64;
inline constexpr ScalarType kF16 = kFloat16, kF32 = kFloat32, kF64 = kFloat64;
}  // namespace torch

#define TORCH_UNUSED_EXCEPT_CUDA [[maybe_unused]]  // of Impl, in holders that a program writes by hand
#define TORCH_MODULE(Name) RUSH_MODULE(Name)
#define TORCH_MODULE_IMPL(Name, ImplType)                   \
  class Name : public ::rush::nn::ModuleHolder<ImplType> {  \
   public:                                                  \
    using ::rush::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;                 \
  }
// <torch/torch.h> does not bring these, as it does in libtorch: their header takes long to compile.
#ifndef TORCH_LIBRARY
#define RUSH_NEEDS_LIBRARY_HEADER(m)                                                \
  static_assert(false, "for TORCH_LIBRARY and its kin, include <torch/library.h>"); \
  template <class Operators>                                                        \
  static void C10_ANONYMOUS_VARIABLE(needs_library_header_)([[maybe_unused]] Operators & m)
#define TORCH_LIBRARY(ns, m) RUSH_NEEDS_LIBRARY_HEADER(m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) RUSH_NEEDS_LIBRARY_HEADER(m)
#define TORCH_LIBRARY_IMPL(ns, key, m) RUSH_NEEDS_LIBRARY_HEADER(m)
#endif
#define FORWARD_HAS_DEFAULT_ARGS(...) RUSH_FORWARD_HAS_DEFAULT_ARGS(__VA_ARGS__)
#define TORCH_ARG(Type, name) RUSH_ARG(Type, name)
