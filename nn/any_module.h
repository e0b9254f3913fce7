// AnyModule: a module of any class behind one type, so that a Sequential can call a row of them.
#pragma once
#include <any>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <typeinfo>
#include <vector>

#include "nn/module.h"

namespace rush::nn {

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
// Throws TypeError: what `is_asked_for` says is one type, and the value has another.
[[noreturn]] RUSH_COLD void throw_other_type(std::string_view is_asked_for, const std::type_info& asked_for,
                                             const std::type_info& actual);
}  // namespace detail

/// A value of any type that can be copied: an argument of an AnyModule's forward, or what it returned.
class AnyValue {
 public:
  template <class T>
  requires(!std::is_same_v<std::decay_t<T>, AnyValue> &&
           !std::is_same_v<std::decay_t<T>, std::any>) explicit AnyValue(T&& value)
      : value_(std::decay_t<T>(std::forward<T>(value))) {}
  /// What a std::any holds.
  static AnyValue holding(std::any value) {
    AnyValue result(0);
    result.value_ = std::move(value);
    return result;
  }

  /// The value; null unless it is of exactly this type.
  template <class T>
  T* try_get() noexcept {
    return std::any_cast<T>(&value_);
  }
  /// Throws TypeError unless it is of exactly this type.
  template <class T>
  T get() const {
    const T* value = std::any_cast<T>(&value_);
    if (!value) detail::throw_other_type("AnyValue: it is asked for as", typeid(T), value_.type());
    return *value;
  }
  const std::type_info& type_info() const noexcept { return value_.type(); }  // the value's type
  const std::any& any() const noexcept { return value_; }                     // what holds the value

 private:
  std::any value_;
};

namespace detail {
template <class T>
std::any pack(T&& value) {
  if constexpr (std::is_same_v<std::decay_t<T>, AnyValue>) {
    return value.any();
  } else {
    return std::any(std::decay_t<T>(std::forward<T>(value)));
  }
}
}  // namespace detail

