#include "backends/cpu/reduce/reduce_loops.h"

#include <memory>

#include "backends/functors/reduce_dims.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

namespace {

using functors::ReduceDims;
using reduce::kBlock;
using reduce::kLongRun;

constexpr int64_t kBlockRows = 32;    // rows, likewise
constexpr int64_t kTile = 512;        // columns
constexpr int64_t kChunk = kLongRun;  // elements of one output that a task of its own reduces
constexpr int64_t kFewTasks = 64;     // below which outputs are cut into chunks
constexpr int64_t kNarrow = 32;       // columns below which several rows are taken as one

struct Dim {
  int64_t size, stride, out_stride;  // in elements; out_stride is 0 for a reduced dimension
};
using Dims = InlineVector<Dim, 5>;

// The dimensions, in the order of the walk.
struct Geometry {
  Geometry(const Tensor& output, const Tensor& input, IntArrayRef dims);

  Dim run{1, 1, 0};     // the innermost reduced dimension
  Dim column{1, 1, 0};  // the dimension that is walked by columns
  bool by_columns = false;
  Dims kept, reduced;   // the others, outermost first
  int64_t outputs = 1;  // product of `kept`
  int64_t each = 1;     // how many elements an output is reduced from
};

// Which dimension is walked by columns, or none of them: the innermost one where it is kept, and the next where the
// innermost one is too short for lanes.
size_t dim_of_columns(const ReduceDims& dims) {
  if (!dims.empty() && !dims[0].reduced) return 0;
  const bool short_runs = dims.size() > 1 && dims[0].size < kNarrow && !dims[1].reduced && dims[1].size >= kNarrow;
  return short_runs ? 1 : dims.size();
}

Geometry::Geometry(const Tensor& output, const Tensor& input, IntArrayRef dims) {
  const ReduceDims merged = functors::coalesced(functors::reduce_dims_of(output, input, dims));
  const size_t columns = dim_of_columns(merged);
  by_columns = columns < merged.size();
  for (size_t d = merged.size(); d-- > 0;) {
    const Dim dim{merged[d].size, merged[d].stride, merged[d].out_stride};
    if (d == columns) {
      column = dim;
      continue;
    }
    (merged[d].reduced ? reduced : kept).push_back(dim);
    (merged[d].reduced ? each : outputs) *= merged[d].size;
  }
  if (!reduced.empty()) {
    run = reduced.back();
    reduced.pop_back();
  }
}

// A walk through the positions of several dimensions, the last one fastest.
class Odometer {
 public:
  Odometer(const Dims& dims, int64_t start) : dims_(dims), position_(dims.size(), 0) {
    for (size_t d = dims.size(); d-- > 0 && start > 0;) {
      position_[d] = start % dims[d].size;
      start /= dims[d].size;
      offset += position_[d] * dims[d].stride;
      out_offset += position_[d] * dims[d].out_stride;
    }
  }
  // How many positions are left in the last dimension, this one included.
  int64_t left() const { return dims_.empty() ? 1 : dims_.back().size - position_.back(); }
  // Takes `count` steps, at most as many as are left.
  void step(int64_t count = 1) {
    for (size_t d = position_.size(); d-- > 0; count = 1) {
      const Dim& dim = dims_[d];
      offset += count * dim.stride;
      out_offset += count * dim.out_stride;
      if ((position_[d] += count) < dim.size) return;
      position_[d] = 0;
      offset -= dim.size * dim.stride;
      out_offset -= dim.size * dim.out_stride;
    }
  }

  int64_t offset = 0, out_offset = 0;  // in elements of the input and of the output

 private:
  const Dims& dims_;
  DimVector position_;
};

// A functor with its data, working on whole arrays of accumulators.
struct Reducer {
  const ErasedFunctor& functor;
  const void* f;
  const void* sink;

  int64_t acc_bytes(int64_t n) const { return n * functor.acc_size; }
  const char* element(const char* x, int64_t i) const { return x + i * functor.element_size; }
  void identity(char* acc, int64_t n) const { functor.identity(f, acc, n); }
  void combine(const char* left, char* acc, int64_t n) const { functor.combine(f, left, acc, n); }
  void write(int64_t offset, int64_t stride, const char* acc, int64_t n) const {
    functor.write(sink, offset, stride, acc, n);
  }
};

// Accumulators of blocks, `width` side by side, combined pairwise: slot k holds 2^k blocks, like the bits of a binary
// counter.
class Cascade {
 public:
  // For at most `blocks` blocks.
  Cascade(const Reducer& reducer, int64_t width, int64_t blocks) : reducer_(reducer), width_(width), blocks_(blocks) {}
  // Takes a block; what `acc` holds afterwards is of no use.
  void push(char* acc) {
    if (!levels_) allocate();
    int level = 0;
    for (; count_ >> level & 1; ++level) reducer_.combine(at(level), acc, width_);
    std::copy_n(acc, reducer_.acc_bytes(width_), at(level));
    ++count_;
  }
  // All blocks together, into `acc`.
  void finish(char* acc) const {
    reducer_.identity(acc, width_);
    for (int level = 0; count_ >> level; ++level) {
      if (count_ >> level & 1) reducer_.combine(at(level), acc, width_);
    }
  }

