// Lab 6: products of matrices. Numbers are small integers, so that every order of the same sums gives the same result;
// what has to come is computed here by three loops. How packed numbers are arranged is the learner's choice.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/linalg/gemm_pack.h"
#include "tests/labs/exercise.h"

namespace rush::labs {
namespace {

using cpu::MatrixSource;
using Shape = cpu::TileShape<double>;
using Numbers = std::vector<double>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kGuard = -77;   // stands where nothing may be written
constexpr size_t kGuards = 512;  // more than a panel too much has at the depths of any call

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool are_same(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same);
}

// How a matrix lies in memory.
enum class Layout { RowMajor, ColumnMajor, Spread };
const char* const kLayouts[] = {"row-major", "column-major", "with gaps between all numbers"};

// A matrix of numbers that number(i, j) gives, with guards in its gaps and after its end.
struct Matrix {
  int64_t rows, columns, row_stride, column_stride;
  Numbers memory;

  template <class Number>
  Matrix(int64_t rows, int64_t columns, Layout layout, const Number& number)
      : rows(rows),
        columns(columns),
        row_stride(layout == Layout::ColumnMajor ? 1
                   : layout == Layout::RowMajor  ? columns + 3
                                                 : 2 * columns + 5),
        column_stride(layout == Layout::ColumnMajor ? rows + 3
                      : layout == Layout::RowMajor  ? 1
                                                    : 2),
        memory(static_cast<size_t>(rows * row_stride + columns * column_stride) + kGuards, kGuard) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) at(i, j) = number(i, j);
    }
  }
  double& at(int64_t i, int64_t j) { return memory[static_cast<size_t>(i * row_stride + j * column_stride)]; }
  double at(int64_t i, int64_t j) const { return memory[static_cast<size_t>(i * row_stride + j * column_stride)]; }
  // The lanes of A are rows, those of B columns.
  MatrixSource<double> as_a() const { return {memory.data(), row_stride, column_stride}; }
  MatrixSource<double> as_b() const { return {memory.data(), column_stride, row_stride}; }
};

double number_of_a(int64_t i, int64_t d) { return static_cast<double>((i * 7 + d * 3) % 11 - 4); }
double number_of_b(int64_t d, int64_t j) { return static_cast<double>((d * 5 + j * 2) % 13 - 5); }
double number_of_c(int64_t i, int64_t j) { return static_cast<double>((i + j * 3) % 7 + 1); }

// ---- packing ----

struct PackCall {
  int64_t first, count, depth_begin, depth;  // lanes [first, first + count), in a matrix of 40 lanes
  Layout layout = Layout::RowMajor;
};
constexpr int64_t kLanes = 40;

struct Packed {
  Numbers found;  // all that was written and is not zero, in ascending order
  int64_t beyond = -1;
};

// Different for every lane and depth.
double number_in_lane(int64_t lane, int64_t d) { return static_cast<double>(1 + lane * 1000 + d); }

template <bool are_rows>
Packed learners_packed(const PackCall& call) {
  const int64_t depths = call.depth_begin + call.depth + 2;
  const auto transposed = [](int64_t d, int64_t lane) { return number_in_lane(lane, d); };
  const Matrix matrix =
      are_rows ? Matrix(kLanes, depths, call.layout, number_in_lane) : Matrix(depths, kLanes, call.layout, transposed);
  const auto size = static_cast<size_t>(are_rows ? cpu::packed_rows_size<double>(call.count, call.depth)
                                                 : cpu::packed_columns_size<double>(call.count, call.depth));
  Numbers to(size + kGuards, kGuard);
  if constexpr (are_rows) {
    cpu::pack_rows<double>(matrix.as_a(), call.first, call.count, call.depth_begin, call.depth, to.data());
  } else {
    cpu::pack_columns<double>(matrix.as_b(), call.first, call.count, call.depth_begin, call.depth, to.data());
  }
  Packed packed;
  for (size_t i = 0; i < to.size(); ++i) {
    if (i >= size && to[i] != kGuard) packed.beyond = static_cast<int64_t>(i - size);
    if (i < size && to[i] != kGuard && to[i] != 0) packed.found.push_back(to[i]);
  }
  std::sort(packed.found.begin(), packed.found.end());
  return packed;
}

Numbers right_packed(const PackCall& call) {
  Numbers numbers;
  for (int64_t lane = call.first; lane < call.first + call.count; ++lane) {
    for (int64_t d = 0; d < call.depth; ++d) numbers.push_back(number_in_lane(lane, call.depth_begin + d));
  }
  return numbers;
}

