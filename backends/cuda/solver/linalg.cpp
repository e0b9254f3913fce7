// Decompositions and linear equations through cuSOLVER and cuBLAS. Without cuSOLVER these operators are not
// implemented.
#include "backends/cuda/kernels/reduce/register_reductions.h"
#if __has_include(<cusolverDn.h>)
#include <algorithm>
#include <limits>

#include "backends/cuda/blas/handle.h"
#include "backends/cuda/check.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/solver/handle.h"
#include "backends/cuda/solver/permutation.h"
#include "backends/cuda/solver/reflections.h"
#include "backends/cuda/solver/typed.h"
#include "backends/functors/pick.h"
#include "core/ops/factory/range.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/reduce/vector_norm.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/triangular.h"

namespace rush::cuda {

namespace {

// Note [Row-major matrices in column-major libraries]
// The library reads the memory of a row-major matrix A as A^T. What is symmetric in that (inverses, a Hermitian matrix,
// whose transpose is its conjugate) needs no copy; elsewhere a transposed copy is made.

using SolverTypes = TypeList<float, double, complex<float>, complex<double>>;

template <class T>
struct LibraryType {
  using type = T;
};
template <>
struct LibraryType<complex<float>> {
  using type = cuComplex;
};
template <>
struct LibraryType<complex<double>> {
  using type = cuDoubleComplex;
};
template <class T>
typename LibraryType<T>::type* matrix(const Tensor& t, int64_t i) {
  return reinterpret_cast<typename LibraryType<T>::type*>(t.data_ptr<T>() + i * t.stride(0));
}
void* matrix_data(const Tensor& t, int64_t i) {
  return static_cast<char*>(t.data_ptr()) + i * t.stride(0) * t.element_size();
}

cudaDataType data_type(ScalarType dtype) {
  switch (dtype) {
    case kFloat32: return CUDA_R_32F;
    case kFloat64: return CUDA_R_64F;
    case kComplex64: return CUDA_C_32F;
    case kComplex128: return CUDA_C_64F;
    default: RUSH_CHECK_NOT_IMPLEMENTED(false, "linalg: not implemented for ", dtype);
  }
  return CUDA_R_32F;
}

Tensor transposed(const Tensor& t) {  // (B, n, m) -> (B, m, n)
  return rush::detail::make_view(t, {t.size(0), t.size(2), t.size(1)}, {t.stride(0), t.stride(2), t.stride(1)},
                                 t.storage_offset());
}
void assign(const Tensor& to, const Tensor& from) {
  Tensor target = to;
  native::copy_(target, from, false);
}
// Ones on the diagonal of each matrix, zeros elsewhere.
void set_identity(const Tensor& t) {
  t.zero_();
  const int64_t n = std::min(t.size(1), t.size(2));
  rush::detail::make_view(t, {t.size(0), n}, {t.stride(0), t.size(2) + 1}, t.storage_offset()).fill_(1);
}
bool is_empty(const Tensor& t) { return t.numel() == 0; }
// Whether there is nothing to compute, which has not failed.
bool is_done(const Tensor& a, const Tensor& info) {
  if (is_empty(a)) info.zero_();
  return is_empty(a);
}

// Note [Batches of small matrices]
// A call of the library for each matrix takes some 20 us, however small the matrix is; both libraries have functions
// that take a whole batch. Which batches they are given is decided by sizes, as PyTorch does, where it was measured:
// aten/src/ATen/native/cuda/linalg/BatchLinearAlgebra.cpp (lu_factor, lu_solve_kernel, triangular_solve_kernel,
// geqrf_kernel) and BatchLinearAlgebraLib.cpp (cholesky, eigh and svd). A batch is counted by an int, and may be the y
// or z dimension of a grid, so that a large one is split into chunks.
constexpr int64_t kMostAtOnce = 65535;

template <class F>
void for_each_chunk(int64_t batch, const F& f, int64_t most = kMostAtOnce) {  // f(first, count)
  for (int64_t i = 0; i < batch; i += most) f(i, static_cast<int>(std::min(most, batch - i)));
}

// Where the matrices of a batch, or its vectors, begin: an array on the device.
template <class T>
class Addresses {
 public:
  explicit Addresses(const Tensor& t) : array_(rush::detail::empty_contiguous({t.size(0)}, kInt64, t.device())) {
    kernels::arange(kCUDA, array_, reinterpret_cast<int64_t>(t.data_ptr()), t.stride(0) * t.element_size());
  }
  typename LibraryType<T>::type** from(int64_t i) const {
    return reinterpret_cast<typename LibraryType<T>::type**>(array_.data_ptr<int64_t>()) + i;
  }

