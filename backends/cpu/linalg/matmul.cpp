#include "core/ops/linalg/matmul.h"

#include <numeric>

#include "backends/cpu/linalg/gemm_gathered.h"
#include "backends/cpu/linalg/gemm_pack.h"
#include "backends/cpu/linalg/gemm_store.h"
#include "backends/cpu/linalg/gemv.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "core/ops/view/copy.h"

namespace rush::cpu {

namespace {

template <class T>
struct Product {
  int64_t rows, columns, depth;
  MatrixRef<const T> a, b;
  MatrixRef<T> c;
  gemm_math_t<T> alpha, beta;

  // C^T = B^T A^T.
  Product transposed() const {
    return {columns, rows, depth, b.transposed(), a.transposed(), c.transposed(), alpha, beta};
  }
  // Few columns do not repay packing contiguous rows of A, as of a linear layer's weight: each is a matrix times a
  // vector. Which way is taken must not depend on how the product is split over threads, since the order of summation
  // differs.
  bool by_vectors() const { return columns == 1 || (columns <= 4 && rows >= 64 && a.column_stride == 1); }
  // A product with few rows or columns does not repay packing the other operand, which is read where it lies: as rows
  // of any stride, or as columns that neighbour each other.
  bool is_narrow() const {
    using Shape = TileShape<gemm_math_t<T>>;
    return can_gather() && columns <= 2 * Shape::NR && rows >= 64 && a.column_stride == 1;
  }
  bool is_low() const {
    using Shape = TileShape<gemm_math_t<T>>;
    return can_gather() && rows <= 4 * Shape::MR && columns >= 64 && b.column_stride == 1 &&
           depth * columns <= kLeastPacked;
  }
  // Columns of larger matrices are in too many pages to be read one panel after the other.
  static constexpr int64_t kLeastPacked = int64_t(1) << 19;
  static constexpr bool can_gather() { return std::is_floating_point_v<T>; }
  Product block(int64_t row, int64_t some_rows, int64_t column, int64_t some_columns) const {
    return {some_rows, some_columns, depth, a.at(row, 0), b.at(0, column), c.at(row, column), alpha, beta};
  }
};

template <class T>
int64_t padded_work(int64_t rows, int64_t columns) {
  constexpr int64_t width = TileShape<gemm_math_t<T>>::width;
  return rows * ((columns + width - 1) / width * width);
}

// Whether to compute C^T instead. gemv expects the vectors as the second operand, and multiply is fastest if the
// columns of C have stride 1 and are a multiple of a vector's width.
template <class T>
bool better_transposed(const Product<T>& p) {
  if (p.rows == 1 || p.columns == 1) return p.columns != 1;
  if (p.by_vectors() || p.transposed().by_vectors()) return !p.by_vectors();
  const auto reads_in_place = [](const Product<T>& q) { return q.is_narrow() || q.is_low(); };
  if (reads_in_place(p) || reads_in_place(p.transposed())) return !reads_in_place(p);
  if (p.c.column_stride != 1 && p.c.row_stride == 1) return true;
  return padded_work<T>(p.rows, p.columns) * 2 > padded_work<T>(p.columns, p.rows) * 3;
}

// Computes blocks of columns of C in scratch memory of the accumulator's type, and converts them to C's.
template <class T>
void multiply_by_strips(const Product<T>& p, const MatrixSource<T>& a, const MatrixSource<T>& b) {
  using Math = gemm_math_t<T>;
  const int64_t most = std::min(p.columns, TileShape<Math>::NC);
  const Scratch<Math> strip(p.rows * most);
  for (int64_t j = 0; j < p.columns; j += most) {
    const int64_t columns = std::min(most, p.columns - j);
    const MatrixSource<T> lanes(b.data + j * b.lane_stride, b.lane_stride, b.depth_stride);
    multiply<Math>(p.rows, columns, p.depth, a, lanes, p.alpha, Math(0), {strip.data(), columns, 1});
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        T& out = *p.c.at(r, j + c).data;
        const Math sum = strip[r * columns + c];
        out = static_cast<T>(p.beta == Math(0) ? sum : p.beta * static_cast<Math>(out) + sum);
      }
    }
  }
}

// Some rows of A at a time, which stay in the cache for all columns.
template <class T>
void multiply_by_vectors(const Product<T>& p) {
  constexpr int64_t kNumbers = int64_t(1) << 16, kLeastRows = 16;
  const int64_t most = p.columns == 1 ? p.rows : std::max(kLeastRows, kNumbers / std::max<int64_t>(p.depth, 1));
  for (int64_t r = 0; r < p.rows; r += most) {
    for (int64_t j = 0; j < p.columns; ++j) {
      gemv(std::min(most, p.rows - r), p.depth, p.a.at(r, 0).data, p.a.row_stride, p.a.column_stride, p.b.at(0, j).data,
           p.b.row_stride, p.alpha, p.beta, p.c.at(r, j).data, p.c.row_stride);
    }
  }
}