std::string fault_of_packed(const PackCall& call, const Packed& packed, bool are_rows) {
  if (packed.beyond >= 0) return str("it writes ", packed.beyond + 1, " numbers beyond the end of what it is given");
  const char* const lane = are_rows ? "row" : "column";
  const Numbers right = right_packed(call);
  for (const double number : right) {
    if (std::count(packed.found.begin(), packed.found.end(), number) == 1) continue;
    const auto at = static_cast<int64_t>(number) - 1;
    return str("first wrong element: ", lane, " ", at / 1000, " at depth ", at % 1000, " is there ",
               std::count(packed.found.begin(), packed.found.end(), number), " times and has to be there once");
  }
  for (const double number : packed.found) {
    if (std::binary_search(right.begin(), right.end(), number)) continue;
    const auto at = static_cast<int64_t>(number) - 1;
    return str("first wrong element: ", number, " is there, which is ", lane, " ", at / 1000, " at depth ", at % 1000);
  }
  return {};
}

template <bool are_rows>
Exercise pack_exercise() {
  Subject<PackCall, Packed> subject;
  subject.function = are_rows ? "rush::cpu::pack_rows<double>" : "rush::cpu::pack_columns<double>";
  subject.inputs = {{0, 3, 0, 5},
                    {0, 40, 0, 20, Layout::ColumnMajor},
                    {5, 17, 0, 4, Layout::Spread},
                    {0, 8, 3, 9},
                    {2, 33, 7, 18, Layout::ColumnMajor}};
  subject.learners = learners_packed<are_rows>;
  subject.describe = [](const PackCall& call) {
    return str("the numbers of ", are_rows ? "rows" : "columns", " [", call.first, ", ", call.first + call.count,
               ") at depths [", call.depth_begin, ", ", call.depth_begin + call.depth, "), of a matrix that is ",
               kLayouts[static_cast<int>(call.layout)]);
  };
  subject.same = [](const Packed& a, const Packed& b) { return a.beyond < 0 && a.found == b.found; };
  subject.fault = [](const PackCall& call, const Packed& packed) { return fault_of_packed(call, packed, are_rows); };
  const char* const from_zero = are_rows
                                    ? "the first row is ignored: rows [row, row + rows) are asked for"
                                    : "the first column is ignored: columns [column, column + columns) are asked for";
  const auto model = [](bool keeps_lane, bool keeps_depth) {
    return [=](PackCall call) {
      if (!keeps_lane) call.first = 0;
      if (!keeps_depth) call.depth_begin = 0;
      return Packed{right_packed(call), -1};
    };
  };
  const char* const left_out =
      are_rows ? "the last rows are left out, where there are fewer than MR: they need a panel of their own"
               : "the last columns are left out, where there are fewer than NR: they need a panel of their own";
  const auto without_last = [](PackCall call) {
    constexpr int64_t panel = are_rows ? Shape::MR : Shape::NR;
    call.count = call.count / panel * panel;
    return Packed{right_packed(call), -1};
  };
  subject.mistakes = {
      {left_out, without_last},
      {from_zero, model(false, true)},
      {"depth_begin is ignored: depths [depth_begin, depth_begin + depth) are asked for", model(true, false)},
      {"it writes beyond what it is given: the sizes are packed_rows_size and packed_columns_size", nullptr,
       [](const PackCall& call, const Packed& packed) {
         return packed.beyond >= 0 || fault_of_packed(call, packed, are_rows).empty();
       }},
  };
  return exercise(std::move(subject));
}

// ---- products ----

struct ProductCall {
  int64_t rows, columns, depth;
  double alpha, beta;
  Layout c = Layout::RowMajor;
  Layout a = Layout::RowMajor, b = Layout::RowMajor;
  bool c_is_nan = false;  // before: as memory that was never written may be
};

enum class ProductMistake {
  None,
  NoAlpha,
  NoBeta,
  AlphaTimesBeta,
  LastRowsMissing,
  LastColumnsMissing,
  OnlyFirstDepth
};

