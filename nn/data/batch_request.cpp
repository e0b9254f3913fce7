#include "nn/data/batch_request.h"

#include <algorithm>

namespace rush::data::detail {

void visit_request(StateFields& fields, std::vector<size_t>& indices, std::optional<size_t> dataset_size) {
  std::vector<int64_t> numbers(indices.begin(), indices.end());
  fields("indices", numbers);
  const auto in_range = [&](int64_t i) {
    return i >= 0 && (!dataset_size || static_cast<uint64_t>(i) < *dataset_size);
  };
  if (numbers.empty() || !std::all_of(numbers.begin(), numbers.end(), in_range)) {
    return fields.problem("indices", "are not those of examples");
  }
  indices.assign(numbers.begin(), numbers.end());
}

void visit_request(StateFields& fields, samplers::BatchSize& size, std::optional<size_t>) {
  fields.count("size", size.size_);
}

}  // namespace rush::data::detail
