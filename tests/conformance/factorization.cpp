#include "tests/conformance/factorization.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "rushlight.h"

namespace conformance {

using rush::Tensor;

namespace {

using Number = std::complex<double>;

// One matrix, in double precision whatever the tensor's.
struct Matrix {
  int64_t rows, columns;
  std::vector<Number> values;

  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), values(static_cast<size_t>(rows * columns)) {}
  Number& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  const Number& at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
};

// The matrices (or, with one dimension fewer, the vectors, as rows) that `t` is a batch of.
std::vector<Matrix> matrices(const Tensor& t, bool vectors = false) {
  const Tensor wide = t.detach().cpu().to(rush::kComplex128).contiguous();
  const int64_t rows = vectors ? 1 : wide.size(-2), columns = wide.size(-1);
  const int64_t dims = wide.dim() - (vectors ? 1 : 2);
  int64_t count = 1;
  for (int64_t d = 0; d < dims; ++d) count *= wide.size(d);
  std::vector<Matrix> batch(static_cast<size_t>(count), Matrix(rows, columns));
  const auto* next = wide.data_ptr<rush::complex<double>>();
  for (Matrix& m : batch) {
    for (Number& value : m.values) value = {next->real(), next->imag()}, ++next;
  }
  return batch;
}

// a * b over the first `inner` columns of a and rows of b, each step scaled.
Matrix product(const Matrix& a, const Matrix& b, int64_t inner, const Matrix* scale = nullptr) {
  Matrix out(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      for (int64_t k = 0; k < inner; ++k) out.at(i, j) += a.at(i, k) * (scale ? scale->at(0, k) : 1) * b.at(k, j);
    }
  }
  return out;
}

Matrix adjoint(const Matrix& m) {
  Matrix out(m.columns, m.rows);
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.columns; ++j) out.at(j, i) = std::conj(m.at(i, j));
  }
  return out;
}

bool close(const Matrix& actual, const Matrix& expected, Tolerance tolerance) {
  double scale = 0;  // rounding spreads over the whole matrix
  for (const Number& value : expected.values) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double error = std::abs(actual.values[i] - expected.values[i]);
    if (!(error <= tolerance.absolute + tolerance.relative * scale)) return false;
  }
  return true;
}

bool has_orthonormal_columns(const Matrix& m, Tolerance tolerance) {
  Matrix identity(m.columns, m.columns);
  for (int64_t i = 0; i < m.columns; ++i) identity.at(i, i) = 1;
  return close(product(adjoint(m), m, m.rows), identity, tolerance);
}

bool is_upper_triangular(const Matrix& m) {
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < std::min(i, m.columns); ++j) {
      if (m.at(i, j) != 0.0) return false;
    }
  }
  return true;
}

using Reason = std::optional<std::string>;

Reason qr_difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, Tolerance tolerance) {
  const auto r = matrices(actual[1]), wanted_r = matrices(expected[1]);
  const bool has_q = expected[0].dim() >= 2;  // mode "r" leaves it out
  const auto q = has_q ? matrices(actual[0]) : std::vector<Matrix>();
  const auto wanted_q = has_q ? matrices(expected[0]) : std::vector<Matrix>();
  for (size_t i = 0; i < r.size(); ++i) {
    if (!is_upper_triangular(r[i])) return "R is not upper triangular";
    // Without Q: A^H A = R^H R.
    const Matrix left = has_q ? q[i] : adjoint(r[i]), wanted_left = has_q ? wanted_q[i] : adjoint(wanted_r[i]);
    if (has_q && !has_orthonormal_columns(left, tolerance)) return "the columns of Q are not orthonormal";
    const Matrix wanted = product(wanted_left, wanted_r[i], wanted_r[i].rows);
    if (!close(product(left, r[i], r[i].rows), wanted, tolerance)) return "Q R is not the input";
  }
  return std::nullopt;
}

Reason svd_difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, Tolerance tolerance) {
  if (const Reason reason = difference(actual[1], expected[1], tolerance)) return "S " + *reason;
  const auto u = matrices(actual[0]), s = matrices(actual[1], true), vh = matrices(actual[2]);
  const auto wanted_u = matrices(expected[0]), wanted_s = matrices(expected[1], true),
             wanted_vh = matrices(expected[2]);
  for (size_t i = 0; i < s.size(); ++i) {
    if (!has_orthonormal_columns(u[i], tolerance)) return "the columns of U are not orthonormal";
    if (!has_orthonormal_columns(adjoint(vh[i]), tolerance)) return "the rows of Vh are not orthonormal";
    const Matrix wanted = product(wanted_u[i], wanted_vh[i], wanted_s[i].columns, &wanted_s[i]);
    if (!close(product(u[i], vh[i], s[i].columns, &s[i]), wanted, tolerance)) return "U S Vh is not the input";
  }
  return std::nullopt;
}

