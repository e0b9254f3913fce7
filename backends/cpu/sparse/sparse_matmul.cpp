// Products with sparse matrices.
//
// Note [Sparse products on the CPU]
// Eigen could map a CSR matrix without a copy (Eigen::Map<const SparseMatrix>), but it multiplies two sparse matrices
// on one thread, and a sparse by a dense one a column at a time unless its own threads split the rows, evenly and not
// by their entries. These loops take whole rows, each with one thread and in the order of its entries, so sums do not
// depend on the number of threads; and they keep the sums of a row in registers.
#include <algorithm>
#include <limits>

#include "backends/cpu/linalg/gemv.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/cpu/sparse/semi_structured.h"
#include "backends/functors/first_where.h"
#include "core/ops/factory/factories.h"
#include "core/ops/sparse/sparse_kernels.h"

namespace rush::cpu {

namespace {

// Calls body(first, last) over ranges of rows with about as many entries each, `grain` rows and entries at least.
template <class Index, class Body>
void for_rows(const Index* crow, int64_t rows, int64_t grain, const Body& body) {
  // Row r stands at its first entry's number plus r, so that empty rows count too.
  const auto first_at = [&](int64_t place) {
    return functors::first_where(rows, [&](int64_t r) { return static_cast<int64_t>(crow[r]) + r >= place; });
  };
  parallel_for(0, static_cast<int64_t>(crow[rows]) + rows, std::max<int64_t>(1, grain), [&](int64_t from, int64_t to) {
    const int64_t first = first_at(from), last = first_at(to);
    if (first < last) body(first, last);
  });
}

// out[0, n) = beta out + sum over a row's entries of alpha values[e] b[col[e]][0, n), for n up to `block`.
template <int64_t block, class T, class Index, class Math>
void multiply_row(T* out, int64_t n, const T* values, const Index* col, int64_t entries, const T* b, int64_t columns,
                  Math beta, Math alpha) {
  Math sums[block] = {};
  if (n == block) {
    for (int64_t e = 0; e < entries; ++e) {
      const Math value = static_cast<Math>(values[e]);
      const T* row = b + static_cast<int64_t>(col[e]) * columns;
      for (int64_t j = 0; j < block; ++j) sums[j] += value * static_cast<Math>(row[j]);
    }
  } else {
    for (int64_t e = 0; e < entries; ++e) {
      const Math value = static_cast<Math>(values[e]);
      const T* row = b + static_cast<int64_t>(col[e]) * columns;
      for (int64_t j = 0; j < n; ++j) sums[j] += value * static_cast<Math>(row[j]);
    }
  }
  const bool keeps = !(beta == Math(0));
  for (int64_t j = 0; j < n; ++j) {
    out[j] = static_cast<T>(keeps ? alpha * sums[j] + beta * static_cast<Math>(out[j]) : alpha * sums[j]);
  }
}

template <class Index>
struct MultiplyLoop {
  template <class T>
  static void run(const Tensor& c, const CsrMatrix& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
    using Math = opmath_t<T>;
    constexpr int64_t block = std::max<int64_t>(1, 256 / static_cast<int64_t>(sizeof(Math)));
    const Index *crow = a.crow.data_ptr<Index>(), *col = a.col.data_ptr<Index>();
    const T *values = a.values.data_ptr<T>(), *from = b.data_ptr<T>();
    T* const to = c.data_ptr<T>();
    const int64_t columns = c.size(1);
    const Math keep = beta.to<Math>(), scale = alpha.to<Math>();
    if (c.numel() == 0) return;
    for_rows(crow, a.rows, kGrain / columns, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const int64_t begin = crow[r], entries = crow[r + 1] - begin;
        for (int64_t j = 0; j < columns; j += block) {
          multiply_row<block>(to + r * columns + j, std::min(block, columns - j), values + begin, col + begin, entries,
                              from + j, columns, keep, scale);
        }
      }
    });
  }
};

