// Tensor cores of the emulated grid: each lane computes its elements from the fragments of all.
#include "tests/labs/grid/tensor_core.h"

#include <array>

#include "tests/labs/grid/running.h"
#include "tests/labs/grid/symbols.h"

namespace rush::labs {
namespace {

using grid::OfLanes;

struct Operands {
  uint32_t a[4], b[2];
};

// Element `index` % 2 of a word, as a number.
float element(uint32_t word, int index) {
  return __bfloat162float({static_cast<uint16_t>(index % 2 == 0 ? word : word >> 16U)});
}

const Operands& of_lane(const OfLanes& lanes, int lane) { return *static_cast<const Operands*>(lanes.pointers[lane]); }

// Elements of A and B, from the lanes that hold them.
float a_element(const OfLanes& lanes, int row, int k) {
  return element(of_lane(lanes, row % 8 * 4 + k % 8 / 2).a[row / 8 + k / 8 * 2], k);
}
float b_element(const OfLanes& lanes, int k, int column) {
  return element(of_lane(lanes, column * 4 + k % 8 / 2).b[k / 8], k);
}

// Products of 8 bits by 8 bits are exact, and so nearly are sums in double: one rounding, as close as a GPU comes.
float dot(const OfLanes& lanes, int row, int column, float sum) {
  double total = sum;
  for (int k = 0; k < 16; ++k) {
    total += static_cast<double>(a_element(lanes, row, k)) * static_cast<double>(b_element(lanes, k, column));
  }
  return static_cast<float>(total);
}

// Row `row` of matrix `matrix` of four.
const uint16_t* matrix_row(const OfLanes& lanes, int matrix, int row) {
  return static_cast<const uint16_t*>(lanes.pointers[matrix * 8 + row]);
}

void exchange_rows(uint32_t (&words)[4], const __nv_bfloat16* row, bool transposed, const char* function, int line) {
  const grid::OutsideKernel outside;
  const OfLanes lanes = grid::begin_exchange(row, function, line);
  const int g = grid::lane() / 4, t = grid::lane() % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto at = [&](int r, int c) -> uint32_t { return matrix_row(lanes, matrix, r)[c]; };
    words[matrix] = transposed ? at(2 * t, g) | at(2 * t + 1, g) << 16U : at(g, 2 * t) | at(g, 2 * t + 1) << 16U;
  }
  grid::end_exchange(function, line);
}

// One row of 16 bytes in shared memory, the only one that the instruction reads.
void watch_row(const __nv_bfloat16* row, void* code) {
  const auto address = reinterpret_cast<uintptr_t>(row);
  if (grid::thread_local_at(address).size == 0) {
    const grid::OutsideKernel outside;
    throw grid::Fault(grid::FaultKind::OutOfBounds, "out of bounds in " + grid::kernel_name() + ": load_matrices at " +
                                                        grid::place_of(reinterpret_cast<uintptr_t>(code)) +
                                                        " reads an address that is not in shared memory");
  }
  grid::watch_access(address, 16, grid::Use::Load, reinterpret_cast<uintptr_t>(code));
}

}  // namespace

void multiply_fragments(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, int line) {
  const grid::OutsideKernel outside;
  const Operands mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const OfLanes lanes = grid::begin_exchange(&mine, "multiply_fragments", line);
  const int g = grid::lane() / 4, t = grid::lane() % 4;
  for (int i = 0; i < 4; ++i) d[i] = dot(lanes, g + i / 2 * 8, 2 * t + i % 2, d[i]);
  grid::end_exchange("multiply_fragments", line);
}

void load_matrices(uint32_t (&words)[4], const __nv_bfloat16* row, int line) {
  watch_row(row, __builtin_return_address(0));
  exchange_rows(words, row, false, "load_matrices", line);
}

void load_transposed_matrices(uint32_t (&words)[4], const __nv_bfloat16* row, int line) {
  watch_row(row, __builtin_return_address(0));
  exchange_rows(words, row, true, "load_transposed_matrices", line);
}

}  // namespace rush::labs