Reason eigh_difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, Tolerance tolerance) {
  if (const Reason reason = difference(actual[0], expected[0], tolerance)) return "the eigenvalues: " + *reason;
  const auto w = matrices(actual[0], true), v = matrices(actual[1]);
  const auto wanted_w = matrices(expected[0], true), wanted_v = matrices(expected[1]);
  for (size_t i = 0; i < w.size(); ++i) {
    if (!has_orthonormal_columns(v[i], tolerance)) return "the eigenvectors are not orthonormal";
    const Matrix wanted = product(wanted_v[i], adjoint(wanted_v[i]), wanted_w[i].columns, &wanted_w[i]);
    if (!close(product(v[i], adjoint(v[i]), w[i].columns, &w[i]), wanted, tolerance)) return "V W V^H is not the input";
  }
  return std::nullopt;
}

// For each of our eigenvalues, which of the expected ones it is: the nearest one that is left. They come in any order.
std::vector<int64_t> matching(const Matrix& actual, const Matrix& expected) {
  std::vector<int64_t> matches;
  std::vector<bool> taken(static_cast<size_t>(expected.columns));
  for (int64_t i = 0; i < actual.columns; ++i) {
    int64_t best = -1;
    for (int64_t j = 0; j < expected.columns; ++j) {
      const auto distance = [&](int64_t k) { return std::abs(actual.at(0, i) - expected.at(0, k)); };
      if (!taken[static_cast<size_t>(j)] && (best < 0 || distance(j) < distance(best))) best = j;
    }
    taken[static_cast<size_t>(best)] = true;
    matches.push_back(best);
  }
  return matches;
}

// The columns of `m` in this order.
Matrix in_order(const Matrix& m, const std::vector<int64_t>& order) {
  Matrix out(m.rows, m.columns);
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.columns; ++j) out.at(i, j) = m.at(i, order[static_cast<size_t>(j)]);
  }
  return out;
}

Reason eigvals_difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, Tolerance tolerance) {
  const auto w = matrices(actual[0], true), wanted = matrices(expected[0], true);
  for (size_t i = 0; i < w.size(); ++i) {
    if (!close(w[i], in_order(wanted[i], matching(w[i], wanted[i])), tolerance)) return "the eigenvalues are others";
  }
  return std::nullopt;
}

// Eigenvectors of length 1 are the same but for a phase when their product has the absolute value 1.
Reason eig_difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, Tolerance tolerance) {
  if (const Reason reason = eigvals_difference(actual, expected, tolerance)) return reason;
  const auto w = matrices(actual[0], true), wanted_w = matrices(expected[0], true);
  const auto v = matrices(actual[1]), wanted_v = matrices(expected[1]);
  for (size_t i = 0; i < v.size(); ++i) {
    const Matrix products = product(adjoint(v[i]), in_order(wanted_v[i], matching(w[i], wanted_w[i])), v[i].rows);
    for (int64_t j = 0; j < products.columns; ++j) {
      const double error = std::abs(std::abs(products.at(j, j)) - 1);
      if (!(error <= tolerance.absolute + tolerance.relative)) return "the eigenvectors are others";
    }
  }
  return std::nullopt;
}

struct Factorization {
  const char* family;
  Reason (*difference)(const std::vector<Tensor>&, const std::vector<Tensor>&, Tolerance);
  int basis;  // the output whose columns carry the sign; -1: none
  int dual;   // the output whose rows carry the same sign; -1: none
};
constexpr Factorization kFactorizations[] = {{"linalg.qr", qr_difference, 0, 1},
                                             {"linalg.svd", svd_difference, 0, 2},
                                             {"linalg.eigh", eigh_difference, 1, -1},
                                             {"linalg.eig", eig_difference, -1, -1},
                                             {"linalg.eigvals", eigvals_difference, -1, -1}};