template <class Index>
struct SampleLoop {
  template <class T>
  static void run(const Tensor& values, const CsrMatrix& pattern, const Tensor& a, const Tensor& b, const Scalar& beta,
                  const Scalar& alpha) {
    using Math = opmath_t<T>;
    const Index *crow = pattern.crow.data_ptr<Index>(), *col = pattern.col.data_ptr<Index>();
    const T *left = a.data_ptr<T>(), *right = b.data_ptr<T>();
    T* const to = values.data_ptr<T>();
    const int64_t depth = a.size(1);
    const Math keep = beta.to<Math>(), scale = alpha.to<Math>();
    const bool keeps = !(keep == Math(0));
    for_rows(crow, pattern.rows, kGrain / std::max<int64_t>(depth, 1), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        for (int64_t e = crow[r]; e < static_cast<int64_t>(crow[r + 1]); ++e) {
          const Math product =
              scale * dot_product(left + r * depth, right + static_cast<int64_t>(col[e]) * depth, depth);
          to[e] = static_cast<T>(keeps ? product + keep * static_cast<Math>(to[e]) : product);
        }
      }
    });
  }

 private:
  template <class T>
  static opmath_t<T> dot_product(const T* x, const T* y, int64_t n) {
    using Math = opmath_t<T>;
    if constexpr (std::is_same_v<T, Math>) {
      return detail::dot(x, y, n);
    } else {
      Math total(0);
      for (int64_t i = 0; i < n; ++i) total += static_cast<Math>(x[i]) * static_cast<Math>(y[i]);
      return total;
    }
  }
};

// Gustavson, "Two fast algorithms for sparse matrices", 1978: a row of the product is the sum of rows of b, gathered in
// an array of all columns. The first pass counts, the second fills.
template <class Index>
struct GustavsonLoop {
  template <class T>
  static void run(CsrMatrix& c, const CsrMatrix& a, const CsrMatrix& b) {
    const Device device = a.values.device();
    const ScalarType index_type = scalar_type_of<Index>;
    c.rows = a.rows;
    c.columns = b.columns;
    c.crow = rush::detail::empty_contiguous(a.rows + 1, index_type, device);
    count<T>(c, a, b);
    Index* const crow = c.crow.data_ptr<Index>();
    int64_t total = 0;
    for (int64_t r = 0; r <= a.rows; ++r) {
      const int64_t here = crow[r];
      RUSH_CHECK_VALUE(total <= std::numeric_limits<Index>::max(), "mm: the product has more entries than ", index_type,
                       " counts; use int64 indices");
      crow[r] = static_cast<Index>(total);
      total += here;
    }
    c.col = rush::detail::empty_contiguous(crow[a.rows], index_type, device);
    c.values = rush::detail::empty_contiguous(crow[a.rows], a.values.scalar_type(), device);
    fill<T>(c, a, b);
  }

 private:
  template <class Visit>
  static void for_terms(const CsrMatrix& a, const CsrMatrix& b, int64_t row, const Visit& visit) {
    const Index *a_rows = a.crow.data_ptr<Index>(), *a_columns = a.col.data_ptr<Index>();
    const Index* b_rows = b.crow.data_ptr<Index>();
    for (int64_t i = a_rows[row]; i < static_cast<int64_t>(a_rows[row + 1]); ++i) {
      const int64_t k = a_columns[i];
      for (int64_t j = b_rows[k]; j < static_cast<int64_t>(b_rows[k + 1]); ++j) visit(i, j);
    }
  }

  // crow[r] becomes the number of row r's entries, the last one 0.
  template <class T>
  static void count(const CsrMatrix& c, const CsrMatrix& a, const CsrMatrix& b) {
    Index* const counts = c.crow.data_ptr<Index>();
    const Index* columns = b.col.data_ptr<Index>();
    counts[a.rows] = 0;
    for_rows(a.crow.data_ptr<Index>(), a.rows, kRowsGrain, [&](int64_t first, int64_t last) {
      std::vector<int64_t> seen(static_cast<size_t>(b.columns), -1);
      for (int64_t r = first; r < last; ++r) {
        Index found = 0;
        for_terms(a, b, r, [&](int64_t, int64_t j) {
          int64_t& mark = seen[static_cast<size_t>(columns[j])];
          found += mark != r;
          mark = r;
        });
        counts[r] = found;
      }
    });
  }

