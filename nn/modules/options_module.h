// Modules that are their options and a forward.
#pragma once
#include <type_traits>
#include <utility>

#include "nn/cloneable.h"

namespace rush::nn {

/// What such modules have in common. Derived has pretty_print and forward.
template <class Derived, class Options>
class OptionsModule : public Cloneable<Derived> {
 public:
  OptionsModule() requires std::is_default_constructible_v<Options> : options{} {}
  explicit OptionsModule(const Options& options) : options(options) {}
  /// Of what the options are made of: of one value, or of two.
  template <class First>
  requires(!std::same_as<std::remove_cvref_t<First>, Options> &&
           std::is_constructible_v<Options, First>) explicit OptionsModule(First&& first)
      : options(std::forward<First>(first)) {}
  template <class First, class Second>
  requires std::is_constructible_v<Options, First, Second> OptionsModule(First&& first, Second&& second)
      : options(std::forward<First>(first), std::forward<Second>(second)) {}
  void reset() override {}

  Options options;
};

}  // namespace rush::nn

// The base of Name1dImpl and so on by libtorch's name: template <size_t D, class Derived> NameImpl.
#define RUSH_OPTIONS_BASE(Name)      \
  template <size_t D, class Derived> \
  using Name##Impl = OptionsModule<Derived, Name##Options<D>>;

// Declares NameImpl and Name, made of NameOptions or of two values that make those. The members follow the name,
// forward among them. The source defines pretty_print and those.
#define RUSH_OPTIONS_MODULE_WITH(Name, ...)                            \
  class Name##Impl : public OptionsModule<Name##Impl, Name##Options> { \
   public:                                                             \
    using OptionsModule<Name##Impl, Name##Options>::OptionsModule;     \
    void pretty_print(std::ostream& stream) const override;            \
    __VA_ARGS__                                                        \
  };                                                                   \
  RUSH_MODULE(Name);
// The same with forward(input) and perhaps more.
#define RUSH_OPTIONS_MODULE(Name, ...) RUSH_OPTIONS_MODULE_WITH(Name, Tensor forward(const Tensor& input); __VA_ARGS__)
