// The functors of element-wise kernels, as text for NVRTC.
#pragma once
#include <optional>
#include <string>

#include "core/array_ref.h"
#include "core/dispatch/kernel_listener.h"
#include "core/scalar_type.h"

namespace rush::cuda::jit {

// What a source writes for a kernel.
struct FunctorText {
  const char* header;  // to be included
  std::string object;  // "functors::AddScaled<float>{2.0}"; called with inputs in the type that they are computed in
};

// For operands of these dtypes, the output's first. Of a reduction of rows: its functor, which may name the number of
// `columns`. None for a kernel that is not in the tables of Note [Tables of element-wise kernels], nor one of those
// beside them that are known here, and for complex numbers.
std::optional<FunctorText> functor_text(const IteratorCall& call, ArrayRef<ScalarType> dtypes);

}  // namespace rush::cuda::jit
