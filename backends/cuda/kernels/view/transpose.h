// Copies whose output and input have stride 1 in different dimensions.
#pragma once
#include "backends/cuda/device_properties.h"
#include "backends/cuda/kernels/launch.h"

namespace rush::cuda {

// Note [Transposed copies on the GPU]
// If the output has stride 1 in one dimension and the input in another, a warp that follows either one touches 32
// sectors of the other. A thread block therefore copies a tile of these two dimensions through shared memory: it reads
// rows of the input and writes rows of the output. Elements of 1 and 2 bytes are moved in words of 4 bytes, in larger
// tiles. A row of the tile has an odd number of words, so that the words of a column are in 32 different banks.
//
// A thread loads all its words of a whole tile before it uses the first one: with 4 bytes in flight for each thread,
// memory with a latency of 700 ns would give two thirds of its bandwidth. If there are enough blocks, elements of 2 and
// 4 bytes have tiles twice as wide and high, which read 256 bytes of every line. A block finds its tile by
// multiplications, since 64-bit divisions would take as many instructions as the rest. Tiles at the edges, and lines
// that do not consist of words, are copied element by element.
struct TransposedPlanes {
  int64_t width, height;          // along the output's innermost dimension, and along the input's
  int64_t out_stride, in_stride;  // bytes between the output's rows and between the input's
  Divider tiles, across_tiles;    // of a plane: all, those along the width
  bool whole_words_in, whole_words_out;
  char* out;
  const char* in;
  int dims = 0;  // the others, whose product is the number of planes
  Divider sizes[kMaxDims];
  int64_t out_strides[kMaxDims], in_strides[kMaxDims];
};

// kWords: of a warp's thread along a line.
template <class T, int kWords>
struct TransposeTile {
  static constexpr int kPack = sizeof(T) < 4 ? 4 / sizeof(T) : 1;  // elements of a word
  static constexpr int kSide = 32 * kPack * kWords;
  struct alignas(kPack * sizeof(T)) Word {
    T element[kPack];
  };
};

template <class T, int kWords>
__global__ void __launch_bounds__(kThreads) transpose_kernel(const __grid_constant__ TransposedPlanes planes) {
  using Tile = TransposeTile<T, kWords>;
  using Word = typename Tile::Word;
  constexpr int kSide = Tile::kSide, kPack = Tile::kPack, kWarps = kThreads / 32, kSteps = kSide / kWarps;
  __shared__ T tile[kSide][kSide + 1];  // [column of the output][row of the output]
  uint32_t plane = planes.tiles.quotient(blockIdx.x);
  const uint32_t within = blockIdx.x - plane * planes.tiles.divisor;
  const uint32_t tile_row = planes.across_tiles.quotient(within);
  const int64_t row0 = static_cast<int64_t>(tile_row) * kSide;
  const int64_t column0 = static_cast<int64_t>(within - tile_row * planes.across_tiles.divisor) * kSide;
  const char* in = planes.in + column0 * planes.in_stride + row0 * static_cast<int64_t>(sizeof(T));
  char* out = planes.out + row0 * planes.out_stride + column0 * static_cast<int64_t>(sizeof(T));
  for (int d = 0; d < planes.dims; ++d) {
    const uint32_t rest = planes.sizes[d].quotient(plane);
    const int64_t position = plane - rest * planes.sizes[d].divisor;
    plane = rest;
    in += position * planes.in_strides[d];
    out += position * planes.out_strides[d];
  }
  const int columns = static_cast<int>(min(static_cast<int64_t>(kSide), planes.width - column0));
  const int rows = static_cast<int>(min(static_cast<int64_t>(kSide), planes.height - row0));
  const bool whole = columns == kSide && rows == kSide;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Element e of the calling thread lies at line_of(e), place_of(e) of the tile, were it moved without words.
  constexpr int kAlong = kSide / 32, kEach = kSide / kWarps * kAlong, kBatch = 4;
  const auto line_of = [&](int e) { return warp + e / kAlong * kWarps; };
  const auto place_of = [&](int e) { return lane + e % kAlong * 32; };

  if (whole && planes.whole_words_in) {
    Word word[kSteps][kWords];  // all of them in flight
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const T* line = reinterpret_cast<const T*>(in + (warp + step * kWarps) * planes.in_stride);
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        word[step][w] = *reinterpret_cast<const Word*>(line + (lane + w * 32) * kPack);
      }
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          tile[warp + step * kWarps][(lane + w * 32) * kPack + k] = word[step][w].element[k];
        }
      }
    }
  } else {
#pragma unroll 1
    for (int first = 0; first < kEach; first += kBatch) {
      T value[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int c = line_of(first + b), r = place_of(first + b);
        if (c < columns && r < rows) value[b] = reinterpret_cast<const T*>(in + c * planes.in_stride)[r];
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int c = line_of(first + b), r = place_of(first + b);
        if (c < columns && r < rows) tile[c][r] = value[b];
      }
    }
  }
  __syncthreads();
  if (whole && planes.whole_words_out) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int r = warp + step * kWarps;
      T* line = reinterpret_cast<T*>(out + r * planes.out_stride);
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        Word word;
#pragma unroll
        for (int k = 0; k < kPack; ++k) word.element[k] = tile[(lane + w * 32) * kPack + k][r];
        *reinterpret_cast<Word*>(line + (lane + w * 32) * kPack) = word;
      }
    }
  } else {
#pragma unroll 1
    for (int first = 0; first < kEach; first += kBatch) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int r = line_of(first + b), c = place_of(first + b);
        if (r < rows && c < columns) reinterpret_cast<T*>(out + r * planes.out_stride)[c] = tile[c][r];
      }
    }
  }
}