 private:
  Tensor array_;
};

// Workspaces of one call, on the device and on the host.
struct Workspace {
  Workspace(size_t device_bytes, size_t host_bytes) : device(device_bytes), host(host_bytes) {}
  Scratch device;
  std::vector<char> host;
};

// x := op(A)^-1 x for a triangle of A (B, n, n) and x (B, m, n), which are n x m matrices as the library has them.
template <class T>
void solve_triangle(const Tensor& a, const Tensor& x, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diag) {
  const T number(1);
  const auto* one = reinterpret_cast<const typename LibraryType<T>::type*>(&number);
  const auto n = static_cast<int>(a.size(1)), m = static_cast<int>(x.size(1));
  const int64_t batch = a.size(0);
  if (batch == 1 || (batch <= 8 && n >= 64)) {
    const Blas blas;
    for (int64_t i = 0; i < batch; ++i) {
      RUSH_CUDA_CHECK(trsm(blas.handle(), fill, op, diag, n, m, one, matrix<T>(a, i), n, matrix<T>(x, i), n));
    }
    return;
  }
  const Addresses<T> matrices(a), columns(x);
  const Blas blas;
  for_each_chunk(batch, [&](int64_t i, int count) {
    RUSH_CUDA_CHECK(
        trsm_batched(blas.handle(), fill, op, diag, n, m, one, matrices.from(i), n, columns.from(i), n, count));
  });
}

// The factors of a matrix P A = L U as the library has them, and its pivots, counted from one.
struct LuFactors {
  Tensor factors;  // (B, m, n)
  Tensor pivots;   // (B, min(n, m)): of cuBLAS's function for batches int32, of cuSOLVER's int64
};

// `columns` (B, m, n) become the factors. `pivots` (B, min(n, m)), int32, may be written.
template <class T>
LuFactors factor_lu(const Tensor& columns, const Tensor& pivots, const Tensor& info, bool pivoting = true) {
  const int64_t batch = columns.size(0), n = columns.size(2), m = columns.size(1), k = std::min(n, m);
  int* codes = info.data_ptr<int32_t>();
  if (batch > 1 && n == m && n < 512) {
    const Addresses<T> matrices(columns);
    const Blas blas;
    for_each_chunk(batch, [&](int64_t i, int count) {
      // Without memory for pivots the libraries exchange no rows.
      int* rows = pivoting ? pivots.data_ptr<int32_t>() + i * k : nullptr;
      const auto size = static_cast<int>(n);
      RUSH_CUDA_CHECK(getrf_batched(blas.handle(), size, matrices.from(i), size, rows, codes + i, count));
    });
    return {columns, pivots};
  }
  LuFactors lu{columns, rush::detail::empty_contiguous({batch, k}, kInt64, columns.device())};
  const cudaDataType type = data_type(columns.scalar_type());
  const Solver solver;
  size_t on_device = 0, on_host = 0;
  RUSH_CUDA_CHECK(cusolverDnXgetrf_bufferSize(solver.handle(), solver.params(), n, m, type, columns.data_ptr(), n, type,
                                              &on_device, &on_host));
  Workspace work(on_device, on_host);
  for (int64_t i = 0; i < batch; ++i) {
    int64_t* rows = pivoting ? lu.pivots.data_ptr<int64_t>() + i * k : nullptr;
    RUSH_CUDA_CHECK(cusolverDnXgetrf(solver.handle(), solver.params(), n, m, type, matrix_data(columns, i), n, rows,
                                     type, work.device.data(), on_device, work.host.data(), on_host, codes + i));
  }
  return lu;
}

struct LuLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& pivots, const Tensor& a, bool pivoting, const Tensor& info) {
    if (is_done(a, info)) return;
    const LuFactors lu = factor_lu<T>(native::clone_contiguous(transposed(a)), pivots, info, pivoting);
    if (pivoting && lu.pivots.scalar_type() != kInt32) assign(pivots, lu.pivots);
    assign(out, transposed(lu.factors));
  }
};

