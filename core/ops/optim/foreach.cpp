#include "core/ops/optim/foreach.h"

#include <algorithm>
#include <cmath>

#include "core/iterator/output_checks.h"
#include "core/ops/basic.h"
#include "core/ops/nn/norm_arguments.h"
#include "core/ops/reduce/vector_norm.h"
#include "core/ops/register.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

void foreach_norm_by_parts(const Tensor& norms, TensorList tensors, double ord) {
  if (norms.dim() == 0) {
    const Tensor each =
        detail::empty_contiguous(static_cast<int64_t>(tensors.size()), norms.scalar_type(), norms.device());
    foreach_norm_by_parts(each, tensors, ord);
    Tensor all = norms;
    copy_(all, ops::linalg_vector_norm(each, ord, std::nullopt, false, std::nullopt), false);
    return;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor norm = norms.select(0, static_cast<int64_t>(i));
    copy_(norm, ops::linalg_vector_norm(tensors[i], ord, std::nullopt, false, norms.scalar_type()), false);
  }
}

void foreach_mul_by_parts(TensorList tensors, const Tensor& factor) {
  for (const Tensor& tensor : tensors) {
    Tensor product = tensor;
    product.mul_(factor);
  }
}

void foreach_copy_by_parts(TensorList targets, TensorList sources) {
  for (size_t i = 0; i < targets.size(); ++i) {
    Tensor target = targets[i];
    copy_(target, sources[i], false);
  }
}

void foreach_blocks_by_parts(const Tensor& blocks, TensorList tensors, IntArrayRef sizes, bool back) {
  const int64_t row = blocks.size(1);
  int64_t start = blocks.storage_offset();
  const auto copy = [&](Tensor part, Tensor block) { back ? part.copy_(block) : block.copy_(part); };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    const int64_t size = sizes[i], first = t.storage_offset(), full = size > 0 ? t.numel() / size : 0;
    if (full > 0) copy(t.as_strided({full, size}, {size, 1}, first), blocks.as_strided({full, size}, {row, 1}, start));
    const int64_t rest = t.numel() - full * size;
    if (rest > 0) {
      copy(t.as_strided({rest}, {1}, first + full * size), blocks.as_strided({rest}, {1}, start + full * row));
    }
    start += size;
  }
}

