// Modules that are their options and a forward.
#pragma once
#include "nn/cloneable.h"

// Declares NameImpl and Name, made of NameOptions or of two values that make those; further members follow the name.
// The source defines pretty_print and forward.
#define RUSH_OPTIONS_MODULE(Name, ...)                                                                        \
  class Name##Impl : public Cloneable<Name##Impl> {                                                           \
   public:                                                                                                    \
    explicit Name##Impl(const Name##Options& options) : options(options) {}                                   \
    template <class First, class Second>                                                                      \
    requires std::is_constructible_v<Name##Options, First, Second> Name##Impl(First&& first, Second&& second) \
        : options(std::forward<First>(first), std::forward<Second>(second)) {}                                \
    void reset() override {}                                                                                  \
    void pretty_print(std::ostream& stream) const override;                                                   \
    Tensor forward(const Tensor& input);                                                                      \
    __VA_ARGS__                                                                                               \
                                                                                                              \
    Name##Options options;                                                                                    \
  };                                                                                                          \
  RUSH_MODULE(Name);
