// cat: tensors side by side, many of them by one launch.
#include "core/ops/view/join.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/first_where.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

// A tensor as rows of units: one row for each position in the dimensions before the joined one.
struct JoinedRows {
  const char* from;
  int64_t step, column;  // between its rows, and where they begin in those of the result
  uint32_t count, first_block;
  uint32_t spacing;  // between the units of a row; of more than one element, they are consecutive
  Divider length;
};

// A launch's tensors, 80 of which fill the 4,096 bytes of its arguments. All but `from` and `out` count in units of T.
template <int kMost>
struct JoinBatch {
  char* out;
  int64_t row;  // of the result
  int count = 0;
  uint32_t blocks = 0;
  JoinedRows tensors[kMost];
};

inline constexpr int kUnitsOfThread = 4;
inline constexpr uint32_t kUnitsOfBlock = kThreads * kUnitsOfThread;

template <class T, int kMost>
__global__ void __launch_bounds__(kThreads) join_kernel(const __grid_constant__ JoinBatch<kMost> batch) {
  const int64_t after =
      functors::first_where(batch.count, [&](int64_t i) { return batch.tensors[i].first_block > blockIdx.x; });
  const JoinedRows& rows = batch.tensors[after - 1];
  const T* from = reinterpret_cast<const T*>(rows.from);
  T* to = reinterpret_cast<T*>(batch.out) + rows.column;
  const uint32_t first = (blockIdx.x - rows.first_block) * kUnitsOfBlock + threadIdx.x;
  T units[kUnitsOfThread];
  int64_t places[kUnitsOfThread];
#pragma unroll
  for (int e = 0; e < kUnitsOfThread; ++e) {
    const uint32_t i = first + e * kThreads;
    const uint32_t row = rows.length.quotient(i), column = i - row * rows.length.divisor;
    places[e] = row * batch.row + column;
    if (i < rows.count) units[e] = from[row * rows.step + int64_t{column} * rows.spacing];
  }
#pragma unroll
  for (int e = 0; e < kUnitsOfThread; ++e) {
    if (first + e * kThreads < rows.count) to[places[e]] = units[e];
  }
}

// Whether the tensor is rows of elements that are `spacing` apart, and no further than that accesses share their bytes.
// The rows are `step` elements apart.
bool find_rows(const Tensor& t, int64_t dim, int64_t& step, int64_t& spacing) {
  constexpr int64_t kAccess = 32;
  int64_t length = 1;
  spacing = 1;
  for (int64_t d = t.dim(); d-- > dim;) {
    if (t.size(d) == 1) continue;
    if (length == 1) spacing = t.stride(d);
    if (t.stride(d) != length * spacing) return false;
    length *= t.size(d);
  }
  if (spacing != 1 && spacing * t.element_size() > kAccess) return false;
  step = length * spacing;
  int64_t rows = 1;
  for (int64_t d = dim; d-- > 0;) {
    if (t.size(d) == 1) continue;
    if (rows == 1) step = t.stride(d);
    if (t.stride(d) != rows * step) return false;
    rows *= t.size(d);
  }
  return true;
}

template <int kMost>
struct JoinLoop {
  template <class T>
  static void run(JoinBatch<kMost> batch, int64_t element_size) {
    const auto scale = static_cast<int64_t>(sizeof(T)) / element_size;
    batch.row /= scale;
    for (int i = 0; i < batch.count; ++i) {
      JoinedRows& rows = batch.tensors[i];
      rows.step /= scale;
      rows.column /= scale;
      rows.count /= static_cast<uint32_t>(scale);
      rows.length = Divider(rows.length.divisor / static_cast<uint32_t>(scale));
      rows.first_block = batch.blocks;
      batch.blocks += (rows.count + kUnitsOfBlock - 1) / kUnitsOfBlock;
    }
    if (batch.blocks > 0) launch_kernel(kernels::cat.name(), join_kernel<T, kMost>, {batch.blocks, kThreads}, batch);
  }
};

// The widest unit, up to 16 bytes, that all rows of the batch are made of.
template <int kMost>
int64_t widest_unit(const JoinBatch<kMost>& batch, int64_t element_size) {
  int64_t bytes = batch.row * element_size | static_cast<int64_t>(reinterpret_cast<uintptr_t>(batch.out)) | 16;
  for (int i = 0; i < batch.count; ++i) {
    const JoinedRows& rows = batch.tensors[i];
    bytes |= (rows.step | rows.column | rows.length.divisor) * element_size;
    bytes |= static_cast<int64_t>(reinterpret_cast<uintptr_t>(rows.from));
    if (rows.spacing != 1) bytes |= element_size;
  }
  return bytes & -bytes;  // the lowest bit that is set in any of them
}

template <int kMost>
void join(const Tensor& out, TensorList tensors, int64_t dim) {
  const int64_t element_size = out.element_size(), width = out.size(dim);
  JoinBatch<kMost> batch;
  batch.out = static_cast<char*>(out.data_ptr());
  batch.row = 1;
  for (int64_t d = dim; d < out.dim(); ++d) batch.row *= out.size(d);
  const auto launch = [&] {
    pick_bytes<JoinLoop<kMost>>(widest_unit(batch, element_size))(batch, element_size);
    batch.count = 0;
  };
  int64_t start = 0, step = 0, spacing = 1;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    const int64_t length = batch.row / width * t.size(dim);
    const bool joined = out.is_contiguous() && t.scalar_type() == out.scalar_type() && t.numel() < int64_t{1} << 31 &&
                        find_rows(t, dim, step, spacing);
    if (joined) {
      batch.tensors[batch.count++] = {static_cast<const char*>(t.data_ptr()), step, batch.row / width * start,
                                      static_cast<uint32_t>(t.numel()),       0,    static_cast<uint32_t>(spacing),
                                      Divider(static_cast<uint32_t>(length))};
      if (batch.count == kMost) launch();
    } else {
      Tensor place =
          rush::detail::make_view(out, t.sizes(), out.strides(), out.storage_offset() + start * out.stride(dim));
      native::copy_(place, t, false);
    }
    start += t.size(dim);
  }
  launch();
}

void cat(const Tensor& out, TensorList tensors, int64_t dim) {
  if (out.numel() == 0) return;
  tensors.size() <= 8 ? join<8>(out, tensors, dim) : join<80>(out, tensors, dim);
}

}  // namespace

void register_join() { kernels::cat.set(kCUDA, cat); }

}  // namespace rush::cuda
