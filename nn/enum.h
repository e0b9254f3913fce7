// Choices that options take, as libtorch names them: kMean, kSame, kReflect. Each is a type of its own, so that an
// option lists in its std::variant exactly those that it accepts.
#pragma once
#include <cstdint>
#include <string>
#include <variant>

#include "core/error/error.h"

namespace rush {

// clang-format off
#define RUSH_FORALL_CHOICES(X)                                                                                    \
  X(Linear) X(Conv1D) X(Conv2D) X(Conv3D) X(ConvTranspose1D) X(ConvTranspose2D) X(ConvTranspose3D)                \
  X(Sigmoid) X(Tanh) X(ReLU) X(GELU) X(SiLU) X(Mish) X(LeakyReLU) X(SELU)                                         \
  X(FanIn) X(FanOut)                                                                                              \
  X(Constant) X(Reflect) X(Replicate) X(Circular) X(Zeros) X(Border) X(Reflection) X(Valid) X(Same)               \
  X(Nearest) X(NearestExact) X(Bilinear) X(Bicubic) X(Trilinear) X(Area)                                          \
  X(None) X(Mean) X(Sum) X(BatchMean) X(Max)                                                                      \
  X(LSTM) X(GRU) X(RNN_TANH) X(RNN_RELU)
// clang-format on

namespace enumtype {
// A type without data for each choice, as torch::enumtype has.
#define RUSH_CHOICE_TYPE(choice)                                  \
  struct k##choice {                                              \
    static constexpr const char* name = #choice;                  \
    friend bool operator==(k##choice, k##choice) { return true; } \
  };
RUSH_FORALL_CHOICES(RUSH_CHOICE_TYPE)
#undef RUSH_CHOICE_TYPE
}  // namespace enumtype

#define RUSH_CHOICE(choice) inline constexpr enumtype::k##choice k##choice{};
RUSH_FORALL_CHOICES(RUSH_CHOICE)
#undef RUSH_CHOICE

namespace enumtype {

/// "kMean", as the program spells it.
template <class... Choices>
std::string get_enum_name(const std::variant<Choices...>& choice) {
  return std::visit([](auto chosen) { return std::string("k") + chosen.name; }, choice);
}

/// Whether an option holds this choice: holds<kSame>(options.padding()).
template <class Choice, class... Choices>
bool holds(const std::variant<Choices...>& choice) {
  return std::holds_alternative<Choice>(choice);
}

/// The number by which ATen's operators know a reduction. kBatchMean sums; its caller divides.
template <class... Choices>
int64_t reduction_get_enum(const std::variant<Choices...>& choice) {
  return std::visit(
      [](auto chosen) {
        using Chosen = decltype(chosen);
        return int64_t{std::is_same_v<Chosen, kNone> ? 0 : std::is_same_v<Chosen, kMean> ? 1 : 2};
      },
      choice);
}

}  // namespace enumtype
}  // namespace rush