namespace {

void check_list(const char* op, TensorList tensors) {
  RUSH_CHECK_VALUE(!tensors.empty(), op, ": expected a list of at least one tensor");
  for (const Tensor& tensor : tensors) RUSH_CHECK_VALUE(tensor.defined(), op, ": a tensor is undefined");
}

// Whether the kernels take them: dense tensors of one device and one real floating dtype.
bool are_alike(TensorList tensors) {
  const Tensor& first = tensors[0];
  for (const Tensor& tensor : tensors) {
    if (tensor.device() != first.device() || tensor.scalar_type() != first.scalar_type()) return false;
    if (!tensor.is_floating_point() || !tensor.is_non_overlapping_and_dense()) return false;
  }
  return true;
}

void check_one_kind(const char* op, TensorList tensors) {
  check_list(op, tensors);
  const Tensor& first = tensors[0];
  for (const Tensor& tensor : tensors) {
    RUSH_CHECK_VALUE(tensor.device() == first.device(), op, ": tensors are on ", first.device(), " and ",
                     tensor.device());
    RUSH_CHECK_TYPE(tensor.scalar_type() == first.scalar_type(), op, ": tensors are of ", first.scalar_type(), " and ",
                    tensor.scalar_type());
  }
}

// Whether the kernel computes norms of this order.
bool has_kernel(TensorList tensors, double ord) {
  const auto is_empty = [](const Tensor& tensor) { return tensor.numel() == 0; };
  return are_alike(tensors) &&
         (ord == 1 || ord == 2 || (ord == HUGE_VAL && std::none_of(tensors.begin(), tensors.end(), is_empty)));
}

std::vector<Tensor> norms_one_by_one(TensorList tensors, const Scalar& ord, std::optional<ScalarType> dtype) {
  std::vector<Tensor> norms;
  for (const Tensor& tensor : tensors) norms.push_back(linalg_vector_norm(tensor, ord, std::nullopt, false, dtype));
  return norms;
}

Tensor foreach_norms(TensorList tensors, const Scalar& ord, std::optional<ScalarType> dtype) {
  check_one_kind("foreach_norms", tensors);
  const Tensor& first = tensors[0];
  const double order = ord.toDouble();
  const ScalarType math = detail::norm_statistics_type(first), result = dtype.value_or(first.scalar_type());
  if (!has_kernel(tensors, order) || (result != math && result != first.scalar_type())) {
    return stack(norms_one_by_one(tensors, ord, dtype));
  }
  const Tensor norms = detail::empty_contiguous(static_cast<int64_t>(tensors.size()), math, first.device());
  kernels::foreach_norm(first.device().type, norms, tensors, order);
  return as_dtype(norms, result);
}

Tensor foreach_total_norm(TensorList tensors, const Scalar& ord) {
  check_one_kind("foreach_total_norm", tensors);
  const Tensor& first = tensors[0];
  if (!has_kernel(tensors, ord.toDouble())) {
    return linalg_vector_norm(stack(norms_one_by_one(tensors, ord, std::nullopt)), ord);
  }
  const Tensor norm = detail::empty_contiguous({}, detail::norm_statistics_type(first), first.device());
  kernels::foreach_norm(first.device().type, norm, tensors, ord.toDouble());
  return as_dtype(norm, first.scalar_type());
}

// What is differentiated, and what differs in dtype or device, goes one by one.
std::vector<Tensor> foreach_norm(TensorList tensors, const Scalar& ord, std::optional<ScalarType> dtype) {
  check_list("_foreach_norm", tensors);
  bool differentiated = false;
  for (const Tensor& tensor : tensors) differentiated |= tensor.requires_grad();
  if (!differentiated && are_alike(tensors)) return ops::foreach_norms(tensors, ord, dtype).unbind(0);
  return norms_one_by_one(tensors, ord, dtype);
}

// What an operator in place would refuse, when it came to this tensor.
void check_can_be_written(const char* op, const Tensor& tensor) {
  RUSH_CHECK_VALUE(tensor.layout() != kStrided || !may_overlap(tensor.sizes(), tensor.strides()), op,
                   ": several elements of a tensor share memory; clone it first");
  RUSH_CHECK(
      !(dispatch_state.grad_mode && tensor.requires_grad() && tensor.is_leaf()), op,
      ": a leaf Variable that requires grad is being used in an in-place operation; use NoGradGuard to update it");
}

void foreach_mul_(TensorList tensors, const Tensor& other) {
  const char* op = "_foreach_mul_";
  check_list(op, tensors);
  RUSH_CHECK_VALUE(other.defined() && other.dim() == 0, op, ": expected a factor of no dimensions, got ",
                   other.defined() ? str("shape ", other.sizes()) : "none");
  for (const Tensor& tensor : tensors) check_can_be_written(op, tensor);
  bool alike = are_alike(tensors) && !other.requires_grad() && other.scalar_type() == tensors[0].scalar_type();
  for (const Tensor& tensor : tensors) {
    RUSH_CHECK_VALUE(other.is_cpu() || other.device() == tensor.device(), op, ": the factor is on ", other.device(),
                     ", a tensor on ", tensor.device());
    check_result_type(op, result_type(tensor, other), tensor.scalar_type());
    alike = alike && !tensor.requires_grad();
  }
  if (!alike) return foreach_mul_by_parts(tensors, other);
  ops::foreach_scale_(tensors, other.to(tensors[0].device()));
}

void check_dtype(const char* op, ScalarType dtype) {
  RUSH_CHECK_TYPE(is_floating_point(dtype) && has_arithmetic(dtype), op, ": not implemented for ", dtype);
}

void check_alike(const char* op, TensorList tensors) {
  check_one_kind(op, tensors);
  check_dtype(op, tensors[0].scalar_type());
  RUSH_CHECK_VALUE(are_alike(tensors), op, ": a tensor has strides that leave gaps");
}

void foreach_scale_(TensorList tensors, const Tensor& factor) {
  const char* op = "foreach_scale_";
  check_alike(op, tensors);
  RUSH_CHECK_VALUE(factor.defined() && factor.dim() == 0 && factor.device() == tensors[0].device(), op,
                   ": expected a factor of no dimensions on ", tensors[0].device());
  RUSH_CHECK_TYPE(factor.scalar_type() == tensors[0].scalar_type(), op, ": the factor is ", factor.scalar_type(),
                  ", the tensors are ", tensors[0].scalar_type());
  kernels::foreach_mul(factor.device().type, tensors, factor);
  for (const Tensor& tensor : tensors) tensor.bump_version();
}

std::vector<Tensor> foreach_to_copy(TensorList tensors, ScalarType dtype) {
  const char* op = "foreach_to_copy";
  check_alike(op, tensors);
  check_dtype(op, dtype);
  std::vector<Tensor> copies;
  for (const Tensor& t : tensors) copies.push_back(detail::empty_strided(t.sizes(), t.strides(), dtype, t.device()));
  kernels::foreach_copy(tensors[0].device().type, copies, tensors);
  return copies;
}

void check_blocks(const char* op, const Tensor& blocks, TensorList tensors, IntArrayRef sizes) {
  check_list(op, tensors);
  RUSH_CHECK_VALUE(blocks.defined() && blocks.dim() == 2 && blocks.is_contiguous(), op,
                   ": expected contiguous blocks of two dimensions");
  RUSH_CHECK_VALUE(sizes.size() == tensors.size(), op, ": got ", tensors.size(), " tensors and ", sizes.size(),
                   " sizes");
  int64_t all = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    RUSH_CHECK_VALUE(sizes[i] >= 0, op, ": a size is ", sizes[i]);
    all = add_sizes(op, all, sizes[i]);
    RUSH_CHECK_VALUE(tensors[i].numel() <= multiply_sizes(op, sizes[i], blocks.size(0)), op, ": tensor ", i, " has ",
                     tensors[i].numel(), " elements, more than ", blocks.size(0), " blocks of ", sizes[i]);
  }
  RUSH_CHECK_VALUE(all == blocks.size(1), op, ": the sizes are ", all, " together, and a block has ", blocks.size(1));
}