// A^-1 x for x (B, m, n), whose memory it may take. Both are n x m matrices as the library has them.
template <class T>
Tensor solve_factored(const LuFactors& lu, const Tensor& x) {
  const int64_t batch = x.size(0), m = x.size(1), n = x.size(2);
  if (is_empty(x)) return x;
  if (lu.pivots.scalar_type() == kInt64) {
    const cudaDataType type = data_type(x.scalar_type());
    const Scratch status(sizeof(int32_t));
    const Solver solver;
    for (int64_t i = 0; i < batch; ++i) {
      RUSH_CUDA_CHECK(cusolverDnXgetrs(solver.handle(), solver.params(), CUBLAS_OP_N, n, m, type,
                                       matrix_data(lu.factors, i), n, lu.pivots.data_ptr<int64_t>() + i * n, type,
                                       matrix_data(x, i), n, status.as<int32_t>()));
    }
    return x;
  }
  if (n <= 8 || (n <= 16 && m == n) || (n <= 64 && m <= 8) || (n <= 128 && m <= 2)) {
    const Addresses<T> matrices(lu.factors), columns(x);
    const Blas blas;
    for_each_chunk(batch, [&](int64_t i, int count) {
      const auto rows = static_cast<int>(n);
      int status = 0;  // says nothing of the matrices
      RUSH_CUDA_CHECK(getrs_batched(blas.handle(), rows, static_cast<int>(m), matrices.from(i), rows,
                                    lu.pivots.data_ptr<int32_t>() + i * n, columns.from(i), rows, &status, count));
    });
    return x;
  }
  const Tensor order = rush::detail::empty_contiguous({batch, n}, kInt64, x.device());
  permutation(order, lu.pivots);
  Tensor exchanged = x.gather(2, order.unsqueeze(1).expand(x.sizes()));
  solve_triangle<T>(lu.factors, exchanged, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT);
  solve_triangle<T>(lu.factors, exchanged, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT);
  return exchanged;
}

template <class T>
Tensor solve_by_lu(const Tensor& columns, const Tensor& x, const Tensor& info) {
  const Tensor pivots = rush::detail::empty_contiguous({columns.size(0), columns.size(2)}, kInt32, columns.device());
  return solve_factored<T>(factor_lu<T>(columns, pivots, info), x);
}

struct InverseLoop {  // the library has A^T, whose inverse is that of A as it has it
  template <class T>
  static void run(const Tensor& out, const Tensor& a, const Tensor& info) {
    if (is_done(a, info)) return;
    set_identity(out);
    const Tensor inverse = solve_by_lu<T>(native::clone_contiguous(a), out, info);
    if (!inverse.is_same(out)) assign(out, inverse);
  }
};

struct SolveLoop {
  template <class T>
  static void run(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& info) {
    if (is_done(a, info)) return;
    const Tensor matrices = native::clone_contiguous(transposed(a)), columns = native::clone_contiguous(transposed(b));
    assign(x, transposed(solve_by_lu<T>(matrices, columns, info)));
  }
};

struct TriangularLoop {
  template <class T>
  static void run(const Tensor& x, const Tensor& a, const Tensor& b, bool upper, bool unit) {
    if (is_empty(b)) return;
    const Tensor columns = native::clone_contiguous(transposed(b));
    solve_triangle<T>(a, columns, upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T,
                      unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT);
    assign(x, transposed(columns));
  }
};

