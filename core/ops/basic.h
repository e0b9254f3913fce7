// The operators that most others are made of: they make, copy, view and join tensors, select elements, compute with
// them one by one, compare them, and form their sums, extremes and matrix products.
#pragma once
#include "core/ops/factory/factories.h"
#include "core/ops/index/gather.h"
#include "core/ops/index/index_select.h"
#include "core/ops/index/masked.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/bitwise.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/pointwise/ternary.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/reduce/extrema.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/join.h"
#include "core/ops/view/view.h"
