// Lab 13, attention by tiles: a solution, in float32. The library's kernel multiplies on tensor cores, and has masks
// and dropout: backends/cuda/kernels/nn/attention.cu.
#include "tests/labs/kernels/attention.h"

#include "tests/labs/grid/kernel.h"

namespace rush::labs {

constexpr int kWarp = 32;

static unsigned blocks_for(int64_t n, int64_t each) { return static_cast<unsigned>((n + each - 1) / each); }

// ---- one pass over a row ----

// The largest of some numbers, and the sum of exp(number - largest). Of no numbers they are -infinity and 0.
struct Online {
  float largest = -INFINITY, sum = 0;
};

// exp(from - to) for the largest of some numbers and that of more; 0 if there were none.
__device__ inline float shrink(float from, float to) { return from == -INFINITY ? 0 : expf(from - to); }

// Of the numbers of both: each sum becomes one of exp(number - the larger largest).
__device__ inline Online merge(const Online& a, const Online& b) {
  Online both;
  both.largest = fmaxf(a.largest, b.largest);
  both.sum = a.sum * shrink(a.largest, both.largest) + b.sum * shrink(b.largest, both.largest);
  return both;
}

constexpr int kWarps = 8;

// A warp for each row. A lane merges its numbers, then the lanes merge theirs.
static __global__ void logsumexp_kernel(const float* in, float* out, int64_t rows, int64_t columns) {
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.y;
  if (row >= rows) return;
  Online all;
  for (int64_t i = threadIdx.x; i < columns; i += kWarp) {
    Online one;
    one.largest = in[row * columns + i];
    one.sum = 1;
    all = merge(all, one);
  }
  for (int step = kWarp / 2; step > 0; step /= 2) {
    Online other;
    other.largest = __shfl_xor_sync(0xffffffffU, all.largest, step);
    other.sum = __shfl_xor_sync(0xffffffffU, all.sum, step);
    all = merge(all, other);
  }
  if (threadIdx.x == 0) out[row] = all.largest + logf(all.sum);
}

void logsumexp(const float* in, float* out, int64_t rows, int64_t columns) {
  launch(logsumexp_kernel, blocks_for(rows, kWarps), dim3(kWarp, kWarps))(in, out, rows, columns);
}

// ---- attention ----

// A block has a tile of queries, and goes over the keys by tiles. Of its 16 x 16 threads, thread (x, y) has rows 4 y to
// 4 y + 3 of all tiles of queries: scores of keys x and x + 16, and columns 4 x to 4 x + 3 of out.
constexpr int kSide = 16, kThreads = kSide * kSide, kQueries = 64, kKeys = 32;
constexpr int kRowsEach = 4, kKeysEach = kKeys / kSide, kColumnsEach = 4;
constexpr int kLine = kMostWidth + 4, kKeyLine = kKeys + 4;  // 4 more numbers: rows begin in different banks

struct Tiles {
  __align__(16) float query[kQueries][kLine];
  __align__(16) float key[kKeys][kLine];
  __align__(16) float value[kKeys][kLine];
  __align__(16) float p[kQueries][kKeyLine];  // exp(score - largest)
};

// Of a thread's rows: the largest score so far, the sum of exp(score - largest), and that of exp(score - largest) v.
struct Rows {
  float largest[kRowsEach], sum[kRowsEach], out[kRowsEach][kColumnsEach];
};

// Copies rows [first, first + kLines) of a matrix (rows, width), with zeros beyond its ends.
template <int kLines>
__device__ void load_tile(float (&tile)[kLines][kLine], const float* matrix, int64_t first, int64_t rows, int width) {
  const int thread = threadIdx.y * kSide + threadIdx.x;
#pragma unroll
  for (int each = 0; each < kLines * kMostWidth / kThreads; ++each) {
    const int i = each * kThreads + thread, line = i / kMostWidth, column = i % kMostWidth;
    const bool exists = first + line < rows && column < width;
    tile[line][column] = exists ? matrix[(first + line) * width + column] : 0;
  }
}

__device__ inline float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

// scores = q k^T / sqrt(width); -infinity for keys that the query does not attend to.
__device__ inline void compute_scores(float (&scores)[kRowsEach][kKeysEach], const Tiles& tiles, int64_t first_query,
                                      int64_t first_key, const AttentionSizes& s) {
  const int x = threadIdx.x, y = threadIdx.y;
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
#pragma unroll
    for (int c = 0; c < kKeysEach; ++c) scores[r][c] = 0;
  }
#pragma unroll 4
  for (int d = 0; d < kMostWidth; d += 4) {
    float4 key[kKeysEach];
#pragma unroll
    for (int c = 0; c < kKeysEach; ++c) key[c] = *reinterpret_cast<const float4*>(&tiles.key[x + c * kSide][d]);
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      const float4 query = *reinterpret_cast<const float4*>(&tiles.query[kRowsEach * y + r][d]);
#pragma unroll
      for (int c = 0; c < kKeysEach; ++c) scores[r][c] += dot(query, key[c]);
    }
  }
  const float scale = 1 / sqrtf(static_cast<float>(s.width));
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
#pragma unroll
    for (int c = 0; c < kKeysEach; ++c) {
      const int64_t query = first_query + kRowsEach * y + r, key = first_key + x + c * kSide;
      const bool attends = key < s.keys && (!s.causal || key <= query);
      scores[r][c] = attends ? scores[r][c] * scale : -INFINITY;
    }
  }
}

