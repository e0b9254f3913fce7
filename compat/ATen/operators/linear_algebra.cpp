#include "ATen/operators/linear_algebra.h"

namespace rush {
inline namespace aten {

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  RUSH_CHECK_TYPE(!is_integral(x.scalar_type(), true) && x.scalar_type() == y.scalar_type(),
                  "linalg_vecdot: needs two tensors of one floating or complex dtype, got ", x.scalar_type(), " and ",
                  y.scalar_type());
  return x.conj().mul(y).sum(dim);
}
Tensor linalg_diagonal(const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) {
  return A.diagonal(offset, dim1, dim2);
}
Tensor linalg_matrix_power(const Tensor& self, int64_t n) {
  RUSH_CHECK_VALUE(self.dim() >= 2 && self.size(-1) == self.size(-2), "matrix_power: needs square matrices, got sizes ",
                   self.sizes());
  if (n < 0) return linalg_matrix_power(linalg_inv(self), -n);
  if (n == 0) return self.clone().copy_(eye(self.size(-1), self.options()));  // has a gradient: zeros
  Tensor square = self, power;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) power = power.defined() ? power.matmul(square) : square;
    if (n > 1) square = square.matmul(square);
  }
  return power.is_same(self) ? power.clone() : power;
}

namespace {
// The product of matrices from first to last, in the order of the fewest multiplications (Cormen et al., 15.2).
Tensor chain_product(const std::vector<Tensor>& matrices) {
  const size_t n = matrices.size();
  const auto rows = [&](size_t i) {
    return static_cast<double>(i < n ? matrices[i].size(0) : matrices[n - 1].size(1));
  };
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> best(n, std::vector<size_t>(n, 0));
  for (size_t length = 2; length <= n; ++length) {
    for (size_t i = 0, j = length - 1; j < n; ++i, ++j) {
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double total = cost[i][k] + cost[k + 1][j] + rows(i) * rows(k + 1) * rows(j + 1);
        if (total < cost[i][j]) {
          cost[i][j] = total;
          best[i][j] = k;
        }
      }
    }
  }
  const std::function<Tensor(size_t, size_t)> product = [&](size_t i, size_t j) {
    return i == j ? matrices[i] : product(i, best[i][j]).mm(product(best[i][j] + 1, j));
  };
  return product(0, n - 1);
}
}  // namespace