// Note [How AnyModule calls forward]
// A template knows the class of the module when the AnyModule is made, and leaves behind a function pointer that casts
// the module back, unpacks the arguments from std::any and calls forward. Arguments must have the parameters' types
// exactly; trailing ones of type std::optional may be left out, and those that the class names in
// RUSH_FORWARD_HAS_DEFAULT_ARGS: a function pointer does not know a parameter's default. A class whose forward is
// overloaded or a template (as Sequential's) is called with a Tensor and returns a Tensor.
class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
  requires std::is_base_of_v<Module, M>
  explicit AnyModule(std::shared_ptr<M> module) : module_(std::move(module)), call_(&call<M>), class_(&typeid(M)) {}
  template <class M>
  requires std::is_base_of_v<Module, std::decay_t<M>>
  explicit AnyModule(M&& module) : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}
  template <class M>
  explicit AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}
  /// Holds another module from now on.
  template <class M>
  requires std::is_base_of_v<Module, M> AnyModule& operator=(std::shared_ptr<M> module) {
    return *this = AnyModule(std::move(module));
  }
  template <class M>
  AnyModule& operator=(const ModuleHolder<M>& holder) {
    return *this = AnyModule(holder);
  }

  bool is_empty() const noexcept { return !module_; }  // it holds none
  /// The module. Throws Error when empty.
  const std::shared_ptr<Module>& ptr() const {
    RUSH_CHECK(module_, "AnyModule: it is empty");
    return module_;
  }
  /// The module as the class that it was made with: for LinearImpl a reference, for Linear a holder that shares it.
  /// Throws TypeError for any other class.
  template <class T>
  decltype(auto) get() const {
    if constexpr (detail::is_module_holder<T>) {
      return T(ptr<typename T::ContainedType>());
    } else {
      RUSH_CHECK_TYPE(*class_of() == typeid(T), "AnyModule: Attempted to cast module of type ", module_->name(),
                      " to another class than that which it was made with");
      return static_cast<T&>(*module_);
    }
  }
  /// The same as a pointer that shares it.
  template <class T>
  requires std::is_base_of_v<Module, T> std::shared_ptr<T> ptr()
  const {
    get<T>();
    return std::static_pointer_cast<T>(module_);
  }
  const std::type_info& type_info() const { return *class_of(); }       // the module's class
  AnyModule clone(std::optional<Device> device = std::nullopt) const {  // around a clone of the module
    AnyModule copy = *this;
    if (module_) copy.module_ = module_->clone(device);
    return copy;
  }

  /// Calls the module's forward. Throws TypeError when the arguments or the result are of other types.
  template <class Return = Tensor, class... Args>
  Return forward(Args&&... args) const {
    std::vector<std::any> packed;
    packed.reserve(sizeof...(Args));
    (packed.push_back(detail::pack(std::forward<Args>(args))), ...);
    std::any result = forward_packed(packed);
    if constexpr (!std::is_void_v<Return>) {
      Return* value = std::any_cast<Return>(&result);
      if (!value) detail::throw_other_type("AnyModule: the result is asked for as", typeid(Return), result.type());
      return std::move(*value);
    }
  }
  /// The same, with the result as it is. An argument may be an AnyValue, which stands for what it holds.
  template <class... Args>
  AnyValue any_forward(Args&&... args) const {
    std::vector<std::any> packed;
    packed.reserve(sizeof...(Args));
    (packed.push_back(detail::pack(std::forward<Args>(args))), ...);
    return AnyValue::holding(forward_packed(packed));
  }
  /// The same on packed arguments, which may be moved from.
  std::any forward_packed(std::vector<std::any>& args) const {
    const ModuleScope scope(*ptr());
    return call_(*module_, args);
  }

 private:
  using Call = std::any (*)(Module& module, std::vector<std::any>& args);

  const std::type_info* class_of() const {
    ptr();
    return class_;
  }

  template <class M>
  static std::any call(Module& module, std::vector<std::any>& args) {
    M& self = static_cast<M&>(module);
    if constexpr (requires { self._forward_default_args(); }) {
      for (const auto& [position, value] : self._forward_default_args()) {
        if (args.size() == position) args.push_back(value.any());
      }
    }
    if constexpr (requires { &M::forward; }) {
      return call_method(self, &M::forward, args);
    } else {
      return call_with(
          self, args, [&](const Tensor& input) -> Tensor { return self.forward(input); },
          static_cast<std::tuple<const Tensor&>*>(nullptr));
    }
  }
  template <class M, class Base, class R, class... Params>
  static std::any call_method(M& self, R (Base::*method)(Params...), std::vector<std::any>& args) {
    return call_with(
        self, args, [&](Params... values) -> R { return (self.*method)(std::forward<Params>(values)...); },
        static_cast<std::tuple<Params...>*>(nullptr));
  }
  template <class M, class Base, class R, class... Params>
  static std::any call_method(M& self, R (Base::*method)(Params...) const, std::vector<std::any>& args) {
    return call_with(
        self, args, [&](Params... values) -> R { return (self.*method)(std::forward<Params>(values)...); },
        static_cast<std::tuple<Params...>*>(nullptr));
  }

  template <class Fn, class... Params>
  static std::any call_with(const Module& module, std::vector<std::any>& args, const Fn& fn, std::tuple<Params...>*) {
    check_count<Params...>(module, args);
    auto values = [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<std::decay_t<Params>...>(unpack<std::decay_t<Params>>(module, args, I)...);
    }
    (std::index_sequence_for<Params...>());
    using R = std::invoke_result_t<Fn, Params...>;
    if constexpr (std::is_void_v<R>) {
      std::apply([&](auto&... each) { fn(static_cast<Params>(each)...); }, values);
      return {};
    } else {
      return std::apply([&](auto&... each) { return std::any(std::decay_t<R>(fn(static_cast<Params>(each)...))); },
                        values);
    }
  }

  template <class... Params>
  static void check_count(const Module& module, const std::vector<std::any>& args) {
    constexpr bool optional[] = {detail::is_optional<std::decay_t<Params>>..., false};
    size_t required = sizeof...(Params);
    while (required > 0 && optional[required - 1]) --required;
    RUSH_CHECK_TYPE(args.size() >= required && args.size() <= sizeof...(Params), module.name(),
                    "'s forward() method expects ", sizeof...(Params), " argument(s), ", required,
                    " of them required, but received ", args.size(),
                    "; defaults of its parameters are named in RUSH_FORWARD_HAS_DEFAULT_ARGS (FORWARD_HAS_DEFAULT_ARGS "
                    "in libtorch)");
  }
  template <class T>
  static T unpack(const Module& module, std::vector<std::any>& args, size_t position) {
    if constexpr (detail::is_optional<T>) {
      if (position >= args.size()) return T();
      if (auto* plain = std::any_cast<typename T::value_type>(&args[position])) return T(std::move(*plain));
    }
    T* value = std::any_cast<T>(&args[position]);
    if (!value) {
      detail::throw_other_type(str(module.name(), ": argument ", position + 1, " of forward is to be"), typeid(T),
                               args[position].type());
    }
    return std::move(*value);
  }

  std::shared_ptr<Module> module_;
  Call call_ = nullptr;
  const std::type_info* class_ = nullptr;
};

/// A module with the name that it is to have in a Sequential: {"conv1", Conv2d(1, 32, 3)}.
class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, M&& module) : name_(std::move(name)), module_(std::forward<M>(module)) {}
  NamedAnyModule(std::string name, AnyModule module) : name_(std::move(name)), module_(std::move(module)) {}
  const std::string& name() const noexcept { return name_; }    // in the Sequential
  const AnyModule& module() const noexcept { return module_; }  // that is registered under it

 private:
  std::string name_;
  AnyModule module_;
};

}  // namespace rush::nn

// In a class whose forward has default arguments, so that an AnyModule and a Sequential may leave them out: the
// position and the value of each, in order.
//   int forward(int a, int b = 2, double c = 3.0);
//   RUSH_FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(2)}, {2, AnyValue(3.0)})
#define RUSH_FORWARD_HAS_DEFAULT_ARGS(...) \
  friend class ::rush::nn::AnyModule;      \
  std::vector<std::pair<unsigned, ::rush::nn::AnyValue>> _forward_default_args() const { return {__VA_ARGS__}; }