// Along the dimension in which C is contiguous.
template <class T>
void store_sums(const T* sums, int64_t rows, const TileResult<T>& out) {
  constexpr int64_t NR = TileShape<T>::NR;
  if (out.c.row_stride != 1) return store_tile<T>(sums, rows, NR, out);
  for (int64_t j = 0; j < out.columns; ++j) {
    T* c = out.c.at(0, j).data;
    for (int64_t i = 0; i < rows; ++i) c[i] = blend(sums[i * NR + j], out, c[i]);
  }
}

// Reads the rows where they lie and, of the columns, whole panels that are contiguous; packs the other columns.
template <class T>
void multiply_in_place(const Product<T>& p) {
  using Shape = TileShape<T>;
  const int64_t step = even_step(p.rows, Shape::MR, 1);
  const Scratch<int64_t> offsets(p.depth);
  for (int64_t d = 0; d < p.depth; ++d) offsets[d] = d * p.a.column_stride;
  const MatrixSource<T> columns(p.b.data, p.b.column_stride, p.b.row_stride);
  const Scratch<T> packed(Shape::NR * p.depth);
  T sums[Shape::MR * Shape::NR];
  for (int64_t j = 0; j < p.columns; j += Shape::NR) {
    const int64_t lanes = std::min(Shape::NR, p.columns - j), vectors = (lanes + Shape::width - 1) / Shape::width;
    ColumnVectors<T> b = {p.b.data + j, p.b.row_stride, vectors};
    if (p.b.column_stride != 1 || lanes < Shape::NR) {
      columns.pack(columns, j, lanes, 0, p.depth, vectors * Shape::width, packed.data());
      b = {packed.data(), vectors * Shape::width, vectors};
    }
    for (int64_t i = 0; i < p.rows; i += step) {
      const T* first[Shape::MR];
      const int64_t height = std::min(step, p.rows - i);
      for (int64_t r = 0; r < height; ++r) first[r] = p.a.at(i + r, 0).data;
      multiply_gathered<T>(height, p.depth, {first, offsets.data()}, b, false, sums, Shape::NR);
      store_sums(sums, height, {p.c.at(i, j), lanes, p.alpha, p.beta});
    }
  }
}

enum class Way { Packed, ByVectors, InPlace };
template <class T>
Way way_of(const Product<T>& p) {
  return p.by_vectors() ? Way::ByVectors : p.is_narrow() || p.is_low() ? Way::InPlace : Way::Packed;
}

template <class T>
void multiply_on_this_thread(const Product<T>& p, Way way) {
  using Math = gemm_math_t<T>;
  if (way == Way::ByVectors) return multiply_by_vectors(p);
  if constexpr (Product<T>::can_gather()) {
    if (way == Way::InPlace) return multiply_in_place(p);
  }
  const MatrixSource<T> a(p.a.data, p.a.row_stride, p.a.column_stride);
  const MatrixSource<T> b(p.b.data, p.b.column_stride, p.b.row_stride);
  if constexpr (std::is_integral_v<T> && sizeof(T) == sizeof(Math)) {
    // C++ allows access to a signed integer through the unsigned type of the same size.
    const MatrixRef<Math> c{reinterpret_cast<Math*>(p.c.data), p.c.row_stride, p.c.column_stride};
    multiply<Math>(p.rows, p.columns, p.depth, a, b, p.alpha, p.beta, c);
  } else if constexpr (std::is_same_v<T, Math>) {
    multiply<Math>(p.rows, p.columns, p.depth, a, b, p.alpha, p.beta, p.c);
  } else {
    multiply_by_strips(p, a, b);
  }
}

// How many blocks of rows and of columns a product is split into.
struct Grid {
  int64_t row_blocks = 1, column_blocks = 1;
  int64_t blocks() const { return row_blocks * column_blocks; }
};

// The grid of `blocks` blocks that packs least: every block packs its own rows and columns.
template <class T>
Grid make_grid(const Product<T>& p, int64_t blocks) {
  Grid best;
  int64_t least = -1;
  for (int64_t row_blocks = 1; row_blocks <= blocks; ++row_blocks) {
    if (blocks % row_blocks) continue;
    const int64_t column_blocks = blocks / row_blocks;
    if (p.columns == 1 && column_blocks > 1) continue;
    const int64_t packed = p.rows * column_blocks + p.columns * row_blocks;
    if (least < 0 || packed < least) {
      best = {row_blocks, column_blocks};
      least = packed;
    }
  }
  return best;
}

template <class T>
void multiply_block(const Product<T>& p, const Grid& grid, int64_t block) {
  constexpr int64_t tile = TileShape<gemm_math_t<T>>::NR;
  const int64_t row_step = (p.rows + grid.row_blocks - 1) / grid.row_blocks;
  const int64_t column_step = ((p.columns + grid.column_blocks - 1) / grid.column_blocks + tile - 1) / tile * tile;
  const int64_t row = block / grid.column_blocks * row_step, column = block % grid.column_blocks * column_step;
  const int64_t rows = std::min(row_step, p.rows - row), columns = std::min(column_step, p.columns - column);
  if (rows > 0 && columns > 0) multiply_on_this_thread(p.block(row, rows, column, columns), way_of(p));
}

