// torch::linalg, which libtorch has up to its release 2.8: the operators at::linalg_... by shorter names.
#pragma once
#include "torch/types.h"

namespace rush::linalg {

#define RUSH_LINALG_OF_MATRIX(X) \
  X(det)                         \
  X(eig)                         \
  X(eigvals)                     \
  X(inv)                         \
  X(matrix_exp)                  \
  X(slogdet)
#define RUSH_LINALG_WRITTEN_INTO(X) \
  RUSH_LINALG_OF_MATRIX(X)          \
  X(cholesky)                       \
  X(eigh)                           \
  X(eigvalsh)                       \
  X(householder_product)            \
  X(lu)                             \
  X(lu_factor)                      \
  X(matrix_norm)                    \
  X(matrix_power)                   \
  X(matrix_rank)                    \
  X(multi_dot)                      \
  X(norm)                           \
  X(pinv)                           \
  X(qr)                             \
  X(solve)                          \
  X(solve_triangular)               \
  X(svd)                            \
  X(svdvals)                        \
  X(tensorinv)                      \
  X(tensorsolve)                    \
  X(vector_norm)

#define RUSH_NAMED(name) \
  inline auto name(const Tensor& self) { return linalg_##name(self); }
RUSH_LINALG_OF_MATRIX(RUSH_NAMED)
#undef RUSH_NAMED
#define RUSH_NAMED(name) inline constexpr const auto& name##_out = linalg_##name##_out;
RUSH_LINALG_WRITTEN_INTO(RUSH_NAMED)
#undef RUSH_NAMED

// ---- decompositions ----
inline Tensor cholesky(const Tensor& self, bool upper = false) { return linalg_cholesky(self, upper); }
inline auto eigh(const Tensor& self, std::string_view uplo = "L") { return linalg_eigh(self, uplo); }
inline Tensor eigvalsh(const Tensor& self, std::string_view uplo = "L") { return linalg_eigvalsh(self, uplo); }
inline auto lu(const Tensor& self, bool pivot = true) { return linalg_lu(self, pivot); }
inline auto lu_factor(const Tensor& self, bool pivot = true) { return linalg_lu_factor(self, pivot); }
inline auto qr(const Tensor& input, std::string_view mode = "reduced") { return linalg_qr(input, mode); }
inline auto svd(const Tensor& input, bool full_matrices = true, std::optional<std::string_view> driver = std::nullopt) {
  return linalg_svd(input, full_matrices, driver);
}
inline Tensor svdvals(const Tensor& input, std::optional<std::string_view> driver = std::nullopt) {
  return linalg_svdvals(input, driver);
}
inline Tensor householder_product(const Tensor& input, const Tensor& tau) {
  return linalg_householder_product(input, tau);
}

// ---- equations and inverses ----
inline Tensor solve(const Tensor& input, const Tensor& other, bool left = true) {
  return linalg_solve(input, other, left);
}
inline Tensor solve_triangular(const Tensor& input, const Tensor& other, bool upper, bool left = true,
                               bool unitriangular = false) {
  return linalg_solve_triangular(input, other, upper, left, unitriangular);
}
inline auto lstsq(const Tensor& self, const Tensor& b, std::optional<double> cond = std::nullopt,
                  std::optional<std::string_view> driver = std::nullopt) {
  return linalg_lstsq(self, b, cond, driver);
}
inline Tensor pinv(const Tensor& input, double rcond = 1e-15, bool hermitian = false) {
  return linalg_pinv(input, rcond, hermitian);
}
inline Tensor tensorinv(const Tensor& self, int64_t ind = 2) { return linalg_tensorinv(self, ind); }
inline Tensor tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims = std::nullopt) {
  return linalg_tensorsolve(self, other, dims);
}

// ---- norms and ranks ----
inline Tensor norm(const Tensor& self, const std::optional<Scalar>& ord = std::nullopt,
                   OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                   std::optional<ScalarType> dtype = std::nullopt) {
  return linalg_norm(self, ord, dim, keepdim, dtype);
}
template <Text Name>
Tensor norm(const Tensor& self, const Name& ord, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
            std::optional<ScalarType> dtype = std::nullopt) {
  return linalg_norm(self, ord, dim, keepdim, dtype);
}
inline Tensor vector_norm(const Tensor& self, const Scalar& ord = 2, OptionalIntArrayRef dim = std::nullopt,
                          bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) {
  return linalg_vector_norm(self, ord, dim, keepdim, dtype);
}
inline Tensor matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim = {-2, -1}, bool keepdim = false,
                          std::optional<ScalarType> dtype = std::nullopt) {
  return linalg_matrix_norm(self, ord, dim, keepdim, dtype);
}
template <Text Name = std::string_view>
Tensor matrix_norm(const Tensor& self, const Name& ord = "fro", IntArrayRef dim = {-2, -1}, bool keepdim = false,
                   std::optional<ScalarType> dtype = std::nullopt) {
  return linalg_matrix_norm(self, ord, dim, keepdim, dtype);
}
template <class... Tolerances>
requires(sizeof...(Tolerances) < 4) Tensor matrix_rank(const Tensor& input, const Tolerances&... tolerances) {
  return linalg_matrix_rank(input, tolerances...);
}

// ---- products ----
inline Tensor matrix_power(const Tensor& self, int64_t n) { return linalg_matrix_power(self, n); }
inline Tensor multi_dot(TensorList tensors) { return linalg_multi_dot(tensors); }

#undef RUSH_LINALG_WRITTEN_INTO
#undef RUSH_LINALG_OF_MATRIX

}  // namespace rush::linalg
