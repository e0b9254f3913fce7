// Reductions on the CPU: how the elements are walked, for every functor of backends/functors/reduce.h.
#pragma once
#include <algorithm>

#include "core/ops/reduce/along_dim.h"
#include "core/tensor.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

// Note [How a reduction walks its input]
// Dimensions are sorted by stride, and neighbours that are contiguous with each other are coalesced, so that memory is
// read in order. Then
//   if the innermost one is reduced, each output is the sum of contiguous ranges, accumulated in lanes that the
//     compiler keeps in vector registers; short ranges at equal distances are read as one block;
//   if the innermost one is kept, whole rows are added to a tile of accumulators, one for each column. So are the
//     elements of ranges too short for lanes, whose columns are then a range apart.
// Blocks of a fixed size are accumulated in order, and their results pairwise, so that the rounding error of a sum of n
// numbers grows with log n. If there are few outputs, each is split into chunks of a fixed size that are reduced in
// parallel. The chunks do not depend on the number of threads, so neither does the result.

// `count` runs of `n` elements each, `stride` apart; the runs' first ones lie `apart` elements from each other.
struct Runs {
  int64_t stride, n, apart = 0, count = 1;
};

// The loops of a functor with its types erased, so that the walk over a tensor is compiled once. Accumulators are
// arrays of `acc_size` bytes each; `f` is the functor.
struct ErasedFunctor {
  int64_t element_size, acc_size;
  void (*identity)(const void* f, void* acc, int64_t n);
  // acc = all elements of the runs, the first of which is x.
  void (*block)(const void* f, const char* x, Runs runs, void* acc);
  // acc[c] takes element c of each of `rows` rows.
  void (*add_rows)(const void* f, const char* x, int64_t row_stride, int64_t rows, int64_t stride, int64_t columns,
                   void* acc);
  // acc[c] = left[c] with acc[c].
  void (*combine)(const void* f, const void* left, void* acc, int64_t n);
  // Stores n results, `stride` apart.
  void (*write)(const void* sink, int64_t offset, int64_t stride, const void* acc, int64_t n);
  // acc = a block of each stream of a long run, the first of which begins at x: see Note [Many lanes]. May be null.
  void (*stream_block)(const void* f, const char* x, void* acc) = nullptr;
};

namespace reduce {

// Note [Many lanes]
// A contiguous block is summed in as many lanes as fill several vector registers, so that additions need not wait for
// each other. A long run is read as four streams side by side, since the hardware fetches ahead within a page only and
// starts again in the next. The streams must be long ones: several of a page or two each are slower than one.
inline constexpr int kLanes = 32;
inline constexpr int kStridedLanes = 8;  // where elements lie apart, and are loaded one by one
inline constexpr int64_t kBlock = 1024;  // elements that are accumulated plainly
inline constexpr int kStreams = 4;
inline constexpr int64_t kStreamBlock = 2048;    // elements of a stream, likewise
inline constexpr int64_t kStreamLength = 16384;  // a stream's elements in all
inline constexpr int64_t kLongRun = kStreams * kStreamLength;
inline constexpr int64_t kMaxAccSize = 24;

template <class F, class T>
RUSH_ALWAYS_INLINE typename F::Acc take(const F& f, typename F::Acc acc, T x) {
  return f.take(acc, static_cast<typename F::In>(x));
}

template <class F>
void identity(const void* functor, void* acc, int64_t n) {
  std::fill_n(static_cast<typename F::Acc*>(acc), n, static_cast<const F*>(functor)->identity());
}

template <class F, int count>
typename F::Acc combine_lanes(const F& f, typename F::Acc (&lanes)[count]) {
  for (int width = count / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] = f.combine(lanes[k], lanes[k + width]);
  }
  return lanes[0];
}

// Elements of `streams` runs, n of each, a multiple of a stream's lanes; the runs' first ones lie `apart` elements from
// each other. See Note [Many lanes].
template <int streams, int lanes_count, class F, class T>
typename F::Acc in_lanes(const F& f, const T* x, int64_t n, int64_t apart) {
  constexpr int each = lanes_count / streams;
  typename F::Acc lanes[lanes_count];
  std::fill_n(lanes, lanes_count, f.identity());
  for (int64_t i = 0; i < n; i += each) {
    for (int s = 0; s < streams; ++s) {
      const T* from = x + s * apart + i;
#pragma GCC ivdep
      for (int k = 0; k < each; ++k) lanes[s * each + k] = take(f, lanes[s * each + k], from[k]);
    }
  }
  return combine_lanes(f, lanes);
}

// Whole multiples of the lanes go into them, the remainder of each run one by one into `rest`.
template <bool contiguous, class F, class T>
typename F::Acc runs_in_lanes(const F& f, const T* x, Runs runs) {
  constexpr int count = contiguous ? kLanes : kStridedLanes;
  typename F::Acc lanes[count], rest = f.identity();
  std::fill_n(lanes, count, f.identity());
  const int64_t stride = contiguous ? 1 : runs.stride;
  for (int64_t r = 0; r < runs.count; ++r) {
    const T* run = x + r * runs.apart;
    int64_t i = 0;
    for (; i + count <= runs.n; i += count) {
#pragma GCC ivdep
      for (int k = 0; k < count; ++k) lanes[k] = take(f, lanes[k], run[(i + k) * stride]);
    }
    for (; i < runs.n; ++i) rest = take(f, rest, run[i * stride]);
  }
  return f.combine(combine_lanes(f, lanes), rest);
}

