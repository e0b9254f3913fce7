// The operator gated_rms_norm: page.md says what it computes.
#pragma once
#include "rushlight.h"

namespace capstone {

/// RMSNorm of self * silu(gate) over the last dimension of size D, times weight (D). `gate` has self's sizes; the
/// result has, too. Throws ValueError or TypeError for other sizes and dtypes, and for an eps below 0. Equation:
/// page.md.
rush::Tensor gated_rms_norm(const rush::Tensor& self, const rush::Tensor& gate, const rush::Tensor& weight,
                            double eps = 1e-5);

}  // namespace capstone
