#include "nn/modules/semi_structured.h"

#include "core/ops/factory/factories.h"
#include "core/ops/view/view.h"
#include "nn/module_text.h"

namespace rush::nn {

// The integers of as many bits.
static ScalarType bits_of(ScalarType dtype) {
  switch (element_size(dtype)) {
    case 2: return kInt16;
    case 4: return kInt32;
    default: return kInt64;
  }
}

SemiStructuredLinearImpl::SemiStructuredLinearImpl(const LinearImpl& linear)
    : options(linear.options), dtype_(linear.weight.scalar_type()) {
  packed = sparse::to_sparse_semi_structured(linear.weight).packed().view(bits_of(dtype_));
  bias = linear.bias;
  SemiStructuredLinearImpl::reset();
}

// The names tell a checkpoint of another dtype from one of this, whose bits would mean something else. A copy that is
// reset registers tensors of its own.
void SemiStructuredLinearImpl::reset() {
  const bool trains_bias = bias.requires_grad();
  packed = register_buffer(str("packed_", dtype_), packed.detach());
  bias = register_parameter("bias", bias.defined() ? bias.detach() : Tensor(), trains_bias);
}

void SemiStructuredLinearImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("SemiStructuredLinear(in_features=", options.in_features(),
                                ", out_features=", options.out_features(), ", bias=", options.bias(), ", ", str(dtype_),
                                ")");
}

Tensor SemiStructuredLinearImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return sparse::linear(input, weight(), bias);
}

}  // namespace rush::nn
