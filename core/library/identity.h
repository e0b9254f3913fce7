// What a shared library of operators was built against: facts that the file carries, and that its loader compares.
#pragma once
#include <cstdint>

#include "core/dispatch/op.h"
#include "core/dispatch/value.h"
#include "core/tensor_impl.h"

/// The version of Rushlight, that of the project in CMakeLists.txt.
#define RUSH_VERSION "0.1.0"

namespace rush::library {

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

}  // namespace detail

/// The version, and the hash of what compiled code relies on, behind a mark by which they are found in a file.
struct Identity {
  char mark[21] = "rushlight-operators:";
  char version[15] = RUSH_VERSION;
  uint32_t layout = detail::layout_hash();
};

inline constexpr Identity kIdentity{};

}  // namespace rush::library
