// The dense tensors that a sparse one consists of.
#pragma once
#include <vector>

#include "rushlight.h"

namespace fuzz {

inline std::vector<rush::Tensor> parts_of(const rush::Tensor& sparse) {
  const rush::Tensor t = sparse.detach();
  if (t.is_sparse()) return {t._indices(), t._values()};
  if (rush::compresses_rows(t.layout())) return {t.crow_indices(), t.col_indices(), t._values()};
  return {t.ccol_indices(), t.row_indices(), t._values()};
}

}  // namespace fuzz
