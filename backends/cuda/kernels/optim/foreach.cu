// Norms and products of many tensors in a few launches, see Note [Many tensors in one launch].
#include "core/ops/optim/foreach.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backends/cuda/kernels/optim/many_tensors.h"
#include "backends/cuda/kernels/reduce/block_combine.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/register.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

inline constexpr int kUnrolled = 4;  // 16-byte accesses of a thread in flight

// Where the sums of chunks go: those of a tensor one after the other, in the order of the tensors.
template <class Acc>
struct ChunkSums {
  Acc* first;
};

// Every chunk's sum, always in the same order.
template <class T, class F>
__global__ void __launch_bounds__(kThreads)
    chunk_norms_kernel(const __grid_constant__ ManyTensors<1, Nothing, ChunkSums<typename F::Acc>> many) {
  using Math = opmath_t<T>;
  constexpr int kLanes = 16 / sizeof(T), kStep = kThreads * kLanes;
  const F f;
  const auto [tensor, begin, n] = many.own_chunk();
  const T* x = static_cast<const T*>(many.data[tensor][0]) + begin;
  const int wide = reinterpret_cast<uintptr_t>(x) % 16 == 0 ? n / kLanes * kLanes : 0;
  auto acc = f.identity();
  for (int first = static_cast<int>(threadIdx.x) * kLanes; first < wide; first += kUnrolled * kStep) {
    Lanes<T, kLanes> vectors[kUnrolled];
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) {
      if (first + u * kStep < wide) vectors[u] = *reinterpret_cast<const Lanes<T, kLanes>*>(x + first + u * kStep);
    }
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) {
      if (first + u * kStep >= wide) continue;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) acc = f.take(acc, static_cast<Math>(vectors[u].lane[l]));
    }
  }
  for (int i = wide + static_cast<int>(threadIdx.x); i < n; i += kThreads) acc = f.take(acc, static_cast<Math>(x[i]));
  acc = combine_row(acc, f);
  if (threadIdx.x == 0) many.common.first[many.earlier_blocks + blockIdx.x] = acc;
}

// Sums of chunks that become norms, a block each: chunks [first[i], first[i + 1]) become norm i.
template <class Acc>
struct ChunkRanges {
  static constexpr int kMost = 480;
  const Acc* sums;
  Acc* norms;
  int64_t first[kMost + 1];
};

template <class F>
__global__ void __launch_bounds__(kThreads)
    finish_norms_kernel(const __grid_constant__ ChunkRanges<typename F::Acc> ranges) {
  const F f;
  auto acc = f.identity();
  for (int64_t c = ranges.first[blockIdx.x] + threadIdx.x; c < ranges.first[blockIdx.x + 1]; c += kThreads) {
    acc = f.combine(acc, ranges.sums[c]);
  }
  acc = combine_row(acc, f);
  if (threadIdx.x == 0) ranges.norms[blockIdx.x] = f.result(acc);
}

// The norm of each tensor, or where `norms` is one number of all of them together.
struct ForeachNormLoop {
  template <class T>
  static void run(const Tensor& norms, TensorList tensors, double ord) {
    using Math = opmath_t<T>;
    if (ord == 1) return with<T, functors::NormOne<Math>>(norms, tensors);
    if (ord == 2) return with<T, functors::NormTwo<Math>>(norms, tensors);
    with<T, functors::NormMax<Math>>(norms, tensors);
  }

 private:
  static int64_t chunks_of(const Tensor& tensor) { return (tensor.numel() + kChunk - 1) / kChunk; }

