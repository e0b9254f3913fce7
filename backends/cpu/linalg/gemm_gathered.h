// Products whose operands are read where they lie.
#pragma once
#include <algorithm>

#include "backends/cpu/linalg/gemm.h"
#include "backends/cpu/scratch.h"

namespace rush::cpu {

// Rows of a product that lie anywhere in memory: the number of row i at depth d is first[i][offsets[d]].
template <class Math>
struct GatheredRows {
  const Math* const* first;
  const int64_t* offsets;
};

// Vectors of columns, whole ones: those at depth d begin at data[d * step]. A packed panel (see pack_columns) is one,
// and so are neighbouring columns of a row-major matrix.
template <class Math>
struct ColumnVectors {
  const Math* data;
  int64_t step, vectors;
};

// The columns of several matrices of one size, packed in panels.
template <class Math>
class PackedPanels {
 public:
  using Shape = TileShape<Math>;

  PackedPanels(int64_t matrices, int64_t columns, int64_t depth)
      : columns_(columns), depth_(depth), memory_(matrices * packed_columns_size<Math>(columns, depth)) {}
  static int64_t bytes(int64_t matrices, int64_t columns, int64_t depth) {
    return matrices * packed_columns_size<Math>(columns, depth) * static_cast<int64_t>(sizeof(Math));
  }

  /// The panels of a matrix, and how many columns one has.
  int64_t count() const { return (columns_ + Shape::NR - 1) / Shape::NR; }
  int64_t lanes(int64_t panel) const { return std::min(Shape::NR, columns_ - panel * Shape::NR); }
  ColumnVectors<Math> vectors(int64_t matrix, int64_t panel, int64_t first_depth = 0) const {
    const int64_t vectors = panel_vectors<Math>(lanes(panel)), step = vectors * Shape::width;
    return {start(matrix, panel) + first_depth * step, step, vectors};
  }
  /// Packs the depths from there on that `source`, whose columns are those of the whole matrix, has from 0 on.
  void pack(const LaneSource<Math>& source, int64_t matrix, int64_t panel, int64_t first_depth, int64_t depths) const {
    const int64_t step = panel_vectors<Math>(lanes(panel)) * Shape::width;
    source.pack(source, panel * Shape::NR, lanes(panel), 0, depths, step, start(matrix, panel) + first_depth * step);
  }

 private:
  Math* start(int64_t matrix, int64_t panel) const {
    return memory_.data() + (matrix * count() + panel) * Shape::NR * depth_;
  }

  int64_t columns_, depth_;
  Scratch<Math> memory_;
};

// sums[i * row_stride + j] = the product of at most MR rows with one or two vectors of columns; is added to what is
// there with `adds`. For float and double.
template <class Math>
void multiply_gathered(int64_t rows, int64_t depth, const GatheredRows<Math>& a, const ColumnVectors<Math>& b,
                       bool adds, Math* sums, int64_t row_stride);

}  // namespace rush::cpu
