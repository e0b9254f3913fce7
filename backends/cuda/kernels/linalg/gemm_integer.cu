#include "backends/cuda/kernels/linalg/gemm_integer.h"

#include <algorithm>

#include "backends/cuda/launch_kernel.h"

namespace rush::cuda {

namespace {

constexpr int kTile = 16;

template <class T>
struct StridedMatrices {
  T* data;
  int64_t batch_stride, row_stride, column_stride;

  explicit StridedMatrices(const Tensor& t)
      : data(static_cast<T*>(t.data_ptr())),
        batch_stride(t.strides()[0]),
        row_stride(t.strides()[1]),
        column_stride(t.strides()[2]) {}

  __device__ T& at(int64_t batch, int64_t row, int64_t column) const {
    return data[batch * batch_stride + row * row_stride + column * column_stride];
  }
};

// A thread block computes tiles (kTile, kTile); each thread computes one element. Accumulators are unsigned, because
// only unsigned overflow is defined.
template <class T>
__global__ void gemm_integer_kernel(StridedMatrices<T> c, StridedMatrices<const T> a, StridedMatrices<const T> b,
                                    int64_t rows, int64_t columns, int64_t depth, int64_t batches, uint64_t beta,
                                    uint64_t alpha) {
  __shared__ T left[kTile][kTile + 1], right[kTile][kTile + 1];
  const int64_t row_tiles = (rows + kTile - 1) / kTile, column_tiles = (columns + kTile - 1) / kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  for (int64_t tile = blockIdx.x; tile < batches * row_tiles * column_tiles; tile += gridDim.x) {
    const int64_t batch = tile / (row_tiles * column_tiles);
    const int64_t row = tile / column_tiles % row_tiles * kTile + y, column = tile % column_tiles * kTile + x;
    uint64_t sum = 0;
    for (int64_t d = 0; d < depth; d += kTile) {
      left[y][x] = row < rows && d + x < depth ? a.at(batch, row, d + x) : T(0);
      right[y][x] = d + y < depth && column < columns ? b.at(batch, d + y, column) : T(0);
      __syncthreads();
      for (int i = 0; i < kTile; ++i) sum += static_cast<uint64_t>(left[y][i]) * static_cast<uint64_t>(right[i][x]);
      __syncthreads();
    }
    if (row >= rows || column >= columns) continue;
    T& out = c.at(batch, row, column);
    out = static_cast<T>(alpha * sum + (beta == 0 ? 0 : beta * static_cast<uint64_t>(out)));
  }
}

template <class T>
void launch(const Tensor& c, const Tensor& a, const Tensor& b, uint64_t beta, uint64_t alpha) {
  const int64_t batches = c.sizes()[0], rows = c.sizes()[1], columns = c.sizes()[2], depth = a.sizes()[2];
  const int64_t tiles = batches * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(tiles, int64_t(1) << 20));
  launch_kernel("gemm", gemm_integer_kernel<T>, {blocks, dim3(kTile, kTile)}, StridedMatrices<T>(c),
                StridedMatrices<const T>(a), StridedMatrices<const T>(b), rows, columns, depth, batches, beta, alpha);
}

}  // namespace

void gemm_integer(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  if (c.numel() == 0) return;
  const auto keep = static_cast<uint64_t>(beta.toLong()), factor = static_cast<uint64_t>(alpha.toLong());
  switch (c.scalar_type()) {
    case kUInt8: return launch<uint8_t>(c, a, b, keep, factor);
    case kInt8: return launch<int8_t>(c, a, b, keep, factor);
    case kInt16: return launch<int16_t>(c, a, b, keep, factor);
    case kInt32: return launch<int32_t>(c, a, b, keep, factor);
    case kInt64: return launch<int64_t>(c, a, b, keep, factor);
    default: RUSH_THROW(NotImplementedError, "gemm: not implemented for ", c.scalar_type());
  }
}

}  // namespace rush::cuda