// The numbers of C, row by row.
Numbers right_product(const ProductCall& call, ProductMistake mistake = ProductMistake::None) {
  Numbers c;
  for (int64_t i = 0; i < call.rows; ++i) {
    for (int64_t j = 0; j < call.columns; ++j) {
      const bool left_out =
          (mistake == ProductMistake::LastRowsMissing && i >= call.rows / Shape::MR * Shape::MR) ||
          (mistake == ProductMistake::LastColumnsMissing && j >= call.columns / Shape::NR * Shape::NR);
      const double old = call.c_is_nan ? kNaN : number_of_c(i, j);
      if (left_out) {
        c.push_back(old);
        continue;
      }
      double sum = 0;
      const int64_t depth = mistake == ProductMistake::OnlyFirstDepth ? std::min<int64_t>(1, call.depth) : call.depth;
      for (int64_t d = 0; d < depth; ++d) sum += number_of_a(i, d) * number_of_b(d, j);
      const double alpha = mistake == ProductMistake::NoAlpha ? 1 : call.alpha;
      const double beta = mistake == ProductMistake::NoBeta           ? 0
                          : mistake == ProductMistake::AlphaTimesBeta ? call.alpha * call.beta
                                                                      : call.beta;
      c.push_back(alpha * sum + (beta == 0 ? 0 : beta * old));
    }
  }
  return c;
}

struct Product {
  Numbers c;
  bool gaps_stay = true;
};

template <class Multiply>
Product product_of(const ProductCall& call, const Multiply& multiply) {
  const Matrix a(call.rows, call.depth, call.a, number_of_a), b(call.depth, call.columns, call.b, number_of_b);
  Matrix c(call.rows, call.columns, call.c,
           [&](int64_t i, int64_t j) { return call.c_is_nan ? kNaN : number_of_c(i, j); });
  multiply(a.as_a(), b.as_b(), cpu::MatrixRef<double>{c.memory.data(), c.row_stride, c.column_stride});
  Product product;
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.columns; ++j) {
      product.c.push_back(c.at(i, j));
      c.at(i, j) = kGuard;
    }
  }
  product.gaps_stay = std::all_of(c.memory.begin(), c.memory.end(), [](double x) { return x == kGuard; });
  return product;
}

Product learners_packed_product(const ProductCall& call) {
  return product_of(call, [&](const auto& a, const auto& b, const auto& c) {
    Numbers rows(static_cast<size_t>(cpu::packed_rows_size<double>(call.rows, call.depth)) + 16);
    Numbers columns(static_cast<size_t>(cpu::packed_columns_size<double>(call.columns, call.depth)) + 16);
    cpu::pack_rows<double>(a, 0, call.rows, 0, call.depth, rows.data());
    cpu::pack_columns<double>(b, 0, call.columns, 0, call.depth, columns.data());
    cpu::multiply_packed<double>(call.rows, call.columns, call.depth, rows.data(), columns.data(), call.alpha,
                                 call.beta, c);
  });
}

Product learners_product(const ProductCall& call) {
  return product_of(call, [&](const auto& a, const auto& b, const auto& c) {
    cpu::multiply<double>(call.rows, call.columns, call.depth, a, b, call.alpha, call.beta, c);
  });
}

std::string describe_product(const ProductCall& call) {
  return str("C = ", call.alpha, " A B + ", call.beta, " C, A (", call.rows, ", ", call.depth, ") ",
             kLayouts[static_cast<int>(call.a)], ", B (", call.depth, ", ", call.columns, ") ",
             kLayouts[static_cast<int>(call.b)], ", C ", kLayouts[static_cast<int>(call.c)],
             call.c_is_nan ? " and NaN before" : "");
}

std::string fault_of_product(const ProductCall& call, const Product& product) {
  const Numbers right = right_product(call);
  for (size_t k = 0; k < right.size(); ++k) {
    if (is_same(product.c[k], right[k])) continue;
    const auto at = static_cast<int64_t>(k);
    return str("first wrong element: C(", at / call.columns, ", ", at % call.columns, ") is ", product.c[k],
               " and has to be ", right[k]);
  }
  return product.gaps_stay ? "" : "it writes between the rows of C, or beyond its end";
}

