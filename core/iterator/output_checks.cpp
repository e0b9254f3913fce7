#include "core/iterator/output_checks.h"

#include <algorithm>

#include "core/error/error.h"

namespace rush {

void check_result_type(const char* op, ScalarType result, ScalarType output) {
  RUSH_CHECK_TYPE(can_cast(result, output), op, ": result type ", traits_of(result).enumerator,
                  " can't be cast to the desired output type ", traits_of(output).enumerator);
}

void check_expands(const char* op, IntArrayRef sizes, IntArrayRef target) {
  RUSH_CHECK_VALUE(target.size() >= sizes.size(), op, ": the number of sizes provided (", target.size(),
                   ") must be greater or equal to the number of dimensions in the tensor (", sizes.size(),
                   ") to expand ", sizes, " to ", target);
  const size_t lead = target.size() - sizes.size();
  for (size_t d = target.size(); d-- > lead;) {
    const int64_t own = sizes[d - lead];
    RUSH_CHECK_VALUE(target[d] == own || (own == 1 && target[d] >= 0), op, ": The expanded size of the tensor (",
                     target[d], ") must match the existing size (", own, ") at non-singleton dimension ", d,
                     " to expand ", sizes, " to ", target);
  }
}

void throw_no_broadcast(const char* op, IntArrayRef a, IntArrayRef b, size_t from_end) {
  RUSH_THROW(ValueError, op, ": The size of tensor a (", a[a.size() - from_end], ") must match the size of tensor b (",
             b[b.size() - from_end], ") at non-singleton dimension ", std::max(a.size(), b.size()) - from_end,
             " to broadcast ", a, " with ", b);
}

}  // namespace rush