 private:
  void allocate() {
    int64_t levels = 1;
    for (int64_t rest = blocks_; rest >>= 1;) ++levels;
    const int64_t bytes = levels * reducer_.acc_bytes(width_);
    if (bytes <= static_cast<int64_t>(sizeof(inline_))) {
      levels_ = inline_;
    } else {
      heap_ = std::make_unique<char[]>(static_cast<size_t>(bytes));
      levels_ = heap_.get();
    }
  }
  char* at(int level) const { return levels_ + level * reducer_.acc_bytes(width_); }

  const Reducer& reducer_;
  int64_t width_, blocks_, count_ = 0;
  char* levels_ = nullptr;
  std::unique_ptr<char[]> heap_;
  alignas(16) char inline_[24 * reduce::kMaxAccSize];
};

// One reduction: where it reads, how it walks, what it does.
struct Walk : Reducer, Geometry {
  const char* x;

  Walk(const Reducer& r, const Geometry& g, const char* data) : Reducer(r), Geometry(g), x(data) {}

  // acc = elements [begin, end) of an output's, counted along its runs; the output's first is at `base`.
  void along_runs(const char* base, int64_t begin, int64_t end, char* acc) const {
    const int64_t n = run.size, stride = run.stride;
    if (reduced.empty() && end - begin <= kBlock) {
      return functor.block(f, element(base, begin * stride), {stride, end - begin}, acc);
    }
    Cascade cascade(*this, 1, (end - begin) / std::min(n, kBlock) * 2 + 4);
    Odometer outer(reduced, begin / n);
    for (int64_t i = begin % n; begin < end; i = 0) {
      const int64_t runs = std::min({kBlock / n, (end - begin) / n, outer.left()});
      if (i == 0 && runs > 1) {
        functor.block(f, element(base, outer.offset), {stride, n, reduced.back().stride, runs}, acc);
        cascade.push(acc);
        begin += runs * n;
        outer.step(runs);
        continue;
      }
      const int64_t stop = std::min(n, i + end - begin);
      begin += stop - i;
      for (; functor.stream_block && stride == 1 && stop - i >= kLongRun; i += kLongRun) {
        for (int64_t done = 0; done < reduce::kStreamLength; done += reduce::kStreamBlock) {
          functor.stream_block(f, element(base, outer.offset + i + done), acc);
          cascade.push(acc);
        }
      }
      while (i < stop) {
        const int64_t some = std::min(kBlock, stop - i);
        functor.block(f, element(base, outer.offset + i * stride), {stride, some}, acc);
        cascade.push(acc);
        i += some;
      }
      outer.step();
    }
    cascade.finish(acc);
  }

  // Rows [begin, end) of a tile of columns that starts at `base`. Where rows are short and follow each other in memory,
  // `group` of them are taken as one long row, and `acc` has a column for each of its elements.
  void along_columns(const char* base, int64_t begin, int64_t end, int64_t columns, int64_t group, char* acc) const {
    const int64_t n = run.size, width = columns * group, block_rows = kBlockRows * group;
    const bool one_block = end - begin <= block_rows;
    Cascade cascade(*this, width, (end - begin) / block_rows + 1);
    identity(acc, width);
    int64_t pending = 0;
    Odometer outer(reduced, begin / n);
    for (int64_t i = begin % n; begin < end; i = 0, outer.step()) {
      const int64_t stop = std::min(n, i + end - begin);
      begin += stop - i;
      while (i < stop) {
        const int64_t rows = std::min(block_rows - pending, stop - i), rest = rows % group;
        const char* at = element(base, outer.offset + i * run.stride);
        functor.add_rows(f, at, group * run.stride, rows / group, column.stride, width, acc);
        if (rest) {
          at = element(at, (rows - rest) * run.stride);
          functor.add_rows(f, at, 0, 1, column.stride, rest * columns, acc);
        }
        i += rows;
        pending += rows;
        if (pending == block_rows && !one_block) {
          cascade.push(acc);
          identity(acc, width);
          pending = 0;
        }
      }
    }
    if (!one_block) {
      if (pending) cascade.push(acc);
      cascade.finish(acc);
    }
    for (int64_t g = 1; g < group; ++g) combine(acc + acc_bytes(g * columns), acc, columns);
  }

