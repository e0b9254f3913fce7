// Collations: make one thing of a batch's examples.
#pragma once
#include <vector>

#include "nn/data/transforms/lambda.h"

namespace rush::data::transforms {

/// The base of transforms that do: Stack, for one.
template <class T, class BatchType = std::vector<T>>
using Collation = BatchTransform<BatchType, T>;

/// By a function of the whole batch.
template <class T, class BatchType = std::vector<T>>
using Collate = BatchLambda<BatchType, T>;

}  // namespace rush::data::transforms
