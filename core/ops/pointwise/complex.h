// Operators on complex numbers: their parts, conjugates and angles, and tensors made from those.
#pragma once
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace rush {

namespace ops {
inline constinit UnaryOp imag{"aten::imag(Tensor(a) self) -> Tensor(a)"};
inline constinit UnaryOp conj{"aten::conj(Tensor(a) self) -> Tensor(a)"};
inline constinit UnaryOp _conj{"aten::_conj(Tensor(a) self) -> Tensor(a)"};
inline constinit UnaryOp angle{"aten::angle(Tensor self) -> Tensor"};
inline constinit BinaryOp complex{"aten::complex(Tensor real, Tensor imag) -> Tensor"};
inline constinit BinaryOp polar{"aten::polar(Tensor abs, Tensor angle) -> Tensor"};
}  // namespace ops

/// The imaginary parts, as a view. Throws TypeError on a real tensor.
inline Tensor imag(const Tensor& self) { return ops::imag(self); }
/// The conjugates, in new memory; `self` itself when it is real. (PyTorch marks a view as conjugated instead.)
inline Tensor conj(const Tensor& self) { return ops::conj(self); }
/// The conjugate transpose of matrices (..., m, n).
inline Tensor adjoint(const Tensor& matrix) { return matrix.transpose(-2, -1).conj(); }
/// The angle of each number, in radians; of a real one 0 or pi.
inline Tensor angle(const Tensor& self) { return ops::angle(self); }
/// The number with these parts (torch::complex; that name is the number's own type here). Throws TypeError unless both
/// are float32 or both float64.
inline Tensor make_complex(const Tensor& real, const Tensor& imag) { return ops::complex(real, imag); }
/// The number with this magnitude and angle.
inline Tensor polar(const Tensor& abs, const Tensor& angle) { return ops::polar(abs, angle); }

namespace kernels {
inline constinit PointwiseKernel angle{"angle"}, complex{"complex"}, polar{"polar"};
}  // namespace kernels

}  // namespace rush
