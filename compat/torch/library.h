// TORCH_LIBRARY and its kin: operators that a program written for libtorch brings. Note [Operators of TORCH_LIBRARY]
#pragma once
#include "c10/macros/Macros.h"

#include <functional>
#include <string>
#include <string_view>

#include "ATen/core/dispatch/Dispatcher.h"
#include "c10/core/DispatchKeySet.h"
#include "core/amp/autocast_kernel.h"
#include "core/library/by_device.h"
#include "torch/types.h"

// Note [Operators of TORCH_LIBRARY]
// Rushlight's own operators are objects with functions that are known when a program is compiled:
// core/library/library.h. libtorch's are registered by name, from objects that are made before main() begins, in any
// order: a schema here, its functions for the CPU there. So a name's functions wait until its schema is known, and the
// other way round; the first function brings the operator's type, an Op<...> is made of it, which lives until the
// process ends, and the rest joins it. A kernel is a plain function without a closure, so each place that registers one
// makes a type of its own, whose static member holds what was given there. From then on it is an operator as any other:
// called by name, recorded by autograd, seen by profiles. nvcc has no type for each place: functions of one type
// take kPlaces in turn in each file, unless TORCH_FN makes the function itself part of a type. A function of Autocast
// is called while autocast is on for its device, as in libtorch, and switches it off by an ExcludeDispatchKeyGuard
// before it calls the operator again.
namespace at {
/// What a schema does not say of an operator, in libtorch's words. Of these, dynamic_output_shape says where a compiled
/// function is cut; nothing here depends on the others.
enum class Tag {
  core,
  data_dependent_output,
  dynamic_output_shape,
  flexible_layout,
  generated,
  inplace_view,
  maybe_aliasing_or_mutating,
  needs_contiguous_strides,
  needs_exact_strides,
  needs_fixed_stride_order,
  nondeterministic_bitwise,
  nondeterministic_seeded,
  pointwise,
  pt2_compliant_tag,
  reduction,
  view_copy
};
}  // namespace at

namespace rush::libtorch {

namespace {
struct ThisFile {};  // a place's type is the file's own, also where two files have the same places
}  // namespace

struct NextPlace {};
template <size_t number>
struct NumberedPlace {};
constexpr size_t kPlaces = 8;
#ifdef __CUDACC__
#define RUSH_PLACE ::rush::libtorch::NextPlace
#else
#define RUSH_PLACE decltype([] {})
#endif

/// A function that is part of a type.
template <auto fn>
struct FunctionConstant {
  constexpr operator decltype(fn)() const { return fn; }
};
template <class T>
constexpr bool is_function_constant = false;
template <auto fn>
constexpr bool is_function_constant<FunctionConstant<fn>> = true;
template <class Fn, class Place>
using place_of = std::conditional_t<is_function_constant<Fn>, Fn, Place>;

/// An operator on its way into the registry.
struct OperatorInProgress {
  std::string schema;                                             // empty until it is defined
  bool has_dynamic_shape = false;                                 // at::Tag::dynamic_output_shape
  OpBase* op = nullptr;                                           // null until its type is known
  void* by_device = nullptr;                                      // the OperatorByDevice around it
  std::vector<std::function<void(OperatorInProgress&)>> waiting;  // functions, for the schema
};
/// That of a name, "my::scale". Throws ValueError where the name has no namespace, or is one of Rushlight's own.
OperatorInProgress& operator_in_progress(const std::string& name);
/// Gives the name its schema, and the functions that waited for it. Throws ValueError where it has one.
void define(const std::string& schema, const std::vector<at::Tag>& tags = {});
/// "my::scale(Tensor _0, float _1) -> Tensor", for a function that was given without a schema.
std::string schema_of(const std::string& name, const library::Signature& signature);

/// What a function registers as.
enum class Serves : uint8_t { AllByOthers, AllDevices, OneDevice, Autograd, Autocast, Nothing };
struct Key {
  Serves serves = Serves::AllByOthers;
  DeviceType device = kCPU;
};
/// "CPU", "AutogradCUDA", "CompositeImplicitAutograd". A function for tensors that there are none of, such as
/// "QuantizedCPU", serves nothing. Throws NotImplementedError for other keys.
Key key_named(std::string_view name);

/// An operator with a function for each type of device.
template <class Sig>
struct OperatorByDevice;
template <class R, class... Args>
struct OperatorByDevice<R(Args...)> {
  explicit OperatorByDevice(const OperatorInProgress& defined)
      : op(defined.schema.c_str(), {defined.has_dynamic_shape ? Tag::DynamicOutputShape : Tag()}) {}
  Op<R(Args...)> op;
  R (*table[kNumDeviceTypes])(Args...) = {};
  R (*under_autocast[kNumDeviceTypes])(Args...) = {};
};

/// A place that registers a function: calls it, with its own types of arguments.
template <class Place, class Fn>
struct FunctionAt;
template <class Place, class R, class... Args>
struct FunctionAt<Place, R (*)(Args...)> {
  using Signature = R(as_operators_take<Args>...);
  static inline R (*given)(Args...) = nullptr;
  static inline OperatorByDevice<Signature>* made = nullptr;     // where this place was the first of its name
  static inline OperatorByDevice<Signature>* lowered = nullptr;  // where it was the first for Autocast

