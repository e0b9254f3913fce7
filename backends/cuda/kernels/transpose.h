// Copies whose output and input lie along different dimensions.
#pragma once
#include "backends/cuda/kernels/launch.h"

namespace rush::cuda {

// Note [Transposed copies on the GPU]
// Where the output's elements lie side by side along one dimension and the input's along another, a warp that walks
// either one touches 32 separate sectors of the other. So a block copies a tile of the plane of both dimensions through
// shared memory, read along the input's and written along the output's. Elements of 1 and 2 bytes are moved in words of
// 4, and their tiles are as much larger. A row of the tile is an odd number of words long, so that a column lies in 32
// different banks.
struct TransposedPlanes {
  int64_t width, height;             // along the output's innermost dimension, and along the input's
  int64_t out_stride, in_stride;     // bytes between the output's rows and between the input's
  int64_t across_tiles, down_tiles;  // of a plane: along the width, along the height
  bool whole_words_in, whole_words_out;
  char* out;
  const char* in;
  int dims = 0;  // the others, whose product is the number of planes
  int64_t sizes[kMaxDims], out_strides[kMaxDims], in_strides[kMaxDims];
};

template <class T>
struct TransposeTile {
  static constexpr int kPack = sizeof(T) < 4 ? 4 / sizeof(T) : 1;  // elements of a word
  static constexpr int kSide = 32 * kPack;
  struct alignas(kPack * sizeof(T)) Word {
    T element[kPack];
  };
};

template <class T>
__global__ void __launch_bounds__(kThreads) transpose_kernel(const __grid_constant__ TransposedPlanes planes) {
  using Tile = TransposeTile<T>;
  using Word = typename Tile::Word;
  constexpr int kSide = Tile::kSide, kPack = Tile::kPack, kWarps = kThreads / 32;
  __shared__ T tile[kSide][kSide + 1];  // [column of the output][row of the output]
  const int64_t per_plane = planes.across_tiles * planes.down_tiles;
  int64_t plane = blockIdx.x / per_plane;
  const int64_t within = blockIdx.x % per_plane;
  const int64_t column0 = within % planes.across_tiles * kSide, row0 = within / planes.across_tiles * kSide;
  const char* in = planes.in + column0 * planes.in_stride + row0 * static_cast<int64_t>(sizeof(T));
  char* out = planes.out + row0 * planes.out_stride + column0 * static_cast<int64_t>(sizeof(T));
  for (int d = 0; d < planes.dims; ++d) {
    const int64_t position = plane % planes.sizes[d];
    plane /= planes.sizes[d];
    in += position * planes.in_strides[d];
    out += position * planes.out_strides[d];
  }
  const int columns = static_cast<int>(min(static_cast<int64_t>(kSide), planes.width - column0));
  const int rows = static_cast<int>(min(static_cast<int64_t>(kSide), planes.height - row0));
  const int lane = threadIdx.x % 32 * kPack, warp = threadIdx.x / 32;

#pragma unroll
  for (int step = 0; step < kSide / kWarps; ++step) {
    const int c = warp + step * kWarps;
    if (c >= columns) break;
    const T* line = reinterpret_cast<const T*>(in + c * planes.in_stride);
    if (planes.whole_words_in && lane + kPack <= rows) {
      const Word word = *reinterpret_cast<const Word*>(line + lane);
#pragma unroll
      for (int k = 0; k < kPack; ++k) tile[c][lane + k] = word.element[k];
    } else {
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        if (lane + k < rows) tile[c][lane + k] = line[lane + k];
      }
    }
  }
  __syncthreads();
#pragma unroll
  for (int step = 0; step < kSide / kWarps; ++step) {
    const int r = warp + step * kWarps;
    if (r >= rows) break;
    T* line = reinterpret_cast<T*>(out + r * planes.out_stride);
    if (planes.whole_words_out && lane + kPack <= columns) {
      Word word;
#pragma unroll
      for (int k = 0; k < kPack; ++k) word.element[k] = tile[lane + k][r];
      *reinterpret_cast<Word*>(line + lane) = word;
    } else {
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        if (lane + k < columns) line[lane + k] = tile[lane + k][r];
      }
    }
  }
}

// Copies operand 1 of the loop to operand 0 in this way; false, and nothing done, where it is not such a loop.
template <class T>
bool transpose(const LoopPart& loop, const char* op) {
  using Tile = TransposeTile<T>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T)), kWord = kSize * Tile::kPack;
  const size_t dims = loop.shape.size();
  const DimVector &to = loop.strides[0], &from = loop.strides[1];
  if (dims < 2 || dims > kMaxDims || to[0] != kSize || from[0] == kSize || from[0] == 0) return false;
  size_t across = 1;
  while (across < dims && from[across] != kSize) ++across;
  if (across == dims || loop.shape[0] < 4 || loop.shape[across] < 4) return false;
  TransposedPlanes planes;
  planes.width = loop.shape[0];
  planes.height = loop.shape[across];
  planes.out_stride = to[across];
  planes.in_stride = from[0];
  planes.out = loop.data[0];
  planes.in = loop.data[1];
  const auto whole = [](int64_t value) { return value % kWord == 0; };
  planes.whole_words_in = whole(reinterpret_cast<intptr_t>(planes.in)) && whole(planes.in_stride);
  planes.whole_words_out = whole(reinterpret_cast<intptr_t>(planes.out)) && whole(planes.out_stride);
  int64_t count = 1;
  for (size_t d = 1; d < dims; ++d) {
    if (d == across) continue;
    planes.sizes[planes.dims] = loop.shape[d];
    planes.out_strides[planes.dims] = to[d];
    planes.in_strides[planes.dims] = from[d];
    planes.whole_words_out = planes.whole_words_out && whole(to[d]);
    planes.whole_words_in = planes.whole_words_in && whole(from[d]);
    ++planes.dims;
    count *= loop.shape[d];
  }
  planes.across_tiles = (planes.width + Tile::kSide - 1) / Tile::kSide;
  planes.down_tiles = (planes.height + Tile::kSide - 1) / Tile::kSide;
  const int64_t blocks = count * planes.across_tiles * planes.down_tiles;
  if (blocks > std::numeric_limits<int32_t>::max()) return false;
  transpose_kernel<T><<<static_cast<unsigned>(blocks), kThreads, 0, current_stream()>>>(planes);
  RUSH_CUDA_LAUNCHED(op);
  return true;
}

}  // namespace rush::cuda