  template <class T, class F>
  static void with(const Tensor& norms, TensorList tensors) {
    using Acc = typename F::Acc;
    const char* op = kernels::foreach_norm.name();
    int64_t chunks = 0;
    for (const Tensor& tensor : tensors) chunks += chunks_of(tensor);
    const Scratch sums(static_cast<size_t>(chunks) * sizeof(Acc));
    StepLauncher<T, 1, Nothing, &chunk_norms_kernel<T, F>, ChunkSums<Acc>> launcher(op, {sums.as<Acc>()});
    for (const Tensor& tensor : tensors) launcher.add({&tensor});
    launcher.launch();
    ChunkRanges<Acc> ranges{sums.as<Acc>(), norms.data_ptr<Acc>(), {0, chunks}};
    norms.dim() == 0 ? finish<F>(op, ranges, 1) : finish_each<F>(op, ranges, tensors);
  }

  template <class F, class Acc>
  static void finish(const char* op, const ChunkRanges<Acc>& ranges, int count) {
    launch_kernel(op, finish_norms_kernel<F>, {static_cast<unsigned>(count), kThreads}, ranges);
  }

  template <class F, class Acc>
  static void finish_each(const char* op, ChunkRanges<Acc>& ranges, TensorList tensors) {
    int count = 0;
    for (const Tensor& tensor : tensors) {
      ranges.first[count + 1] = ranges.first[count] + chunks_of(tensor);
      if (++count < ChunkRanges<Acc>::kMost) continue;
      finish<F>(op, ranges, count);
      ranges.first[0] = ranges.first[count];
      ranges.norms += count;
      count = 0;
    }
    if (count > 0) finish<F>(op, ranges, count);
  }
};

// The factor, read when the kernel runs.
template <class T>
struct Factor {
  const T* number;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    multiply_kernel(const __grid_constant__ ManyTensors<1, Nothing, Factor<T>> many) {
  using Math = opmath_t<T>;
  constexpr int kLanes = 16 / sizeof(T), kStep = kThreads * kLanes;
  using Vector = Lanes<T, kLanes>;
  const auto factor = static_cast<Math>(*many.common.number);
  if (factor == Math(1)) return;  // gradients that are not clipped: nothing to read or write
  const auto [tensor, begin, n] = many.own_chunk();
  T* x = static_cast<T*>(many.data[tensor][0]) + begin;
  const int wide = reinterpret_cast<uintptr_t>(x) % 16 == 0 ? n / kLanes * kLanes : 0;
  for (int first = static_cast<int>(threadIdx.x) * kLanes; first < wide; first += kUnrolled * kStep) {
    Vector vectors[kUnrolled];
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) {
      if (first + u * kStep < wide) vectors[u] = *reinterpret_cast<const Vector*>(x + first + u * kStep);
    }
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) {
      if (first + u * kStep >= wide) continue;
#pragma unroll
      for (int l = 0; l < kLanes; ++l)
        vectors[u].lane[l] = static_cast<T>(static_cast<Math>(vectors[u].lane[l]) * factor);
      *reinterpret_cast<Vector*>(x + first + u * kStep) = vectors[u];
    }
  }
  for (int i = wide + static_cast<int>(threadIdx.x); i < n; i += kThreads) {
    x[i] = static_cast<T>(static_cast<Math>(x[i]) * factor);
  }
}

struct ForeachMulLoop {
  template <class T>
  static void run(TensorList tensors, const Tensor& factor) {
    StepLauncher<T, 1, Nothing, &multiply_kernel<T>, Factor<T>> launcher(kernels::foreach_mul.name(),
                                                                         {factor.data_ptr<T>()});
    for (const Tensor& tensor : tensors) launcher.add({&tensor});
    launcher.launch();
  }
};