// The largest x, or the sum of x, of the 16 threads of a row, in each of them: they are half a warp.
__device__ inline float largest_of_row(float x) {
#pragma unroll
  for (int step = kSide / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, step));
  return x;
}
__device__ inline float sum_of_row(float x) {
#pragma unroll
  for (int step = kSide / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffU, x, step);
  return x;
}

// Writes p = exp(score - largest) for the largest score so far, and makes what was summed before relative to it. The
// first tile has a key for each query, so largest is a number from then on.
__device__ inline void online_softmax(Rows& rows, Tiles& tiles, const float (&scores)[kRowsEach][kKeysEach]) {
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    float largest = rows.largest[r];
#pragma unroll
    for (int c = 0; c < kKeysEach; ++c) largest = fmaxf(largest, scores[r][c]);
    largest = largest_of_row(largest);
    const float factor = expf(rows.largest[r] - largest);
    rows.largest[r] = largest;
    rows.sum[r] *= factor;
#pragma unroll
    for (int c = 0; c < kColumnsEach; ++c) rows.out[r][c] *= factor;
#pragma unroll
    for (int c = 0; c < kKeysEach; ++c) {
      const float p = expf(scores[r][c] - largest);
      rows.sum[r] += p;  // of the thread's keys; its threads' sums are added up at the end
      tiles.p[kRowsEach * threadIdx.y + r][threadIdx.x + c * kSide] = p;
    }
  }
}

// out += p v
__device__ inline void add_values(Rows& rows, const Tiles& tiles) {
  const int x = threadIdx.x, y = threadIdx.y;
#pragma unroll 4
  for (int key = 0; key < kKeys; ++key) {
    const float4 value = *reinterpret_cast<const float4*>(&tiles.value[key][kColumnsEach * x]);
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      const float p = tiles.p[kRowsEach * y + r][key];
      rows.out[r][0] += p * value.x;
      rows.out[r][1] += p * value.y;
      rows.out[r][2] += p * value.z;
      rows.out[r][3] += p * value.w;
    }
  }
}

// Four neighbouring numbers of a row of `width`, as far as they exist.
__device__ inline void write_four(float* row, int column, int width, float4 four) {
  if (width % 4 == 0 && column < width) {
    *reinterpret_cast<float4*>(row + column) = four;
    return;
  }
  if (column < width) row[column] = four.x;
  if (column + 1 < width) row[column + 1] = four.y;
  if (column + 2 < width) row[column + 2] = four.z;
  if (column + 3 < width) row[column + 3] = four.w;
}

// out = sum of p v / sum of p
__device__ inline void write_rows(const Rows& rows, float* out, int64_t first_query, const AttentionSizes& s) {
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    const int64_t row = first_query + kRowsEach * threadIdx.y + r;
    const float factor = 1 / sum_of_row(rows.sum[r]);
    const float(&sums)[kColumnsEach] = rows.out[r];
    const float4 four = {sums[0] * factor, sums[1] * factor, sums[2] * factor, sums[3] * factor};
    if (row < s.queries) write_four(out + row * s.width, kColumnsEach * threadIdx.x, s.width, four);
  }
}

static __global__ void __launch_bounds__(kThreads, 2)
    attention_kernel(const float* q, const float* k, const float* v, float* out, AttentionSizes s) {
  __shared__ Tiles tiles;
  const int64_t head = blockIdx.y, first_query = int64_t{blockIdx.x} * kQueries;
  q += head * s.queries * s.width;
  k += head * s.keys * s.width;
  v += head * s.keys * s.width;
  out += head * s.queries * s.width;
  Rows rows = {};
  for (float& largest : rows.largest) largest = -INFINITY;
  load_tile(tiles.query, q, first_query, s.queries, s.width);
  const int64_t seen = s.causal ? min(s.keys, first_query + kQueries) : s.keys;
  for (int64_t first_key = 0; first_key < seen; first_key += kKeys) {
    __syncthreads();  // slower threads still read the last tiles
    load_tile(tiles.key, k, first_key, s.keys, s.width);
    load_tile(tiles.value, v, first_key, s.keys, s.width);
    __syncthreads();
    float scores[kRowsEach][kKeysEach];
    compute_scores(scores, tiles, first_query, first_key, s);
    online_softmax(rows, tiles, scores);
    __syncwarp();  // a row of p is written and read by one warp
    add_values(rows, tiles);
  }
  write_rows(rows, out, first_query, s);
}

void attention(const float* q, const float* k, const float* v, float* out, const AttentionSizes& s) {
  const dim3 grid(blocks_for(s.queries, kQueries), static_cast<unsigned>(s.heads));
  launch(attention_kernel, grid, dim3(kSide, kSide))(q, k, v, out, s);
}

}  // namespace rush::labs
