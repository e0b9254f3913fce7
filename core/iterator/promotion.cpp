// Type promotion across operands.
#include "core/iterator/tensor_iterator.h"

namespace rush {

namespace {

DtypeKind category(ScalarType type) { return traits_of(type).kind; }

// What operands of one rank promote to together.
struct RankResult {
  bool any = false;
  ScalarType type = kBool;
  void take(ScalarType other) {
    type = any ? promote_types(type, other) : other;
    any = true;
  }
};

// A lower rank changes the dtype only when it is of a higher category.
ScalarType combine(const RankResult& higher, const RankResult& lower) {
  if (!higher.any) return lower.type;
  if (!lower.any || category(lower.type) <= category(higher.type)) return higher.type;
  // With a complex number of lower rank it keeps its precision: float32 with complex128 makes complex64.
  if (is_complex(lower.type) && is_floating_point(higher.type)) return to_complex(higher.type);
  return promote_types(higher.type, lower.type);
}

}  // namespace

ScalarType result_type(TensorList tensors) {
  RankResult dimensioned, zero_dim, number;
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    ScalarType type = t.scalar_type();
    if (t.impl()->is_wrapped_number()) {
      // A Python-like float has the default dtype, not float64.
      if (is_complex(type)) type = to_complex(get_default_dtype());
      if (rush::is_floating_point(type)) type = get_default_dtype();
      number.take(type);
    } else {
      (t.dim() ? dimensioned : zero_dim).take(type);
    }
  }
  const auto merge = [](const RankResult& a, const RankResult& b) {
    RankResult merged;
    merged.any = a.any || b.any;
    if (merged.any) merged.type = combine(a, b);
    return merged;
  };
  return merge(merge(dimensioned, zero_dim), number).type;
}

ScalarType result_type(const Tensor& tensor, const Scalar& number) {
  const ScalarType type = tensor.scalar_type();
  if (category(number.type()) <= category(type) && !tensor.impl()->is_wrapped_number()) return type;
  return result_type(tensor, detail::wrapped_number(number));
}

}  // namespace rush
