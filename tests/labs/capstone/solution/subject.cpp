// What the checks have to know of gated_rms_norm, and the same by operators of the library.
#include "capstone.h"
#include "rushlight.h"

namespace capstone {

using namespace rush;

static std::vector<DimVector> shapes(IntArrayRef sizes) {
  const DimVector all(sizes);
  return {all, all, sizes.empty() ? DimVector() : DimVector({sizes.back()})};
}

static Tensor reference(TensorList inputs, double eps) {
  const Tensor& weight = inputs[2];
  RUSH_CHECK_VALUE(inputs[0].sizes() == inputs[1].sizes() && weight.dim() == 1, "reference: the sizes differ");
  return rms_norm(inputs[0] * silu(inputs[1]), weight.sizes(), weight, eps);
}

Subject subject() { return {"capstone::gated_rms_norm", shapes, reference, {1e-5, 0.5}, -1}; }

}  // namespace capstone