template <class T>
gemm_math_t<T> factor_of(const Scalar& scalar) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<gemm_math_t<T>>(scalar.toLong());
  } else {
    return scalar.to<gemm_math_t<T>>();
  }
}

// How a batch of products is split: into blocks of one matrix, `grain` of which are worth a thread.
template <class T>
struct Split {
  Split(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha)
      : batch(c.size(0)),
        first{c.size(1),          c.size(2),    a.size(2),           matrix<const T>(a),
              matrix<const T>(b), matrix<T>(c), factor_of<T>(alpha), factor_of<T>(beta)},
        a_step(a.stride(0)),
        b_step(b.stride(0)),
        c_step(c.stride(0)) {
    if (better_transposed(first)) {
      first = first.transposed();
      std::swap(a_step, b_step);
    }
    const int64_t work = std::max<int64_t>(1, first.rows * first.columns * first.depth);
    // There are enough blocks for every thread; a large batch is split into whole matrices.
    constexpr int64_t kBlockWork = int64_t(1) << 20;
    const int64_t threads = get_num_threads();
    const int64_t wanted = batch >= 4 * threads ? 1 : threads / std::gcd(batch, threads);
    grid = make_grid(first, std::max<int64_t>(1, std::min(wanted, work / kBlockWork + 1)));
    grain = std::max<int64_t>(1, kBlockWork / (work / grid.blocks() + 1));
  }

  int64_t batch;
  Product<T> first;
  int64_t a_step, b_step, c_step;
  Grid grid;
  int64_t grain = 1;

 private:
  template <class Element>
  static MatrixRef<Element> matrix(const Tensor& t) {
    return {t.is_meta() ? nullptr : t.data_ptr<T>(), t.stride(1), t.stride(2)};
  }
};

struct GemmLoop {
  template <class T>
  static void run(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
    if (c.numel() == 0) return;
    const Split<T> split(c, a, b, beta, alpha);
    const int64_t blocks = split.grid.blocks();
    parallel_for(0, split.batch * blocks, split.grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix = i / blocks;
        Product<T> product = split.first;
        product.a.data += matrix * split.a_step;
        product.b.data += matrix * split.b_step;
        product.c.data += matrix * split.c_step;
        multiply_block(product, split.grid, i % blocks);
      }
    });
  }
};

// What all threads together pack blocks into, and sum up in where C is narrower than the accumulator.
struct GemmScratch {
  template <class T>
  static int64_t run(const Tensor& c, const Tensor& a, const Tensor& b) {
    using Math = gemm_math_t<T>;
    using Shape = TileShape<Math>;
    if (c.numel() == 0) return 0;
    const Split<T> split(c, a, b, 0, 1);
    const int64_t rows = (split.first.rows + split.grid.row_blocks - 1) / split.grid.row_blocks;
    const int64_t columns = (split.first.columns + split.grid.column_blocks - 1) / split.grid.column_blocks;
    if (way_of(split.first) != Way::Packed) return 0;
    const int64_t depth = even_step(split.first.depth, Shape::KC, 1);
    const int64_t packed = packed_rows_size<Math>(even_step(rows, Shape::MC, 1), depth) +
                           packed_columns_size<Math>(even_step(columns, Shape::NC, Shape::NR), depth);
    const int64_t strip = sizeof(T) == sizeof(Math) ? 0 : rows * std::min(columns, Shape::NC);
    const int64_t at_once = std::min<int64_t>(get_num_threads(), split.batch * split.grid.blocks());
    return at_once *
           (packed * static_cast<int64_t>(sizeof(gemm_real_t<Math>)) + strip * static_cast<int64_t>(sizeof(Math)));
  }
};

int64_t gemm_scratch(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar&, const Scalar&) {
  return pick<GemmScratch>(NumberTypes(), c.scalar_type(), "gemm")(c, a, b);
}

void gemm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  pick<GemmLoop>(NumberTypes(), c.scalar_type(), "gemm")(c, a, b, beta, alpha);
}

int64_t gemm_bias_scratch(const Tensor& c, const Tensor& a, const Tensor& b, const Tensor&) {
  return gemm_scratch(c, a, b, 1, 1);
}

void gemm_bias(const Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias) {
  Tensor target = c;
  native::copy_(target, bias, false);
  gemm(c, a, b, 1, 1);
}

}  // namespace

void register_matmul() {
  kernels::gemm.set(kCPU, gemm);
  kernels::gemm.set_scratch(kCPU, gemm_scratch);
  kernels::gemm_bias.set(kCPU, gemm_bias);
  kernels::gemm_bias.set_scratch(kCPU, gemm_bias_scratch);
}

}  // namespace rush::cpu