template <class F, class T>
void block(const void* functor, const char* data, Runs runs, void* acc) {
  const F f = *static_cast<const F*>(functor);
  const T* x = reinterpret_cast<const T*>(data);
  auto& total = *static_cast<typename F::Acc*>(acc);
  if (runs.n < kStridedLanes && runs.count == 1) {
    total = f.identity();
    for (int64_t i = 0; i < runs.n; ++i) total = take(f, total, x[i * runs.stride]);
  } else if (runs.stride == 1) {
    total = runs_in_lanes<true>(f, x, runs);
  } else {
    total = runs_in_lanes<false>(f, x, runs);
  }
}

template <class F, class T>
void stream_block(const void* functor, const char* x, void* acc) {
  *static_cast<typename F::Acc*>(acc) = in_lanes<kStreams, 2 * kLanes>(
      *static_cast<const F*>(functor), reinterpret_cast<const T*>(x), kStreamBlock, kStreamLength);
}

// Bytes that are summed as int64 fill the registers with a single stream.
template <class F, class T>
constexpr auto streams_of() {
  constexpr bool widened = sizeof(typename F::Acc) > 4 * sizeof(T);
  return widened || requires { F::kShortLanes; }
  ? nullptr : stream_block<F, T>;
}

template <class F, class T>
void add_rows(const void* functor, const char* data, int64_t row_stride, int64_t rows, int64_t stride, int64_t columns,
              void* accumulators) {
  const F f = *static_cast<const F*>(functor);
  const T* x = reinterpret_cast<const T*>(data);
  auto* acc = static_cast<typename F::Acc*>(accumulators);
  for (int64_t r = 0; r < rows; ++r, x += row_stride) {
    if (stride == 1) {
#pragma GCC ivdep
      for (int64_t c = 0; c < columns; ++c) acc[c] = take(f, acc[c], x[c]);
    } else {
      for (int64_t c = 0; c < columns; ++c) acc[c] = take(f, acc[c], x[c * stride]);
    }
  }
}

template <class F>
void combine(const void* functor, const void* left, void* accumulators, int64_t n) {
  using Acc = typename F::Acc;
  const F f = *static_cast<const F*>(functor);
  auto* acc = static_cast<Acc*>(accumulators);
  for (int64_t i = 0; i < n; ++i) acc[i] = f.combine(static_cast<const Acc*>(left)[i], acc[i]);
}

template <class F, class Write>
void write(const void* sink, int64_t offset, int64_t stride, const void* acc, int64_t n) {
  const Write& store = *static_cast<const Write*>(sink);
  for (int64_t i = 0; i < n; ++i) store(offset + i * stride, static_cast<const typename F::Acc*>(acc)[i]);
}

// Reduces `dims` of `input`; the results go to `sink`.
void run(const ErasedFunctor& functor, const void* f, const void* sink, const Tensor& output, const Tensor& input,
         IntArrayRef dims);

}  // namespace reduce

// Calls body(first element, columns, first column's number) for every tile of at most `width` columns of lines, and of
// `grain` elements or more in a thread.
template <int64_t width, class Body>
void for_tiles(const AlongDim& shape, int64_t grain, const Body& body) {
  const int64_t tiles = (shape.inner + width - 1) / width;
  const int64_t work = std::max<int64_t>(1, shape.size * std::min(width, shape.inner));
  parallel_for(0, shape.outer * tiles, std::max<int64_t>(1, grain / work), [&](int64_t begin, int64_t end) {
    int64_t outer = begin / tiles, first = begin % tiles * width;
    for (; begin < end; ++begin) {
      body(outer * shape.size * shape.inner + first, std::min(width, shape.inner - first), outer * shape.inner + first);
      first += width;
      if (first >= shape.inner) {
        first = 0;
        ++outer;
      }
    }
  });
}

// Reduces `dims` of `input` with f. write(offset, acc) stores the accumulator of the output element at `offset`; it is
// called from several threads, once for each element.
template <class T, class F, class Write>
void reduce_with(const F& f, const Tensor& output, const Tensor& input, IntArrayRef dims, const Write& write) {
  using namespace reduce;
  static_assert(sizeof(typename F::Acc) <= kMaxAccSize);
  static constexpr ErasedFunctor functor{
      sizeof(T),  sizeof(typename F::Acc), identity<F>,       block<F, T>, add_rows<F, T>,
      combine<F>, reduce::write<F, Write>, streams_of<F, T>()};
  reduce::run(functor, &f, &write, output, input, dims);
}

// As above; the functor's result is the output.
template <class T, class Out, class F>
void reduce_to(const F& f, const Tensor& output, const Tensor& input, IntArrayRef dims) {
  Out* out = output.data_ptr<Out>();
  reduce_with<T>(f, output, input, dims,
                 [&](int64_t at, const typename F::Acc& acc) { out[at] = static_cast<Out>(f.result(acc)); });
}

}  // namespace rush::cpu