// The number of thread blocks for the tiles of `count` planes.
inline int64_t transpose_blocks(const TransposedPlanes& planes, int64_t count, int64_t side) {
  return count * ((planes.width + side - 1) / side) * ((planes.height + side - 1) / side);
}

template <class T, int kWords>
void launch_transpose(TransposedPlanes& planes, int64_t count, const char* op) {
  constexpr int64_t kSide = TransposeTile<T, kWords>::kSide;
  const int64_t across = (planes.width + kSide - 1) / kSide, down = (planes.height + kSide - 1) / kSide;
  planes.tiles = Divider(static_cast<uint32_t>(across * down));
  planes.across_tiles = Divider(static_cast<uint32_t>(across));
  const auto blocks = static_cast<unsigned>(transpose_blocks(planes, count, kSide));
  launch_kernel(op, transpose_kernel<T, kWords>, {blocks, kThreads}, planes);
}

// Copies operand 1 of the loop to operand 0 by tiles. Returns false and does nothing if the strides do not fit.
template <class T>
bool transpose(const LoopPart& loop, const char* op) {
  using Tile = TransposeTile<T, 1>;
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
    if (loop.shape[d] > std::numeric_limits<int32_t>::max()) return false;
    planes.sizes[planes.dims] = Divider(static_cast<uint32_t>(loop.shape[d]));
    planes.out_strides[planes.dims] = to[d];
    planes.in_strides[planes.dims] = from[d];
    planes.whole_words_out = planes.whole_words_out && whole(to[d]);
    planes.whole_words_in = planes.whole_words_in && whole(from[d]);
    ++planes.dims;
    count *= loop.shape[d];
  }
  if (transpose_blocks(planes, count, Tile::kSide) > std::numeric_limits<int32_t>::max()) return false;
  if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
    const int64_t enough = int64_t{8} * current_properties().multiProcessorCount;
    constexpr int64_t kWide = TransposeTile<T, 2>::kSide;
    if (planes.width >= kWide && planes.height >= kWide && transpose_blocks(planes, count, kWide) >= enough) {
      launch_transpose<T, 2>(planes, count, op);
      return true;
    }
  }
  launch_transpose<T, 1>(planes, count, op);
  return true;
}

}  // namespace rush::cuda
