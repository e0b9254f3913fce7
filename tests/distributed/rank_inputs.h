// What each rank gives to a collective. Every process knows that of all, so that it computes what should come out
// alone.
#pragma once
#include <algorithm>
#include <vector>

#include "core/distributed/init.h"
#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "tests/distributed/on_gpus.h"

namespace rush::testing {

// `numel` small numbers, which differ between ranks; halves and quarters among them where the dtype has them.
inline Tensor input_of(int rank, int64_t numel, ScalarType dtype) {
  Tensor values = arange(numel, kInt64).mul(7).add(rank * 3).remainder(5).add(1).to(kFloat64);
  if (is_floating_point(dtype)) values = values.div(4).add(0.013 * rank);
  if (is_complex(dtype)) values = view_as_complex(stack({values, values.mul(-1).add(2.5)}, -1));
  if (dtype == kBool) values = values.gt(2);
  return values.to(dtype);
}

inline std::vector<Tensor> inputs_of(const std::vector<int>& ranks, int64_t numel, ScalarType dtype) {
  std::vector<Tensor> inputs;
  for (const int rank : ranks) inputs.push_back(input_of(rank, numel, dtype));
  return inputs;
}

// The dtype in which one process computes the reduction of others.
inline ScalarType wide(ScalarType dtype) {
  if (dtype == kFloat64 || is_complex(dtype) || dtype == kBool) return dtype;
  return is_floating_point(dtype) ? kFloat32 : kInt64;
}

// By operators on whole tensors, in the order of the list.
inline Tensor reduced(const std::vector<Tensor>& inputs, distributed::ReduceOp op) {
  using distributed::ReduceOp;
  const ScalarType dtype = inputs[0].scalar_type();
  Tensor total = inputs[0].to(wide(dtype));
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Tensor next = inputs[i].to(wide(dtype));
    if (op == ReduceOp::PRODUCT)
      total = total.mul(next);
    else if (op == ReduceOp::MIN)
      total = minimum(total, next);
    else if (op == ReduceOp::MAX)
      total = maximum(total, next);
    else
      total = total.add(next);
  }
  if (op == ReduceOp::AVG) total = total.div(static_cast<double>(inputs.size()));
  return total.to(dtype);
}

// The same numbers in memory of other strides: every second element of it.
inline Tensor strided(const Tensor& t) {
  Tensor wide = empty({t.numel(), 2}, t.options());
  Tensor view = wide.select(1, 1);
  view.copy_(t);
  return view;
}

// Bit for bit, also where the dtype has no arithmetic.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.cpu().contiguous(), y = b.cpu().contiguous();
  if (x.scalar_type() != y.scalar_type() || x.sizes() != y.sizes()) return false;
  const auto* first = static_cast<const char*>(x.data_ptr());
  const auto* second = static_cast<const char*>(y.data_ptr());
  return std::equal(first, first + x.numel() * element_size(x.scalar_type()), second);
}

}  // namespace rush::testing
