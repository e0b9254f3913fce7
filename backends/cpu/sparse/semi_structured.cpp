#include "backends/cpu/sparse/semi_structured.h"

#include <algorithm>

#include "backends/functors/pick.h"
#include "backends/functors/semi_structured.h"
#include "core/ops/basic.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

namespace {

struct CompressLoop {
  template <class T>
  static void run(const Tensor& packed, const Tensor& dense) {
    const int64_t k = dense.size(1), words = packed.size(1);
    const T* const from = dense.data_ptr<T>();
    T* const to = packed.data_ptr<T>();
    parallel_for(0, dense.size(0), std::max<int64_t>(1, kGrain / k), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        T* const values = to + r * words;
        auto* const places = reinterpret_cast<uint8_t*>(values + k / 2);
        for (int64_t j = 0; j < k / 4; ++j) places[j] = compress_four(from + r * k + 4 * j, values + 2 * j);
        std::fill(places + k / 4, reinterpret_cast<uint8_t*>(values + words), uint8_t{0});
      }
    });
  }

 private:
  // Where the two values were, the first in the lower bits. Two zeros are as good as any where there are fewer.
  template <class T>
  static uint8_t compress_four(const T* four, T* two) {
    int places[2] = {0, 1}, found = 0;
    for (int i = 0; i < 4; ++i) {
      if (four[i] != T(0)) places[found++] = i;
    }
    if (found == 1) places[1] = places[0] == 0 ? 1 : 0;
    two[0] = four[places[0]];
    two[1] = four[places[1]];
    return static_cast<uint8_t>(places[0] | places[1] << 2);
  }
};

struct DecompressLoop {
  template <class T>
  static void run(const Tensor& dense, const Tensor& packed) {
    const int64_t k = dense.size(1), words = packed.size(1);
    const T* const from = packed.data_ptr<T>();
    T* const to = dense.data_ptr<T>();
    parallel_for(0, dense.size(0), std::max<int64_t>(1, kGrain / k), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* const values = from + r * words;
        const auto* const places = reinterpret_cast<const uint8_t*>(values + k / 2);
        T* const row = to + r * k;
        std::fill_n(row, k, T(0));
        for (int64_t j = 0; j < k / 4; ++j) {
          row[4 * j + (places[j] & 3)] = values[2 * j];
          row[4 * j + (places[j] >> 2 & 3)] = values[2 * j + 1];
        }
      }
    });
  }
};

void check_shape(const char* op, const Tensor& packed, int64_t k) {
  const int64_t words = functors::cpu_words_of_row(k, packed.element_size());
  RUSH_CHECK_VALUE(packed.size(1) == words, op, ": a (", packed.size(0), ", ", k,
                   ") matrix compressed on the CPU has shape (", packed.size(0), ", ", words, "), got ",
                   packed.sizes());
}

}  // namespace

void cslt_compress(Tensor& packed, const Tensor& dense) {
  const int64_t words = functors::cpu_words_of_row(dense.size(1), dense.element_size());
  packed = rush::detail::empty_contiguous({dense.size(0), words}, dense.scalar_type(), dense.device());
  pick<CompressLoop>(RealFloatTypes(), dense.scalar_type(), "_cslt_compress")(packed, dense);
}

void cslt_decompress(const Tensor& dense, const Tensor& packed) {
  check_shape("_cslt_decompress", packed, dense.size(1));
  pick<DecompressLoop>(RealFloatTypes(), dense.scalar_type(), "_cslt_decompress")(dense, packed);
}

// A dense product: loops over the indices would be slower than the blocks of a dense product.
void cslt_sparse_mm(const Tensor& out, const SemiStructuredProduct& p) {
  check_shape("_cslt_sparse_mm", p.packed, p.depth());
  const ScalarType sum_type = out.scalar_type() == kFloat64 ? kFloat64 : kFloat32;
  const Tensor a = ops::_cslt_decompress(p.packed, p.depth()).to(sum_type);
  const Tensor b = p.dense.to(sum_type);
  const Tensor sums = a.mm(p.dense_transposed ? b.t() : b);  // (m, n)
  if (p.alpha.defined()) sums.mul_(p.alpha.unsqueeze(1));
  if (p.scale != 1) sums.mul_(p.scale);
  if (p.bias.defined()) sums.add_(p.bias.unsqueeze(1));
  out.copy_(p.result_transposed ? sums.t() : sums);
}

}  // namespace rush::cpu