// Converts list 1 into list 0, 8 elements of a thread at a time.
template <class To, class From>
__global__ void __launch_bounds__(kThreads) convert_kernel(const __grid_constant__ ManyTensors<2, Nothing> many) {
  constexpr int kLanes = 8;
  const auto [tensor, begin, n] = many.own_chunk();
  To* to = static_cast<To*>(many.data[tensor][0]) + begin;
  const From* from = static_cast<const From*>(many.data[tensor][1]) + begin;
  const bool aligned = reinterpret_cast<uintptr_t>(to) % alignof(Lanes<To, kLanes>) == 0 &&
                       reinterpret_cast<uintptr_t>(from) % alignof(Lanes<From, kLanes>) == 0;
  const int wide = aligned ? n / kLanes * kLanes : 0;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x) * kLanes; i < wide; i += kThreads * kLanes) {
    const auto source = *reinterpret_cast<const Lanes<From, kLanes>*>(from + i);
    Lanes<To, kLanes> target;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) target.lane[l] = static_cast<To>(source.lane[l]);
    *reinterpret_cast<Lanes<To, kLanes>*>(to + i) = target;
  }
  for (int i = wide + static_cast<int>(threadIdx.x); i < n; i += kThreads) to[i] = static_cast<To>(from[i]);
}

// Elements that lie side by side in both.
struct Piece {
  void *to, *from;
  int64_t numel;
};

struct CopyPieces {
  template <class To>
  struct Into {
    template <class From>
    static void run(const char* op, const std::vector<Piece>& pieces) {
      StepLauncher<To, 2, Nothing, &convert_kernel<To, From>> launcher(op);
      for (const auto& [to, from, numel] : pieces) launcher.add({to, from}, numel);
      launcher.launch();
    }
  };
  template <class To>
  static void run(ScalarType from, const char* op, const std::vector<Piece>& pieces) {
    pick<Into<To>>(RealFloatTypes(), from, op)(op, pieces);
  }
};

void copy_pieces(const char* op, ScalarType to, ScalarType from, const std::vector<Piece>& pieces) {
  pick<CopyPieces>(RealFloatTypes(), to, op)(from, op, pieces);
}

void foreach_copy(TensorList targets, TensorList sources) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < targets.size(); ++i) {
    pieces.push_back({targets[i].data_ptr(), sources[i].data_ptr(), targets[i].numel()});
  }
  copy_pieces(kernels::foreach_copy.name(), targets[0].scalar_type(), sources[0].scalar_type(), pieces);
}

std::byte* address(const Tensor& tensor, int64_t element) {
  return static_cast<std::byte*>(tensor.data_ptr()) + element * static_cast<int64_t>(tensor.element_size());
}

void foreach_blocks(const Tensor& blocks, TensorList tensors, IntArrayRef sizes, bool back) {
  std::vector<Piece> pieces;
  int64_t start = 0;
  for (size_t i = 0; i < tensors.size(); start += sizes[i++]) {
    const int64_t numel = tensors[i].numel();
    for (int64_t row = 0, first = 0; first < numel; ++row, first += sizes[i]) {
      void *const in_tensor = address(tensors[i], first), *const in_blocks =
                                                              address(blocks, row * blocks.size(1) + start);
      pieces.push_back({back ? in_tensor : in_blocks, back ? in_blocks : in_tensor, std::min(sizes[i], numel - first)});
    }
  }
  const ScalarType of_blocks = blocks.scalar_type(), of_tensors = tensors[0].scalar_type();
  copy_pieces(kernels::foreach_blocks.name(), back ? of_tensors : of_blocks, back ? of_blocks : of_tensors, pieces);
}

void foreach_norm(const Tensor& norms, TensorList tensors, double ord) {
  pick<ForeachNormLoop>(RealFloatTypes(), tensors[0].scalar_type(), "_foreach_norm")(norms, tensors, ord);
}

void foreach_mul(TensorList tensors, const Tensor& factor) {
  pick<ForeachMulLoop>(RealFloatTypes(), tensors[0].scalar_type(), "_foreach_mul_")(tensors, factor);
}

}  // namespace

void register_foreach() {
  kernels::foreach_norm.set(kCUDA, foreach_norm);
  kernels::foreach_mul.set(kCUDA, foreach_mul);
  kernels::foreach_copy.set(kCUDA, foreach_copy);
  kernels::foreach_blocks.set(kCUDA, foreach_blocks);
}

}  // namespace rush::cuda