  void by_runs() const {
    const int64_t chunks = outputs < kFewTasks ? (each + kChunk - 1) / kChunk : 1;
    if (chunks == 1) {
      return parallel_for(0, outputs, std::max<int64_t>(1, kGrain / each), [&](int64_t begin, int64_t end) {
        alignas(16) char acc[reduce::kMaxAccSize];
        Odometer at(kept, begin);
        for (; begin < end; ++begin, at.step()) {
          along_runs(element(x, at.offset), 0, each, acc);
          write(at.out_offset, 0, acc, 1);
        }
      });
    }
    const auto partial = std::make_unique<char[]>(static_cast<size_t>(acc_bytes(outputs * chunks)));
    parallel_for(0, outputs * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t from = task % chunks * kChunk;
        along_runs(element(x, Odometer(kept, task / chunks).offset), from, std::min(from + kChunk, each),
                   partial.get() + acc_bytes(task));
      }
    });
    Odometer at(kept, 0);
    for (int64_t o = 0; o < outputs; ++o, at.step()) {
      write_combined(partial.get() + acc_bytes(o * chunks), chunks, 1, 1, at.out_offset, 0);
    }
  }

  void over_columns() const {
    const bool foldable = column.size < kNarrow && column.stride == 1 && run.stride == column.size;
    const int64_t group = foldable ? std::min(2 * kNarrow / column.size, run.size) : 1;
    const int64_t tile = std::min(column.size, kTile), tiles = (column.size + tile - 1) / tile;
    const int64_t units = outputs * tiles;
    const int64_t chunk = units < kFewTasks ? std::min(std::max(kChunk / tile, 4 * kBlockRows), each) : each;
    const int64_t chunks = (each + chunk - 1) / chunk, tile_bytes = acc_bytes(tile);
    const auto partial =
        chunks > 1 ? std::make_unique<char[]>(static_cast<size_t>(units * chunks * tile_bytes)) : nullptr;
    parallel_for(0, units * chunks, std::max<int64_t>(1, kGrain / (chunk * tile)), [&](int64_t begin, int64_t end) {
      alignas(64) char acc[kTile * reduce::kMaxAccSize];
      for (int64_t task = begin; task < end; ++task) {
        const int64_t unit = task / chunks, first = unit % tiles * tile, columns = std::min(tile, column.size - first);
        const int64_t from = task % chunks * chunk;
        const Odometer at(kept, unit / tiles);
        along_columns(element(x, at.offset + first * column.stride), from, std::min(from + chunk, each), columns, group,
                      acc);
        if (chunks > 1) {
          std::copy_n(acc, acc_bytes(columns), partial.get() + task * tile_bytes);
        } else {
          write(at.out_offset + first * column.out_stride, column.out_stride, acc, columns);
        }
      }
    });
    for (int64_t unit = 0; chunks > 1 && unit < units; ++unit) {
      const int64_t first = unit % tiles * tile;
      write_combined(partial.get() + unit * chunks * tile_bytes, chunks, tile, std::min(tile, column.size - first),
                     Odometer(kept, unit / tiles).out_offset + first * column.out_stride, column.out_stride);
    }
  }

  // Combines the chunks of a tile, `tile` accumulators apart, and writes its columns.
  void write_combined(char* partial, int64_t chunks, int64_t tile, int64_t columns, int64_t offset,
                      int64_t stride) const {
    Cascade cascade(*this, columns, chunks);
    for (int64_t p = 0; p < chunks; ++p) cascade.push(partial + p * acc_bytes(tile));
    cascade.finish(partial);
    write(offset, stride, partial, columns);
  }
};

}  // namespace

void reduce::run(const ErasedFunctor& functor, const void* f, const void* sink, const Tensor& output,
                 const Tensor& input, IntArrayRef dims) {
  const Reducer reducer{functor, f, sink};
  if (output.numel() == 0) return;
  if (input.numel() == 0) {
    alignas(16) char acc[kMaxAccSize];
    reducer.identity(acc, 1);
    for (int64_t o = 0; o < output.numel(); ++o) reducer.write(o, 0, acc, 1);
    return;
  }
  const Walk walk(reducer, Geometry(output, input, dims), static_cast<const char*>(input.data_ptr()));
  if (walk.by_columns) {
    walk.over_columns();
  } else {
    walk.by_runs();
  }
}

}  // namespace rush::cpu