Tensor linalg_multi_dot(TensorList tensors) {
  RUSH_CHECK_VALUE(tensors.size() >= 2, "multi_dot: needs at least two tensors, got ", tensors.size());
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  const bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
  if (row) matrices.front() = matrices.front().unsqueeze(0);
  if (column) matrices.back() = matrices.back().unsqueeze(1);
  for (const Tensor& matrix : matrices) {
    RUSH_CHECK_VALUE(matrix.dim() == 2, "multi_dot: needs matrices, got ", matrix.dim(), " dimensions");
  }
  Tensor out = chain_product(matrices);
  if (row) out = out.squeeze(0);
  if (column) out = out.squeeze(-1);
  return out;
}
Tensor chain_matmul(TensorList matrices) {
  return matrices.size() == 1 ? matrices[0] : chain_product({matrices.begin(), matrices.end()});
}
Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t dims = std::max(self.dim(), other.dim());
  const auto padded = [&](const Tensor& x) {
    std::vector<int64_t> sizes(static_cast<size_t>(dims - x.dim()), 1);
    sizes.insert(sizes.end(), x.sizes().begin(), x.sizes().end());
    return sizes;
  };
  const std::vector<int64_t> a = padded(self), b = padded(other);
  std::vector<int64_t> spread_a, spread_b, sizes;  // (a_0, 1, a_1, 1, ...), (1, b_0, 1, b_1, ...), (a_0 b_0, ...)
  for (size_t i = 0; i < a.size(); ++i) {
    spread_a.insert(spread_a.end(), {a[i], 1});
    spread_b.insert(spread_b.end(), {1, b[i]});
    sizes.push_back(a[i] * b[i]);
  }
  return self.reshape(spread_a).mul(other.reshape(spread_b)).reshape(sizes);
}
Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N) {
  if (x.dim() == 0) return linalg_vander(x.unsqueeze(0), N);
  const int64_t powers = N.value_or(x.size(-1));
  RUSH_CHECK_TYPE(x.scalar_type() != kBool, "linalg_vander: needs numbers, got bool");
  RUSH_CHECK_VALUE(powers > 1, "linalg_vander: N must be greater than 1, got ", powers);
  const Tensor in = is_integral(x.scalar_type(), true) ? x.to(kInt64) : x;
  const Tensor factors = in.unsqueeze(-1).expand([&] {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.push_back(powers - 1);
    return sizes;
  }());
  const Tensor products = factors.cumprod(-1);
  return cat({ones_like(products.narrow(-1, 0, 1)), products}, -1);
}
Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  RUSH_CHECK_VALUE(x.dim() == 1, "vander: needs a vector, got ", x.dim(), " dimensions");
  const int64_t powers = N.value_or(x.numel());
  const Tensor in = is_integral(x.scalar_type(), true) ? x.to(kInt64) : x;
  Tensor out = ones({x.numel(), powers}, in.options());
  if (powers > 1) out = cat({out.narrow(1, 0, 1), in.unsqueeze(1).expand({-1, powers - 1}).cumprod(1)}, 1);
  return increasing ? out : out.flip({1});
}
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
  const auto [LU, pivots, info] = linalg_lu_factor_ex(A, true, check_errors);
  const bool vectors = B.dim() == 1 || B.sizes() == A.sizes().slice(0, A.sizes().size() - 1);
  if (!vectors) return {linalg_lu_solve(LU, pivots, B, left), info};
  return {linalg_lu_solve(LU, pivots, B.unsqueeze(-1), left).squeeze(-1), info};
}
std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors) {
  return linalg_solve_ex(A, eye(A.size(-1), A.options()).expand_as(A), true, check_errors);
}
Tensor nuclear_norm(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return linalg_matrix_norm(self, "nuc", dim, keepdim);
}
Tensor nuclear_norm(const Tensor& self, bool keepdim) { return linalg_matrix_norm(self, "nuc", {-2, -1}, keepdim); }
Tensor frobenius_norm(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return linalg_vector_norm(self, 2, dim, keepdim);
}
Tensor linalg__powsum(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim,
                      std::optional<ScalarType> dtype) {
  return (dtype ? self.to(*dtype) : self).abs().pow(ord).sum(dim, keepdim);
}
Tensor native_norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  return dtype ? norm(self, p, dim, keepdim, *dtype) : norm(self, p, dim, keepdim);
}
namespace {
template <class Order>
Tensor condition(const Tensor& A, const Order& order) {
  const auto [inverse, info] = linalg_inv_ex(A);
  return linalg_matrix_norm(A, order)
      .mul(linalg_matrix_norm(inverse, order))
      .masked_fill(info.gt(0), std::numeric_limits<double>::infinity());
}
}  // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  if (self.numel() == 0)
    return zeros(linalg_matrix_norm(self).sizes(), self.options().dtype(to_real(self.scalar_type())));
  const double order = p ? p->to<double>() : 2;
  if (std::abs(order) == 2) {
    const Tensor values = linalg_svdvals(self);
    const Tensor largest = values.select(-1, 0), smallest = values.select(-1, values.size(-1) - 1);
    return order > 0 ? largest.div(smallest) : smallest.div(largest);
  }
  return condition(self, *p);
}
Tensor linalg_cond(const Tensor& self, std::string_view p) {
  if (p == "nuc") {
    RUSH_CHECK_VALUE(self.size(-1) == self.size(-2), "linalg_cond: needs square matrices, got sizes ", self.sizes());
    const Tensor values = linalg_svdvals(self);
    return values.sum(-1).mul(values.reciprocal().sum(-1));
  }
  return condition(self, p);
}
Tensor linalg_matrix_rank(const Tensor& input, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol,
                          bool hermitian) {
  const Tensor values = hermitian ? linalg_eigvalsh(input).abs() : linalg_svdvals(input);
  if (values.size(-1) == 0) return zeros(values.sum(-1).sizes(), values.options().dtype(kInt64));
  const Tensor absolute = atol ? *atol : zeros({}, values.options());
  const double epsilon =
      values.scalar_type() == kFloat64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double by_default = epsilon * static_cast<double>(std::max(input.size(-1), input.size(-2)));
  Tensor relative = rtol ? *rtol : full({}, by_default, values.options());
  if (atol && !rtol) relative = where(absolute.gt(0), zeros_like(relative), relative);
  const Tensor tolerance = maximum(absolute.to(values.dtype()), relative.mul(values.amax(-1)).to(values.dtype()));
  return values.gt(tolerance.unsqueeze(-1)).sum(-1);
}
Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  const auto as_tensor = [&](std::optional<double> value) {
    return value ? std::optional(full({}, *value, TensorOptions(kFloat64).device(self.device()))) : std::nullopt;
  };
  return linalg_matrix_rank(self, as_tensor(atol), as_tensor(rtol), hermitian);
}
Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol) { return linalg_matrix_rank(input, tol, false); }
std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  RUSH_CHECK_VALUE(self.dim() >= 2, "linalg_cholesky_ex: needs matrices, got ", self.dim(), " dimensions");
  const IntArrayRef batch = self.sizes().slice(0, self.sizes().size() - 2);
  const Tensor info = zeros(batch, TensorOptions(kInt32).device(self.device()));
  try {
    return {linalg_cholesky(self, upper), info};
  } catch (const LinAlgError&) {
    if (check_errors) throw;
  }
  const int64_t n = self.size(-1);
  const Tensor factors = self.detach().clone().reshape({-1, n, n}), infos = info.view({-1});
  for (int64_t i = 0; i < factors.size(0); ++i) {
    const Tensor matrix = factors[i];
    int64_t size = 1;
    try {
      for (; size < n; ++size) linalg_cholesky(matrix.narrow(0, 0, size).narrow(1, 0, size), upper);
      matrix.copy_(linalg_cholesky(matrix, upper));
    } catch (const LinAlgError&) {
      matrix.fill_(std::numeric_limits<double>::quiet_NaN());
      infos[i].fill_(size);
    }
  }
  return {factors.view(self.sizes()), info};
}
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  const Tensor L = upper ? adjoint(input2) : input2;
  return linalg_solve_triangular(adjoint(L), linalg_solve_triangular(L, self, false), true);
}
Tensor cholesky_inverse(const Tensor& self, bool upper) {
  return cholesky_solve(eye(self.size(-1), self.options()).expand_as(self), self, upper);
}
std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) { return linalg_qr(self, some ? "reduced" : "complete"); }
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  if (compute_uv) {
    const auto [U, S, Vh] = linalg_svd(self, !some);
    return {U, S, adjoint(Vh)};
  }
  const auto zero_square = [&](int64_t n) {
    std::vector<int64_t> sizes = self.sizes().vec();
    sizes[sizes.size() - 2] = sizes[sizes.size() - 1] = n;
    return zeros(sizes, self.options());
  };
  return {zero_square(self.size(-2)), linalg_svdvals(self), zero_square(self.size(-1))};
}
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                                            bool unitriangular) {
  const Tensor matrix = transpose ? A.transpose(-2, -1) : A;
  const Tensor solution = linalg_solve_triangular(matrix, self, upper != transpose, true, unitriangular);
  DimVector sizes = solution.sizes();
  sizes.back() = A.size(-1);
  return {solution, A.expand(sizes).clone()};
}
Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims) {
  Tensor A = self;
  if (dims) {
    std::vector<int64_t> ends;
    for (size_t i = 0; i < dims->size(); ++i) ends.push_back(self.dim() - static_cast<int64_t>(dims->size() - i));
    A = self.movedim(*dims, ends);
  }
  const std::vector<int64_t> sizes(A.sizes().begin() + other.dim(), A.sizes().end());
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  RUSH_CHECK_VALUE(count == other.numel(), "tensorsolve: ", count, " unknowns against ", other.numel(), " equations");
  return linalg_solve(A.reshape({count, count}), other.flatten()).reshape(sizes);
}
Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  RUSH_CHECK_VALUE(ind > 0, "tensorinv: ind must be positive, got ", ind);
  const IntArrayRef sizes = self.sizes();
  std::vector<int64_t> swapped(sizes.begin() + ind, sizes.end());
  int64_t count = 1;
  for (int64_t size : swapped) count *= size;
  RUSH_CHECK_VALUE(count * count == self.numel(), "tensorinv: the first ", ind, " sizes of ", sizes,
                   " do not multiply to what the others do");
  swapped.insert(swapped.end(), sizes.begin(), sizes.begin() + ind);
  return linalg_inv(self.reshape({count, count})).reshape(swapped);
}
// Q = H_1 H_2 ... H_k with H_i = I - tau_i v_i v_i^H, where v_i is column i of `reflectors` (..., m, k) below the
// diagonal, 1 on it and 0 above: what LAPACK's geqrf leaves. Returns Q `other`, or Q^H `other`.
namespace {
Tensor times_reflectors(const Tensor& reflectors, const Tensor& tau, Tensor other, bool adjoint_of_q) {
  const int64_t count = tau.size(-1);
  const Tensor v = reflectors.tril(-1).add(eye(reflectors.size(-2), reflectors.size(-1), reflectors.options()));
  const Tensor factors = adjoint_of_q ? tau.conj() : tau;
  for (int64_t step = 0; step < count; ++step) {
    const int64_t i = adjoint_of_q ? step : count - 1 - step;
    const Tensor column = v.narrow(-1, i, 1);  // (..., m, 1)
    other = other.sub(factors.narrow(-1, i, 1).unsqueeze(-1).mul(column).matmul(adjoint(column).matmul(other)));
  }
  return other;
}
}  // namespace

