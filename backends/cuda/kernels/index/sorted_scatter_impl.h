// The kernels behind scatter_sorted, for the files that instantiate them.
#pragma once
#include "backends/cuda/kernels/index/sorted_scatter.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/functors/index.h"

namespace rush::cuda {

template <class T, class Write>
struct SortedScatter {
  using Math = opmath_t<T>;
  ScatterPlan plan;
  const int64_t* order;
  int64_t length;  // of a chunk
  Math *heads, *tails;

  __device__ int64_t columns() const { return plan.outer.count * plan.inner.count; }
  __device__ int64_t offset(int64_t p) const { return plan.offsets[order[p]]; }
  __device__ int64_t end(int64_t chunk) const { return std::min(plan.n, (chunk + 1) * length); }
  __device__ bool continues_before(int64_t begin) const { return begin > 0 && offset(begin - 1) == offset(begin); }
  __device__ bool continues_after(int64_t last) const { return last < plan.n && offset(last) == offset(last - 1); }
  __device__ Math value(int64_t o, int64_t p, int64_t i) const {
    const T* values = static_cast<const T*>(plan.values);
    return static_cast<Math>(plan.one_value ? *values : values[(o * plan.n + order[p]) * plan.inner.count + i]);
  }
  __device__ void store(int64_t o, int64_t at, int64_t i, Math total) const {
    if (at == kNoOffset) return;
    T& target = static_cast<T*>(plan.to)[plan.outer.offset(o) + at + plan.inner.offset(i)];
    target = static_cast<T>(Write()(static_cast<Math>(target), total));
  }
};

template <class T, class Write>
struct ScatterChunks : SortedScatter<T, Write> {
  __device__ void operator()(int64_t task) const {
    const int64_t chunk = task / this->columns(), column = task % this->columns();
    const int64_t o = column / this->plan.inner.count, i = column % this->plan.inner.count;
    const int64_t begin = chunk * this->length, end = this->end(chunk);
    int64_t first = begin, at = this->offset(begin);
    auto total = this->value(o, begin, i);
    const auto finish = [&](int64_t last) {
      if (first == begin && this->continues_before(begin)) {
        this->heads[task] = total;
      } else if (last == end && this->continues_after(end)) {
        this->tails[task] = total;
      } else {
        this->store(o, at, i, total);
      }
    };
    constexpr int kAhead = 4;  // numbers on their way from memory
    for (int64_t p = begin + 1; p < end; p += kAhead) {
      opmath_t<T> values[kAhead];
      int64_t offsets[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t next = p + k < end ? p + k : end - 1;
        values[k] = this->value(o, next, i);
        offsets[k] = this->offset(next);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (p + k >= end) break;
        if (offsets[k] == at) {
          total = Write()(total, values[k]);
          continue;
        }
        finish(p + k);
        first = p + k;
        at = offsets[k];
        total = values[k];
      }
    }
    finish(end);
  }
};

template <class T, class Write>
struct JoinChunks : SortedScatter<T, Write> {
  __device__ void operator()(int64_t task) const {
    const int64_t chunk = task / this->columns(), column = task % this->columns();
    const int64_t begin = chunk * this->length, end = this->end(chunk);
    if (!this->continues_after(end)) return;
    const int64_t at = this->offset(end - 1);
    if (this->offset(begin) == at && this->continues_before(begin)) return;  // the run starts in a chunk before
    auto total = this->tails[task];
    for (int64_t next = chunk + 1;; ++next) {
      total = Write()(total, this->heads[next * this->columns() + column]);
      const int64_t last = this->end(next);
      if (last == this->plan.n || this->offset(last) != at) break;
    }
    this->store(column / this->plan.inner.count, at, column % this->plan.inner.count, total);
  }
};

template <class Write>
struct SortedScatterLoop {
  template <class T>
  static void run(const char* op, const ScatterPlan& plan, const int64_t* order) {
    using Math = opmath_t<T>;
    const int64_t columns = plan.outer.count * plan.inner.count, length = chunk_length(plan.n, columns);
    const int64_t chunks = (plan.n + length - 1) / length, tasks = chunks * columns;
    const Scratch parts(chunks > 1 ? 2 * static_cast<size_t>(tasks) * sizeof(Math) : 0);
    Math* heads = parts.as<Math>();
    const SortedScatter<T, Write> scatter{plan, order, length, heads, heads + tasks};
    for_each_index(op, tasks, ScatterChunks<T, Write>{scatter});
    if (chunks > 1) for_each_index(op, tasks, JoinChunks<T, Write>{scatter});
  }
};

}  // namespace rush::cuda