  static R call(as_operators_take<Args>... args) { return given(as_given<Args>(args)...); }
  static R front(as_operators_take<Args>... args) {
    return library::detail::call_by_device(made->op, made->table, args...);
  }
  static R autocast_front(as_operators_take<Args>... args) {
    const DeviceType device = autocast::device_of_call(args...);
    const auto fn = lowered->under_autocast[static_cast<int>(device)];
    if (fn && autocast::is_autocast_enabled(device)) return fn(args...);
    return lowered->op.call_without(rush::DispatchKey::Autocast, args...);
  }

  static void add(OperatorInProgress& operation, Key key) {
    if (key.serves == Serves::Nothing) return;
    if (!operation.op) {
      made = new OperatorByDevice<Signature>(operation);
      library::check_signature(made->op, library::signature_of<Signature>());
      operation.op = &made->op;
      operation.by_device = made;
      if (key.serves != Serves::AllByOthers) registry().native(made->op, front);
    } else {
      library::check_signature(*operation.op, library::signature_of<Signature>());
    }
    auto& typed = *static_cast<OperatorByDevice<Signature>*>(operation.by_device);
    switch (key.serves) {
      case Serves::AllByOthers: registry().composite(typed.op, call); break;
      case Serves::Autograd: registry().kernel(typed.op, rush::DispatchKey::Autograd, call); break;
      case Serves::OneDevice: typed.table[static_cast<int>(key.device)] = call; break;
      case Serves::Autocast:
        typed.under_autocast[static_cast<int>(key.device)] = call;
        if (!typed.op.has_kernel(rush::DispatchKey::Autocast)) {
          lowered = &typed;
          registry().kernel(typed.op, rush::DispatchKey::Autocast, autocast_front);
        }
        break;
      case Serves::Nothing: break;
      case Serves::AllDevices:
        for (auto& fn : typed.table) fn = fn ? fn : call;
        break;
    }
  }
};

/// A function and what it registers as.
template <class Fn>
struct FunctionOfKey {
  Fn fn;
  Key key;
};

/// `m` of TORCH_LIBRARY: defines operators of one namespace and gives their functions.
class OperatorsOf {
 public:
  explicit OperatorsOf(std::string name_space, std::string_view key = {})
      : prefix_(std::move(name_space) + "::"), key_(key.empty() ? Key() : key_named(key)) {}

  /// Defines an operator by its schema, "scale(Tensor x, float factor) -> Tensor"; impl brings its functions.
  OperatorsOf& def(const std::string& schema, const std::vector<at::Tag>& tags = {}) {
    define(with_namespace(schema), tags);
    return *this;
  }
  /// Defines one with a function that serves all devices and consists of calls to operators, or records what it does by
  /// an autograd::Function; a lambda without captures will do. Given a name alone, the schema follows from the types.
  template <class Fn, class Place = RUSH_PLACE, class File = ThisFile>
  OperatorsOf& def(const std::string& schema, const Fn& fn) {
    const std::string whole = with_namespace(schema);
    using Signature = typename FunctionAt<Place, decltype(+fn)>::Signature;
    const bool has_types = whole.find('(') != std::string::npos;
    define(has_types ? whole : schema_of(whole, library::signature_of<Signature>()));
    give<place_of<Fn, Place>, File>(whole.substr(0, whole.find('(')), +fn, key_);
    return *this;
  }
  /// A function of an operator that is defined here or elsewhere, before or after.
  template <class Fn, class Place = RUSH_PLACE, class File = ThisFile>
  OperatorsOf& impl(const std::string& name, const Fn& fn) {
    give<place_of<Fn, Place>, File>(with_namespace(name), +fn, key_);
    return *this;
  }
  /// One for a key, or the type of a device, that is given here.
  template <class Fn, class Place = RUSH_PLACE, class File = ThisFile>
  OperatorsOf& impl(const std::string& name, c10::DispatchKey key, const Fn& fn) {
    give<place_of<Fn, Place>, File>(with_namespace(name), +fn, key_named(toString(key)));
    return *this;
  }
  template <class Fn, class Place = RUSH_PLACE, class File = ThisFile>
  OperatorsOf& impl(const std::string& name, DeviceType device, const Fn& fn) {
    give<place_of<Fn, Place>, File>(with_namespace(name), +fn, {Serves::OneDevice, device});
    return *this;
  }
  /// One that torch::dispatch has given a key.
  template <class Fn, class Place = RUSH_PLACE, class File = ThisFile>
  OperatorsOf& impl(const std::string& name, const FunctionOfKey<Fn>& function) {
    give<Place, File>(with_namespace(name), function.fn, function.key);
    return *this;
  }
  /// Refused: a class of C++ is used as it is.
  template <class T, class... Args>
  OperatorsOf& class_(const Args&...) {
    static_assert(sizeof(T) == 0, "Rushlight runs no TorchScript, for which class_ registers a class: leave it out");
    return *this;
  }
  /// Names a module of Python that computes sizes and dtypes; there is no Python here to load it.
  OperatorsOf& set_python_module(const char*, const char* = "") { return *this; }
  OperatorsOf& impl_abstract_pystub(const char*, const char* = "") { return *this; }