std::tuple<Tensor, Tensor> geqrf(const Tensor& self) {
  RUSH_CHECK_VALUE(self.dim() >= 2, "geqrf: needs matrices, got ", self.dim(), " dimensions");
  const Tensor a = self.detach().clone();
  const int64_t rows = self.size(-2), columns = self.size(-1), count = std::min(rows, columns);
  std::vector<Tensor> tau;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor rest = a.slice(-2, i), column = rest.narrow(-1, i, 1);  // (..., m - i, 1)
    const Tensor first = column.narrow(-2, 0, 1), tail = column.slice(-2, 1);
    const Tensor norm = linalg_vector_norm(column, 2, IntArrayRef{-2}, true);
    const Tensor beta = where(real(first).ge(0), norm.neg(), norm).to(a.scalar_type());
    const Tensor none = tail.ne(0).any(-2, true).logical_not().logical_and(first.eq(real(first)));
    const Tensor factor = where(none, 0, beta.sub(first).div(where(none, 1, beta)));
    const Tensor v = cat({ones_like(first), where(none, 0, tail.div(where(none, 1, first.sub(beta))))}, -2);
    const Tensor others = rest.slice(-1, i + 1);
    others.copy_(others.sub(factor.conj().mul(v).matmul(adjoint(v).matmul(others))));
    tail.copy_(v.slice(-2, 1));
    first.copy_(where(none, first, beta));
    tau.push_back(factor.squeeze(-1));
  }
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.pop_back();
  sizes.back() = count;
  return {a, tau.empty() ? zeros(sizes, self.options()) : cat(tau, -1)};
}
Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  const Tensor columns = eye(input.size(-2), input.size(-1), input.options()).expand_as(input);
  return times_reflectors(input, tau, columns, false);
}
Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose) {
  if (left) return times_reflectors(self, input2, input3, transpose);
  return adjoint(times_reflectors(self, input2, adjoint(input3), !transpose));
}
}  // namespace aten
}  // namespace rush
