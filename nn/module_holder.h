// ModuleHolder: the handle through which modules are used. See Note [Modules are shared].
#pragma once
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/error/error.h"
#include "nn/module_scope.h"

namespace rush::nn {

class Module;

namespace detail {

struct ModuleHolderBase {};
template <class T>
inline constexpr bool is_module_holder = std::is_base_of_v<ModuleHolderBase, std::decay_t<T>>;

// LinearImpl for Linear and for LinearImpl.
template <class T, bool = is_module_holder<T>>
struct Contained {
  using type = T;
};
template <class T>
struct Contained<T, true> {
  using type = typename T::ContainedType;
};
template <class T>
using contained_t = typename Contained<T>::type;

// A std::shared_ptr<T> that only what uses it pays for: the compiler sees a hundred holders in every program, and
// instantiates one std::shared_ptr. T may derive from Module in private, or be no module, such as a dataset that a
// program puts in a holder: only a cast in C's notation converts to and from each of them.
template <class T>
class ModulePointer {
 public:
  ModulePointer() = default;
  ModulePointer(std::nullptr_t) {}
  ModulePointer(std::shared_ptr<T> module) {
    static_assert(sizeof(T) > 0, "the module's class is only declared");
    auto* address = (Module*)module.get();
    module_ = std::shared_ptr<Module>(std::move(module), address);
  }

  explicit operator bool() const noexcept { return module_ != nullptr; }
  T* get() const noexcept {
    static_assert(sizeof(T) > 0, "the module's class is only declared");
    return (T*)module_.get();
  }
  T* operator->() const noexcept { return get(); }
  T& operator*() const noexcept { return *get(); }
  operator std::shared_ptr<T>() const noexcept { return std::shared_ptr<T>(module_, get()); }

 private:
  std::shared_ptr<Module> module_;
};

}  // namespace detail

/// A shared pointer to a module that constructs it: Linear(2, 3) makes a LinearImpl(2, 3). A holder made from nullptr
/// is empty, for members that a constructor fills later.
template <class ContainedModule>
class ModuleHolder : detail::ModuleHolderBase {
 public:
  using ContainedType = ContainedModule;

  ModuleHolder() : impl_(std::make_shared<ContainedModule>()) {
    static_assert(std::is_default_constructible_v<ContainedModule>,
                  "this module has no default constructor; declare the member as `Name member{nullptr}` and assign it "
                  "in your constructor");
  }
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<ContainedModule> module) : impl_(std::move(module)) {}
  template <class Head, class... Tail>
  requires(sizeof...(Tail) > 0 || !std::is_base_of_v<ModuleHolder, std::decay_t<Head>>) &&
      (sizeof...(Tail) > 0 || !std::is_convertible_v<Head, std::shared_ptr<ContainedModule>>)  //
      explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(std::make_shared<ContainedModule>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}

  /// Whether it holds a module, and whether it does not.
  explicit operator bool() const noexcept { return static_cast<bool>(impl_); }
  bool is_empty() const noexcept { return !impl_; }
  /// All throw Error on an empty holder.
  ContainedModule* operator->() const { return get(); }
  ContainedModule& operator*() const { return *get(); }
  ContainedModule* get() const {
    RUSH_CHECK(impl_, "Accessing empty ModuleHolder: its module is not made yet");
    return impl_.get();
  }
  std::shared_ptr<ContainedModule> ptr() const {
    get();
    return impl_;
  }
  operator std::shared_ptr<ContainedModule>() const { return ptr(); }

  /// Calls forward.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) const {
    ContainedModule& module = *get();
    if constexpr (std::is_convertible_v<ContainedModule*, Module*>) {
      const ModuleScope scope(module);
      return module.forward(std::forward<Args>(args)...);
    } else {
      return module.forward(std::forward<Args>(args)...);
    }
  }
  /// The iterator of a container.
  template <class Index>
  decltype(auto) operator[](Index&& index) const {
    return (*get())[std::forward<Index>(index)];
  }

 protected:
  detail::ModulePointer<ContainedModule> impl_;
};

/// Prints the module that it holds.
template <class Traits, class ContainedModule>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& stream,
                                             const ModuleHolder<ContainedModule>& holder) {
  return stream << *holder;
}

}  // namespace rush::nn

// Defines the class Name as the holder of NameImpl.
#define RUSH_MODULE(Name)                                     \
  class Name : public ::rush::nn::ModuleHolder<Name##Impl> {  \
   public:                                                    \
    using ::rush::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
    using Impl [[maybe_unused]] = Name##Impl;                 \
  }