 private:
  std::string with_namespace(const std::string& name) const {
    return name.substr(0, name.find('(')).find("::") == std::string::npos ? prefix_ + name : name;
  }
  template <class Place, class File, class Fn>
  static void give(const std::string& name, Fn fn, Key key) {
    if constexpr (std::is_same_v<Place, NextPlace>) {
      give_next_place<File>(name, fn, key, std::make_index_sequence<kPlaces>());
    } else if constexpr (is_function_constant<Place>) {  // it may have two names
      give_next_place<std::pair<Place, File>>(name, fn, key, std::make_index_sequence<2>());
    } else {
      give_to<FunctionAt<std::pair<Place, File>, Fn>>(name, fn, key);
    }
  }
  template <class File, class Fn, size_t... numbers>
  static void give_next_place(const std::string& name, Fn fn, Key key, std::index_sequence<numbers...>) {
    static size_t next = 0;
    const size_t place = next++;
    RUSH_CHECK(place < sizeof...(numbers), "TORCH_LIBRARY: compiled by nvcc, a file gives ", kPlaces,
               " functions of one type, and TORCH_FN(function) another two names each; not so many that there is a ",
               "place for ", name);
    ((numbers == place ? give<NumberedPlace<numbers>, File>(name, fn, key) : void()), ...);
  }
  template <class At, class Fn>
  static void give_to(const std::string& name, Fn fn, Key key) {
    At::given = fn;
    OperatorInProgress& operation = operator_in_progress(name);
    if (operation.schema.empty()) {
      operation.waiting.push_back([key](OperatorInProgress& defined) { At::add(defined, key); });
    } else {
      At::add(operation, key);
    }
  }

  std::string prefix_;
  Key key_;
};

/// Calls a function before main() begins.
struct RegistersAtStart {
  explicit RegistersAtStart(void (*body)()) { body(); }
};

}  // namespace rush::libtorch

namespace rush {
/// A function for a key, or the type of a device: m.impl("scale", torch::dispatch(c10::DispatchKey::CPU,
/// scale_on_cpu)).
template <class Fn>
auto dispatch(c10::DispatchKey key, const Fn& fn) {
  return libtorch::FunctionOfKey<decltype(+fn)>{fn, libtorch::key_named(toString(key))};
}
template <class Fn>
auto dispatch(DeviceType device, const Fn& fn) {
  return libtorch::FunctionOfKey<decltype(+fn)>{fn, {libtorch::Serves::OneDevice, device}};
}

/// torch::RegisterOperators().op("my::scale", &scale): as def of TORCH_LIBRARY, and the older form of it.
class RegisterOperators {
 public:
  RegisterOperators() = default;
  template <class Fn, class Place = RUSH_PLACE, class File = libtorch::ThisFile>
  RegisterOperators(const std::string& schema, const Fn& fn) {
    block_.def<Fn, Place, File>(schema, fn);
  }
  template <class Fn, class Place = RUSH_PLACE, class File = libtorch::ThisFile>
  RegisterOperators&& op(const std::string& schema, const Fn& fn) && {
    block_.def<Fn, Place, File>(schema, fn);
    return std::move(*this);
  }

 private:
  libtorch::OperatorsOf block_{""};
};
}  // namespace rush

#define RUSH_LIBRARY_BLOCK_NAMED(ns, key, body, m)                     \
  static void body(::rush::libtorch::OperatorsOf&);                    \
  static const ::rush::libtorch::RegistersAtStart body##_at_start([] { \
    ::rush::libtorch::OperatorsOf block(#ns, key);                     \
    body(block);                                                       \
  });                                                                  \
  static void body([[maybe_unused]] ::rush::libtorch::OperatorsOf& m)
#define RUSH_LIBRARY_BLOCK_NUMBERED(ns, key, number, m) \
  RUSH_LIBRARY_BLOCK_NAMED(ns, key, rush_operators_of_##ns##_##number, m)
#define RUSH_LIBRARY_BLOCK(ns, key, number, m) RUSH_LIBRARY_BLOCK_NUMBERED(ns, key, number, m)
#undef TORCH_LIBRARY
#undef TORCH_LIBRARY_FRAGMENT
#undef TORCH_LIBRARY_IMPL
#define TORCH_LIBRARY(ns, m) RUSH_LIBRARY_BLOCK(ns, "", __COUNTER__, m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) RUSH_LIBRARY_BLOCK(ns, "", __COUNTER__, m)
#define TORCH_LIBRARY_IMPL(ns, key, m) RUSH_LIBRARY_BLOCK(ns, #key, __COUNTER__, m)
#ifdef __CUDACC__
#define TORCH_FN(function) (::rush::libtorch::FunctionConstant<(&function)>())
#else
#define TORCH_FN(function) (&function)
#endif
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