struct CholeskyLoop {
  template <class T>
  static void run(const Tensor& factor, const Tensor& a, const Tensor& info) {
    if (is_done(a, info)) return;
    const Tensor columns = native::clone_contiguous(transposed(a));
    const auto n = static_cast<int>(a.size(1));
    int* codes = info.data_ptr<int32_t>();
    if (a.size(0) > 1) {
      const Addresses<T> matrices(columns);
      const Solver solver;
      for_each_chunk(a.size(0), [&](int64_t i, int count) {
        RUSH_CUDA_CHECK(
            potrf_batched(solver.handle(), CUBLAS_FILL_MODE_LOWER, n, matrices.from(i), n, codes + i, count));
      });
    } else {
      factor_one(columns, codes);
    }
    kernels::triangle(kCUDA, factor, transposed(columns), 0, false);
  }

  static void factor_one(const Tensor& columns, int* code) {
    const int64_t n = columns.size(1);
    const cudaDataType type = data_type(columns.scalar_type());
    const Solver solver;
    size_t on_device = 0, on_host = 0;
    RUSH_CUDA_CHECK(cusolverDnXpotrf_bufferSize(solver.handle(), solver.params(), CUBLAS_FILL_MODE_LOWER, n, type,
                                                columns.data_ptr(), n, type, &on_device, &on_host));
    Workspace work(on_device, on_host);
    RUSH_CUDA_CHECK(cusolverDnXpotrf(solver.handle(), solver.params(), CUBLAS_FILL_MODE_LOWER, n, type,
                                     columns.data_ptr(), n, type, work.device.data(), on_device, work.host.data(),
                                     on_host, code));
  }
};

struct QrLoop {
  template <class T>
  static void run(const Tensor& q, const Tensor& r, const Tensor& a) {
    using Library = typename LibraryType<T>::type;
    const int64_t batch = a.size(0), n = a.size(1), m = a.size(2), k = std::min(n, m);
    if (is_empty(a)) {
      if (q.defined()) set_identity(q);
      return;
    }
    const Tensor columns = native::clone_contiguous(transposed(a));
    const Tensor tau = rush::detail::empty_contiguous({batch, k}, a.scalar_type(), a.device());
    const bool at_once = n <= kMostReflectedRows && batch >= std::max<int64_t>(2, n / 16);
    const Scratch status(sizeof(int32_t));
    if (at_once) {
      factor_batch<T>(columns, tau);
    } else {
      factor_each(columns, tau, status.as<int32_t>());
    }
    // R is the upper triangle of the first rows.
    const Tensor rows =
        rush::detail::make_view(columns, {batch, r.size(1), m}, {n * m, 1, n}, columns.storage_offset());
    kernels::triangle(kCUDA, r, rows, 0, true);
    if (!q.defined()) return;
    if (at_once) return multiply_reflections(q, columns, tau);
    const int64_t wanted = q.size(2), shared = std::min(wanted, m);
    const Tensor q_columns = rush::detail::empty_contiguous({batch, wanted, n}, a.scalar_type(), a.device());
    q_columns.zero_();
    const auto first = [&](const Tensor& t) {
      return rush::detail::make_view(t, {batch, shared, n}, t.strides(), t.storage_offset());
    };
    assign(first(q_columns), first(columns));
    {
      const Solver solver;
      const auto rows_of_q = static_cast<int>(n), columns_of_q = static_cast<int>(wanted), count = static_cast<int>(k);
      int size = 0;
      RUSH_CUDA_CHECK(orgqr_size(solver.handle(), rows_of_q, columns_of_q, count, matrix<T>(q_columns, 0), rows_of_q,
                                 matrix<T>(tau, 0), &size));
      const Scratch work(static_cast<size_t>(size) * sizeof(T));
      for (int64_t i = 0; i < batch; ++i) {
        RUSH_CUDA_CHECK(orgqr(solver.handle(), rows_of_q, columns_of_q, count, matrix<T>(q_columns, i), rows_of_q,
                              matrix<T>(tau, i), work.as<Library>(), size, status.as<int32_t>()));
      }
    }
    assign(q, transposed(q_columns));
  }

