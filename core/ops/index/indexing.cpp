#include "core/ops/index/indexing.h"

#include "core/ops/basic.h"
#include "core/ops/index/index.h"

namespace rush {

namespace indexing {

TensorIndex::TensorIndex(const char* text) : TensorIndex(Ellipsis) {
  RUSH_CHECK_VALUE(std::string_view(text) == "...", "index: the only text that is an index is \"...\", got \"", text,
                   "\"");
}

namespace {

using Indices = ArrayRef<TensorIndex>;

bool is_mask(const Tensor& t) { return t.scalar_type() == kBool || t.scalar_type() == kUInt8; }

// Dimensions of the indexed tensor that one index takes up.
int64_t dims_taken(const TensorIndex& index) {
  if (!index.is_tensor()) return index.is_integer() || index.is_slice();
  RUSH_CHECK_VALUE(index.tensor().defined(), "index: an index is an undefined tensor");
  return is_mask(index.tensor()) ? index.tensor().dim() : 1;
}

// Note [Indexing in two steps]
// Integers, slices, None and Ellipsis only change the view. They are applied first, from left to right; tensors are
// remembered with the dimension of the view that they index, and gather from it, or scatter into it, at the end.
struct Indexed {
  Tensor view;
  std::vector<std::optional<Tensor>>
      tensors;  // one for each dimension of the view from the first on, masks for several
  bool gathers = false;
};

class Applier {
 public:
  Applier(const Tensor& self, Indices indices) : indexed_{self, {}, false} {
    int64_t taken = 0, ellipses = 0;
    for (const TensorIndex& index : indices) {
      taken += dims_taken(index);
      ellipses += index.is_ellipsis();
    }
    RUSH_CHECK_INDEX(taken <= self.dim(), "index: too many indices for tensor of dimension ", self.dim(), ", got ",
                     taken);
    RUSH_CHECK_INDEX(ellipses <= 1, "index: only one Ellipsis can stand for the other dimensions");
    left_ = self.dim() - taken;
  }

  void apply(const TensorIndex& index) {
    switch (index.type()) {
      case TensorIndexType::None: indexed_.view = indexed_.view.unsqueeze(dim_); return keep(1);
      case TensorIndexType::Ellipsis: return keep(left_);
      case TensorIndexType::Integer: return drop(index.integer());
      case TensorIndexType::Boolean: return choose(index.boolean());
      case TensorIndexType::Slice: return cut(index.slice());
      case TensorIndexType::Tensor: return look_up(index.tensor());
    }
  }

  Indexed take() { return std::move(indexed_); }

 private:
  void drop(int64_t index) { indexed_.view = indexed_.view.select(dim_, index); }
  void cut(const Slice& slice) {
    if (slice.start() != 0 || slice.stop() != INDEX_MAX || slice.step() != 1) {
      indexed_.view = indexed_.view.slice(dim_, slice.start(), slice.stop(), slice.step());
    }
    keep(1);
  }
  void choose(bool value) {
    indexed_.view = indexed_.view.unsqueeze(dim_);
    gather(zeros(value ? 1 : 0, TensorOptions(kInt64).device(indexed_.view.device())), 1);
  }
  void look_up(const Tensor& tensor) {
    if (is_mask(tensor)) {
      if (tensor.dim() == 0) return choose(tensor.item<bool>());
      return gather(tensor, tensor.dim());
    }
    RUSH_CHECK_TYPE(is_integral(tensor.scalar_type(), false),
                    "index: tensors used as indices must be long, int, byte or bool tensors, got ",
                    tensor.scalar_type());
    if (tensor.dim() == 0) return drop(tensor.item<int64_t>());
    gather(tensor, 1);
  }
  void keep(int64_t dims) {
    indexed_.tensors.resize(indexed_.tensors.size() + static_cast<size_t>(dims));
    dim_ += dims;
  }
  void gather(const Tensor& tensor, int64_t dims) {
    indexed_.tensors.emplace_back(tensor);
    indexed_.gathers = true;
    dim_ += dims;
  }

  Indexed indexed_;
  int64_t dim_ = 0;   // of the view, where the next index applies
  int64_t left_ = 0;  // dimensions that Ellipsis stands for
};

Indexed apply(const Tensor& self, Indices indices) {
  Applier applier(self, indices);
  for (const TensorIndex& index : indices) applier.apply(index);
  return applier.take();
}

Tensor get(const Tensor& self, Indices indices) {
  const Indexed indexed = apply(self, indices);
  if (indexed.gathers) return ops::index(indexed.view, indexed.tensors);
  return indexed.view.is_same(self) ? ops::alias(self) : indexed.view;
}

// Leading dimensions of size one of a value do not count, as in NumPy.
Tensor without_leading_ones(const Tensor& value, int64_t dims) {
  int64_t lead = 0;
  while (lead < value.dim() - dims && value.sizes()[lead] == 1) ++lead;
  return lead ? value.view(value.sizes().slice(lead)) : value;
}

void set(const Tensor& self, Indices indices, const Tensor& value) {
  Indexed indexed = apply(self, indices);
  if (!indexed.gathers) {
    indexed.view.copy_(without_leading_ones(value, indexed.view.dim()));
    return;
  }
  ops::index_put_(indexed.view, indexed.tensors, without_leading_ones(value, 0), false);
}

void set(const Tensor& self, Indices indices, const Scalar& value) {
  Indexed indexed = apply(self, indices);
  if (!indexed.gathers) {
    indexed.view.fill_(value);
    return;
  }
  ops::index_put_(indexed.view, indexed.tensors, full({}, value, self.options()), false);
}

}  // namespace

}  // namespace indexing

using indexing::TensorIndex;

Tensor Tensor::operator[](const Tensor& index) const { return this->index({index}); }
Tensor Tensor::operator[](const Scalar& index) const {
  RUSH_CHECK_TYPE(index.is_integral(false), "Can only index tensors with integral scalars, got ", index);
  return select(0, index.toLong());
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const { return indexing::get(*this, indices); }
Tensor Tensor::index(const std::vector<TensorIndex>& indices) const { return indexing::get(*this, indices); }
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) const {
  indexing::set(*this, indices, values);
  return self();
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) const {
  indexing::set(*this, indices, value);
  return self();
}
Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Tensor& values) const {
  indexing::set(*this, indices, values);
  return self();
}
Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Scalar& value) const {
  indexing::set(*this, indices, value);
  return self();
}

}  // namespace rush