void copy_blocks(const Tensor& blocks, TensorList tensors, IntArrayRef sizes, bool back) {
  const bool takes_kernel = are_alike(tensors) && has_arithmetic(tensors[0].scalar_type()) &&
                            tensors[0].device() == blocks.device() && blocks.is_floating_point() &&
                            has_arithmetic(blocks.scalar_type());
  if (!takes_kernel) return foreach_blocks_by_parts(blocks, tensors, sizes, back);
  kernels::foreach_blocks(blocks.device().type, blocks, tensors, sizes, back);
}

void foreach_to_blocks_(const Tensor& blocks, TensorList tensors, IntArrayRef sizes) {
  const char* op = "foreach_to_blocks_";
  check_blocks(op, blocks, tensors, sizes);
  check_can_be_written(op, blocks);
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors) rows.push_back(tensor.contiguous());
  copy_blocks(blocks, rows, sizes, /*back=*/false);
  blocks.bump_version();
}

void foreach_from_blocks_(TensorList tensors, const Tensor& blocks, IntArrayRef sizes) {
  const char* op = "foreach_from_blocks_";
  check_blocks(op, blocks, tensors, sizes);
  for (const Tensor& tensor : tensors) {
    RUSH_CHECK_VALUE(tensor.is_contiguous(), op, ": a tensor is not contiguous");
    check_can_be_written(op, tensor);
  }
  copy_blocks(blocks, tensors, sizes, /*back=*/true);
  for (const Tensor& tensor : tensors) tensor.bump_version();
}

}  // namespace
}  // namespace native

void register_foreach_ops(Registry& r) {
  r.composite(ops::_foreach_norm, native::foreach_norm);
  r.composite(ops::_foreach_mul_, native::foreach_mul_);
  r.native(ops::foreach_scale_, native::foreach_scale_);
  r.native(ops::foreach_to_copy, native::foreach_to_copy);
  r.native(ops::foreach_to_blocks_, native::foreach_to_blocks_);
  r.native(ops::foreach_from_blocks_, native::foreach_from_blocks_);
  r.native(ops::foreach_norms, native::foreach_norms);
  r.native(ops::foreach_total_norm, native::foreach_total_norm);
}

}  // namespace rush