  template <class T>
  static void factor_batch(const Tensor& columns, const Tensor& tau) {
    const auto n = static_cast<int>(columns.size(2)), m = static_cast<int>(columns.size(1));
    const Addresses<T> matrices(columns), taus(tau);
    const Blas blas;
    for_each_chunk(columns.size(0), [&](int64_t i, int count) {
      int status = 0;  // says nothing of the matrices
      RUSH_CUDA_CHECK(geqrf_batched(blas.handle(), n, m, matrices.from(i), n, taus.from(i), &status, count));
    });
  }

  static void factor_each(const Tensor& columns, const Tensor& tau, int32_t* status) {
    const int64_t n = columns.size(2), m = columns.size(1);
    const cudaDataType type = data_type(columns.scalar_type());
    const Solver solver;
    size_t on_device = 0, on_host = 0;
    RUSH_CUDA_CHECK(cusolverDnXgeqrf_bufferSize(solver.handle(), solver.params(), n, m, type, columns.data_ptr(), n,
                                                type, tau.data_ptr(), type, &on_device, &on_host));
    Workspace work(on_device, on_host);
    for (int64_t i = 0; i < columns.size(0); ++i) {
      RUSH_CUDA_CHECK(cusolverDnXgeqrf(solver.handle(), solver.params(), n, m, type, matrix_data(columns, i), n, type,
                                       matrix_data(tau, i), type, work.device.data(), on_device, work.host.data(),
                                       on_host, status));
    }
  }
};

// The eigenvectors replace `columns`.
void eigh_of_one(const Tensor& values, const Tensor& columns, int* code) {
  check_not_capturing("a decomposition of one symmetric matrix, for which cuSOLVER waits,");
  const int64_t n = columns.size(1);
  const cudaDataType type = data_type(columns.scalar_type()), real = data_type(values.scalar_type());
  const Solver solver;
  size_t on_device = 0, on_host = 0;
  RUSH_CUDA_CHECK(cusolverDnXsyevd_bufferSize(solver.handle(), solver.params(), CUSOLVER_EIG_MODE_VECTOR,
                                              CUBLAS_FILL_MODE_UPPER, n, type, columns.data_ptr(), n, real,
                                              values.data_ptr(), type, &on_device, &on_host));
  Workspace work(on_device, on_host);
  RUSH_CUDA_CHECK(cusolverDnXsyevd(solver.handle(), solver.params(), CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER,
                                   n, type, columns.data_ptr(), n, real, values.data_ptr(), type, work.device.data(),
                                   on_device, work.host.data(), on_host, code));
}

// The same for n of any size, as in JAX, while PyTorch has a loop for those above 32, which takes a hundred times as
// long. The library asks for memory by the number of matrices, some 300 KB for each small one.
void eigh_of_batch(const Tensor& values, const Tensor& columns, int* codes) {
  const int64_t n = columns.size(1);
  const cudaDataType type = data_type(columns.scalar_type()), real = data_type(values.scalar_type());
  const Solver solver;
  size_t on_device = 0, on_host = 0;
  const auto ask = [&](int64_t count) {
    RUSH_CUDA_CHECK(cusolverDnXsyevBatched_bufferSize(solver.handle(), solver.params(), CUSOLVER_EIG_MODE_VECTOR,
                                                      CUBLAS_FILL_MODE_UPPER, n, type, columns.data_ptr(), n, real,
                                                      values.data_ptr(), type, &on_device, &on_host, count));
  };
  constexpr size_t kMostWorkspace = size_t{512} << 20;
  int64_t at_once = std::min(columns.size(0), kMostAtOnce);
  for (ask(at_once); on_device > kMostWorkspace && at_once > 1; ask(at_once)) at_once = (at_once + 1) / 2;
  Workspace work(on_device, on_host);
  for_each_chunk(
      columns.size(0),
      [&](int64_t i, int count) {
        RUSH_CUDA_CHECK(cusolverDnXsyevBatched(solver.handle(), solver.params(), CUSOLVER_EIG_MODE_VECTOR,
                                               CUBLAS_FILL_MODE_UPPER, n, type, matrix_data(columns, i), n, real,
                                               matrix_data(values, i), type, work.device.data(), on_device,
                                               work.host.data(), on_host, codes + i, count));
      },
      at_once);
}