Subject<ProductCall, Product> product_subject(const char* function, std::vector<ProductCall> calls) {
  Subject<ProductCall, Product> subject;
  subject.function = function;
  subject.inputs = std::move(calls);
  subject.describe = describe_product;
  subject.same = [](const Product& a, const Product& b) { return are_same(a.c, b.c); };
  subject.fault = fault_of_product;
  const std::pair<const char*, ProductMistake> mistakes[] = {
      {"alpha is ignored", ProductMistake::NoAlpha},
      {"beta is ignored: it has to multiply the old C", ProductMistake::NoBeta},
      {"alpha multiplies the old C as well: only beta does", ProductMistake::AlphaTimesBeta},
      {"the last rows are left out, where there are fewer than MR: they need a tile of their own",
       ProductMistake::LastRowsMissing},
      {"the last columns are left out, where there are fewer than NR: they need a tile of their own",
       ProductMistake::LastColumnsMissing},
      {"only the first depth counts: an element of C is a sum over all", ProductMistake::OnlyFirstDepth},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const ProductCall& call) {
                                  return Product{right_product(call, mistake), true};
                                }});
  }
  // A mistake that shows in the calls that `concerns` picks, and leaves the others right.
  const auto shows_in = [](bool (*concerns)(const ProductCall&)) {
    return [=](const ProductCall& call, const Product& product) {
      return fault_of_product(call, product).empty() != concerns(call);
    };
  };
  subject.mistakes.push_back({"with beta 0 the old C counts: 0 times NaN is NaN, so it must not be read", nullptr,
                              shows_in([](const ProductCall& call) { return call.c_is_nan; })});
  subject.mistakes.push_back({"the strides of C are ignored: its columns may lie apart", nullptr,
                              shows_in([](const ProductCall& call) { return call.c != Layout::RowMajor; })});
  subject.mistakes.push_back(
      {"whole vectors are written at the end of a row: what is beyond C's last column is not C's", nullptr,
       [](const ProductCall& call, const Product& product) {
         return !product.gaps_stay || fault_of_product(call, product).empty();
       }});
  subject.mistakes.push_back({"without depths nothing happens: C has to become beta C", nullptr,
                              shows_in([](const ProductCall& call) { return call.depth == 0; })});
  subject.mistakes.push_back(
      {"beta is applied once for each block of depths: the first block applies it, later ones add to C", nullptr,
       shows_in([](const ProductCall& call) { return call.depth > Shape::KC && call.beta != 1; })});
  subject.mistakes.push_back({"the last block of depths wins: the products of all blocks have to be added", nullptr,
                              shows_in([](const ProductCall& call) { return call.depth > Shape::KC; })});
  subject.mistakes.push_back({"blocks of rows do not reach their rows of A and of C", nullptr,
                              shows_in([](const ProductCall& call) { return call.rows > Shape::MC; })});
  subject.mistakes.push_back({"blocks of columns do not reach their columns of B and of C", nullptr,
                              shows_in([](const ProductCall& call) { return call.columns > Shape::NC; })});
  return subject;
}

Exercise packed_product_exercise() {
  constexpr int64_t MR = Shape::MR, NR = Shape::NR, width = Shape::width;
  auto subject = product_subject("rush::cpu::multiply_packed<double>",
                                 {{1, 1, 1, 1, 1},
                                  {MR, NR, 3, 1, 1},
                                  {MR, NR, 20, 2, 1},
                                  {2 * MR, 2 * NR, 5, 1, 3},
                                  {MR, NR, 4, 2, 0, Layout::RowMajor, Layout::RowMajor, Layout::RowMajor, true},
                                  {2 * MR + 3, NR, 6, 1, 1},
                                  {MR, 2 * NR + width + 1, 7, 2, 3},
                                  {3, 5, 9, 1, 2},
                                  {MR + 1, NR + 3, 8, 3, 2, Layout::Spread},
                                  {2 * MR, NR, 2, 1, 1, Layout::ColumnMajor}});
  subject.learners = learners_packed_product;
  return exercise(std::move(subject));
}

Exercise product_exercise() {
  constexpr Layout rows = Layout::RowMajor, columns = Layout::ColumnMajor, spread = Layout::Spread;
  auto subject = product_subject("rush::cpu::multiply<double>", {{5, 7, 3, 2, 3},
                                                                 {30, 41, 20, 1, 1, rows, columns, rows},
                                                                 {30, 41, 20, 1, 2, rows, rows, columns},
                                                                 {9, 17, 25, 2, 1, spread, spread, spread},
                                                                 {4, 6, 5, 1, 0, rows, rows, rows, true},
                                                                 {4, 6, 0, 2, 3},
                                                                 {3, 10, 3 * Shape::KC + 5, 1, 1},
                                                                 {3, 10, 2 * Shape::KC + 5, 1, 2},
                                                                 {3, 10, 2 * Shape::KC, 2, 0},
                                                                 {Shape::MC + 9, 5, 4, 1, 2},
                                                                 {4, Shape::NC + 50, 3, 1, 2},
                                                                 {0, 3, 2, 1, 1}});
  subject.learners = learners_product;
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> product_exercises() {
  return {pack_exercise<true>(), pack_exercise<false>(), packed_product_exercise(), product_exercise()};
}

}  // namespace rush::labs