const Factorization* find(const std::string& family) {
  const auto* found = std::find_if(std::begin(kFactorizations), std::end(kFactorizations),
                                   [&](const Factorization& each) { return family == each.family; });
  return found == std::end(kFactorizations) ? nullptr : found;
}

// By which factor of absolute value 1 each column differs from the expected one, in every matrix of the batch.
std::vector<std::vector<Number>> column_signs(const Tensor& actual, const Tensor& expected) {
  const auto ours = matrices(actual), theirs = matrices(expected);
  std::vector<std::vector<Number>> signs;
  for (size_t b = 0; b < ours.size(); ++b) {
    signs.emplace_back();
    for (int64_t j = 0; j < ours[b].columns; ++j) {
      Number dot = 0;
      for (int64_t i = 0; i < ours[b].rows; ++i) dot += ours[b].at(i, j) * std::conj(theirs[b].at(i, j));
      signs.back().push_back(dot == 0.0 ? 1 : dot / std::abs(dot));
    }
  }
  return signs;
}

double times(double value, Number sign) { return value * sign.real(); }
rush::complex<double> times(rush::complex<double> value, Number sign) {
  return value * rush::complex<double>(sign.real(), sign.imag());
}

// A copy of a gradient, of float64 or complex128, whose columns are multiplied by the signs, or whose rows by their
// conjugates. Columns and rows beyond the signs stay.
template <class T>
Tensor signed_copy(const Tensor& t, const std::vector<std::vector<Number>>& signs, bool rows) {
  const Tensor out = t.clone(rush::MemoryFormat::Contiguous);
  T* value = out.data_ptr<T>();
  for (const std::vector<Number>& sign : signs) {
    for (int64_t i = 0; i < t.size(-2); ++i) {
      for (int64_t j = 0; j < t.size(-1); ++j, ++value) {
        const auto k = static_cast<size_t>(rows ? i : j);
        if (k < sign.size()) *value = times(*value, rows ? std::conj(sign[k]) : sign[k]);
      }
    }
  }
  return out;
}

void apply_signs(Tensor& grad, const std::vector<std::vector<Number>>& signs, bool rows) {
  if (!grad.defined()) return;
  grad = grad.is_complex() ? signed_copy<rush::complex<double>>(grad, signs, rows)
                           : signed_copy<double>(grad, signs, rows);
}

// A gradient of eigenvalues, of complex128, such that each of ours has that of the expected one that it is.
Tensor in_matching_order(const Tensor& grad, const Tensor& actual, const Tensor& expected) {
  if (!grad.defined()) return grad;
  const auto ours = matrices(actual, true), theirs = matrices(expected, true), given = matrices(grad, true);
  const Tensor out = grad.clone(rush::MemoryFormat::Contiguous);
  auto* next = out.data_ptr<rush::complex<double>>();
  for (size_t b = 0; b < ours.size(); ++b) {
    for (const Number& value : in_order(given[b], matching(ours[b], theirs[b])).values)
      *next++ = {value.real(), value.imag()};
  }
  return out;
}

}  // namespace

bool is_factorization(const std::string& family) { return find(family); }

std::optional<std::string> factorization_difference(const std::string& family, const std::vector<Tensor>& actual,
                                                    const std::vector<Tensor>& expected, Tolerance tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (actual[i].scalar_type() != expected[i].scalar_type() || actual[i].sizes() != expected[i].sizes()) {
      return rush::str("output ", i, " is ", actual[i].scalar_type(), " ", actual[i].sizes(), ", expected ",
                       expected[i].scalar_type(), " ", expected[i].sizes());
    }
  }
  return find(family)->difference(actual, expected, tolerance);
}

std::vector<Tensor> with_signs_of(const std::string& family, const std::vector<Tensor>& actual,
                                  const std::vector<Tensor>& expected, const std::vector<Tensor>& grad_outputs) {
  const Factorization& kind = *find(family);
  std::vector<Tensor> changed = grad_outputs;
  if (kind.basis < 0) {
    changed[0] = in_matching_order(changed[0], actual[0], expected[0]);
    return changed;
  }
  const auto basis = static_cast<size_t>(kind.basis);
  const auto signs = column_signs(actual[basis], expected[basis]);
  apply_signs(changed[basis], signs, false);
  if (kind.dual >= 0) apply_signs(changed[static_cast<size_t>(kind.dual)], signs, true);
  return changed;
}

}  // namespace conformance
