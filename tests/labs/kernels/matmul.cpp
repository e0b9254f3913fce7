// Lab 12: matrix products on the emulated grid. Right answers come from loops in double precision, a row of b at a
// time.
#include "tests/labs/kernels/matmul.h"

#include <cmath>

#include "tests/labs/kernels/kernel_exercise.h"
#include "tests/labs/kernels/matmul_cases.h"

namespace rush::labs {
namespace {

// ---- numbers ----

struct Matrix {
  int64_t rows, columns;
  std::vector<float> values;  // by rows

  float& at(int64_t row, int64_t column) { return values[static_cast<size_t>(row * columns + column)]; }
  float at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * columns + column)]; }
};

// The product of rows `first` to `end` of b with their columns of a.
std::vector<double> product(const Matrix& a, const Matrix& b, int64_t first, int64_t end) {
  std::vector<double> c(static_cast<size_t>(a.rows * b.columns));
  for (int64_t i = first; i < end; ++i) {
    for (int64_t row = 0; row < a.rows; ++row) {
      for (int64_t column = 0; column < b.columns; ++column) {
        c[static_cast<size_t>(row * b.columns + column)] += static_cast<double>(a.at(row, i)) * b.at(i, column);
      }
    }
  }
  return c;
}

// With zeros around it, so that sizes are multiples of 16.
Matrix padded(const Matrix& from) {
  Matrix to{(from.rows + 15) / 16 * 16, (from.columns + 15) / 16 * 16, {}};
  to.values.resize(static_cast<size_t>(to.rows * to.columns));
  for (int64_t row = 0; row < from.rows; ++row) {
    for (int64_t column = 0; column < from.columns; ++column) to.at(row, column) = from.at(row, column);
  }
  return to;
}

// Each (8, 8) block of it transposed: what fragments of b are without the transposed load.
Matrix transposed_blocks(const Matrix& from) {
  Matrix to = from;
  for (int64_t row = 0; row < from.rows; ++row) {
    for (int64_t column = 0; column < from.columns; ++column) {
      to.at(row, column) = from.at(row / 8 * 8 + column % 8, column / 8 * 8 + row % 8);
    }
  }
  return to;
}

// In each (16, 16) block the upper right (8, 8) block for the lower left one.
Matrix exchanged_blocks(const Matrix& from) {
  Matrix to = from;
  for (int64_t row = 0; row < from.rows; ++row) {
    for (int64_t column = 0; column < from.columns; ++column) {
      to.at(row, column) =
          from.at(row / 16 * 16 + column / 8 % 2 * 8 + row % 8, column / 16 * 16 + row / 8 % 2 * 8 + column % 8);
    }
  }
  return to;
}

// The rows and columns of the case out of the product of padded matrices.
std::vector<double> product_of_padded(const MatmulCase& c, const Matrix& a, const Matrix& b) {
  const std::vector<double> all = product(a, b, 0, a.columns);
  std::vector<double> result;
  for (int64_t row = 0; row < c.m; ++row) {
    for (int64_t column = 0; column < c.n; ++column) {
      result.push_back(all[static_cast<size_t>(row * b.columns + column)]);
    }
  }
  return result;
}

// ---- mistakes ----

std::vector<ModelOfMistake> mistakes_of(const MatmulCase& c, const Matrix& a, const Matrix& b) {
  std::vector<ModelOfMistake> mistakes;
  for (int64_t tile : {8, 16, 32, 64}) {
    if (c.k % tile != 0) {
      mistakes.push_back(
          {"the last tile of k is left out: k is no multiple of a tile, so its last columns of a and rows "
           "of b are filled up with zeros",
           [=] { return product(a, b, 0, c.k / tile * tile); }});
    }
    if (c.k > tile) {
      mistakes.push_back({"each tile of k begins a new sum: the sums are set to zero once, before the loop over tiles",
                          [=] { return product(a, b, (c.k - 1) / tile * tile, c.k); }});
    }
  }
  if (!c.is(kOnTensorCores)) return mistakes;
  const Matrix wide_a = padded(a), wide_b = padded(b);
  mistakes.push_back(
      {"the fragments of b hold rows where they need columns: load_transposed_matrices reads rows of b's "
       "tile and gives each lane two elements of a column",
       [=] { return product_of_padded(c, wide_a, transposed_blocks(wide_b)); }});
  mistakes.push_back(
      {"words 1 and 2 of the fragments of a are exchanged: word 1 is 8 rows below word 0, and word 2 has "
       "the next 8 columns",
       [=] { return product_of_padded(c, exchanged_blocks(wide_a), wide_b); }});
  mistakes.push_back(
      {"accumulators are in the wrong rows: elements 0 and 1 belong to row lane / 4, and elements 2 and 3 "
       "to the row 8 below",
       [=] {
         Matrix exchanged = wide_a;
         for (int64_t row = 0; row < wide_a.rows; ++row) {
           for (int64_t i = 0; i < wide_a.columns; ++i) {
             exchanged.at(row, i) = wide_a.at(row / 16 * 16 + (row + 8) % 16, i);
           }
         }
         return product_of_padded(c, exchanged, wide_b);
       }});
  return mistakes;
}

// ---- traffic ----