  template <class T>
  static void fill(const CsrMatrix& c, const CsrMatrix& a, const CsrMatrix& b) {
    using Math = opmath_t<T>;
    const Index* crow = c.crow.data_ptr<Index>();
    const Index* columns = b.col.data_ptr<Index>();
    const T *left = a.values.data_ptr<T>(), *right = b.values.data_ptr<T>();
    Index* const col = c.col.data_ptr<Index>();
    T* const values = c.values.data_ptr<T>();
    for_rows(a.crow.data_ptr<Index>(), a.rows, kRowsGrain, [&](int64_t first, int64_t last) {
      std::vector<int64_t> seen(static_cast<size_t>(b.columns), -1);
      std::vector<Math> sums(static_cast<size_t>(b.columns));
      for (int64_t r = first; r < last; ++r) {
        Index* next = col + crow[r];
        for_terms(a, b, r, [&](int64_t i, int64_t j) {
          const auto at = static_cast<size_t>(columns[j]);
          const Math term = static_cast<Math>(left[i]) * static_cast<Math>(right[j]);
          if (seen[at] == r) {
            sums[at] += term;
            return;
          }
          seen[at] = r;
          sums[at] = term;
          *next++ = columns[j];
        });
        std::sort(col + crow[r], next);
        for (int64_t e = crow[r]; e < static_cast<int64_t>(crow[r + 1]); ++e) {
          values[e] = static_cast<T>(sums[static_cast<size_t>(col[e])]);
        }
      }
    });
  }

  // Every chunk of rows allocates and clears arrays of all columns, so it must not be small.
  static constexpr int64_t kRowsGrain = 4096;
};

template <template <class> class Loop>
auto by_index_type(const Tensor& col, ScalarType dtype, const char* op) {
  return col.scalar_type() == kInt32 ? pick<Loop<int32_t>>(FloatTypes(), dtype, op)
                                     : pick<Loop<int64_t>>(FloatTypes(), dtype, op);
}

void sparse_mm(const Tensor& c, const CsrMatrix& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  by_index_type<MultiplyLoop>(a.col, c.scalar_type(), "mm")(c, a, b, beta, alpha);
}

void sparse_sampled_mm(const Tensor& values, const CsrMatrix& pattern, const Tensor& a, const Tensor& b,
                       const Scalar& beta, const Scalar& alpha) {
  by_index_type<SampleLoop>(pattern.col, values.scalar_type(), "sparse_sampled_addmm")(values, pattern, a, b, beta,
                                                                                       alpha);
}

void sparse_matmul(CsrMatrix& c, const CsrMatrix& a, const CsrMatrix& b) {
  by_index_type<GustavsonLoop>(a.col, a.values.scalar_type(), "mm")(c, a, b);
}

// A counting sort: entries in the order of rows go to where their column's next one is.
template <class Index>
void sort_by_columns(const Tensor& ccol, const Tensor& row, const Tensor& order, const CsrMatrix& a) {
  const Index *crow = a.crow.data_ptr<Index>(), *col = a.col.data_ptr<Index>();
  Index *const starts = ccol.data_ptr<Index>(), *const rows = row.data_ptr<Index>();
  int64_t* const entries = order.data_ptr<int64_t>();
  std::fill_n(starts, a.columns + 1, Index(0));
  for (int64_t e = 0; e < a.nnz(); ++e) ++starts[col[e] + 1];
  for (int64_t j = 0; j < a.columns; ++j) starts[j + 1] += starts[j];
  std::vector<Index> next(starts, starts + a.columns);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t e = crow[r]; e < static_cast<int64_t>(crow[r + 1]); ++e) {
      const Index at = next[static_cast<size_t>(col[e])]++;
      rows[at] = static_cast<Index>(r);
      entries[at] = e;
    }
  }
}

void sparse_transpose(const Tensor& ccol, const Tensor& row, const Tensor& order, const CsrMatrix& a) {
  if (a.col.scalar_type() == kInt32) {
    sort_by_columns<int32_t>(ccol, row, order, a);
  } else {
    sort_by_columns<int64_t>(ccol, row, order, a);
  }
}

}  // namespace

void register_sparse() {
  kernels::sparse_mm.set(kCPU, sparse_mm);
  kernels::sparse_sampled_mm.set(kCPU, sparse_sampled_mm);
  kernels::sparse_matmul.set(kCPU, sparse_matmul);
  kernels::sparse_transpose.set(kCPU, sparse_transpose);
  kernels::cslt_compress.set(kCPU, cslt_compress);
  kernels::cslt_decompress.set(kCPU, cslt_decompress);
  kernels::cslt_sparse_mm.set(kCPU, cslt_sparse_mm);
}

}  // namespace rush::cpu
