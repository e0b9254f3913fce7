// RUSH_ARG declares one option of an Options class: `momentum(0.9)` sets it and returns the options, for chaining;
// `momentum()` reads it.
#pragma once
#include <utility>

// RUSH_ARG(double, momentum) = 0;
#define RUSH_ARG(Type, name)                            \
 public:                                                \
  auto name(Type value)->decltype(*this) {              \
    this->name##_ = std::move(value);                   \
    return *this;                                       \
  }                                                     \
  const Type& name() const noexcept { return name##_; } \
  Type& name() noexcept { return name##_; }             \
                                                        \
 private:                                               \
  Type name##_