// Bytes of global memory that all blocks read, if each reads its rows of a and columns of b once.
double bytes_by_tiles(const MatmulCase& c, double tile, double element) {
  const auto m = static_cast<double>(c.m), n = static_cast<double>(c.n), k = static_cast<double>(c.k);
  return element * k * (m * std::ceil(n / tile) + n * std::ceil(m / tile));
}

std::optional<Finding> read_too_often(const MatmulCase& c) {
  constexpr double kSector = 32;
  const double tile = c.is(kTiled) ? 16 : 64, element = c.is(kOnTensorCores) ? 2 : 4;
  double bytes = 0;
  for (const grid::Traffic& traffic : grid::traffic()) {
    if (!traffic.shared && traffic.use == grid::Use::Load) bytes += kSector * static_cast<double>(traffic.sectors);
  }
  const double few = bytes_by_tiles(c, tile, element);
  if (bytes <= 1.1 * few) return std::nullopt;
  return Finding{
      str("the numbers are right; but the warps read ", bytes, " bytes of global memory, where ", few,
          " are enough for tiles of ", tile, " x ", tile),
      "global memory is read for each product: a block reads a tile once, into shared memory, and its threads "
      "read it there"};
}

// A warp's 32 products take an instruction; each pass of shared memory takes as long.
std::optional<Finding> too_few_products(const MatmulCase& c) {
  int64_t passes = 0;
  for (const grid::Traffic& traffic : grid::traffic()) {
    if (traffic.shared && traffic.use == grid::Use::Load) passes += traffic.passes;
  }
  const int64_t products = c.m * c.n * c.k / 32;
  if (2 * passes <= products) return std::nullopt;
  return Finding{str("the numbers are right; but the warps' ", products, " multiplications take ", passes,
                     " passes of shared memory"),
                 "a thread reads as many numbers as it multiplies: let it hold several rows and several columns in "
                 "registers, and multiply each number of the one by each of the other"};
}

// Bytes of neighbouring elements that a warp's request is for.
std::optional<Finding> narrow_access(const grid::Traffic& traffic) {
  const int64_t bytes = 32 * traffic.least_sectors / traffic.requests;
  if (traffic.shared || traffic.use != grid::Use::Load || bytes >= 256) return std::nullopt;
  return Finding{
      str(request_of(traffic), "is for ", bytes, " bytes where 512 would do"),
      "elements are read one by one: a float4 or a uint4 is read in one access of 16 bytes, where rows allow it"};
}

// How a block is cut is known of `whole` calls only.
std::optional<Finding> slow_access(const MatmulCase& c, const grid::Traffic& traffic) {
  if (!c.whole) return std::nullopt;
  std::optional<Finding> finding;
  if (c.is(kInRegisters) || c.is(kOnTensorCores)) finding = narrow_access(traffic);
  if (!finding) finding = uncoalesced(traffic);
  if (!finding && !c.is(kNaive)) finding = read_too_often(c);
  if (!finding) finding = conflicting(traffic);
  if (!finding && c.is(kInRegisters)) finding = too_few_products(c);
  return finding;
}

// ---- calls ----

CheckedCall checked(const MatmulCase& c) {
  const KernelCall call = call_of(c);
  const Matrix a{c.m, c.k, call.inputs[0].values}, b{c.k, c.n, call.inputs[1].values};
  return {call, "c", [=] { return product(a, b, 0, c.k); }, mistakes_of(c, a, b),
          [c](const grid::Traffic& traffic) { return slow_access(c, traffic); }};
}

// b and c have more than 2^32 elements. The last block computes a corner of c: the rows of a are 1, 2, 3, ... in their
// first column, and the last two columns of b have 2 and 3 in their last row.
template <class T>
Finding check_huge(const MatmulFunction& function, T (*number)(float)) {
  const MatmulCase c{function, 33, (int64_t{1} << 27) + 8, 40, false};
  const grid::Buffer<T> a("a", c.m * c.k), b("b", c.k * c.n);
  const grid::Buffer<float> out("c", c.m * c.n);
  for (int64_t row = 0; row < c.m; ++row) a[row * c.k + c.k - 1] = number(static_cast<float>(row + 1));
  b[c.k * c.n - 2] = number(2);
  b[c.k * c.n - 1] = number(3);
  const auto last = static_cast<double>(c.m);
  return check_huge(HugeCall{[&] { make_call(c, a.data(), b.data(), out.data()); },
                             out,
                             {c.m * c.n - 2, c.m * c.n - 1},
                             {2 * last, 3 * last}});
}

Finding check_huge(const MatmulFunction& function) {
  if (function.in_bfloat16) return check_huge<__nv_bfloat16>(function, __float2bfloat16);
  return check_huge<float>(function, [](float number) { return number; });
}

Exercise exercise_of(const MatmulFunction& function) {
  std::vector<NamedCheck> checks;
  for (const MatmulCase& c : kMatmulCases) {
    if (c.is(function)) checks.push_back({call_of(c).text(), [c] { return check_call(checked(c)); }});
  }
  checks.push_back({str(function.name, " of more than 2^32 elements, the last block of it"),
                    [function] { return check_huge(function); }});
  return kernel_exercise(function.name, checks);
}

}  // namespace

std::vector<Exercise> matmul_exercises() {
  return {exercise_of(kNaive), exercise_of(kTiled), exercise_of(kInRegisters), exercise_of(kOnTensorCores)};
}

}  // namespace rush::labs