// The library's eigenvectors are those of conj(A), in its columns.
void eigh(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info) {
  if (is_done(a, info)) return;
  const Tensor columns = native::clone_contiguous(a);
  if (a.size(0) > 1) {
    eigh_of_batch(values, columns, info.data_ptr<int32_t>());
  } else {
    eigh_of_one(values, columns, info.data_ptr<int32_t>());
  }
  assign(vectors, transposed(columns).conj());
}

// The library's eigenvectors of a real matrix would be pairs of real columns, so a real matrix is made complex.
void eig(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info) {
  info.zero_();
  if (is_empty(a)) return;
  const Tensor columns = rush::detail::empty_contiguous(a.sizes(), values.scalar_type(), a.device());
  const Tensor right = rush::detail::empty_contiguous(a.sizes(), values.scalar_type(), a.device());
  assign(columns, transposed(a));
  const int64_t n = a.size(1);
  const cudaDataType type = data_type(values.scalar_type());
  const cusolverEigMode_t none = CUSOLVER_EIG_MODE_NOVECTOR, all = CUSOLVER_EIG_MODE_VECTOR;
  {
    const Solver solver;
    size_t on_device = 0, on_host = 0;
    RUSH_CUDA_CHECK(cusolverDnXgeev_bufferSize(solver.handle(), solver.params(), none, all, n, type, columns.data_ptr(),
                                               n, type, values.data_ptr(), type, nullptr, n, type, right.data_ptr(), n,
                                               type, &on_device, &on_host));
    Workspace work(on_device, on_host);
    for (int64_t i = 0; i < a.size(0); ++i) {
      RUSH_CUDA_CHECK(cusolverDnXgeev(solver.handle(), solver.params(), none, all, n, type, matrix_data(columns, i), n,
                                      type, matrix_data(values, i), type, nullptr, n, type, matrix_data(right, i), n,
                                      type, work.device.data(), on_device, work.host.data(), on_host,
                                      info.data_ptr<int32_t>() + i));
    }
  }
  assign(vectors, transposed(right));
}

class JacobiSettings {
 public:
  JacobiSettings() { RUSH_CUDA_CHECK(cusolverDnCreateGesvdjInfo(&info_)); }
  ~JacobiSettings() { static_cast<void>(cusolverDnDestroyGesvdjInfo(info_)); }
  JacobiSettings(const JacobiSettings&) = delete;
  gesvdjInfo_t get() const { return info_; }

 private:
  gesvdjInfo_t info_ = nullptr;
};

// A^T = U' S V'^H, so A = conj(V') S U'^T.
struct SvdLoop {
  template <class T>
  using Real = cpp_type<is_complex_v<T> ? (sizeof(T) == 8 ? kFloat32 : kFloat64) : scalar_type_of<T>>;

  template <class T>
  static void run(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, const Tensor& info) {
    info.zero_();
    if (is_empty(a)) {
      set_identity(u);
      set_identity(vh);
      return;
    }
    // The library's function for batches takes matrices of up to 32 rows and columns, and is faster for one of them,
    // too.
    if (a.size(1) <= 32 && a.size(2) <= 32) {
      run_small<T>(u, s, vh, a, info);
    } else {
      run_each<T>(u, s, vh, a, info);
    }
  }

