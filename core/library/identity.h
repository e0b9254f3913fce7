// What a shared library of operators was built against: a text that the file carries, and that its loader compares.
#pragma once
#include <cstdint>

#include "core/dispatch/op.h"
#include "core/dispatch/value.h"
#include "core/tensor_impl.h"

/// The version of Rushlight, that of the project in CMakeLists.txt.
#define RUSH_VERSION "0.1.0"

namespace rush::library {

/// The text, behind a mark by which it is found in a file: "Rushlight 0.1.0, layout 9c2f31d0".
struct Identity {
  static constexpr char kMark[] = "rushlight-operators:";
  char mark[sizeof(kMark) - 1];
  char text[44];
};

namespace detail {

// Of the sizes and numbers by which compiled code reaches into objects of the library. FNV-1a.
constexpr uint32_t layout_hash() {
  const uint64_t facts[] = {sizeof(void*),         sizeof(Tensor),        sizeof(TensorImpl), sizeof(OpBase),
                            sizeof(Value),         sizeof(DispatchState), kNumDispatchKeys,   kNumDeviceTypes,
                            sizeof(TensorOptions), Value::Types::size,    sizeof(Error),
#ifdef __GXX_ABI_VERSION
                            __GXX_ABI_VERSION,
#endif
#ifdef _GLIBCXX_USE_CXX11_ABI
                            _GLIBCXX_USE_CXX11_ABI
#endif
  };
  uint32_t hash = 2166136261u;
  for (const uint64_t fact : facts) hash = (hash ^ static_cast<uint32_t>(fact)) * 16777619u;
  return hash;
}

constexpr Identity make_identity() {
  Identity identity{};
  for (size_t i = 0; i < sizeof(identity.mark); ++i) identity.mark[i] = Identity::kMark[i];
  constexpr char kVersion[] = "Rushlight " RUSH_VERSION ", layout ";
  static_assert(sizeof(kVersion) + 8 <= sizeof(identity.text));
  size_t end = 0;
  for (; kVersion[end] != '\0'; ++end) identity.text[end] = kVersion[end];
  for (int shift = 28; shift >= 0; shift -= 4) identity.text[end++] = "0123456789abcdef"[layout_hash() >> shift & 15];
  return identity;
}

}  // namespace detail

inline constexpr Identity kIdentity = detail::make_identity();

}  // namespace rush::library