  // The library computes all vectors. Matrices are divided by their largest number, whose square might be infinite.
  template <class T>
  static void run_small(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, const Tensor& info) {
    const int64_t batch = a.size(0);
    const auto n = static_cast<int>(a.size(1)), m = static_cast<int>(a.size(2)), k = std::min(n, m);
    const auto squares = [&](int64_t size) {
      return rush::detail::empty_contiguous({batch, size, size}, a.scalar_type(), a.device());
    };
    const Tensor largest = linalg_vector_norm(a, std::numeric_limits<double>::infinity(), IntArrayRef({1, 2}), true)
                               .clamp_min(std::numeric_limits<Real<T>>::min());
    const Tensor columns = a / largest, left = vh.size(1) == m ? vh : squares(m), right = squares(n);
    {
      const Solver solver;
      const JacobiSettings settings;
      const auto values = [&](int64_t i) { return s.data_ptr<Real<T>>() + i * k; };
      int size = 0;
      RUSH_CUDA_CHECK(gesvdj_batched_size(solver.handle(), m, n, matrix<T>(columns, 0), values(0), matrix<T>(left, 0),
                                          matrix<T>(right, 0), &size, settings.get(),
                                          static_cast<int>(std::min(batch, kMostAtOnce))));
      const Scratch work(static_cast<size_t>(size) * sizeof(T));
      for_each_chunk(batch, [&](int64_t i, int count) {
        RUSH_CUDA_CHECK(gesvdj_batched(solver.handle(), m, n, matrix<T>(columns, i), values(i), matrix<T>(left, i),
                                       matrix<T>(right, i), work.as<typename LibraryType<T>::type>(), size,
                                       info.data_ptr<int32_t>() + i, settings.get(), count));
      });
    }
    Tensor scaled = s;
    scaled.mul_(largest.view({batch, 1}));
    if (!left.is_same(vh)) assign(vh, left.narrow(1, 0, k));
    assign(u, transposed(right.narrow(1, 0, u.size(2))).conj());
  }

  template <class T>
  static void run_each(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, const Tensor& info) {
    const auto n = static_cast<int>(a.size(1)), m = static_cast<int>(a.size(2)), k = std::min(n, m);
    const int thin = u.size(2) == k && vh.size(1) == k;
    const Tensor columns = native::clone_contiguous(a);
    const Tensor right = rush::detail::empty_contiguous({a.size(0), u.size(2), u.size(1)}, a.scalar_type(), a.device());
    {
      const Solver solver;
      const JacobiSettings settings;
      const auto values = [&](int64_t i) { return s.data_ptr<Real<T>>() + i * k; };
      int size = 0;
      RUSH_CUDA_CHECK(gesvdj_size(solver.handle(), thin, m, n, matrix<T>(columns, 0), m, values(0), matrix<T>(vh, 0), m,
                                  matrix<T>(right, 0), n, &size, settings.get()));
      const Scratch work(static_cast<size_t>(size) * sizeof(T));
      for (int64_t i = 0; i < a.size(0); ++i) {
        RUSH_CUDA_CHECK(gesvdj(solver.handle(), thin, m, n, matrix<T>(columns, i), m, values(i), matrix<T>(vh, i), m,
                               matrix<T>(right, i), n, work.as<typename LibraryType<T>::type>(), size,
                               info.data_ptr<int32_t>() + i, settings.get()));
      }
    }
    assign(u, transposed(right).conj());
  }
};

}  // namespace

void register_linalg() {
  set_by_dtype<kernels::linalg_lu_factor, LuLoop, SolverTypes, 2>(kCUDA);
  kernels::pivots_to_permutation.set(kCUDA, permutation);
  set_by_dtype<kernels::linalg_inv, InverseLoop, SolverTypes, 1>(kCUDA);
  set_by_dtype<kernels::linalg_solve, SolveLoop, SolverTypes, 1>(kCUDA);
  set_by_dtype<kernels::linalg_solve_triangular, TriangularLoop, SolverTypes, 1>(kCUDA);
  set_by_dtype<kernels::linalg_cholesky, CholeskyLoop, SolverTypes, 1>(kCUDA);
  set_by_dtype<kernels::linalg_qr, QrLoop, SolverTypes, 2>(kCUDA);
  kernels::linalg_eigh.set(kCUDA, eigh);
  kernels::linalg_eig.set(kCUDA, eig);
  set_by_dtype<kernels::linalg_svd, SvdLoop, SolverTypes, 3>(kCUDA);
}

}  // namespace rush::cuda
#else
namespace rush::cuda {

void register_linalg() {}

}  // namespace rush::cuda
#endif
